"""What is stuck: entries that are held or dead, rules that do not run, texts in quarantine, rows
and signals that were rejected; each with its cause and the way past it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypedDict

from tidegate.engine.control.console.listing import Books, chosen, zones
from tidegate.engine.control.status import status_of
from tidegate.engine.store import SqlStore
from tidegate.engine.store.outbox import DEAD, HELD
from tidegate.rules.model import Rulebook

REJECTED_SHOWN, RULES_SHOWN = 50, 20


class Page(TypedDict):
    """What is stuck. `rules`: those with more than one entry that is dead or held, most first: how
    many are, and, unless the rule is gone, the command that redrives all of them. `entries`: the
    first ones of each state, each with the `commands` that get past it, and what an operator `may`
    do: `redrive`, `skip`. `parked`, `disabled`: rules, with the command. `rejected`: the newest,
    newest first. `more`: how many are left out of each list."""

    zones: dict[str, str]
    rules: list[dict[str, Any]]
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
        "rules": [],
        "entries": [],
        "parked": [],
        "disabled": [],
        "quarantined": [],
        "rejected": [],
        "more": {"rules": 0, "entries": 0, "rejected": 0},
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
            rules = [*_of_rules(store, book)]
            found["rules"] += rules[:RULES_SHOWN]
            found["more"]["rules"] += len(rules[RULES_SHOWN:])
            found["entries"] += entries
            found["parked"] += [{**own, **row} for row in status["parked_rules"]]
            found["disabled"] += [{**own, **row} for row in status["disabled_rules"]]
            found["quarantined"] += [{**own, **row} for row in status["quarantined"]]
            found["rejected"] += [{**own, **row} for row in reversed(rejected)]
            total = status["entries_held"] + status["entries_dead"]
            found["more"]["entries"] += total - len(entries)
            found["more"]["rejected"] += status["rejected_rows"] - len(rejected)
    return found


def _of_rules(store: SqlStore, book: Rulebook) -> Iterator[dict[str, Any]]:
    for row in store.of(book.name).dead_letters.counts():
        if row[DEAD] + row[HELD] > 1:
            known = row["rule"] in book.rules
            commands = [f"tidegate redrive --all {row['rule']}"] if known else []
            yield {"rulebook": book.name, **row, "commands": commands}
