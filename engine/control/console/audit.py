"""Who asked for what, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.engine.control.console.listing import (
    PAGE_ROWS,
    Books,
    Place,
    check_choice,
    chosen,
    paged,
    place,
    zones,
)
from tidegate.engine.store import SqlStore
from tidegate.engine.store.controls import RELOAD

KINDS = ("skip", "redrive", "enable", "disable", "reload", "reset")


class Page(Place):
    """Requests, newest first, a page of them: rulebook, asked_at, asked_by, kind, subject, version,
    option, bucket (which carried it out), answer (None: it waits); `said`: what was asked for, and
    `of` what, in words. They are kept for `history_retention_days`. `kinds`: by which they can be
    filtered."""

    zones: dict[str, str]
    kinds: tuple[str, ...]
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
    check_choice("kind", kind, KINDS)
    wanted = {"kind": kind, "subject": subject, "asked_by": by}
    rows: list[dict[str, Any]] = []
    with store.snapshot():
        asked = {book.name: store.of(book.name).controls for book in chosen(books, rulebook)}
        at = place(sum(each.count(wanted) for each in asked.values()), page)
        for name, each in asked.items():
            some = each.newest(wanted, at["page"] * PAGE_ROWS)
            rows += [{"rulebook": name, **row, **_said(row)} for row in some]
    rows.sort(key=lambda row: row["id"], reverse=True)  # of one sequence, for all rulebooks
    return {"zones": zones(books), "kinds": KINDS, "rows": paged(rows, at), **at}


def _said(row: Mapping[str, Any]) -> dict[str, str]:
    """A request in words. A reload that changes no text says what it does instead."""
    kind, subject, option = row["kind"], row["subject"], row["option"]
    if kind == RELOAD:
        of = f"version {subject}" if subject.isdecimal() else subject
        return {"said": option or kind, "of": of}
    return {"said": f"{kind} ({option})" if option else kind, "of": subject}
