"""A store in memory, of one rulebook: what a database keeps, without its transactions' cost.

What a bucket or a settlement changes is checked first and written then, so that what raises leaves
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tidegate.engine.core.damping_memory import MEMORY
from tidegate.engine.core.entries import Control, Entry, Outcome
from tidegate.engine.core.instants import ceil_watermark
from tidegate.engine.core.ledger import Arrivals, Unplaced
from tidegate.engine.core.state import State, StoredBucket
from tidegate.engine.core.state_parts import FilePart
from tidegate.engine.core.suspect import Strikes, Suspect
from tidegate.engine.core.values import Carried, Firings, Namespace, Rejected, Signal
from tidegate.rules.errors import EngineError

FINISHED = ("done", "skipped", "redriven")
OPEN = ("pending", "held")


@dataclass(slots=True)
class Kept:
    """A signal; the bucket that has claimed it."""

    signal: Signal
    bucket: int | None = None


@dataclass(slots=True)
class Asked:
    """A control; what became of it."""

    control: Control
    answer: str | None = None
    bucket: int | None = None


class MemoryStore:
    """All that is kept. `clock`: says when controls were asked for."""

    id = "memory"

    def __init__(self, clock: Callable[[], int] = lambda: 0) -> None:
        self.clock = clock
        self.epoch = 0
        self.state = State(0, None, 0, {}, {}, {}, Carried())
        self.parked: dict[str, str] = {}  # by rule that a limit has stopped, why
        self.planned: dict[int, int] = {}  # by bucket, the engine's clock
        self.entries: dict[int, Entry] = {}
        self.stored: dict[tuple[int, str], Firings] = {}
        self.rejected: list[Rejected] = []
        self.signals: dict[tuple[str, Namespace], Kept] = {}
        self.asked: list[Asked] = []
        self.versions: list[tuple[str, int, int]] = []  # table, instant, version
        self.damping: dict[tuple[str, int, str], tuple[int, bytes]] = {}  # rule, kind, id
        self.running: tuple[Suspect, ...] = ()
        self.struck: dict[tuple[str, ...], Strikes] = {}

    def keep(self, signal: Signal) -> bool:
        """Insert a signal. Returns False if it is there already."""
        known = self.signals.setdefault(signal.key, kept := Kept(signal))
        return known is kept

    def last_entry(self) -> int:
        """The number of the last entry, 0 if there is none."""
        return len(self.entries)

    def app_ids(self, numbers: Collection[int]) -> Mapping[int, str]:
        """See `engine.core.ports.AppIds`."""
        some = {n: self.entries[n] for n in numbers if n in self.entries}
        return {n: "" if e.progress.fate == "passed" else e.app_id for n, e in some.items()}


class MemoryLedger:
    """All parts of an `engine.core.ledger.Ledger` in one. Writing raises EngineError `lease-lost`
    once the store's epoch is another."""

    def __init__(self, store: MemoryStore, epoch: int = 0) -> None:
        self.store, self.epoch = store, epoch
        self.buckets = self.signals = self.controls = self.outbox = self
        self.damping = self.suspects = self.retention = self

    def check(self) -> None:
        """Raises EngineError `lease-lost`."""
        if self.epoch != self.store.epoch:
            raise EngineError("lease-lost", "another engine has it")

    # -- buckets ------------------------------------------------------------------------------

    def load(self, *, apart: bool = False) -> State:  # noqa: ARG002
        carried = Carried(dict(self.store.state.carried.tables))
        return replace(self.store.state, carried=carried)

    def shelf(self, state_path: str | None, bucket: int) -> None:
        """There are no files."""

    def compact(self, *_: object) -> dict[str, FilePart]:
        """There are no files."""
        return {}

    def give_up(self, *_: object) -> None:
        """Nothing was written."""

    def commit(self, taken: StoredBucket) -> tuple[Entry, ...]:
        self.check()
        store, plan, before = self.store, taken.plan, self.store.state
        if plan.bucket != before.bucket + 1:
            raise EngineError("bucket-order", f"bucket {plan.bucket} after {before.bucket}")
        for signal in plan.signals:
            if store.signals[signal.key].bucket is not None:
                raise EngineError("signal-placed", signal.id)
        store.state = _after(before, taken)
        for signal in plan.signals:
            store.signals[signal.key].bucket = plan.bucket
        for asked in store.asked:
            if asked.control.id in plan.controls:
                asked.bucket = plan.bucket
        for span in plan.ranges:
            store.versions += [(span.table, at, version) for version, at in span.instants.items()]
        store.planned[plan.bucket] = plan.now
        store.parked |= {one.rule: one.reason for one in taken.parked}
        store.rejected += taken.rejected
        store.stored |= {(plan.bucket, one.rule): one for one in taken.firings if len(one)}
        gone = before.activations.keys() - taken.digests.keys()
        for row in [row for row in store.damping if row[0] in gone]:
            del store.damping[row]
        self._remember(taken.memory)
        return self._number(plan.bucket, taken.entries)

    def acted(self, bucket: int, seconds: float) -> None:  # noqa: ARG002
        self.check()

    def version_at(self, table: str, instant: int) -> int | None:
        found = [(at, v) for name, at, v in self.store.versions if name == table and at <= instant]
        return max(found)[1] if found else None

    def _number(self, bucket: int, made: Iterable[Entry]) -> tuple[Entry, ...]:
        last = self.store.last_entry()
        numbered = tuple(
            entry.numbered(number, bucket)
            for number, entry in enumerate(sorted(made, key=lambda e: e.turn.order), last + 1)
        )
        self.store.entries |= {entry.number: entry for entry in numbered}
        return numbered

    # -- signals and controls -----------------------------------------------------------------

    def arrivals(self, events: Collection[str]) -> Arrivals:
        self.check()
        at = [one.received_at for one in self._waiting(events)]
        return Arrivals(bool(self.pending()), *((min(at), max(at)) if at else ()))

    def unplaced(self, events: Collection[str], watermark: int, limit: int) -> Unplaced:
        waiting = sorted(self._waiting(events), key=lambda s: (s.received_at, s.key))
        if len(waiting) < limit:
            return Unplaced(tuple(waiting))
        end = ceil_watermark(max(waiting[limit - 1].received_at, watermark + 1))
        left = [one.received_at for one in waiting if one.received_at > end]
        taken = tuple(one for one in waiting if one.received_at <= end)
        return Unplaced(taken, left[0] if left else None)

    def _waiting(self, events: Collection[str]) -> list[Signal]:
        kept = self.store.signals.values()
        return [k.signal for k in kept if k.bucket is None and k.signal.event in events]

    def tell(self, signals: Sequence[Signal]) -> None:
        self.check()
        for signal in signals:
            self.store.keep(signal)

    def ask(self, kind: str, subject: str) -> None:
        """Ask for something, as an operator does."""
        number = len(self.store.asked) + 1
        self.store.asked.append(Asked(Control(number, kind, subject, asked_at=self.store.clock())))

    def pending(self) -> tuple[Control, ...]:
        return tuple(a.control for a in self.store.asked if a.answer is None and a.bucket is None)

    def answer(self, control: int, text: str) -> None:
        self.check()
        self.store.asked[control - 1].answer = text

    # -- outbox -------------------------------------------------------------------------------

    def open_entries(self) -> tuple[Entry, ...]:
        found = [
            e
            for e in self.store.entries.values()
            if e.state in OPEN or (e.state == "dead" and e.otherwise_at is not None)
        ]
        return tuple(sorted(found, key=lambda e: (e.turn.place, e.number)))

    def entry(self, number: int) -> Entry | None:
        return self.store.entries.get(number)

    def firings(self, bucket: int, rule: str) -> Firings:
        return self.store.stored[bucket, rule]

    def settle(self, outcomes: Sequence[Outcome]) -> tuple[Entry, ...]:
        self.check()
        for outcome in outcomes:
            raised = () if self._finished(outcome) else outcome.signals
            if any(signal.key in self.store.signals for signal in raised):
                raise EngineError("signal-conflict", "an id is taken")
        return tuple(new for outcome in outcomes for new in self._settle(outcome))

    def _finished(self, outcome: Outcome) -> bool:
        return self.store.entries[outcome.entry.number].state in FINISHED

    def _settle(self, outcome: Outcome) -> tuple[Entry, ...]:
        if self._finished(outcome):
            return ()
        store, entry = self.store, self.store.entries[outcome.entry.number]
        store.entries[entry.number] = replace(
            entry, progress=outcome.progress, firing_ids=outcome.firing_ids or entry.firing_ids
        )
        if outcome.state == "done":
            store.signals |= {signal.key: Kept(signal) for signal in outcome.signals}
            if outcome.asks is not None:
                self.ask(*outcome.asks)
        if outcome.firings is not None:
            whole = store.stored[entry.bucket, entry.rule]
            store.stored[entry.bucket, entry.rule] = whole.with_outcomes(outcome.firings)
        if outcome.memory is not None:
            self._remember({entry.rule: outcome.memory})
        if outcome.control is not None:
            store.asked[outcome.control - 1].answer = outcome.state
        successors = self._number(entry.bucket, outcome.successors)
        self.tell(self._ended(entry, outcome.ends) if outcome.ends else ())
        self.tell(outcome.died if outcome.fails else ())
        return successors

    def _ended(self, entry: Entry, ends: Sequence[Signal]) -> list[Signal]:
        """The `ends` of the firings of which no other statement is left."""
        left = [e for e in self._of_branch(entry) if e.state not in ("done", "redriven")]
        if any(e.firing_ids is None for e in left):
            return []
        waiting = set[str]().union(*(e.firing_ids or () for e in left))
        return [signal for signal in ends if signal.firing_id not in waiting]

    def _of_branch(self, entry: Entry) -> list[Entry]:
        """The statements of an entry's rule in its bucket: those of `do`, or of `otherwise`."""
        mine = self._of_rule(entry)
        return [e for e in mine if e.kind != "condition" and e.alternative is entry.alternative]

    def _of_rule(self, entry: Entry) -> list[Entry]:
        same = (entry.bucket, entry.rule)
        return [e for e in self.store.entries.values() if (e.bucket, e.rule) == same]

    def do_otherwise(self, entry: Entry, made: Sequence[Entry]) -> tuple[Entry, ...]:
        self.check()
        timed = [
            e
            for e in self._of_branch(entry)
            if e.firing_ids == entry.firing_ids and e.otherwise_at is not None
        ]
        self.store.entries |= {e.number: replace(e, otherwise_at=None) for e in timed}
        if not timed or not made:
            return ()
        sets = [e.firing_ids for e in self._of_rule(entry) if e.alternative]
        if None in sets:
            return ()
        ids = entry.firing_ids
        if sets:
            over = set[str]().union(*(some or () for some in sets))
            held = self.firings(entry.bucket, entry.rule).acted_on.hex_ids().to_pylist()
            ids = tuple(one for one in ids or held if one not in over)
            if not ids:
                return ()
        return self._number(entry.bucket, [replace(one, firing_ids=ids) for one in made])

    def dead_in_a_row(self, entry: Entry, limit: int) -> int:
        tried = [
            e.state
            for e in reversed(self.store.entries.values())
            if e.queue == entry.queue and e.kind != "condition" and e.progress.attempts
        ]
        ended = [state for state in tried if state in ("done", "dead")][:limit]
        return ended.index("done") if "done" in ended else len(ended)

    # -- damping ------------------------------------------------------------------------------

    def remembered(self, rule: str, wanted: pa.Table) -> pa.Table:
        asked = zip(wanted["kind"].to_pylist(), wanted["id"].to_pylist(), strict=True)
        found = [(*key, *row) for key in asked if (row := self.store.damping.get((rule, *key)))]
        columns = zip(*found, strict=True) if found else [()] * len(MEMORY)
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, MEMORY, strict=True)], MEMORY)

    def count(self, rule: str, kind: int, instant: int) -> int:
        rows = self.store.damping.items()
        return sum(key[:2] == (rule, kind) and until > instant for key, (until, _) in rows)

    def _remember(self, memory: Mapping[str, pa.Table]) -> None:
        for rule, rows in memory.items():
            for row in rows.to_pylist():
                self.store.damping[rule, row["kind"], row["id"]] = row["until"], row["instants"]

    # -- suspects and retention ---------------------------------------------------------------

    def begin(self, running: Sequence[Suspect]) -> None:
        self.check()
        self.store.running = tuple(running)

    def begun(self) -> tuple[Suspect, ...]:
        return self.store.running

    def strike(self, strikes: Sequence[Strikes], running: Sequence[Suspect]) -> None:
        self.check()
        self.store.struck |= {one.suspect.key: one for one in strikes}
        self.store.running = tuple(running)

    def strikes(self) -> tuple[Strikes, ...]:
        return tuple(self.store.struck.values())

    def forgive(self, known: Collection[Suspect]) -> None:
        self.check()
        for one in known:
            self.store.struck.pop(one.key, None)

    def remove_files(self, *_: object) -> int:
        """There are none."""
        return 0

    remove_lost_files = remove_files

    def purge(self, firings_before: int, history_before: int, rows_max: int) -> int:  # noqa: ARG002
        """Nothing is old enough."""
        return 0


def _after(before: State, taken: StoredBucket) -> State:
    """The state once a bucket is committed."""
    plan = taken.plan
    active = {**before.activations, **plan.activations}
    new = {one.rule for one in taken.parked}
    tables = {**before.carried.tables, **taken.carried.tables}
    gone = taken.carried.changed - taken.carried.tables.keys()
    return State(
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
