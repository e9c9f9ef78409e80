"""Faults of an engine that are put into the fakes, to show that what judges it sees them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import pytest

from tests.support.memory import MemorySink
from tests.support.memorystore import MemoryLedger
from tidegate.engine.act.executors import CurrentRules, done
from tidegate.engine.act.run import Runner
from tidegate.engine.core.entries import Entry, Fate
from tidegate.engine.core.state import StoredBucket
from tidegate.engine.core.values import Carried, Firings, Signal
from tidegate.engine.detect.events.state.partitions import SCRIPT


def no_marker(patch: pytest.MonkeyPatch) -> None:
    """A statement leaves nothing by which a later attempt could know it."""
    fate = MemorySink.fate

    def run(sink: MemorySink, entry: Entry, firings: Firings) -> None:
        sink.entries.append((entry.rule, entry.number))
        sink.effects.update((entry.rule, n) for n in firings.rows["id"].to_pylist())
        sink.commits.append((entry.app_id, entry.number, firings.hex_ids().to_pylist()))

    def asked(sink: MemorySink, entry: Entry, firings: Firings) -> Fate:
        found = fate(sink, entry, firings)
        last = sink.commits[-1][:2] if sink.commits else None
        if found is Fate.EFFECT and last == (entry.app_id, entry.number):
            sink.commits.append(("", 0, None))  # asked once, by who has run it
            return found
        return Fate.ABSENT

    patch.setattr(MemorySink, "run", run)
    patch.setattr(MemorySink, "fate", asked)


def settled_before_it_ran(patch: pytest.MonkeyPatch) -> None:
    """An entry is done in the store before its statement begins."""
    begin = Runner._begin

    def begun(runner: Runner, entry: Entry, firings: Firings, current: CurrentRules) -> None:
        begin(runner, entry, firings, current)
        if entry.kind == "sql":
            runner.ledger.outbox.settle([done(entry)])

    patch.setattr(Runner, "_begin", begun)


def no_epoch_check(patch: pytest.MonkeyPatch) -> None:
    """An engine whose lease another one has writes all the same."""
    commit = MemoryLedger.commit

    def committed(ledger: MemoryLedger, taken: StoredBucket) -> tuple[Entry, ...]:
        store = ledger.store
        for signal in taken.plan.signals:
            store.signals[signal.key].bucket = None
        plan = replace(taken.plan, bucket=store.state.bucket + 1)
        return commit(MemoryLedger(store, store.epoch), replace(taken, plan=plan))

    patch.setattr(MemoryLedger, "check", lambda *_: None)
    patch.setattr(MemoryLedger, "commit", committed)


def cursor_ahead(patch: pytest.MonkeyPatch) -> None:
    """What the store keeps of a table is a version more than was read."""
    commit = MemoryLedger.commit

    def committed(ledger: MemoryLedger, taken: StoredBucket) -> tuple[Entry, ...]:
        store, numbered = ledger.store, commit(ledger, taken)
        ahead = {n: replace(c, version=c.version + 1) for n, c in store.state.cursors.items()}
        store.state = replace(store.state, cursors=ahead)
        return numbered

    patch.setattr(MemoryLedger, "commit", committed)


def signals_by_id(patch: pytest.MonkeyPatch) -> None:
    """Signals are taken by a cursor over their ids, not by whether a bucket has claimed them."""
    waiting = MemoryLedger._waiting

    def after(ledger: MemoryLedger, events: Collection[str]) -> Sequence[Signal]:
        last = max(
            (s for (s, _), k in ledger.store.signals.items() if k.bucket is not None), default=""
        )
        return [signal for signal in waiting(ledger, events) if signal.id > last]

    patch.setattr(MemoryLedger, "_waiting", after)


def scripts_forget(patch: pytest.MonkeyPatch) -> None:
    """What scripts carry on is not kept."""
    commit = MemoryLedger.commit

    def committed(ledger: MemoryLedger, taken: StoredBucket) -> tuple[Entry, ...]:
        store, numbered = ledger.store, commit(ledger, taken)
        kept = {n: t for n, t in store.state.carried.tables.items() if not n.startswith(SCRIPT)}
        store.state = replace(store.state, carried=Carried(kept))
        return numbered

    patch.setattr(MemoryLedger, "commit", committed)


PLANTED: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "no marker": no_marker,
    "settled before it ran": settled_before_it_ran,
    "no epoch check": no_epoch_check,
    "cursor ahead": cursor_ahead,
    "signals by id": signals_by_id,
}
PLANTED_IN_SCRIPTS = {"scripts forget": scripts_forget}
