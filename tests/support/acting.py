"""Fakes round the runner of entries: a sink, and an outbox that keeps what was settled."""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tidegate.engine.entries import Entry, Fate, Outcome
from tidegate.engine.ports import SinkError
from tidegate.engine.values import Firings


class FakeSink:
    """Commits everything but the entries in `failing`, as often as that says. It knows numbers
    alone: Delta's rule for markers is the MemorySink's."""

    def __init__(self, failing: dict[int, int] | None = None, landed: Sequence[int] = ()) -> None:
        self.failing = dict(failing or {})
        self.committed: list[int] = []
        self.seen: list[Firings] = []
        self.landed_before = set(landed)
        self.asked: list[int] = []

    def run(self, entry: Entry, firings: Firings) -> None:
        if self.failing.get(entry.number, 0) > 0:
            self.failing[entry.number] -= 1
            raise SinkError("[DIVIDE_BY_ZERO] Division by zero.")
        self.committed.append(entry.number)
        self.seen.append(firings)

    def fate(self, entry: Entry, firings: Firings) -> Fate:
        self.asked.append(entry.number)
        landed = {*self.landed_before, *self.committed}
        return Fate.EFFECT if entry.number in landed else Fate.ABSENT

    def seal(self, entry: Entry) -> None:
        raise AssertionError

    def fields(self, entry: Entry, firings: Firings) -> pa.Table:
        if self.failing.get(entry.number, 0) > 0:
            self.failing[entry.number] -= 1
            raise SinkError("[CAST_INVALID_INPUT] no number")
        sums = firings.relation.group_by("firing_id").aggregate([("amount", "sum")])
        rows = [{"firing_id": r["firing_id"], "total": r["amount_sum"]} for r in sums.to_pylist()]
        return pa.Table.from_pylist(rows[::-1])


class FakeOutbox:
    """What was settled, in order. Every entry is for `firings`."""

    def __init__(self, firings: Firings) -> None:
        self.outcomes: list[Outcome] = []
        self._firings = firings

    def settle(self, outcome: Outcome) -> tuple[Entry, ...]:
        self.outcomes.append(outcome)
        return ()

    def answer(self, control: int, text: str) -> None:
        raise AssertionError

    def entry(self, number: int) -> Entry | None:
        raise AssertionError

    def firings(self, entry: Entry) -> Firings:
        return self._firings


class Unasked:
    """Nothing is asked of the rules of now."""

    def entries(self, entry: Entry, firings: Firings) -> tuple[tuple[Entry, ...], Firings]:
        raise AssertionError

    def renewed(self, entry: Entry) -> Entry | str:
        raise AssertionError
