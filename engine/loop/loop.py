"""The life of a bucket, top to bottom: `Loop.bucket` is the ten steps of `architecture.md`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tidegate.engine.act.messages import awaited_text, tell
from tidegate.engine.act.outbox import Stamp, entries_for
from tidegate.engine.act.run import Runner
from tidegate.engine.act.targets import Targets
from tidegate.engine.capture.apart import unread
from tidegate.engine.capture.plan import given_up_text, half, stuck
from tidegate.engine.capture.resets import with_resets
from tidegate.engine.capture.switches import switched
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.ledger import Arrivals
from tidegate.engine.core.lifecycle import IDLE, WAITING, Activity, detected_by
from tidegate.engine.core.outage import check_room, looking_at_tables
from tidegate.engine.core.ports import StoppedError, TooManyError
from tidegate.engine.core.state import BucketReport, Parked, SourceSnapshot, State, StoredBucket
from tidegate.engine.core.state_parts import Shelf
from tidegate.engine.core.text.layout import counted
from tidegate.engine.core.text.logs import Stages
from tidegate.engine.core.values import Plan, Site
from tidegate.engine.detect.events.graph.timers import FloodError
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.stage import detect
from tidegate.engine.evaluate.apart import FiringsApart
from tidegate.engine.evaluate.damping.damper import Damper
from tidegate.engine.evaluate.samples import AsOf, Sampler
from tidegate.engine.evaluate.stage import evaluate
from tidegate.engine.loop.compiled_rulebook import CompiledRulebook, compiled_for, without_edited
from tidegate.engine.loop.current_rules import CurrentRules
from tidegate.engine.loop.limits import fired_lately, parked_by_limits
from tidegate.engine.loop.planner import Planner, carried_out_by_a_bucket
from tidegate.engine.loop.ports import Ports
from tidegate.rules.errors import EngineError

log = logging.getLogger(__name__)
FAILURES_BEFORE_HALVING = 3  # G8
FILES_EVERY_BUCKETS = 10  # state files are removed, after so many
COMPACTED_AGAIN_BUCKETS = 100  # after state files could not be put together
WAIT_SECONDS_MIN = 0.001
_OF_FILES = frozenset({"state-file", "state-unreadable", "state-unwritable"})
_OF_ENTRIES = frozenset({"skip", "redrive"})  # controls that no bucket carries out


@dataclass(slots=True)
class Loop:
    """Buckets of one rulebook under one lease. Not for use by several threads.

    `compiled` and `state` are what the last committed bucket left; they change together, once its
    transaction is committed.
    """

    compiled: CompiledRulebook
    state: State
    ports: Ports
    planner: Planner
    runner: Runner
    targets: Targets
    stages: Stages = field(default_factory=Stages, init=False)
    reload_asked: bool = field(default=False, init=False)  # by an operator: the text has changed
    _compact_from: int = field(default=1, init=False)  # after which bucket files are looked at
    _damper: Damper = field(init=False)
    _tried: tuple[int, Shelf] | None = field(default=None, init=False)
    """A bucket that is not committed, as far as is known, and where files of it may lie."""

    def __post_init__(self) -> None:
        self.state = without_edited(self.state, self.compiled.rulebook, self.compiled.digests)
        self._damper = Damper(self.ports.ledger.damping)
        self.targets.wrote(self.compiled.targets)
        self.targets.make_ready()
        self.runner.load(self.ports.ledger.outbox.open_entries())

    def first_look(self) -> BucketReport | None:
        """The first bucket of a new store, up to its own beginning, where a table begins at its
        head: what is committed to that from now on is seen. The rows of a snapshot belong to the
        first bucket themselves (G5): where there is one, it is left to the first run. Raises as
        `bucket` does."""
        if self.state.watermark is not None or self.ports.stopped():
            return None
        book, now = self.compiled.rulebook, self.ports.now()
        heads = self.planner.listing(book, self.state, now, ()).heads.values()
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
        plan: Plan | None = None
        failures, tries = 0, dict[str, float]()
        try:
            while True:
                self.stages = Stages(tries)
                self.ports.check_lease()
                now, arrived = self.planner.look()
                if self._carry_out(arrived) + self._run():
                    now, arrived = self.planner.look()
                if self.ports.stopped():
                    return None
                if self.full:
                    self._rest(Activity(IDLE, looked_at=now))
                    return None
                with self.stages.at("plan"):
                    plan = self.planner.plan(self.compiled, self.state, now, arrived, until)
                if plan is None and self.planner.idle:
                    self._rest(self.planner.left)
                self.targets.make_ready()
                if plan is None:
                    return None
                self._give_up()
                try:
                    compiled, taken = self._take(plan)
                except FloodError as short:
                    until = short.reached
                except TooManyError as many:
                    self.planner.sites.fewer(plan, many.found)
                except Exception as error:
                    if not self.planner.sites.goes_on_without(plan, error):
                        failures += 1
                        until = _until_after(error, failures, plan, until)
                else:
                    return self._act(self._commit(compiled, taken))
                tries = tries | {n: s for n, s in self.stages.seconds.items() if n != "act"}
        except Exception as error:
            with suppress(EngineError):  # the store may be away; the next bucket does it then
                self._give_up()
            if not isinstance(error, StoppedError):
                raise
            log.info("%s", given_up_text(plan))
            return None

    def work(self) -> None:
        """Do what operators asked for about entries, and run those that are due, the detached ones
        to their end."""
        if self.ports.stopped():
            self.finish()
            return
        self.stages = Stages()  # those there were are the last report's
        self.ports.check_lease()
        _, arrived = self.planner.look()
        self._carry_out(arrived)
        self._run(patient=True)

    def compact(self) -> bool:
        """In a quiet time: put small state files together, if there are many (G26). True: there may
        be more. A file that cannot be read or written now is left to the bucket that needs it.
        Raises EngineError."""
        bucket = self.state.bucket
        if bucket < self._compact_from or self.ports.stopped():
            return False
        self._compact_from = bucket + 1
        settings = self.compiled.rulebook.settings
        try:
            moved = self.ports.ledger.buckets.compact(settings.state_path, self.ports.now())
        except EngineError as error:
            if error.code not in _OF_FILES:
                raise
            self._compact_from = bucket + COMPACTED_AGAIN_BUCKETS
            log.warning("small state files are not put together: %s", error.message)
            return False
        if not moved:
            return False
        self._compact_from = bucket
        tables = Parts.of(self.state.carried.tables).relocated(moved)
        self.state = replace(self.state, carried=replace(self.state.carried, tables=tables))
        log.debug("%s of small state files put together", counted(len(moved), "part"))
        return True

    def finish(self) -> None:
        """Wait for the detached entries that run already, and settle them. Where the engine stops,
        say what is left."""
        self.runner.work(self.current, lambda: True, patient=True)
        left = sum(waiting.entry.state == "pending" for waiting in self.runner.queues)
        if left and self.ports.stopped():
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
        first = min((d for d in (self.planner.due, self.runner.due) if d is not None), default=None)
        return None if first is None else max(WAIT_SECONDS_MIN, (first - self.ports.now()) / 1e6)

    @property
    def watching(self) -> Mapping[str, int] | None:
        """By table, the version that is read next; None before the first plan."""
        cursors, tables = self.state.cursors, self.planner.sources.tables
        found = {table: cursors[table].version + 1 for table in tables if table in cursors}
        return found if self.state.bucket and len(found) == len(tables) else None

    @property
    def waiting(self) -> bool:
        """Whether some entry waits for its next attempt."""
        return any(w.entry.state == "pending" for w in self.runner.queues)

    def recover(self) -> None:
        """Go on from what the store has, after it or a table was away: a transaction whose answer
        was lost may have been committed. Raises OutageError while it is still away."""
        apart = self.compiled.rulebook.settings.detect != "driver"
        found = self.ports.ledger.buckets.load(apart=apart)
        self.state = without_edited(found, self.compiled.rulebook, self.compiled.digests)
        failpoint("recover.loaded")
        self.runner.load(self.ports.ledger.outbox.open_entries())
        active = self.state.activations
        digests = {r: active[r] for r in self.compiled.digests if r in active}
        self.compiled = replace(self.compiled, activations=digests, detector=None)

    def visible(self) -> SourceSnapshot:
        """What stands in tables and inbox now."""
        now, arrived = self.planner.look()
        controls = self.planner.controls(arrived)
        rulebook, state = with_resets(self.compiled.rulebook, self.state, controls)
        listing = self.planner.listing(rulebook, state, now, controls)
        with looking_at_tables():
            versions = {t: self.ports.feed.version(rulebook.tables[t]) for t in listing.heads}
        controlled = carried_out_by_a_bucket(controls, listing)
        return SourceSnapshot(now, versions, arrived.last_received, controlled)

    def done(self, seen: SourceSnapshot) -> bool:
        """Whether buckets hold all that was seen, as far as the rulebook still looks at it."""
        watermark = self.state.watermark
        if watermark is None or any(
            table not in self.state.cursors or self.state.cursors[table].version < version
            for table, version in seen.versions.items()
            if table in self.planner.sources.tables
        ):
            return False
        timer = self.planner.next_timer(self.compiled, self.state, watermark)
        if timer is not None and timer <= seen.now:
            return False
        _, arrived = self.planner.look()
        first, last = arrived.first_received, seen.last_received
        if first is not None and last is not None and first <= last:
            return False
        if not seen.controls.isdisjoint(control.id for control in self.planner.controls(arrived)):
            return False
        self._rest(Activity(IDLE, next_timer=timer, looked_at=seen.now, seen_until=watermark))
        return True

    def _run(self, *, patient: bool = False) -> int:
        """Run the entries that are due; returns how many were done."""
        with self.stages.at("act"):
            return self.runner.work(self.current, self.ports.stopped, patient=patient)

    def _carry_out(self, arrived: Arrivals) -> int:
        """What operators asked for and no bucket carries out; how much that was."""
        done = 0
        controls = self.planner.controls(arrived)
        book = self.compiled.rulebook
        quarantined = self.ports.quarantine.rules(book.rules)
        answers = switched(controls, self.state, book, quarantined).answers
        for control in controls:
            if self.ports.stopped():
                break
            if control.kind == "reload":
                self.reload_asked = True
                continue
            if control.kind in _OF_ENTRIES:
                self.runner.carry_out(control, self.current)
                done += 1
                continue
            if control.kind == "disable" and control.option == "purge":
                done += self.runner.purge(control.subject, self.current)
            if said := answers.get(control.id):
                self.ports.ledger.controls.answer(control.id, said)
                done += 1
        return done

    def _rest(self, found: Activity) -> None:
        """Say that nothing is taken, and why. `found`: what the look found. A full outbox keeps it
        from looking."""
        if self.full:
            open_now = f"{len(self.runner.queues):,}"
            some = f"some of the {open_now} open entries to end (outbox_entries_max)"
            self.ports.say(Activity(WAITING, some, next_timer=found.next_timer))
            return
        doing = awaited_text(self.runner.queues)
        self.ports.say(found if doing is None else replace(found, state=WAITING, doing=doing))

    def _give_up(self) -> None:
        """Delete the files of the last try of a bucket, unless it was committed: a bucket may be
        tried many times."""
        if self._tried is not None:
            self.ports.ledger.buckets.give_up(*self._tried)
            self._tried = None

    def _take(self, plan: Plan) -> tuple[CompiledRulebook, StoredBucket]:
        """All that a bucket is, before anything of it is stored: it can be done again."""
        ports, state = self.ports, self.state
        compiled = compiled_for(self.compiled, plan, ports.prepare)
        book, detector = compiled.rulebook, compiled.detector
        if detector is None:
            raise ValueError("a compiled rulebook has no detector before its first plan")
        failpoint("compile.after")
        if plan.enabled:
            ports.quarantine.release(plan.enabled)
        with self.stages.at("capture"):
            clocks = self.planner.clocks
            bucket = compiled.capture.capture(plan, ports.feed, clocks)  # 4. read exactly that
            if ports.executors is not None and plan.site.tables:
                needs, capture = compiled.prepared.needs, compiled.capture
                left = unread(book, needs, capture, plan, ports.executors)
                bucket = replace(bucket, unread=left)
        failpoint("detect.before")
        with self.stages.at("detect"):  # 5. what happened
            shelf = ports.ledger.buckets.shelf(book.settings.state_path, plan.bucket)
            if plan.site.executors and shelf is not None:
                self._tried = plan.bucket, shelf
            fires = FiringsApart.of(book.name, compiled.prepared) if plan.site.executors else None
            detected = detect(detector, state, bucket, book.settings, shelf, fires)
            self.planner.sites.took(plan, detected.most)
        failpoint("detect.after")
        with self.stages.at("evaluate"):  # 6. firings, and whose condition holds
            history = ports.ledger.buckets.version_at
            as_of = AsOf(book.tables, ports.feed, history, plan.ranges)
            ticks = detector.detector.samples
            sampler = Sampler(compiled.prepared.samples, ticks, ports.conditions, as_of)
            evaluated = evaluate(
                compiled.prepared, detected.found, plan, ports.conditions, as_of, sampler
            )
            damped = self._damper.damp(evaluated.firings, book.rules, evaluated.answers)
        failpoint("evaluate.after")
        entries = entries_for(  # 7. what is to be done
            damped.firings,
            evaluated.unasked,
            book.rules,
            compiled.prepared.statements,
            book.settings.max_cascade_depth,
            Stamp(ports.store_id, book.name, plan.latest, plan.now),
            compiled.later,
        )
        parked = self._parked_after(plan, detected.parked)
        fired = fired_lately(state.fired, plan, damped.firings)
        stopped = parked_by_limits(
            fired, self._damper, book.settings, plan, detector.detector, parked
        )
        passed_over = detector.passed_over(state.carried, bucket.batches, plan.watermark, parked)
        if plan.site.executors and not detected.apart:
            why = f"nothing of it is for executors ({plan.site.why})"
            plan = replace(plan, site=Site(executors=False, why=why))
        return compiled, StoredBucket(
            plan,
            detected.carried,
            compiled.digests,
            damped.firings,
            entries,
            (*bucket.rejected, *detected.rejected),
            bucket.rows + detected.rows,
            sum(map(len, detected.found)),
            self.stages.seconds,
            (*detected.parked, *stopped),
            {**passed_over, **detected.passed_over},
            fired,
            damped.memory,
            detected.loads,
            clocks.missed(plan, self._begun_at(plan)),
            shelf,
        )

    def _commit(self, compiled: CompiledRulebook, taken: StoredBucket) -> StoredBucket:
        """8. One transaction; then `compiled` and `state` are those that it was taken with. Nothing
        is computed after it that could fail and leave its entries behind (G16b)."""
        after = self._after(compiled, taken)
        failpoint("take.after")
        if taken.shelf is not None:
            self._tried = taken.plan.bucket, taken.shelf  # the transaction may leave a file, too
        with self.stages.at("commit"):
            numbered = self.ports.ledger.buckets.commit(taken)
        self.compiled, self.state = compiled, after
        self._tried = None
        return replace(taken, entries=numbered)

    def _act(self, taken: StoredBucket) -> BucketReport:
        """What the transaction made due. The store has it: whatever is raised here, it is done by
        the next run, or after `recover`."""
        plan = taken.plan
        for span in plan.ranges:
            self.planner.instants.forget(span.cursor.table_id, span.cursor.version)
        self.runner.add(taken.entries, taken.firings)
        failpoint("queue.added")
        if taken.entries or plan.bucket == 1:  # else the next look says it at once
            self.ports.say(self.planner.left)
        tell(taken)
        self._run()  # 9. marked statements, 10. each settled
        self.targets.wrote({entry.target for entry in taken.entries if entry.target})
        self.ports.ledger.buckets.acted(plan.bucket, self.stages.seconds["act"])
        if plan.bucket % FILES_EVERY_BUCKETS == 0:
            settings = self.compiled.rulebook.settings
            self.ports.ledger.retention.remove_files(settings, self.ports.now())
        return BucketReport(
            bucket=plan.bucket,
            watermark=plan.watermark,
            rows=taken.rows,
            rejected=len(taken.rejected),
            detections=taken.detections,
            firings=sum(map(len, taken.firings)),
            damped=sum(sum(fired.damped.values()) for fired in taken.firings),
            entries=len(taken.entries),
            seconds=self.stages.seconds,
            detected_by=detected_by(executors=plan.site.executors),
            because=plan.site.why,
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

    @property
    def current(self) -> CurrentRules:
        """The rules for entries that are done now."""
        return CurrentRules(self.compiled, self.ports, self._damper)


def _until_after(error: Exception, failures: int, plan: Plan, until: int | None) -> int | None:
    """The bound of a plan that is made again, after so many failures of this one. Raises the error
    if that is of no use."""
    if not isinstance(error, EngineError):
        failed = stuck(plan, error)
        failed.__cause__ = error
    elif error.code == "table-unreadable":
        failed = error
    else:
        raise error
    if failures < FAILURES_BEFORE_HALVING:
        return until
    if (found := half(plan)) is None:
        check_room(failed)
        raise failed
    return found
