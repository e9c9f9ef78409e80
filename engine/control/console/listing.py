"""What all lists of the console have in common: which rulebooks, in which order, which page."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypedDict

from tidegate.rules.errors import EngineError, InputError, Problem, did_you_mean, word_place
from tidegate.rules.model import Rulebook

PAGE_ROWS = 100
Books = Mapping[str, Rulebook]
Row = dict[str, Any]


def chosen(books: Books, rulebook: str | None) -> list[Rulebook]:
    """The rulebook of a name, or all. Raises EngineError `no-rulebook`."""
    if rulebook is not None and rulebook not in books:
        hint = f"known: {', '.join(sorted(books)) or 'none'}"
        raise EngineError("no-rulebook", f"there is no rulebook `{rulebook}`", hint)
    return [book for name, book in sorted(books.items()) if rulebook in (None, name)]


def zones(books: Books) -> dict[str, str]:
    """The zone of each rulebook, in which its times are read."""
    return {name: book.timezone for name, book in books.items()}


def in_order(rows: Sequence[Row], sort: str | None, columns: Collection[str]) -> list[Row]:
    """Rows by a column, downwards with a `-` before its name. What is not known stands last. Raises
    InputError for another name than those of `columns`."""
    if sort is None:
        return [*rows]
    name = sort.removeprefix("-")
    if name not in columns:
        hint = did_you_mean(name, columns)
        message = f"nothing is sorted by `{name}`"
        raise InputError([Problem("bad-sort", message, word_place("sort"), hint)])
    known = [row for row in rows if row[name] is not None]
    unknown = [row for row in rows if row[name] is None]
    return sorted(known, key=lambda row: row[name], reverse=sort.startswith("-")) + unknown


def check_choice(name: str, given: str | None, known: Sequence[str]) -> None:
    """Raises InputError where the filter `name` is given what no row can have."""
    if given is not None and given not in known:
        hint = f"it is one of: {', '.join(known)}"
        message = f"`{name}` is never `{given}`"
        raise InputError([Problem("bad-filter", message, word_place(name), hint)])


def number(page: str | None) -> int:
    """The number of a page, from 1. Raises InputError."""
    if page is None:
        return 1
    if not (page.isascii() and page.isdigit() and int(page[:9]) >= 1):
        problem = Problem("bad-page", f"{page!r} is no page", word_place("page"), "they begin at 1")
        raise InputError([problem])
    return int(page[:9])


class Place(TypedDict):
    """Which page it is, from 1, the last one instead of any behind it; how many pages and rows
    there are."""

    page: int
    pages: int
    found: int


def place(found: int, page: str | None) -> Place:
    """The place of a page among so many rows. Raises InputError."""
    at, pages = number(page), max(1, -(-found // PAGE_ROWS))
    return {"page": min(at, pages), "pages": pages, "found": found}


def paged(rows: Sequence[Row], at: Place) -> list[Row]:
    """The rows of a page, of all rows, or of those up to its end."""
    end = at["page"] * PAGE_ROWS
    return [*rows[end - PAGE_ROWS : end]]
