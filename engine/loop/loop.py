"""The life of a bucket, top to bottom: `Loop.bucket` is the ten steps of `architecture.md`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tidegate.engine.act.messages import awaited_text, tell
from tidegate.engine.act.outbox import Stamp, entries_for
from tidegate.engine.act.run import Runner, Targets
from tidegate.engine.capture.commit_instants import Instants, Now
from tidegate.engine.capture.plan import (
    Listing,
    behind,
    due,
    given_up_text,
    half,
    list_sources,
    make_plan,
    pin,
    stuck,
    watermark_before,
)
from tidegate.engine.capture.resets import read_again_after, with_resets
from tidegate.engine.capture.schedule import Clocks
from tidegate.engine.capture.sources import Sources, sources
from tidegate.engine.capture.switches import switched
from tidegate.engine.core.clocks import running_clocks
from tidegate.engine.core.entries import Control
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.ledger import Arrivals, Ledger, Unplaced
from tidegate.engine.core.lifecycle import IDLE, STARTING, WAITING, Activity
from tidegate.engine.core.outage import check_room, looking_at_tables
from tidegate.engine.core.ports import Conditions, Feed, StoppedError
from tidegate.engine.core.state import BucketReport, Parked, SourceSnapshot, State, StoredBucket
from tidegate.engine.core.text.layout import counted
from tidegate.engine.core.text.logs import STAGES, Stage, stage_of
from tidegate.engine.core.values import Plan
from tidegate.engine.detect.events.graph.timers import FloodError
from tidegate.engine.detect.events.state.partitions import next_due
from tidegate.engine.detect.stage import BucketDetector, detect
from tidegate.engine.evaluate.damping.damper import Damper
from tidegate.engine.evaluate.samples import AsOf, Sampler
from tidegate.engine.evaluate.stage import evaluate
from tidegate.engine.loop.compiled_rulebook import (
    CompiledRulebook,
    Prepare,
    compiled_for,
    without_edited,
)
from tidegate.engine.loop.current_rules import CurrentRules
from tidegate.engine.loop.limits import fired_lately, parked_by_limits
from tidegate.engine.loop.pace import Pace
from tidegate.engine.quarantine.quarantine import Quarantine
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook

log = logging.getLogger(__name__)
FAILURES_BEFORE_HALVING = 3  # G8
FIRST_BUCKET = "taking its first bucket"
WAIT_SECONDS_MIN = 0.001
_OF_ENTRIES = frozenset({"skip", "redrive"})  # controls that no bucket carries out


@dataclass(slots=True)
class Loop:
    """Buckets of one rulebook under one lease. Not for use by several threads.

    `compiled` and `state` are what the last committed bucket left; they change together, once its
    transaction is committed. `store_id` is part of every marker.
    """

    compiled: CompiledRulebook
    prepare: Prepare
    ledger: Ledger
    store_id: str
    check_lease: Callable[[], None]  # as far as is known here; `Signals.arrivals` asks the store
    feed: Feed
    conditions: Conditions
    asked_later: Conditions  # by entries, beside the bucket's
    runner: Runner
    quarantine: Quarantine
    targets: Targets
    now: Now
    instants: Instants
    state: State
    stopped: Callable[[], bool] = lambda: False  # looked at between entries
    say: Callable[[Activity], None] = lambda _: None  # called with what it does from then on
    idle: bool = field(default=False, init=False)  # nothing more was visible when last looked
    due: int | None = field(default=None, init=False)  # when what is visible can be planned
    stage: Stage | None = field(default=None, init=False)  # what is being done
    _pace: Pace = field(default_factory=Pace, init=False)
    _planned: Plan | None = field(default=None, init=False)  # the bucket in hand
    _left: Activity = field(default=Activity(STARTING), init=False)  # by the plan made last
    _sources: Sources = field(init=False)
    _clocks: Clocks = field(init=False)
    _damper: Damper = field(init=False)
    _seconds: dict[str, float] = field(default_factory=dict, init=False)
    reload_asked: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        book = self.compiled.rulebook
        self.state = without_edited(self.state, book, self.compiled.digests)
        self._sources = sources(book)
        self._clocks = Clocks(running_clocks(book), book.settings)
        self._damper = Damper(self.ledger.damping)
        self.targets.wrote(self.compiled.targets)
        self.targets.make_ready()
        self.runner.load(self.ledger.outbox.open_entries())

    def first_look(self) -> BucketReport | None:
        """The first bucket of a new store, up to its own beginning, where a table begins at its
        head: what is committed to that from now on is seen. The rows of a snapshot belong to the
        first bucket themselves (G5): where there is one, it is left to the first run. Raises as
        `bucket` does."""
        if self.state.watermark is not None or self.stopped():
            return None
        heads = self._list(self.compiled.rulebook, self.state, self.now(), ()).heads.values()
        if any(head.snapshot for head in heads):
            return None
        return self.bucket(until=0) if any(not head.commits for head in heads) else None

    def bucket(self, until: int | None = None) -> BucketReport | None:
        """Act on what is due, then take the next bucket and act on it; None if there is nothing to
        take yet, or the outbox is full. `until` bounds its watermark.

        A plan binds only with its transaction: when what comes after it fails, it is made again,
        from the third time on with half of its span, down to one instant (G8).
        A stop cuts it short between two statements: before its transaction all of it is given up,
        after that the entries stay open.
        Raises EngineError; cursors and entries stay as the last transaction left them. After an
        OutageError `recover` goes on from there.
        """
        self._planned = None
        try:
            return self._bucket(until)
        except StoppedError:
            log.info("%s", given_up_text(self._planned))
            return None

    def _bucket(self, until: int | None) -> BucketReport | None:
        failures = 0
        while True:
            self._seconds = {}
            self.check_lease()
            now, arrived = self._look()
            if self._carry_out(arrived) + self._run():
                now, arrived = self._look()
            if self.stopped():
                return None
            if self.full:
                self._rest(now)
                return None
            with self._timed("plan"):
                plan = self._planned = self._plan(now, arrived, until)
            self.targets.make_ready()
            if plan is None:
                return None
            try:
                compiled, taken = self._take(plan)
            except FloodError as short:
                until = short.reached
                continue
            except EngineError as error:
                if error.code != "table-unreadable":
                    raise
                failed = error
            except Exception as error:
                failed = stuck(plan, error)
                failed.__cause__ = error
            else:
                return self._act(self._commit(compiled, taken))
            failures += 1
            if failures >= FAILURES_BEFORE_HALVING:
                until = half(plan)
                if until is None:
                    check_room(failed)
                    raise failed

    def work(self) -> None:
        """Do what operators asked for about entries, and run those that are due, the detached ones
        to their end."""
        if self.stopped():
            self.finish()
            return
        self._seconds = {}  # those there were are the last report's
        self.check_lease()
        _, arrived = self._look()
        self._carry_out(arrived)
        self._run(patient=True)

    def finish(self) -> None:
        """Wait for the detached entries that run already, and settle them. Where the engine stops,
        say what is left."""
        self.runner.work(self._current(), lambda: True, patient=True)
        left = sum(waiting.entry.state == "pending" for waiting in self.runner.queues)
        if left and self.stopped():
            is_open = f"{counted(left, 'entry', 'entries')} {'is' if left == 1 else 'are'} open"
            log.info("stopped; %s, which the next start takes up", is_open)

    @property
    def full(self) -> bool:
        """Whether so many entries are open that nothing more is taken until some are done (G13)."""
        return len(self.runner.queues) >= self.compiled.rulebook.settings.outbox_entries_max

    @property
    def wait_seconds(self) -> float | None:
        """How long until there is something to take or to do, as far as is known; None where
        nothing is."""
        first = min((d for d in (self.due, self.runner.due) if d is not None), default=None)
        return None if first is None else max(WAIT_SECONDS_MIN, (first - self.now()) / 1e6)

    @property
    def watching(self) -> Mapping[str, int] | None:
        """By table, the version that is read next; None before the first plan."""
        cursors, tables = self.state.cursors, self._sources.tables
        found = {table: cursors[table].version + 1 for table in tables if table in cursors}
        return found if self.state.bucket and len(found) == len(tables) else None

    @property
    def waiting(self) -> bool:
        """Whether some entry waits for its next attempt."""
        return any(w.entry.state == "pending" for w in self.runner.queues)

    def recover(self) -> None:
        """Go on from what the store has, after it or a table was away: a transaction whose answer
        was lost may have been committed. Raises OutageError while it is still away."""
        found = self.ledger.buckets.load()
        self.state = without_edited(found, self.compiled.rulebook, self.compiled.digests)
        failpoint("recover.loaded")
        self.runner.load(self.ledger.outbox.open_entries())
        active = self.state.activations
        digests = {r: active[r] for r in self.compiled.digests if r in active}
        self.compiled = replace(self.compiled, activations=digests, detector=None)

    def visible(self) -> SourceSnapshot:
        """What stands in tables and inbox now."""
        now, arrived = self._look()
        controls = self._controls(arrived)
        rulebook, state = with_resets(self.compiled.rulebook, self.state, controls)
        listing = self._list(rulebook, state, now, controls)
        with looking_at_tables():
            versions = {t: self.feed.version(rulebook.tables[t]) for t in listing.heads}
        carried_out = (c.id for c in controls if _carried_out_by_a_bucket(c, listing))
        return SourceSnapshot(now, versions, arrived.last_received, frozenset(carried_out))

    def done(self, seen: SourceSnapshot) -> bool:
        """Whether buckets hold all that was seen, as far as the rulebook still looks at it."""
        watermark = self.state.watermark
        if watermark is None or any(
            table not in self.state.cursors or self.state.cursors[table].version < version
            for table, version in seen.versions.items()
            if table in self._sources.tables
        ):
            return False
        timer = self._next_timer(self.state, watermark)
        if timer is not None and timer <= seen.now:
            return False
        _, arrived = self._look()
        first, last = arrived.first_received, seen.last_received
        if first is not None and last is not None and first <= last:
            return False
        if not seen.controls.isdisjoint(control.id for control in self._controls(arrived)):
            return False
        self._rest(seen.now, watermark, timer)
        return True

    def close(self) -> None:
        """End what goes on beside the buckets."""
        self.targets.close()

    def _look(self) -> tuple[int, Arrivals]:
        """The clock, and only then what waits in the store: what comes later is of a later plan."""
        now = self.now()
        arrived = self.ledger.signals.arrivals(self._sources.signals)
        failpoint("look.after")
        return now, arrived

    def _controls(self, arrived: Arrivals) -> tuple[Control, ...]:
        """What operators asked for; no later than now, whatever the store's clock says."""
        if not arrived.controls:
            return ()
        controls = self.ledger.controls.pending()
        now = self.now()
        return tuple(replace(one, asked_at=min(one.asked_at, now)) for one in controls)

    def _list(
        self, rulebook: Rulebook, state: State, now: int, controls: Iterable[Control]
    ) -> Listing:
        feed, again = self.feed, read_again_after(state, controls)
        with looking_at_tables():
            return list_sources(
                rulebook, self._sources, state, feed, self.instants, now, self.now, again
            )

    def _run(self, *, patient: bool = False) -> int:
        """Run the entries that are due; returns how many were done."""
        with self._timed("act"):
            return self.runner.work(self._current(), self.stopped, patient=patient)

    def _carry_out(self, arrived: Arrivals) -> int:
        """What operators asked for and no bucket carries out; how much that was."""
        done = 0
        controls = self._controls(arrived)
        book = self.compiled.rulebook
        quarantined = self.quarantine.rules(book.rules)
        answers = switched(controls, self.state, book, quarantined).answers
        for control in controls:
            if self.stopped():
                break
            if control.kind == "reload":
                self.reload_asked = True
                continue
            if control.kind in _OF_ENTRIES:
                self.runner.carry_out(control, self._current())
                done += 1
                continue
            if control.kind == "disable" and control.option == "purge":
                done += self.runner.purge(control.subject, self._current())
            if said := answers.get(control.id):
                self.ledger.controls.answer(control.id, said)
                done += 1
        return done

    def _plan(self, now: int, arrived: Arrivals, until: int | None) -> Plan | None:
        book, used_of = self.compiled.rulebook, self.compiled.capture.used
        controls = self._controls(arrived)  # 1. the clock was read,
        rulebook, state = with_resets(book, self.state, controls)
        failpoint("list.before")
        listing = self._list(rulebook, state, now, controls)  # 2. then every source is listed
        listing = replace(listing, received=arrived.first_received)
        before = watermark_before(state, listing)
        unplaced = Unplaced()
        if arrived.first_received is not None:
            limit = book.settings.signals_max
            unplaced = self.ledger.signals.unplaced(self._sources.signals, before, limit)
        used = {name: used_of(name, head.cursor.schema) for name, head in listing.heads.items()}
        switches = switched(controls, state, book, self.quarantine.rules(book.rules))
        timer = self._next_timer(state, before)
        plan = make_plan(  # 3. choose W
            rulebook, state, listing, unplaced, used, until, switches, timer, self._clocks
        )
        self.due = due(listing, unplaced, before, timer)
        visible = due(listing, unplaced, before, timer if timer and timer <= now else None)
        self.idle = plan is None and visible is None
        if plan is None:
            if self.idle:
                self._pace.rested()
                self._rest(now, max(before, listing.limit), timer)
            return None
        said = behind(listing, unplaced)
        losing_since = self._pace.planned(plan, said.oldest)
        said = replace(said, losing_since=losing_since)
        self._left = replace(behind(listing, unplaced, plan), losing_since=losing_since)
        self.say(said if self.state.bucket else replace(said, state=STARTING, doing=FIRST_BUCKET))
        failpoint("plan.chosen")
        with looking_at_tables():
            plan = pin(plan, rulebook, self.feed)
        failpoint("plan.after")
        carried_out = {c.id for c in controls if _carried_out_by_a_bucket(c, listing)}
        return replace(plan, controls=tuple(sorted(carried_out - switches.answers.keys())))

    def _rest(self, now: int, seen_until: int | None = None, timer: int | None = None) -> None:
        """Say that nothing is taken, and why. A full outbox keeps it from looking."""
        if self.full:
            open_now = f"{len(self.runner.queues):,}"
            some = f"some of the {open_now} open entries to end (outbox_entries_max)"
            self.say(Activity(WAITING, some, next_timer=timer))
            return
        state, doing = IDLE, awaited_text(self.runner.queues)
        if doing is not None:
            state = WAITING
        self.say(
            Activity(state, doing or "", next_timer=timer, looked_at=now, seen_until=seen_until)
        )

    def _next_timer(self, state: State, before: int) -> int | None:
        """When something happens by itself next: a timer of the detector is due, or a clock of a
        rule occurs after `before`."""
        known = self.compiled.detector
        carried = known.next_due(state.carried, state.stopped) if known else next_due(state.carried)
        found = (carried, self._clocks.following(before))
        return min((instant for instant in found if instant is not None), default=None)

    def _take(self, plan: Plan) -> tuple[CompiledRulebook, StoredBucket]:
        """All that a bucket is, before anything of it is stored: it can be done again."""
        compiled = compiled_for(self.compiled, plan, self.prepare)
        failpoint("compile.after")
        if plan.enabled:
            self.quarantine.release(plan.enabled)
        with self._timed("capture"):
            bucket = compiled.capture.capture(plan, self.feed, self._clocks)  # 4. read exactly that
        failpoint("detect.before")
        with self._timed("detect"):  # 5. what happened
            detected = detect(_of(compiled), self.state, bucket, compiled.rulebook.settings)
        failpoint("detect.after")
        with self._timed("evaluate"):  # 6. firings, and whose condition holds
            history = self.ledger.buckets.version_at
            as_of = AsOf(compiled.rulebook.tables, self.feed, plan, history)
            ticks = _of(compiled).detector.samples
            sampler = Sampler(compiled.prepared.samples, ticks, self.conditions, as_of)
            evaluated = evaluate(
                compiled.prepared, detected.found, plan, self.conditions, as_of, sampler
            )
            damped = self._damper.damp(
                evaluated.firings, compiled.rulebook.rules, evaluated.answers
            )
        failpoint("evaluate.after")
        entries = entries_for(  # 7. what is to be done
            damped.firings,
            evaluated.unasked,
            compiled.rulebook.rules,
            compiled.prepared.statements,
            compiled.rulebook.settings.max_cascade_depth,
            Stamp(self.store_id, compiled.rulebook.name, plan.latest, plan.now),
            compiled.later,
        )
        parked = self._parked_after(plan, detected.parked)
        fired = fired_lately(self.state.fired, plan, damped.firings)
        stopped = parked_by_limits(
            fired, self._damper, compiled.rulebook.settings, plan, _of(compiled).detector, parked
        )
        passed_over = _of(compiled).passed_over(
            self.state.carried, bucket.batches, plan.watermark, parked
        )
        return compiled, StoredBucket(
            plan,
            detected.carried,
            compiled.digests,
            damped.firings,
            entries,
            (*bucket.rejected, *detected.scripted.rejected),
            bucket.rows,
            sum(map(len, detected.found)),
            self._seconds,
            (*detected.parked, *stopped),
            {**passed_over, **detected.scripted.passed_over},
            fired,
            damped.memory,
            _of(compiled).loads(detected.carried),
            self._clocks.missed(plan, self._begun_at(plan)),
        )

    def _commit(self, compiled: CompiledRulebook, taken: StoredBucket) -> StoredBucket:
        """8. One transaction; then `compiled` and `state` are those that it was taken with. Nothing
        is computed after it that could fail and leave its entries behind (G16b)."""
        after = self._after(compiled, taken)
        failpoint("take.after")
        with self._timed("commit"):
            numbered = self.ledger.buckets.commit(taken)
        self.compiled, self.state = compiled, after
        return replace(taken, entries=numbered)

    def _act(self, taken: StoredBucket) -> BucketReport:
        """What the transaction made due. The store has it: whatever is raised here, it is done by
        the next run, or after `recover`."""
        plan = taken.plan
        for span in plan.ranges:
            self.instants.forget(span.cursor.table_id, span.cursor.version)
        self.runner.add(taken.entries, taken.firings)
        failpoint("queue.added")
        if taken.entries or plan.bucket == 1:  # else the next look says it at once
            self.say(self._left)
        tell(taken)
        self._run()  # 9. marked statements, 10. each settled
        self.targets.wrote({entry.target for entry in taken.entries if entry.target})
        self.ledger.buckets.acted(plan.bucket, self._seconds["act"])
        return BucketReport(
            bucket=plan.bucket,
            watermark=plan.watermark,
            rows=taken.rows,
            rejected=len(taken.rejected),
            detections=taken.detections,
            firings=sum(map(len, taken.firings)),
            damped=sum(sum(fired.damped.values()) for fired in taken.firings),
            entries=len(taken.entries),
            seconds=self._seconds,
        )

    def _parked_after(self, plan: Plan, parked: Iterable[Parked]) -> frozenset[str]:
        return (self.state.parked - plan.enabled) | {one.rule for one in parked}

    def _after(self, compiled: CompiledRulebook, taken: StoredBucket) -> State:
        """The state once the bucket is committed."""
        plan = taken.plan
        return State(
            bucket=plan.bucket,
            watermark=plan.watermark,
            now=plan.now,
            cursors={**self.state.cursors, **{r.table: r.cursor for r in plan.ranges}},
            activations={r: a for r, a in compiled.activations.items() if r in compiled.digests},
            activation_digests=compiled.digests,
            carried=taken.carried,
            parked=self._parked_after(plan, taken.parked),
            disabled=((self.state.disabled - plan.enabled) | plan.disabled)
            & compiled.digests.keys(),
            fired=taken.fired,
            begun_at=self._begun_at(plan),
        )

    def _begun_at(self, plan: Plan) -> int:
        """When the rulebook was first looked at: nothing was missed before."""
        return plan.now if self.state.begun_at is None else self.state.begun_at

    def _current(self) -> CurrentRules:
        return CurrentRules(
            self.compiled, self.store_id, self.asked_later, self.feed, self._damper, self.now
        )

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            with stage_of(STAGES[stage]) as self.stage:
                yield
        finally:
            self.stage = None
            self._seconds[stage] = round(time.perf_counter() - begun, 6)


def _of(compiled: CompiledRulebook) -> BucketDetector:
    if compiled.detector is None:
        raise ValueError("a compiled rulebook has no detector before its first plan")
    return compiled.detector


def _carried_out_by_a_bucket(control: Control, listing: Listing) -> bool:
    listed = control.subject in listing.heads
    return control.kind in ("enable", "disable") or (control.kind == "reset" and listed)
