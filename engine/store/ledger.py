"""The outbox of one rulebook, as the engine that holds its lease sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.engine.core.entries import Entry, Outcome
from tidegate.engine.core.ports import Store
from tidegate.engine.core.values import Firings, Signal


@dataclass(frozen=True, slots=True)
class Ledger:
    """Implements `engine.act.run.Outbox`. Writes raise EngineError `lease-lost` once another engine
    has the lease."""

    store: Store
    rulebook: str
    epoch: int

    def settle(self, outcomes: Sequence[Outcome]) -> tuple[Entry, ...]:
        return self.store.settle(self.rulebook, self.epoch, outcomes)

    def tell(self, signals: Sequence[Signal]) -> None:
        if signals:
            self.store.tell(self.rulebook, self.epoch, signals)

    def answer(self, control: int, text: str) -> None:
        self.store.answer(self.rulebook, self.epoch, control, text)

    def entry(self, number: int) -> Entry | None:
        return self.store.one_entry(self.rulebook, number)

    def firings(self, entry: Entry) -> Firings:
        return self.store.entry_firings(self.rulebook, entry.bucket, entry.rule)

    def do_otherwise(self, entry: Entry, made: Sequence[Entry]) -> tuple[Entry, ...]:
        return self.store.do_otherwise(self.rulebook, self.epoch, entry, made)

    def dead_in_a_row(self, entry: Entry, limit: int) -> int:
        return self.store.dead_in_a_row(self.rulebook, entry, limit)
