"""From a page of the repository to a page of the site: its links, and what Markdown dialects differ
in."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping

FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:)([^)\s#]*)((?:#[^)\s]*)?)(?=\))")
_BAR = re.compile(r"^\|.*", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]+`")
# What no clause is looked for in: code, links, headings, blocks that are set in
_NO_PROSE = re.compile(r"`(?:[^`\n]|\n(?!\n))+`|\[[^\]]*\]\([^)]*\)|^#.*$|^ {4}.*$", re.MULTILINE)
_CLAUSE = re.compile(r"(?<![\w`#\[/.-])([GS]\d{1,2}b?)(?![\w\]/-])")
_HEADING = re.compile(r"^#{1,6} (.+?)\s*$", re.MULTILINE)


def anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it and as `mkdocs.yml` asks for."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def headings(text: str) -> list[str]:
    return _HEADING.findall(FENCE.sub("", text))


def clauses(texts: Mapping[str, str]) -> dict[str, str]:
    """Where each clause stands: `G1` to `guarantees.md#g1-instants`."""
    found = {}
    for page in ("guarantees.md", "semantics.md"):
        for heading in headings(texts[page]):
            if named := re.match(r"([GS]\d{1,2}b?)\. ", heading):
                found[named[1]] = f"{page}#{anchor(heading)}"
    return found


def for_the_site(
    text: str, source: str, page: str, pages: Mapping[str, str], stands: Mapping[str, str]
) -> str:
    """The text of the file `source`, as the site's `page`. Links to files that are pages (`pages`:
    file to page) lead there; the others lose their link. A clause in prose becomes one.
    """

    def linked(found: re.Match[str]) -> str:
        if not found[1]:
            return found[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1]))
        if file in pages:
            return relative(pages[file], page) + found[2]
        return relative(file.removeprefix("docs/"), page) if file.endswith(".svg") else ""

    def clause(found: re.Match[str]) -> str:
        place = stands.get(found[1])
        return f"[{found[1]}]({relative(place, page)})" if place else found[1]

    def prose(part: str) -> str:
        part = re.sub(r"\[([^\]]+)\]\(\)", r"\1", _LINK.sub(linked, part))
        part = _outside(_NO_PROSE, part, lambda text: _CLAUSE.sub(clause, text))
        return _BAR.sub(lambda line: _CODE.sub(_unescaped, line[0]), part)

    return _outside(FENCE, text, prose)


def relative(place: str, page: str) -> str:
    """The way to a place of the site from one of its pages."""
    return posixpath.relpath(place, posixpath.dirname(page) or ".")


def _unescaped(code: re.Match[str]) -> str:
    """Code in a cell: here a bar in it parts no cells."""
    return code[0].replace("\\|", "|")


def _outside(kept: re.Pattern[str], text: str, change: Callable[[str], str]) -> str:
    """The text, changed everywhere but in what is kept."""
    parts, begin = [], 0
    for found in kept.finditer(text):
        parts += [change(text[begin : found.start()]), found[0]]
        begin = found.end()
    return "".join([*parts, change(text[begin:])])
