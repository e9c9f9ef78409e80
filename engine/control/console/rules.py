"""The list of rules: what state each is in, what became of its detections in a day."""

from __future__ import annotations

from typing import Any

from tidegate.engine.control.console.listing import (
    Books,
    Place,
    check_choice,
    chosen,
    in_order,
    paged,
    place,
    zones,
)
from tidegate.engine.control.status import status_of
from tidegate.engine.explain.sentences import Sentences
from tidegate.engine.store import SqlStore
from tidegate.rules.model import Rulebook

COLUMNS = (
    "rulebook", "rule", "state", "severity", "last_fired", "fired", "condition_failed", "damped",
    "dead", "pending", "held", "carried_instances",
)  # fmt: skip

STATES = ("active", "dry", "parked", "disabled", "not active")


class Page(Place):
    """Rules, a page of them. `states`: those that a rule may be in. Each row: `COLUMNS`;
    `sentence`: what it does, in one; `hours`: how many fired in each of 24 hours, the last one is
    this hour up to now; `lag_seconds`: how far its rulebook is behind. `fired`, `condition_failed`,
    `damped`, `dead`: the sums over these hours, `pending`, `held`: its entries now."""

    zones: dict[str, str]
    states: tuple[str, ...]
    rows: list[dict[str, Any]]


def page(
    store: SqlStore,
    books: Books,
    now: int,
    rulebook: str | None = None,
    state: str | None = None,
    find: str | None = None,
    sort: str | None = None,
    page: str | None = None,
) -> Page:
    """The rules of one rulebook, or of all. `state`: only those in it. `find`: only those whose
    name holds it. `sort`: a column, with a `-` downwards. Raises EngineError, InputError."""
    check_choice("state", state, STATES)
    rows = []
    with store.snapshot():
        for book in chosen(books, rulebook):
            status = status_of(store, book)
            rows += [
                row(book, status, one)
                for one in status["rules"]
                if state in (None, one["state"]) and (find or "") in one["rule"]
            ]
        found = in_order(rows, sort or "rule", COLUMNS)
        at = place(len(found), page)
        shown = paged(found, at)
        with_more(store, books, shown, now)
    return {"zones": zones(books), "states": STATES, "rows": shown, **at}


def row(book: Rulebook, status: dict[str, Any], one: dict[str, Any]) -> dict[str, Any]:
    """A rule's row. `one`: of the status."""
    names = ("rule", "state", "severity", "last_fired", "pending", "held", "carried_instances")
    return {
        "rulebook": book.name,
        **{name: one[name] for name in names},
        **one["last_day"],
        "lag_seconds": status["lag"]["seconds"],
    }


def with_more(store: SqlStore, books: Books, rows: list[dict[str, Any]], now: int) -> None:
    """Add to rows what only those on the page need: a sentence, and the hours."""
    by_book: dict[str, list[dict[str, Any]]] = {}
    for one in rows:
        by_book.setdefault(one["rulebook"], []).append(one)
    for name, some in by_book.items():
        book = books[name]
        fired = store.of(name).hours.fired([one["rule"] for one in some], now)
        for one in some:
            rule = book.rules.get(one["rule"])
            said = Sentences(rule, book.rules).detection() if rule is not None else ()
            one["sentence"] = next(iter(said), "")
            one["hours"] = fired[one["rule"]]
