"""The frame of a page: what a browser makes of it, read with the standard library's parser."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest

from tests.support.hostile_texts import HOSTILE
from tests.support.parsed_page import Page
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
