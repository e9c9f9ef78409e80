"""The life of a bucket, top to bottom: `Loop.bucket` is the ten numbered steps of README."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from engine.act.outbox import entries_for
from engine.act.run import Runner
from engine.act.targets import Targets
from engine.capture.instants import Instants
from engine.capture.now import Now
from engine.capture.plan import Listing, list_sources, make_plan
from engine.capture.read import Capture
from engine.capture.resets import with_resets
from engine.detector.detector import Detector
from engine.evaluate.evaluate import evaluate
from engine.evaluate.prepare import Prepared
from engine.failpoints import failpoint
from engine.ports import Conditions, Feed, Store
from engine.values import BucketReport, Entry, Firings, Plan, State
from rules.errors import EngineError
from rules.model import Rulebook

FAILURES_BEFORE_HALVING = 3  # G8
PASSING = frozenset({"table-unreadable"})  # EngineErrors that less, or another time, may mend
SIGNALS_MAX = 100_000  # of one bucket; the others come in the next


@dataclass(frozen=True, slots=True)
class Seen:
    """What was visible at one time: the latest version of each source, signals, and controls of
    sources (the others wait until their table is one)."""

    versions: Mapping[str, int]
    signals: frozenset[str]
    controls: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Taken:
    """A bucket whose transaction is committed."""

    plan: Plan
    rows: int
    detections: int
    firings: tuple[Firings, ...]
    entries: tuple[Entry, ...]


@dataclass(slots=True)
class Loop:
    """Buckets of one rulebook under one lease. Not for use by several threads.

    `digests` says, by active rule, what it detects with (on, per, context). Making one prepares the
    rules' SQL: raises InputError.
    """

    rulebook: Rulebook
    digests: Mapping[str, str]
    store: Store
    epoch: int
    check_lease: Callable[[], None]
    feed: Feed
    prepare: Callable[[], Prepared]  # by the tables' schemas of now
    conditions: Conditions
    runner: Runner
    now: Now
    instants: Instants
    state: State
    idle: bool = field(default=False, init=False)  # nothing more was visible when last looked
    _prepared: Prepared = field(init=False)
    _capture: Capture = field(init=False)
    _detector: Detector | None = field(default=None, init=False)
    _targets: Targets = field(init=False)
    _seconds: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._targets = Targets(self.runner.sink)
        self._prepare()
        statements = self._prepared.statements.values()
        self._targets.wrote({s.target for of_rule in statements for s in of_rule if s.target})
        self._targets.make_ready()

    def bucket(self) -> BucketReport | None:
        """Take the next bucket and act on it; None if there is nothing to take yet.

        A plan binds only with its transaction: when what comes after it fails, it is made again,
        from the third time on with half of its span, down to one instant (G8).
        Raises EngineError; cursors and entries stay as the last transaction left them.
        """
        until: int | None = None
        failures = 0
        while True:
            self._seconds = {}
            self.check_lease()
            plan = self._plan(until)
            self._targets.make_ready()
            if plan is None:
                return None
            try:
                taken = self._take(plan)
            except EngineError as error:
                if error.code not in PASSING:
                    raise
                failed = error
            except Exception as error:
                failed = _stuck(plan, error)
                failed.__cause__ = error
            else:
                return self._act(taken)
            failures += 1
            if failures >= FAILURES_BEFORE_HALVING:
                until = _half(plan)
                if until is None:
                    raise failed

    def visible(self) -> Seen:
        """What stands in tables and inbox now."""
        name = self.rulebook.name
        controls = self.store.pending_controls(name)
        rulebook, state = with_resets(self.rulebook, self.state, controls)
        listing = list_sources(rulebook, state, self.feed, self.instants, self.now())
        signals = self.store.unplaced_signals(name, SIGNALS_MAX)
        return Seen(
            {table: head.head for table, head in listing.heads.items()},
            frozenset(signal.id for signal in signals),
            frozenset(c.id for c in controls if c.subject in listing.heads),
        )

    def done(self, seen: Seen) -> bool:
        """Whether buckets hold all that was seen."""
        name = self.rulebook.name
        if any(
            table not in self.state.cursors or self.state.cursors[table].version < version
            for table, version in seen.versions.items()
        ):
            return False
        unplaced = {s.id for s in self.store.unplaced_signals(name, SIGNALS_MAX)}
        pending = {control.id for control in self.store.pending_controls(name)}
        return bool(self.state.bucket) and not (unplaced & seen.signals or pending & seen.controls)

    def close(self) -> None:
        """End what goes on beside the buckets."""
        self._targets.close()

    def resume(self) -> int:
        """Act on the entries that an earlier run left; returns how many were done."""
        entries = self.store.pending_entries(self.rulebook.name)
        kept: dict[tuple[int, str], Firings] = {}

        def firings_of(entry: Entry) -> Firings:
            at = (entry.bucket, entry.rule)
            if at not in kept:
                kept[at] = self.store.entry_firings(self.rulebook.name, *at)
            return kept[at]

        return self.runner.run(entries, firings_of, resumed=True)

    def _prepare(self) -> None:
        self._prepared = self.prepare()
        self._capture = Capture(self.rulebook, self._prepared.needs)

    def _plan(self, until: int | None) -> Plan | None:
        with self._timed("plan"):
            now = self.now()  # 1. read the clock,
            controls = self.store.pending_controls(self.rulebook.name)
            rulebook, state = with_resets(self.rulebook, self.state, controls)
            listing = list_sources(rulebook, state, self.feed, self.instants, now)  # 2. then list
            signals = self.store.unplaced_signals(self.rulebook.name, SIGNALS_MAX)
            used = {
                name: self._capture.used(name, head.cursor.schema)
                for name, head in listing.heads.items()
            }
            plan = make_plan(rulebook, state, listing, signals, used, until)  # 3. choose W
        self.idle = plan is None and not signals and not _commits(listing)
        if plan is None:
            return None
        failpoint("plan.after")
        return replace(plan, controls=tuple(control.id for control in controls))

    def _take(self, plan: Plan) -> _Taken:
        """Up to the end of the transaction: all of it can be done again."""
        detector = self._detector_for(plan)
        with self._timed("capture"):
            bucket = self._capture.capture(plan, self.feed)  # 4. read exactly that
        with self._timed("detect"):  # 5. what happened
            found, carried = detector.step(self.state.carried, bucket.batches, plan.watermark)
        with self._timed("evaluate"):  # 6. firings, and whose condition holds
            firings = evaluate(self._prepared, found, plan, self.conditions)
        entries = self._entries(firings)  # 7. what is to be done
        with self._timed("commit"):  # 8. one transaction
            entries = self.store.commit(
                self.epoch, plan, carried, firings, entries, bucket.rejected, self.digests
            )
        self._detector = detector
        before = self.state.cursors
        self.state = State(
            bucket=plan.bucket,
            watermark=plan.watermark,
            now=plan.now,
            cursors={**self.state.cursors, **{r.table: r.cursor for r in plan.ranges}},
            activations={r: a for r, a in self._activations(plan).items() if r in self.digests},
            activation_digests=self.digests,
            carried=carried,
        )
        for span in plan.ranges:
            self.instants.forget(span.cursor.table_id, span.cursor.version)
        if any(
            r.table in before and r.cursor.schema != before[r.table].schema for r in plan.ranges
        ):
            self._prepare()  # `*` means other columns now (G12)
        return _Taken(plan, bucket.rows, sum(map(len, found)), firings, entries)

    def _act(self, taken: _Taken) -> BucketReport:
        """What the transaction made due; an error here ends the run, whose entries are kept."""
        by_rule = {of_rule.rule: of_rule for of_rule in taken.firings}
        with self._timed("act"):  # 9. marked statements, 10. each settled
            self.runner.run(taken.entries, lambda entry: by_rule[entry.rule], resumed=False)
        self._targets.wrote({entry.target for entry in taken.entries if entry.target})
        return BucketReport(
            bucket=taken.plan.bucket,
            watermark=taken.plan.watermark,
            rows=taken.rows,
            detections=taken.detections,
            firings=sum(map(len, taken.firings)),
            entries=len(taken.entries),
            seconds=self._seconds,
        )

    def _entries(self, firings: tuple[Firings, ...]) -> tuple[Entry, ...]:
        return entries_for(
            firings,
            self.rulebook.rules,
            self._prepared.statements,
            self.rulebook.settings.max_cascade_depth,
        )

    def _activations(self, plan: Plan) -> Mapping[str, int]:
        return {**self.state.activations, **plan.activations}

    def _detector_for(self, plan: Plan) -> Detector:
        if self._detector is None or plan.activations:
            return Detector(self.rulebook, self._activations(plan))
        return self._detector

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[stage] = round(time.perf_counter() - begun, 6)


def _commits(listing: Listing) -> bool:
    """Whether commits are visible that no bucket has taken."""
    return any(head.commits or head.left_out for head in listing.heads.values())


def _half(plan: Plan) -> int | None:
    """A watermark that leaves the later half of a plan's instants out; None for one instant."""
    instants = {instant for span in plan.ranges for instant in span.instants.values()}
    instants |= {signal.instant for signal in plan.signals if signal.instant is not None}
    if len(instants) < 2:
        return None
    middle = sorted(instants)[len(instants) // 2]
    return middle - 2


def _stuck(plan: Plan, error: Exception) -> EngineError:
    spans = ", ".join(f"{r.table} version {r.first} to {r.last}" for r in plan.ranges) or "signals"
    return EngineError(
        "bucket-failed",
        f"bucket {plan.bucket} of {plan.rulebook} ({spans}) cannot be taken: "
        f"{type(error).__name__}: {error}",
        "the cursors stay before it; remove the cause and run again"
        + (", or `tidegate reset TABLE --from VERSION` to go on behind it" if plan.ranges else ""),
    )
