"""A store in memory, of one rulebook: what a database would keep, without its transactions' cost.

What a bucket or a settlement changes is checked first and written then, so that what raises leaves
nothing. It keeps no damping, and no ends of actions.
"""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import ParamSpec, TypeVar

from tidegate.engine.core.entries import Control, Entry, Outcome
from tidegate.engine.core.failpoints import COMMITTED, failpoint
from tidegate.engine.core.instants import ceil_watermark
from tidegate.engine.core.ledger import Arrivals, Unplaced
from tidegate.engine.core.state import State, StoredBucket
from tidegate.engine.core.suspect import Strikes, Suspect
from tidegate.engine.core.values import Carried, Firings, Namespace, Signal
from tidegate.rules.errors import EngineError

FINISHED = ("done", "skipped", "redriven")
Given, Found = ParamSpec("Given"), TypeVar("Found")


def transaction(method: Callable[Given, Found]) -> Callable[Given, Found]:
    """A method that writes: a failpoint stands behind it, as behind a database's commit."""

    @wraps(method)
    def committed(*given: Given.args, **more: Given.kwargs) -> Found:
        found = method(*given, **more)
        failpoint(COMMITTED)
        return found

    return committed


@dataclass
class Kept:
    """A signal; the bucket that has claimed it."""

    signal: Signal
    bucket: int | None = None


@dataclass
class Asked:
    """A control; what became of it."""

    control: Control
    answer: str | None = None
    bucket: int | None = None


class MemoryStore:
    """Implements what a loop asks of a store; its ledger is each of its parts."""

    id = "memory"

    def __init__(self) -> None:
        self.epoch = 0
        self.state = State(0, None, 0, {}, {}, {}, Carried())
        self.entries: dict[int, Entry] = {}
        self.stored: dict[tuple[int, str], Firings] = {}
        self.signals: dict[tuple[str, Namespace], Kept] = {}
        self.asked: list[Asked] = []
        self.versions: list[tuple[str, int, int]] = []  # table, instant, version
        self.running: tuple[Suspect, ...] = ()
        self.struck: dict[tuple[str, ...], Strikes] = {}

    def of(self, rulebook: str, epoch: int = 0) -> MemoryLedger:
        return MemoryLedger(self, epoch)

    def last_entry(self) -> int:
        return max(self.entries, default=0)

    def app_ids(self, numbers: Collection[int]) -> Mapping[int, str]:
        some = {n: self.entries[n] for n in numbers if n in self.entries}
        return {n: "" if e.progress.fate == "passed" else e.app_id for n, e in some.items()}


