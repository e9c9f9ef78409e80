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
from tidegate.engine.core.ports import Arrivals, Unplaced
from tidegate.engine.core.state import State, Taken
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
    """Implements what a loop asks of `engine.core.ports.Store`."""

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

    @transaction
    def acquire(self, rulebook: str, holder: str, seconds: int) -> int:
        self.epoch += 1
        return self.epoch

    def check_lease(self, rulebook: str, epoch: int) -> None:
        if epoch != self.epoch:
            raise EngineError("lease-lost", "another engine has it")

    def load(self, rulebook: str) -> State:
        carried = Carried(dict(self.state.carried.tables))
        return replace(self.state, carried=carried)

    @transaction
    def commit(self, epoch: int, taken: Taken) -> tuple[Entry, ...]:
        self.check_lease("", epoch)
        plan, before = taken.plan, self.state
        if plan.bucket != before.bucket + 1:
            raise EngineError("bucket-order", f"bucket {plan.bucket} after {before.bucket}")
        for signal in plan.signals:
            if self.signals[signal.key].bucket is not None:
                raise EngineError("signal-placed", signal.id)
        active = {**before.activations, **plan.activations}
        new = {one.rule for one in taken.parked}
        tables = {**before.carried.tables, **taken.carried.tables}
        gone = taken.carried.changed - taken.carried.tables.keys()
        self.state = State(
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
        )
        for signal in plan.signals:
            self.signals[signal.key].bucket = plan.bucket
        for asked in self.asked:
            if asked.control.id in plan.controls:
                asked.bucket = plan.bucket
        for span in plan.ranges:
            self.versions += [(span.table, at, version) for version, at in span.instants.items()]
        self.stored |= {(plan.bucket, one.rule): one for one in taken.firings if len(one)}
        return self._number(plan.bucket, taken.entries)

    def _number(self, bucket: int, made: Sequence[Entry]) -> tuple[Entry, ...]:
        last = self.last_entry()
        numbered = tuple(
            replace(entry, number=number, bucket=bucket, place=entry.place or number)
            for number, entry in enumerate(sorted(made, key=lambda e: e.order), last + 1)
        )
        self.entries |= {entry.number: entry for entry in numbered}
        return numbered

    def arrivals(self, rulebook: str, epoch: int, events: Collection[str]) -> Arrivals:
        self.check_lease(rulebook, epoch)
        at = [one.received_at for one in self._waiting(events)]
        return Arrivals(bool(self.pending_controls(rulebook)), *((min(at), max(at)) if at else ()))

    def _waiting(self, events: Collection[str]) -> list[Signal]:
        kept = self.signals.values()
        found = [k.signal for k in kept if k.bucket is None and k.signal.event in events]
        return sorted(found, key=lambda s: (s.received_at, s.key))

    def unplaced_signals(
        self, rulebook: str, events: Collection[str], watermark: int, limit: int
    ) -> Unplaced:
        waiting = self._waiting(events)
        if len(waiting) < limit:
            return Unplaced(tuple(waiting))
        end = ceil_watermark(max(waiting[limit - 1].received_at, watermark + 1))
        left = [one.received_at for one in waiting if one.received_at > end]
        taken = tuple(one for one in waiting if one.received_at <= end)
        return Unplaced(taken, left[0] if left else None)

    @transaction
    def raise_signal(self, rulebook: str, signal: Signal) -> bool:
        known = self.signals.setdefault(signal.key, kept := Kept(signal))
        return known is kept

    def ask(self, rulebook: str, kind: str, subject: str) -> None:
        self.asked.append(Asked(Control(len(self.asked) + 1, kind, subject)))

    def pending_controls(self, rulebook: str) -> tuple[Control, ...]:
        return tuple(a.control for a in self.asked if a.answer is None and a.bucket is None)

    @transaction
    def answer(self, rulebook: str, epoch: int, control: int, text: str) -> None:
        self.check_lease(rulebook, epoch)
        self.asked[control - 1].answer = text

    def open_entries(self, rulebook: str) -> tuple[Entry, ...]:
        found = [
            e
            for e in self.entries.values()
            if e.state in ("pending", "held") or (e.state == "dead" and e.otherwise_at is not None)
        ]
        return tuple(sorted(found, key=lambda e: (e.place, e.number)))

    def one_entry(self, rulebook: str, number: int) -> Entry | None:
        return self.entries.get(number)

    def last_entry(self) -> int:
        return max(self.entries, default=0)

    def app_ids(self, numbers: Collection[int]) -> Mapping[int, str]:
        some = {n: self.entries[n] for n in numbers if n in self.entries}
        return {n: "" if e.fate == "passed" else e.app_id for n, e in some.items()}

    def entry_firings(self, rulebook: str, bucket: int, rule: str) -> Firings:
        return self.stored[bucket, rule]

    @transaction
    def settle(self, rulebook: str, epoch: int, outcomes: Sequence[Outcome]) -> tuple[Entry, ...]:
        self.check_lease(rulebook, epoch)
        for outcome in outcomes:
            if not self._finished(outcome) and any(s.key in self.signals for s in outcome.signals):
                raise EngineError("signal-conflict", "an id is taken")
        return tuple(new for outcome in outcomes for new in self._settle(outcome))

    def _finished(self, outcome: Outcome) -> bool:
        return self.entries[outcome.entry.number].state in FINISHED

    def _settle(self, outcome: Outcome) -> tuple[Entry, ...]:
        if self._finished(outcome):
            return ()
        entry = self.entries[outcome.entry.number]
        self.entries[entry.number] = replace(
            entry,
            state=outcome.state,
            attempts=outcome.attempts,
            error=outcome.error,
            fate=outcome.fate,
            next_attempt_at=outcome.next_attempt_at,
            firing_ids=outcome.firing_ids or entry.firing_ids,
        )
        if outcome.state == "done":
            self.signals |= {signal.key: Kept(signal) for signal in outcome.signals}
        if outcome.firings is not None:
            whole = self.stored[entry.bucket, entry.rule]
            self.stored[entry.bucket, entry.rule] = whole.with_outcomes(outcome.firings)
        if outcome.control is not None:
            self.asked[outcome.control - 1].answer = outcome.state
        return self._number(entry.bucket, outcome.successors)

    @transaction
    def tell(self, rulebook: str, epoch: int, told: Sequence[Signal]) -> None:
        self.check_lease(rulebook, epoch)
        for signal in told:
            self.signals.setdefault(signal.key, Kept(signal))

    @transaction
    def do_otherwise(
        self, rulebook: str, epoch: int, entry: Entry, made: Sequence[Entry]
    ) -> tuple[Entry, ...]:
        """As if the statements of a rule were all for the same firings."""
        self.check_lease(rulebook, epoch)
        timed = [e for e in self.entries.values() if e.same_set(entry) and e.otherwise_at]
        self.entries |= {e.number: replace(e, otherwise_at=None) for e in timed}
        some = [replace(one, firing_ids=entry.firing_ids) for one in made]
        done = any(e.alternative and e.same_set(some[0]) for e in self.entries.values() if some)
        return self._number(entry.bucket, some if timed and not done else ())

    def dead_in_a_row(self, rulebook: str, entry: Entry, limit: int) -> int:
        tried = [
            e.state
            for _, e in sorted(self.entries.items(), reverse=True)
            if e.rule == entry.rule and e.kind != "condition" and e.state in ("done", "dead")
        ][:limit]
        return tried.index("done") if "done" in tried else len(tried)

    @transaction
    def acted(self, rulebook: str, epoch: int, bucket: int, seconds: float) -> None:
        self.check_lease(rulebook, epoch)

    @transaction
    def begin(self, rulebook: str, epoch: int, running: Sequence[Suspect]) -> None:
        self.check_lease(rulebook, epoch)
        self.running = tuple(running)

    def begun(self, rulebook: str) -> tuple[Suspect, ...]:
        return self.running

    @transaction
    def strike(
        self, rulebook: str, epoch: int, strikes: Sequence[Strikes], running: Sequence[Suspect]
    ) -> None:
        self.check_lease(rulebook, epoch)
        self.struck |= {one.suspect.key: one for one in strikes}
        self.running = tuple(running)

    def strikes(self, rulebook: str) -> tuple[Strikes, ...]:
        return tuple(self.struck.values())

    @transaction
    def forgive(self, rulebook: str, epoch: int, known: Collection[Suspect]) -> None:
        self.check_lease(rulebook, epoch)
        for one in known:
            self.struck.pop(one.key, None)

    def version_at(self, rulebook: str, table: str, instant: int) -> int | None:
        found = [(at, v) for name, at, v in self.versions if name == table and at <= instant]
        return max(found)[1] if found else None
