"""Who asked for what, and what came of it."""

from __future__ import annotations

from typing import Any

from tidegate.engine.control.console.listing import (
    PAGE_ROWS,
    Books,
    Place,
    chosen,
    paged,
    place,
    zones,
)
from tidegate.engine.store import SqlStore


class Page(Place):
    """Requests, newest first, a page of them: rulebook, asked_at, asked_by, kind, subject, version,
    option, bucket (which carried it out), answer (None: it waits). They are kept for
    `history_retention_days`."""

    zones: dict[str, str]
    rows: list[dict[str, Any]]


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
    wanted = {"kind": kind, "subject": subject, "asked_by": by}
    rows: list[dict[str, Any]] = []
    with store.snapshot():
        asked = {book.name: store.of(book.name).controls for book in chosen(books, rulebook)}
        at = place(sum(each.count(wanted) for each in asked.values()), page)
        for name, each in asked.items():
            some = each.newest(wanted, at["page"] * PAGE_ROWS)
            rows += [{"rulebook": name, **row} for row in some]
    rows.sort(key=lambda row: row["id"], reverse=True)  # of one sequence, for all rulebooks
    return {"zones": zones(books), "rows": paged(rows, at), **at}