class MemoryLedger:
    """All parts of a ledger in one."""

    def __init__(self, store: MemoryStore, epoch: int) -> None:
        self.store, self.epoch = store, epoch
        self.lease = self.buckets = self.signals = self.controls = self
        self.outbox = self.damping = self.suspects = self

    @transaction
    def acquire(self, holder: str, seconds: int) -> int:
        self.store.epoch += 1
        return self.store.epoch

    def check(self) -> None:
        if self.epoch != self.store.epoch:
            raise EngineError("lease-lost", "another engine has it")

    def load(self) -> State:
        carried = Carried(dict(self.store.state.carried.tables))
        return replace(self.store.state, carried=carried)

    @transaction
    def commit(self, taken: StoredBucket) -> tuple[Entry, ...]:
        self.check()
        plan, before = taken.plan, self.store.state
        if plan.bucket != before.bucket + 1:
            raise EngineError("bucket-order", f"bucket {plan.bucket} after {before.bucket}")
        for signal in plan.signals:
            if self.store.signals[signal.key].bucket is not None:
                raise EngineError("signal-placed", signal.id)
        active = {**before.activations, **plan.activations}
        new = {one.rule for one in taken.parked}
        tables = {**before.carried.tables, **taken.carried.tables}
        gone = taken.carried.changed - taken.carried.tables.keys()
        self.store.state = State(
            bucket=plan.bucket,
            watermark=plan.watermark,
            now=plan.now,
            cursors={**before.cursors, **{span.table: span.cursor for span in plan.ranges}},
            activations={rule: active[rule] for rule in taken.digests},
            activation_digests=dict(taken.digests),
            carried=Carried({n: table for n, table in tables.items() if n not in gone}),
            parked=(before.parked - plan.enabled) | new,
            disabled=(before.disabled - plan.enabled) | plan.disabled,
            fired=taken.fired,
            begun_at=plan.now if before.begun_at is None else before.begun_at,
        )
        for signal in plan.signals:
            self.store.signals[signal.key].bucket = plan.bucket
        for asked in self.store.asked:
            if asked.control.id in plan.controls:
                asked.bucket = plan.bucket
        for span in plan.ranges:
            self.store.versions += [
                (span.table, at, version) for version, at in span.instants.items()
            ]
        self.store.stored |= {(plan.bucket, one.rule): one for one in taken.firings if len(one)}
        return self._number(plan.bucket, taken.entries)

    def _number(self, bucket: int, made: Sequence[Entry]) -> tuple[Entry, ...]:
        last = self.store.last_entry()
        numbered = tuple(
            entry.numbered(number, bucket)
            for number, entry in enumerate(sorted(made, key=lambda e: e.turn.order), last + 1)
        )
        self.store.entries |= {entry.number: entry for entry in numbered}
        return numbered

    def arrivals(self, events: Collection[str]) -> Arrivals:
        self.check()
        at = [one.received_at for one in self._waiting(events)]
        return Arrivals(bool(self.pending()), *((min(at), max(at)) if at else ()))

    def _waiting(self, events: Collection[str]) -> list[Signal]:
        kept = self.store.signals.values()
        found = [k.signal for k in kept if k.bucket is None and k.signal.event in events]
        return sorted(found, key=lambda s: (s.received_at, s.key))

    def unplaced(self, events: Collection[str], watermark: int, limit: int) -> Unplaced:
        waiting = self._waiting(events)
        if len(waiting) < limit:
            return Unplaced(tuple(waiting))
        end = ceil_watermark(max(waiting[limit - 1].received_at, watermark + 1))
        left = [one.received_at for one in waiting if one.received_at > end]
        taken = tuple(one for one in waiting if one.received_at <= end)
        return Unplaced(taken, left[0] if left else None)

    @transaction
    def raise_signal(self, signal: Signal) -> bool:
        known = self.store.signals.setdefault(signal.key, kept := Kept(signal))
        return known is kept

    def ask(self, kind: str, subject: str) -> None:
        self.store.asked.append(Asked(Control(len(self.store.asked) + 1, kind, subject)))

    def pending(self) -> tuple[Control, ...]:
        return tuple(a.control for a in self.store.asked if a.answer is None and a.bucket is None)

    @transaction
    def answer(self, control: int, text: str) -> None:
        self.check()
        self.store.asked[control - 1].answer = text

    def open_entries(self) -> tuple[Entry, ...]:
        found = [
            e
            for e in self.store.entries.values()
            if e.state in ("pending", "held") or (e.state == "dead" and e.otherwise_at is not None)
        ]
        return tuple(sorted(found, key=lambda e: (e.turn.place, e.number)))

    def entry(self, number: int) -> Entry | None:
        return self.store.entries.get(number)

    def firings(self, bucket: int, rule: str) -> Firings:
        return self.store.stored[bucket, rule]

    @transaction
    def settle(self, outcomes: Sequence[Outcome]) -> tuple[Entry, ...]:
        self.check()
        for outcome in outcomes:
            if not self._finished(outcome) and any(
                s.key in self.store.signals for s in outcome.signals
            ):
                raise EngineError("signal-conflict", "an id is taken")
        return tuple(new for outcome in outcomes for new in self._settle(outcome))

    def _finished(self, outcome: Outcome) -> bool:
        return self.store.entries[outcome.entry.number].state in FINISHED

    def _settle(self, outcome: Outcome) -> tuple[Entry, ...]:
        if self._finished(outcome):
            return ()
        entry = self.store.entries[outcome.entry.number]
        self.store.entries[entry.number] = replace(
            entry,
            progress=replace(outcome.progress, details=entry.progress.details),
            firing_ids=outcome.firing_ids or entry.firing_ids,
        )
        if outcome.state == "done":
            self.store.signals |= {signal.key: Kept(signal) for signal in outcome.signals}
        if outcome.firings is not None:
            whole = self.store.stored[entry.bucket, entry.rule]
            self.store.stored[entry.bucket, entry.rule] = whole.with_outcomes(outcome.firings)
        if outcome.control is not None:
            self.store.asked[outcome.control - 1].answer = outcome.state
        return self._number(entry.bucket, outcome.successors)

    @transaction
    def tell(self, told: Sequence[Signal]) -> None:
        self.check()
        for signal in told:
            self.store.signals.setdefault(signal.key, Kept(signal))

    @transaction
    def do_otherwise(self, entry: Entry, made: Sequence[Entry]) -> tuple[Entry, ...]:
        """As if the statements of a rule were all for the same firings."""
        self.check()
        timed = [e for e in self.store.entries.values() if e.same_set(entry) and e.otherwise_at]
        self.store.entries |= {e.number: replace(e, otherwise_at=None) for e in timed}
        some = [replace(one, firing_ids=entry.firing_ids) for one in made]
        done = any(
            e.alternative and e.same_set(some[0]) for e in self.store.entries.values() if some
        )
        return self._number(entry.bucket, some if timed and not done else ())

    def dead_in_a_row(self, entry: Entry, limit: int) -> int:
        tried = [
            e.state
            for _, e in sorted(self.store.entries.items(), reverse=True)
            if e.rule == entry.rule and e.kind != "condition" and e.state in ("done", "dead")
        ][:limit]
        return tried.index("done") if "done" in tried else len(tried)

    @transaction
    def acted(self, bucket: int, seconds: float) -> None:
        self.check()

    @transaction
    def begin(self, running: Sequence[Suspect]) -> None:
        self.check()
        self.store.running = tuple(running)

    def begun(self) -> tuple[Suspect, ...]:
        return self.store.running

    @transaction
    def strike(self, strikes: Sequence[Strikes], running: Sequence[Suspect]) -> None:
        self.check()
        self.store.struck |= {one.suspect.key: one for one in strikes}
        self.store.running = tuple(running)

    def strikes(self) -> tuple[Strikes, ...]:
        return tuple(self.store.struck.values())

    @transaction
    def forgive(self, known: Collection[Suspect]) -> None:
        self.check()
        for one in known:
            self.store.struck.pop(one.key, None)

    def version_at(self, table: str, instant: int) -> int | None:
        found = [(at, v) for name, at, v in self.store.versions if name == table and at <= instant]
        return max(found)[1] if found else None
