"""Who asked for what, and what came of it."""

from __future__ import annotations

from typing import Any, TypedDict

from tidegate.engine.control.console.listing import PAGE_ROWS, Books, chosen, number, zones
from tidegate.engine.store import SqlStore


class Page(TypedDict):
    """Requests, newest first, a page of them: rulebook, asked_at, asked_by, kind, subject, version,
    option, bucket (which carried it out), answer (None: it waits). They are kept for
    `history_retention_days`."""

    zones: dict[str, str]
    rows: list[dict[str, Any]]
    page: int
    pages: int
    found: int


def page(
    store: SqlStore,
    books: Books,
    now: int,  # noqa: ARG001
    rulebook: str | None = None,
    kind: str | None = None,
    subject: str | None = None,
    by: str | None = None,
    page: str | None = None,
) -> Page:
    """The requests of one rulebook, or of all. `kind`: as `redrive`; `subject`: of this rule, entry
    or table; `by`: of who has this name. Raises EngineError, InputError."""
    at = number(page)
    rows: list[dict[str, Any]] = []
    found = 0
    with store.snapshot():
        for book in chosen(books, rulebook):
            wanted = {"kind": kind, "subject": subject, "asked_by": by}
            some, count = store.of(book.name).controls.asked(wanted, at * PAGE_ROWS)
            rows += [{"rulebook": book.name, **row} for row in some]
            found += count
    rows.sort(key=lambda row: row["id"], reverse=True)  # of one sequence, for all rulebooks
    pages = max(1, -(-found // PAGE_ROWS))
    first = (at - 1) * PAGE_ROWS
    return {
        "zones": zones(books),
        "rows": rows[first : first + PAGE_ROWS],
        "page": at,
        "pages": pages,
        "found": found,
    }
