"""The frame of a page: what a browser makes of it, read with the standard library's parser."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from tests.support.hostile_texts import HOSTILE
from tests.support.parsed_page import Page
from tidegate.engine.core.text.files import write_whole
from tidegate.engine.core.text.page import data, document, inert


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_value_is_text_and_data_only(text: str) -> None:
    body = [f'<p title="{inert(text)}">{inert(text)}</p>', data("d", {text: [text]})]
    made = document(text, body, script="let own = 1;")
    page = Page(made)
    assert [tag for tag, _ in page.tags] == [
        "html", "head", "meta", "meta", "meta", "title", "style", "body", "main", "p",
        "script", "script",
    ]  # fmt: skip
    assert page.attributes("p") == [{"title": page.text("p")}]
    assert json.loads(page.text("script")) == {text: [text]}
    assert page.scripts == ["let own = 1;"]


def test_the_policy_allows_the_page_s_own_style_and_script_and_nothing_else() -> None:
    made = document("t", ["<h1>t</h1>"], style=".own { color: red; }", script="let own = 'é';")
    policy = Page(made).attributes("meta")[1]["content"] or ""
    said = dict(part.split(" ", 1) for part in policy.split("; "))
    assert said.keys() == {"default-src", "style-src", "script-src", "base-uri", "form-action"}
    for name, element in (("style-src", "style"), ("script-src", "script")):
        found = re.search(f"<{element}>(.*?)</{element}>", made, re.DOTALL)
        assert found is not None
        digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
        assert said.pop(name) == f"'sha256-{digest}'"
    assert set(said.values()) == {"'none'"}


def test_a_page_without_a_script_may_run_none() -> None:
    made = document("t", [])
    assert "script" not in made


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file, link = tmp_path / "page.html", tmp_path / "link.html"
    write_whole(file, "before é")
    link.symlink_to(file)
    opened = file.open(encoding="utf-8")
    write_whole(link, "after")
    assert (opened.read(), file.read_text()) == ("before é", "after")
    assert link.is_symlink()
    with pytest.raises(UnicodeEncodeError):
        write_whole(file, "half \ud800")
    assert file.read_text() == "after"
    assert sorted(tmp_path.iterdir()) == [link, file]


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, "<p>")
    assert os.read(reader, 10) == b"<p>"
    assert [*tmp_path.iterdir()] == [pipe]


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    file, other = tmp_path / "page.html", tmp_path / "new.html"
    file.touch(0o600)
    write_whole(file, "mine")
    assert (file.stat().st_mode & 0o777, file.read_text()) == (0o600, "mine")
    (tmp_path / "as-usual").write_text("")
    write_whole(other, "new")
    assert other.stat().st_mode == (tmp_path / "as-usual").stat().st_mode


def test_what_is_open_already_is_written_through_by_whatever_links(tmp_path: Path) -> None:
    file, one, two = tmp_path / "out.txt", tmp_path / "one", tmp_path / "two"
    with file.open("w") as out:
        one.symlink_to(f"/proc/self/fd/{out.fileno()}")
        two.symlink_to("one")
        write_whole(two, "page")
        assert file.stat().st_ino == os.fstat(out.fileno()).st_ino
    assert file.read_text() == "page"
