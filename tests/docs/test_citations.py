"""What docstrings and comments cite exists in `docs/`: clauses, pages and their sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.site.pages import pages as site_pages
from tests.docs.pages import PAGES, ROOT

FOLDER = ROOT / "docs"
HEADING = re.compile(r"^#{1,6} (.+?)\s*$", re.MULTILINE)
CLAUSE = re.compile(r"(?<![\w`'\"/-])([GS])0?(\d{1,2}b?)(?![\w/-])")
CLAUSES = {"S": "semantics", "G": "guarantees"}
NAMED = re.compile(
    r"\b(semantics|guarantees|language|windows|eventscript|architecture|decisions)(\.md)?`?"
)
SECTIONS = re.compile(r"(?: section)? (\d(?:, \d| and \d)*)\b")
NAME = re.compile(r"def test_((?:[gs]\d\d_)+)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
# What looks like a clause and is none: types of numpy, keys of histories
OTHERS = {"S16"}


def headings(page: str) -> list[str]:
    return HEADING.findall((FOLDER / f"{page}.md").read_text(encoding="utf-8"))


KNOWN = {
    clause
    for letter, page in CLAUSES.items()
    for heading in headings(page)
    if (clause := heading.split(".")[0]) and re.fullmatch(rf"{letter}\d+b?", clause)
}
PARTS = {
    page: {h.split(".")[0] for h in headings(page) if h[0].isdigit()}
    for page in ("semantics", "language", "windows", "eventscript")
}


def cited(folder: str) -> Iterator[tuple[Path, int, str]]:
    """The lines of a folder's files that may cite something."""
    for file in sorted((ROOT / folder).rglob("*")):
        if file.suffix in (".py", ".txt", ".lark", ".md") and "__pycache__" not in file.parts:
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                yield file.relative_to(ROOT), number, line


def test_the_clauses_are_all_there() -> None:
    assert {f"S{n}" for n in range(1, 14)} <= KNOWN
    assert {f"G{n}" for n in range(1, 32)} | {"G16b"} <= KNOWN


@pytest.mark.parametrize("folder", ["engine", "rules", "connectors", "migrations", "tests"])
def test_every_clause_that_is_cited_exists(folder: str) -> None:
    lines = list(cited(folder))
    found = [
        (f"{letter}{number}", f"{file}:{line}")
        for file, line, text in lines
        if file.name != "test_citations.py"
        for letter, number in CLAUSE.findall(text)
        if _is_citation(text)
    ]
    found += [
        (f"{clause[0].upper()}{int(clause[1:])}", f"{file}:{line}")
        for file, line, text in lines
        for names in NAME.findall(text)
        for clause in names.strip("_").split("_")
    ]
    assert len(found) > 10 or folder == "migrations"
    assert [each for each in found if each[0] not in KNOWN | OTHERS] == []


def _is_citation(text: str) -> bool:
    """A comment, a docstring, or a title: not a name of a test's own."""
    return not re.search(r"[\"'][GS]\d+[\"']|\b[GS]\d+ = ", text)


@pytest.mark.parametrize("folder", ["engine", "rules", "tests"])
def test_every_section_that_is_cited_exists(folder: str) -> None:
    missing, count = [], 0
    for file, line, text in cited(folder):
        for named in NAMED.finditer(text):
            found = SECTIONS.match(text, named.end())
            for number in re.findall(r"\d", found[1]) if found else ():
                count += 1
                if number not in PARTS.get(named[1], ()):
                    missing.append((named[1], number, f"{file}:{line}"))
    assert count
    assert missing == []


def test_every_page_that_is_cited_exists() -> None:
    pages = {page.rpartition("/")[2] for page in site_pages()} | {"README.md", "CONTRIBUTING.md"}
    named = [
        (name, f"{file}:{line}")
        for folder in ("engine", "rules", "connectors", "migrations", "tests")
        for file, line, text in cited(folder)
        if file.suffix == ".py"
        for name in re.findall(r"\b([a-z]+\.md)\b(?!-)", text)  # not a class: `a.md-logo`
    ]
    assert [each for each in named if each[0] not in pages] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name) if name else page
        assert file.exists(), target
        if anchor:
            heads = HEADING.findall(file.read_text(encoding="utf-8"))
            assert anchor in {_anchor(head) for head in heads}, target


def _anchor(heading: str) -> str:
    """As GitHub makes it."""
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.replace(" ", "-")


@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.md")), ids=lambda page: page.name)
def test_clauses_of_a_page_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    clauses = {f"{letter}{number}" for letter, number in CLAUSE.findall(text)}
    if page.name != "eventscript.md":  # where S is an event of examples
        assert clauses - KNOWN == set()
