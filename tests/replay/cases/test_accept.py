"""What happened is written in place of `?`, and everything else stays."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tidegate.engine.replay.cases.accept import accept, filled
from tidegate.engine.replay.cases.differences import Answer
from tidegate.engine.replay.cases.reader import read_nodes
from tidegate.rules.errors import InputError, Place
from tidegate.rules.yaml.files import read_file
from tidegate.rules.yaml.reader import Fields, Scalar

FIRING = {"key": {"a": 7}, "at": "2026-03-02T09:00:00", "constituents": 2}
TEXT = """\
# é
rulebook: b.yaml
tests:
- name: a
  expect: ?   # what?
- name: b
  expect:
    firings: '?'
    dead: "?"
    tables: {x: ?, y: [ { a: 1 } ]}
"""


def test_values_take_lines_of_their_own_where_they_may() -> None:
    whole = {"firings": {"r": [FIRING, FIRING], "q": []}, "only": True, "dead": 2}
    answers: dict[tuple[int, int], Any] = {
        (5, 11): whole,
        (8, 14): whole["firings"],
        (9, 11): 0,
        (10, 17): [{"a": 7}],
    }
    shown = "{key: {a: 7}, at: 2026-03-02T09:00:00, constituents: 2}"
    rows = f"      r:\n        - {shown}\n        - {shown}\n      q: []"
    expected = TEXT.replace(
        "expect: ?   #", f"expect:\n    firings:\n{rows}\n    only: true\n    dead: 2   #"
    )
    expected = expected.replace("firings: '?'", f"firings:\n{rows}").replace('"?"', "0")
    assert filled(TEXT, answers) == expected.replace("x: ?", "x: [{a: 7}]")


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_the_rest_stays_byte_for_byte(tmp_path: Path, ends: bytes, mark: bytes) -> None:
    file = tmp_path / "a.test.yaml"
    file.write_bytes(mark + TEXT.encode().replace(b"\n", ends))
    answers = [Answer(Place(str(file), 9, 11), 3), Answer(Place(str(file), 5, 11), {"dead": 2})]
    assert accept(file, read_file(str(file)), answers) == 2
    text = TEXT.replace('"?"', "3").replace("expect: ?", "expect:\n    dead: 2")
    assert file.read_bytes() == mark + text.encode().replace(b"\n", ends)


@pytest.mark.parametrize("now", ["", "# a comment\n" + TEXT, TEXT.replace("- name: a\n", "")])
def test_a_file_that_has_changed_meanwhile_stays_as_it_is(tmp_path: Path, now: str) -> None:
    file = tmp_path / "a.test.yaml"
    file.write_text(now)
    with pytest.raises(InputError, match="it has changed meanwhile"):
        accept(file, TEXT, [Answer(Place(str(file), 9, 11), 3)])
    assert file.read_text() == now


def test_a_link_and_the_permissions_of_its_file_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "a", tmp_path / "a.test.yaml"
    file.write_text(TEXT)
    file.chmod(0o640)
    link.symlink_to(file)
    accept(link, TEXT, [Answer(Place(str(link), 9, 11), 3)])
    assert link.is_symlink()
    assert file.read_text() == TEXT.replace('"?"', "3")
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_file_that_cannot_be_written_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.test.yaml"
    file.write_text(TEXT)
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write what is read-only
    with pytest.raises(InputError, match="cannot be written: Permission denied"):
        accept(file, TEXT, [Answer(Place(str(file), 9, 11), 3)])
    assert file.read_text() == TEXT


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (-5, "-5"),
        (0.1, "0.1"),
        (Decimal("2.50"), "2.50"),
        (Decimal("12345678901234567890.10"), '"12345678901234567890.10"'),
        ("withdraw", "withdraw"),
        ("true", '"true"'),
        ("null", '"null"'),
        ("7", '"7"'),
        ("", '""'),
        ("a: b", '"a: b"'),
        ('say "no" \\', '"say \\"no\\" \\\\"'),
        ("a\nb", '"a\\U0000000Ab"'),
        ("2026-03-02", "2026-03-02"),
        ("?", '"?"'),
        ("ü", '"ü"'),
    ],
)
def test_values_are_read_as_they_were(value: Any, shown: str) -> None:
    text = filled("rulebook: ?\n", {(1, 11): value})
    assert text == f"rulebook: {shown}\n"
    top, _ = read_nodes(text, "a.test.yaml")
    node = top.entries["rulebook"]
    assert isinstance(node, Scalar)
    expected = float(value) if isinstance(value, Decimal) and not node.style else value
    assert node.value == (str(expected) if isinstance(expected, Decimal) else expected)


def test_names_are_quoted_too() -> None:
    text = filled("expect: {tables: ?}\n", {(1, 18): {"x": [{"a b": 1, "on": "2"}]}})
    top, problems = read_nodes(text, "a.test.yaml")
    assert text == 'expect: {tables: {x: [{"a b": 1, on: "2"}]}}\n'
    assert not problems
    assert isinstance(top.entries["expect"], Fields)
