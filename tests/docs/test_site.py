"""The documentation site, as it is before it is built: each page has its place, each link leads
somewhere, and what is made of the code is whole."""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import subprocess

import click
import pytest

from docs.site.links import FENCE, anchor, for_the_site, headings
from docs.site.pages import pages
from docs.site.pictures import illustrated, lines
from tests.docs.pages import ROOT
from tidegate.engine.cli.main import main
from tidegate.rules.model import Settings

PAGES = pages()
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAV = re.compile(r"^ +- (?:[^:]+: )?(\S+\.md)$", re.MULTILINE)


def test_every_page_stands_in_the_navigation_once() -> None:
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert sorted(NAV.findall(config.split("\nnav:\n")[1])) == sorted(PAGES)
    assert len(PAGES) > 50


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_page_of_the_site(page: str) -> None:
    for target in LINK.findall(FENCE.sub("", PAGES[page])):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, place = target.partition("#")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(page), name)) if name else page
        if file.endswith(".svg"):
            assert (ROOT / "docs" / file).exists(), target
            continue
        assert file in PAGES, target
        if place:
            assert place in {anchor(head) for head in headings(PAGES[file])}, target


@pytest.mark.parametrize("page", PAGES)
def test_a_page_begins_with_its_title(page: str) -> None:
    assert re.match(r"# \S", PAGES[page])
    assert len(re.findall(r"^# ", FENCE.sub("", PAGES[page]), re.MULTILINE)) == 1


def test_titles_are_different() -> None:
    titles = [text.partition("\n")[0] for text in PAGES.values()]
    assert len(set(titles)) == len(titles)


def test_the_settings_are_all_there() -> None:
    for name in Settings.__slots__:
        assert re.search(
            rf"^\| `{name}` \| [^|]+ \| ([01]|`\w+` or .+) \| [^|]{{8,}} \|$",
            PAGES["settings.md"],
            re.M,
        )


def test_the_commands_are_all_there_with_their_options() -> None:
    parts = {part.partition("\n")[0]: part for part in PAGES["commands.md"].split("\n## ")[1:]}
    commands = {name: each for name, each in main.commands.items() if name != "rules"}
    group = main.commands["rules"]
    assert isinstance(group, click.Group)
    commands |= {f"rules {name}": each for name, each in group.commands.items()}
    assert sorted(parts) == sorted(commands)
    for name, part in parts.items():
        assert f"    tidegate {name}" in part
        options = [e for e in commands[name].params if isinstance(e, click.Option) and not e.hidden]
        assert [each.opts for each in options if f"{each.opts[-1]}" not in part] == []


def test_the_cookbook_has_each_rulebook_with_its_tests() -> None:
    books = sorted((ROOT / "rules" / "examples" / "cookbook").glob("*[a-z].yaml"))
    books = [book for book in books if not book.name.endswith(".test.yaml")]
    assert len(books) >= 34
    for book in books:
        page = PAGES[f"cookbook/{book.stem}.md"]
        assert book.read_text(encoding="utf-8").partition("\nrulebook: ")[2] in page
        tests = book.with_suffix(".test.yaml").read_text(encoding="utf-8")
        assert tests.partition("\n")[2] in page
        assert f"({book.stem}.md)" in PAGES["cookbook/index.md"]


def shown(text: str, page: str = "operating.md") -> str:
    pages = {"README.md": "index.md", "docs/guide.md": "guide.md"}
    return for_the_site(text, f"docs/{page}", page, pages, {"G1": "guarantees.md#g1-instants"})


def test_a_link_to_a_file_of_the_repository_becomes_one_to_its_page() -> None:
    assert shown("[a](../README.md#x), [b](guide.md)") == "[a](index.md#x), [b](guide.md)"
    assert shown("[a](#here)") == "[a](#here)"
    assert shown("[a](../README.md)", "cookbook/index.md") == "a"  # docs/README.md is no page
    assert shown("[a](https://x.org/y)") == "[a](https://x.org/y)"
    assert shown("see [code](../rules/x.py) there") == "see code there"


def test_a_clause_in_prose_leads_to_it() -> None:
    link = "[G1](guarantees.md#g1-instants)"
    assert shown("as said (G1), and G1.") == f"as said ({link}), and {link}."
    for text in ("`G1`", "# G1", "[G1](x:y)", "    G1", "```\nG1\n```", "G11", "XG1", "`a\nG1`"):
        assert shown(text) == text


def test_a_bar_in_the_code_of_a_cell_is_written_as_it_is() -> None:
    assert shown("| `a \\| b` | c |") == "| `a | b` | c |"
    assert shown("`a \\| b`") == "`a \\| b`"


CASE = """title: a pair
on: a ; b
history: a@1 b@2(k=1) b@4
expect recent: [1,2] {a@1 b@2(k=1)}
expect *:
  k=1 [1,2] {a@1 b@2} [3,4] {}
"""


def test_a_worked_example_has_its_lines() -> None:
    found = [(line.name, line.span, line.instants) for line in lines(CASE)]
    assert found == [
        ("a", None, (1.0,)),
        ("b", None, (2.0, 4.0)),
        ("recent", (1.0, 2.0), (1.0, 2.0)),
        ("each k=1", (1.0, 2.0), (1.0, 2.0)),
        ("each", (3.0, 4.0), ()),
    ]


def test_each_worked_example_in_seconds_has_its_picture() -> None:
    text, drawn = illustrated("semantics.md", PAGES["semantics.md"])
    titles = re.findall(r"^title: (.*)$", PAGES["semantics.md"], re.MULTILINE)
    assert len(titles) - 5 <= len(drawn) < len(titles)  # few are in dates
    for place, picture in drawn.items():
        assert f"]({place})" in text
        assert picture.startswith("<svg ")
        assert picture.count("<circle") >= 2
    assert FENCE.findall(text) == FENCE.findall(PAGES["semantics.md"])


def test_its_search_index_is_asked_in_the_words_of_the_questions() -> None:
    """Each of them is a heading; `test_site_built` asks the search itself."""
    asked = json.loads((ROOT / "tests" / "docs" / "questions.json").read_text(encoding="utf-8"))
    heads = {re.sub(r"[`?]", "", head).lower() for head in headings(PAGES["questions.md"])}
    assert len(asked) == len(set(asked)) >= 12
    for question in asked:
        assert re.sub(r"[`?]", "", question).lower() in heads


@pytest.mark.skipif(shutil.which("node") is None, reason="node")
def test_of_what_a_page_of_a_file_asks_the_search_has_a_copy() -> None:
    """The search takes the words out of a question: the box was empty after each key."""
    script, worker = ROOT / "tests/docs/frame.js", ROOT / "docs/site/assets/iframe-worker.js"
    run = subprocess.run(["node", script, worker], capture_output=True, text=True, check=True)
    asked, kept, told = json.loads(run.stdout)
    assert asked == {"input": "null key"}
    assert (kept, told) == ({"items": [1]}, {"items": [1, 2]})
