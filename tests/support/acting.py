"""Fakes round the runner of entries: a sink, and an outbox that keeps what was settled."""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from tidegate.engine.act.executors import Executor
from tidegate.engine.core.entries import Entry, Fate, Outcome
from tidegate.engine.core.ports import Sink, SinkError
from tidegate.engine.core.values import Firings, Signal
from tidegate.engine.replay.memory.executors import Actions


def executors(sink: Sink, now: Callable[[], int]) -> Mapping[str, Executor]:
    """The engine's own; webhooks are sent to nobody."""
    return Actions().executors(sink, now)


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
        sums = firings.rows.group_by("firing_id").aggregate([("amount", "sum")])
        rows = [{"firing_id": r["firing_id"], "total": r["amount_sum"]} for r in sums.to_pylist()]
        return pa.Table.from_pylist(rows[::-1])


class FakeLedger:
    """What was settled, in order. Every entry is for `firings`."""

    def __init__(self, firings: Firings) -> None:
        self.outbox = self.signals = self.controls = self
        self.outcomes: list[Outcome] = []
        self._firings = firings

    def settle(self, outcomes: Sequence[Outcome]) -> tuple[Entry, ...]:
        self.outcomes += outcomes
        return ()

    def answer(self, control: int, text: str) -> None:
        raise AssertionError

    def do_otherwise(self, entry: Entry, made: Sequence[Entry]) -> tuple[Entry, ...]:
        raise AssertionError

    def tell(self, signals: Sequence[Signal]) -> None:
        raise AssertionError

    def entry(self, number: int) -> Entry | None:
        raise AssertionError

    def firings(self, bucket: int, rule: str) -> Firings:
        return self._firings

    def dead_in_a_row(self, entry: Entry, limit: int) -> int:
        states = [o.state for o in self.outcomes if o.entry.queue == entry.queue][-limit:][::-1]
        return next((n for n, state in enumerate(states) if state == "done"), len(states))


class Unasked:
    """Nothing is asked of the rules of now."""

    def asked(self, entry: Entry, firings: Firings) -> Outcome:
        raise AssertionError

    def renewed(self, entry: Entry) -> Entry | str:
        raise AssertionError

    def otherwise(self, entry: Entry) -> tuple[Entry, ...]:
        raise AssertionError

    def watched(self, rule: str) -> frozenset[str]:
        return frozenset()
