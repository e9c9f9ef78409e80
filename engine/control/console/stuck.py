"""What is stuck: entries that are held or dead, rules that do not run, texts in quarantine, rows
and signals that were rejected; each with its cause and the way past it."""

from __future__ import annotations

from typing import Any, TypedDict

from tidegate.engine.control.console.listing import Books, chosen, zones
from tidegate.engine.control.status import status_of
from tidegate.engine.store import SqlStore
from tidegate.engine.store.outbox import DEAD, HELD

REJECTED_SHOWN = 50


class Page(TypedDict):
    """What is stuck. `entries`: the first ones of each state, each with the `commands` that get
    past it, and what an operator `may` do: `redrive`, `skip`. `parked`, `disabled`: rules, with the
    command. `rejected`: the newest, newest first. `more`: how many are left out of each list."""

    zones: dict[str, str]
    entries: list[dict[str, Any]]
    parked: list[dict[str, Any]]
    disabled: list[dict[str, Any]]
    quarantined: list[dict[str, Any]]
    rejected: list[dict[str, Any]]
    more: dict[str, int]


def page(store: SqlStore, books: Books, now: int, rulebook: str | None = None) -> Page:  # noqa: ARG001
    """What is stuck in one rulebook, or in all. Raises EngineError."""
    found: Page = {
        "zones": zones(books),
        "entries": [],
        "parked": [],
        "disabled": [],
        "quarantined": [],
        "rejected": [],
        "more": {"entries": 0, "rejected": 0},
    }
    with store.snapshot():
        for book in chosen(books, rulebook):
            status, own = status_of(store, book), {"rulebook": book.name}
            entries = [
                {**own, **entry, "may": [command.split()[1] for command in entry["commands"]]}
                for entry in status["entries"]
                if entry["state"] in (HELD, DEAD)
            ]
            rejected = store.of(book.name).rejections.newest(REJECTED_SHOWN, whole=False)
            found["entries"] += entries
            found["parked"] += [{**own, **row} for row in status["parked_rules"]]
            found["disabled"] += [{**own, **row} for row in status["disabled_rules"]]
            found["quarantined"] += [{**own, **row} for row in status["quarantined"]]
            found["rejected"] += [{**own, **row} for row in reversed(rejected)]
            total = status["entries_held"] + status["entries_dead"]
            found["more"]["entries"] += total - len(entries)
            found["more"]["rejected"] += status["rejected_rows"] - len(rejected)
    return found
