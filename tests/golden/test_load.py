"""A golden file that is not what it seems to be is refused, with file and line."""

from __future__ import annotations

import pytest

from tests.golden.load import read_all

GOOD = """\
# a comment

title: first
on: a
history: a@1
expect: [1,1] {a@1}

title: second, its history on two lines
on: a ; b
history: a@1
  b@2
expect *: [1,2] {a@1 b@2}
"""


def test_a_case_is_named_by_its_file_and_line() -> None:
    names = [str(case) for case in read_all(GOOD, "good.txt")]
    assert names == ["good.txt:3 first", "good.txt:8 second, its history on two lines"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("on: b", "bad.txt:13: a second `on` in one block"),
        ("expect *:", r"bad.txt:13: a second `expect \*` in one block"),
        ("expect recent:\nexpect recent, chronicle:", "bad.txt:8: a second answer in recent"),
        ("\non: b", "bad.txt:14: no history, no title"),
        ("no entry", "bad.txt:13: unknown entry `no entry`"),
        ("expct: [1,1] {a@1}", "bad.txt:13: unknown entry `expct`"),
        ("per q: k", "bad.txt:13: unknown entry `per q`"),
        ("expect: [1,1] a@1", "bad.txt:8: not a detection"),
        ("until: soon", "bad.txt:8: "),
    ],
)
def test_what_is_wrong_in_a_block_is_said_with_file_and_line(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(read_all(f"{GOOD}{line}", "bad.txt"))
