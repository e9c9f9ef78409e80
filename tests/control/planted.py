"""A rulebook on a real store, into which troubles are planted; no Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import make
from tests.support.make import SECOND
from tidegate import rules
from tidegate.engine.control.console import overview
from tidegate.engine.core.lifecycle import IDLE, Activity
from tidegate.engine.core.values import Cursor, Plan, TableRange
from tidegate.engine.store import SqlStore
from tidegate.engine.store.holder import this_holder
from tidegate.rules.model import Rulebook

MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
BOOK = """\
rulebook: bank
tables:
  transactions: {{path: {lake}/transactions, key: [id]}}
  accounts: {{path: {lake}/accounts, key: [id]}}
events:
  withdrawal: {{on: insert, table: transactions}}
  closing: {{cron: "0 17 * * *"}}
  atm_empty: {{signal: {{atm_id: bigint}}}}
rules:
  pay: {{on: withdrawal, per: account_id, do: [{{sql: INSERT INTO accounts SELECT id FROM event}}]}}
  block: {{on: withdrawal ; atm_empty, do: [{{sql: INSERT INTO accounts SELECT id FROM event}}]}}
  report: {{on: closing}}
"""
DIGESTS = dict.fromkeys(("pay", "block", "report"), "same")


@dataclass
class Planted:
    """The rulebook `bank` and its tables' logs. `now`: the store's clock when it was made."""

    store: SqlStore
    lake: Path
    settings: str = ""
    book: Rulebook = field(init=False)
    now: int = field(init=False)
    epoch: int = field(init=False)
    buckets: int = 0

    def __post_init__(self) -> None:
        self.book = rules.load(BOOK.format(lake=self.lake) + self.settings)
        self.now = self.store.wall()
        self.store.of("bank").versions.register(self.book.text, None)
        self.epoch = self.store.of("bank").lease.acquire(this_holder(), 600)
        self.say(IDLE)

    def say(self, state: str, **changes: Any) -> None:
        """What the engine does."""
        said = Activity(state, **{"looked_at": self.now, "seen_until": self.now, **changes})
        self.store.of("bank", self.epoch).lease.say(said)

    def plan(self, **changes: Any) -> Plan:
        """The next bucket, as of now."""
        self.buckets += 1
        values = {"watermark_before": self.now - SECOND, "watermark": self.now, "now": self.now}
        if self.buckets == 1:
            values["activations"] = dict.fromkeys(DIGESTS, self.now)
        return make.plan(self.buckets, **{**values, **changes})

    def commit(self, plan: Plan | None = None, **taken: Any) -> Any:
        """Commit a bucket; its entries."""
        digests = {"digests": DIGESTS, **taken}
        return make.commit(self.store, self.epoch, plan or self.plan(), **digests)

    def span(
        self, table: str, instants: Mapping[int, int], logged: Mapping[int, int] | None = None
    ) -> TableRange:
        """Versions of a table, each of an instant."""
        first, last = min(instants), max(instants)
        cursor = Cursor(table, f"id-of-{table}", last, instants[last], '{"fields":[]}')
        return TableRange(table, first, last, instants, cursor, logged=logged or {})

    def log(self, table: str, instants: Sequence[int]) -> None:
        """The log of a table on this machine: version n is of the nth instant."""
        folder = self.lake / table / "_delta_log"
        folder.mkdir(parents=True, exist_ok=True)
        for version, at in enumerate(instants):
            file = folder / f"{version:020d}.json"
            file.touch()
            os.utime(file, (at / 1e6, at / 1e6))

    def overview(self, now: int | None = None) -> overview.Overview:
        """The first page."""
        books = {"bank": self.book}
        [found] = overview.page(self.store, books, now or self.store.wall())["rulebooks"]
        return found

    def troubles(self, now: int | None = None) -> dict[str, list[dict[str, Any]]]:
        """Those that the first page shows, by kind."""
        found: dict[str, list[dict[str, Any]]] = {}
        for trouble in self.overview(now)["troubles"]:
            found.setdefault(trouble["kind"], []).append(trouble)
        return found
