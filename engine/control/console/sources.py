"""The sources: tables, with what is not read and for how long it is kept, and signals."""

from __future__ import annotations

from typing import Any, TypedDict

from tidegate.engine.control.console.listing import Books, chosen, in_order, zones
from tidegate.engine.control.console.troubles import PAUSES_SEEN, quiet_for
from tidegate.engine.control.status import status_of
from tidegate.engine.core.text import json_text
from tidegate.engine.store import SqlStore
from tidegate.rules.analysis.graph import table_events
from tidegate.rules.model import Rulebook, SignalEvent

COLUMNS = (
    "rulebook", "table", "version", "instant", "commits_behind", "seconds_behind", "quiet_seconds",
    "kept_seconds", "left_seconds",
)  # fmt: skip


class Page(TypedDict):
    """The sources. A table: rulebook, table, path (or its name in the catalog), `events` on it,
    version and instant of the last commit that was read (None before the first), commits_behind,
    seconds_behind (None: not known), `quiet_seconds` (for how long it has been quieter than ever,
    or None), `kept_seconds` (how long a commit is kept at least) and `kept_by` (by which property),
    `left_seconds` (until the first thing that is needed of it may be gone, None: nothing is) and
    `left_said`. A signal: rulebook, event, waiting, `last_received` (of the newest signals)."""

    zones: dict[str, str]
    tables: list[dict[str, Any]]
    signals: list[dict[str, Any]]


def page(
    store: SqlStore,
    books: Books,
    now: int,
    rulebook: str | None = None,
    sort: str | None = None,
) -> Page:
    """The sources of one rulebook, or of all. `sort`: the tables by one of `COLUMNS`, with a `-`
    downwards. Raises EngineError, InputError."""
    found: Page = {"zones": zones(books), "tables": [], "signals": []}
    with store.snapshot():
        for book in chosen(books, rulebook):
            found["tables"] += _tables(store, book, now)
            found["signals"] += _signals(store, book)
    return {**found, "tables": in_order(found["tables"], sort, COLUMNS)}


def _tables(store: SqlStore, book: Rulebook, now: int) -> list[dict[str, Any]]:
    status, events = status_of(store, book), [*table_events(book)]
    retention = status["retention"]
    kept = {row["table"]: row for row in retention["tables"]}
    first = {row["table"]: row for row in reversed(retention["deadlines"])}
    read = {row["table"]: row for row in status["tables"]}
    arrivals = store.of(book.name).trends.commits([*read], PAUSES_SEEN)
    names = ("version", "instant", "commits_behind", "seconds_behind")
    rows = []
    for table in book.tables.values():
        cursor, deadline = read.get(table.name, {}), first.get(table.name, {})
        quiet = quiet_for(arrivals.get(table.name, ()), now)
        rows.append(
            {
                "rulebook": book.name,
                "table": table.name,
                "path": table.path or table.catalog,
                "events": sorted(e.name for e in events if e.table == table.name),
                **{name: cursor.get(name) for name in names},
                "quiet_seconds": None if cursor.get("commits_behind") else quiet,
                "kept_seconds": kept.get(table.name, {}).get("stands_seconds"),
                "kept_by": kept.get(table.name, {}).get("by"),
                "left_seconds": deadline.get("left_seconds"),
                "left_said": deadline.get("said"),
            }
        )
    return rows


def _signals(store: SqlStore, book: Rulebook) -> list[dict[str, Any]]:
    waiting, heard = store.of(book.name).signals.waiting(), store.of(book.name).trends.signals()
    declared = [event.name for event in book.events.values() if isinstance(event, SignalEvent)]
    return [
        {
            "rulebook": book.name,
            "event": event,
            "declared": event in declared,
            "waiting": waiting.get(event, 0),
            "last_received": json_text.instant(max(heard.get(event, ()), default=None)),
        }
        for event in sorted({*declared, *waiting})
    ]
