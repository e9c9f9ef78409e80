"""The engine of one rulebook: made of its parts, run, stopped."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from pyspark.sql import SparkSession

from tidegate import rules
from tidegate.connectors.delta.faults import why_lost
from tidegate.connectors.delta.keeping import keepings
from tidegate.connectors.delta.slots import Slots
from tidegate.connectors.delta.watchdog import DeltaHealth
from tidegate.connectors.scheduler import Wakeup
from tidegate.engine.app.adopt import MICROS_PER_DAY
from tidegate.engine.app.parts import EngineParts, open_parts
from tidegate.engine.app.preconditions import allowed, check_clock, load_allowed, told_of_failure
from tidegate.engine.app.rehearsal import rehearse
from tidegate.engine.app.reload import Changes, RulebookFile, absolute
from tidegate.engine.app.requests import Requests
from tidegate.engine.app.sessions import Sessions
from tidegate.engine.app.standby import own_text, took, wait_for_end, warm_up
from tidegate.engine.core.ledger import Retention
from tidegate.engine.core.lifecycle import STARTING, WAITING, Activity
from tidegate.engine.core.outage import Outages
from tidegate.engine.core.policy import load_policy
from tidegate.engine.core.ports import StoppedError, check_going_on
from tidegate.engine.core.state import BucketReport
from tidegate.engine.core.text.logs import Quiet, Stage, doing, telling, watching_text
from tidegate.engine.detect.table import detect
from tidegate.engine.loop.loop import Loop
from tidegate.engine.quarantine.quarantine import Quarantine
from tidegate.engine.quarantine.turns import GATE
from tidegate.engine.store import KeptRulebook, LeaseKeeper, open_store
from tidegate.engine.store.address import default_store
from tidegate.rules.errors import EngineError, TidegateError
from tidegate.rules.model import Rulebook

log = logging.getLogger(__name__)

OnBucket = Callable[[BucketReport], None]
Answer = TypeVar("Answer")
CHECKING = "checking tables and SQL"
LOOK_SECONDS = 0.5  # where nothing says when there will be something to take
PURGE_EVERY_BUCKETS = 1_000
PURGED_ROWS = 1_000  # in one transaction
PURGES_MAX = 100  # transactions one after the other


class Engine(Requests):
    """One rulebook, running on its tables.

    `rulebook`: a path, YAML text, or a `Rulebook`; `spark`: a classic session with Delta, by
    default one is started (and stopped at the end); `store`: a database URL, by default SQLite
    beside the rulebook; `settings` override the rulebook's; `spark_conf` configures a session that
    is started here; `policy`: the file of what the operator allows, by default TIDEGATE_POLICY;
    `lease_wait_seconds`: how long to wait for another engine of the same rulebook to end;
    `standby`: entering prepares all, and then waits for that end for ever; `stop` ends it, too, by
    EngineError `standby-ended`; `watch`: whether the rulebook's file is taken over when it changes.
    For several rulebooks see `Engines`.

    What it does is told on the loggers under `tidegate`, level INFO.

        with Engine("bank.yaml", spark=spark, store="sqlite:///bank.db") as engine:
            engine.signal("atm_empty", atm_id=4, amount=100)
            reports = engine.run_once()

    Entering raises InputError for what is wrong with rulebook, SQL or tables, and EngineError where
    the engine cannot start (`lease-held`, `store-unreachable`, `java-missing`, ..).
    """

    detect = staticmethod(detect)

    def __init__(
        self,
        rulebook: str | os.PathLike[str] | Rulebook,
        *,
        spark: SparkSession | Sessions | None = None,
        store: str | None = None,
        settings: Mapping[str, str | float] | None = None,
        spark_conf: Mapping[str, str] | None = None,
        policy: str | os.PathLike[str] | None = None,
        lease_wait_seconds: float = 0,
        standby: bool = False,
        watch: bool = False,
    ) -> None:
        self._settings = rules.setting_texts(settings)
        with told_of_failure(rulebook, store):
            self._policy = load_policy(policy)
            self._load = partial(load_allowed, rulebook, self._settings, self._policy)
            self.rulebook = self._load()
        self._file = RulebookFile(self.rulebook, watched=watch)
        self.store_url = store or self._default_store()
        self._shared = isinstance(spark, Sessions)
        self._sessions = spark if isinstance(spark, Sessions) else Sessions(spark, spark_conf or {})
        self._lease_wait_seconds = lease_wait_seconds
        self._standby = standby
        self.waiting = threading.Event()  # a standby is prepared, and another engine runs
        self._open = False
        self._told_ready = False
        self._first: BucketReport | None = None  # of the first look, until a run has told it
        self._running = threading.Lock()
        self._stop = threading.Event()
        self._ended = False  # no run is to begin any more
        self._interrupted = False  # by an error: what the loop knows may be older than the store
        self._wakeup: Wakeup | None = None
        self._lease: LeaseKeeper | None = None
        self._parts: EngineParts | None = None
        self._quarantine: Quarantine | None = None

    def __enter__(self) -> Self:
        self._go_on()
        with ExitStack() as stack:
            self._opened(stack)
            stack.callback(self._close_parts)
            with self._stopping_cause():  # what is committed after the first look is seen
                self._first = self._through(Loop.first_look)
            self._stack = stack.pop_all()
        self._open = True
        return self

    def __exit__(self, *raised: Any) -> None:
        self._open, self._closed = False, True
        self._stack.__exit__(*raised)

    def reread(self) -> None:
        """Take over the rulebook's file as it is now. May be called from a signal handler."""
        self._file.reread()
        # Not here: the interrupted thread may hold the lock that `wake` takes.
        threading.Thread(target=self.wake).start()

    def wake(self) -> None:
        """Look at once whether there is something to take. May be called from any thread."""
        if self._wakeup is not None:
            self._wakeup.wake()

    def run_once(self, on_bucket: OnBucket | None = None) -> tuple[BucketReport, ...]:
        """Everything visible at the start, in as many buckets as it takes. Waits for the slack of
        late commits (G2), not for retries: `obstacles` says what is left. Raises EngineError; what
        is committed stays."""
        reports: list[BucketReport] = []

        def done(report: BucketReport) -> None:
            reports.append(report)
            self._tell_ready()
            if on_bucket:
                on_bucket(report)

        with self._alone("run_once"):
            through = self._through
            self._tell_first(done)
            self._tell_ready()
            through(Loop.work)
            through(self._change)
            seen = through(Loop.visible)
            while not self._stop.is_set() and not through(lambda loop: loop.done(seen)):
                through(self._change)
                report = through(Loop.bucket)
                if report is not None:
                    done(report)
                elif self._loop.full:
                    break
                else:
                    self._stop.wait(min(self._loop.wait_seconds or LOOK_SECONDS, LOOK_SECONDS))
            through(Loop.work)
            while through(Loop.compact):
                pass
            through(self._purge)
        return tuple(reports)

    def run(
        self,
        *,
        poll_seconds: float = 0.5,
        until_idle: bool = False,
        on_bucket: OnBucket | None = None,
        on_idle: Callable[[], bool] | None = None,
    ) -> None:
        """Bucket after bucket until `stop`; with `until_idle` until nothing is left to do but what
        `obstacles` says.

        `on_bucket` is called after a bucket's actions; `on_idle` whenever there is nothing left to
        do: true ends the run. Raises EngineError; what is committed stays.
        """
        quiet = Quiet()
        with self._alone("run"), Wakeup(poll_seconds) as self._wakeup:
            if self._stop.is_set():
                return
            through = self._through
            self._tell_ready()
            self._tell_first(on_bucket)
            while not self._wakeup.stopped:
                through(self._change)
                report = through(Loop.bucket)
                if report is not None:
                    self._tell_ready()
                    quiet.over()
                    if on_bucket:
                        on_bucket(report)
                    if report.bucket % PURGE_EVERY_BUCKETS == 0:
                        through(self._purge)
                elif self._loop.reload_asked:
                    continue
                elif not (self._loop.planner.idle or self._loop.full):
                    self._wakeup.wait(self._loop.wait_seconds)
                elif through(Loop.compact):
                    continue
                elif (until_idle and not self._loop.waiting) or (on_idle is not None and on_idle()):
                    return
                else:
                    quiet.go_on(self._loop.waiting)
                    self._wakeup.wait(self._loop.wait_seconds)
            through(Loop.finish)

    def stop(self) -> None:
        """End the run that is going on, after the statements in hand: a bucket is given up before
        its transaction, entries stay open after that. A later run takes both up. May be called from
        any thread."""
        self._stop.set()
        if self._wakeup is not None:
            self._wakeup.stop()
        lease = self._lease
        if lease is not None and self._at_work():
            lease.ends(str(self._stage() or ""))
            if not self._at_work():  # by now
                lease.goes_on()

    def end(self) -> None:
        """`stop`, and let no other run begin: a process that is to end may be between two."""
        self._ended = True
        self.stop()

    @property
    def ended(self) -> bool:
        """Whether no other run begins."""
        return self._ended

    @property
    def activity(self) -> Activity:
        """What it does just now. For any thread."""
        return Activity(STARTING) if self._lease is None else self._lease.activity

    def _at_work(self) -> bool:
        """Whether there is something that a stop ends."""
        return self._ended or not self._open or self._running.locked()

    def _go_on(self) -> None:
        """What was stopped before does not stop what begins now."""
        if not self._ended:
            self._stop.clear()
            if self._lease is not None:
                self._lease.goes_on()

    @contextmanager
    def _alone(self, method: str) -> Iterator[None]:
        """One run at a time. Raises EngineError for another."""
        self._check_open(method)
        if not self._running.acquire(blocking=False):
            raise EngineError(
                "engine-runs",
                f"`{method}`: this engine runs already, in another call of `run` or `run_once`",
                "wait for the end of that, or end it with `stop`",
            )
        try:
            self._go_on()
            with self._stopping_cause(), telling(self._stage, self._held.at):
                yield
        finally:
            self._running.release()
            if not self._ended and self._lease is not None:
                self._lease.goes_on()

    def _tell_first(self, on_bucket: OnBucket | None) -> None:
        first, self._first = self._first, None
        if first is not None and on_bucket is not None:
            on_bucket(first)

    @property
    def _held(self) -> LeaseKeeper:
        if self._lease is None:
            raise ValueError("an engine that is not open has no lease")
        return self._lease

    @property
    def _loop(self) -> Loop:
        if self._parts is None:
            raise ValueError("an engine that is not open has no loop")
        return self._parts.loop

    def _stage(self) -> Stage | None:
        """What is being done. For any thread."""
        parts = self._parts
        return None if parts is None else parts.loop.stages.now

    def _close_parts(self) -> None:
        if self._parts is not None:
            self._parts.close()
            self._parts = None

    def _default_store(self) -> str:
        if self.rulebook.file is None:
            raise EngineError(
                "no-store", "a rulebook given as text has no default store", "name a store URL"
            )
        return default_store(Path(self.rulebook.file))

    def _tell_ready(self) -> None:
        """Once every source has its place: what is committed from here on is seen."""
        watching = None if self._told_ready else self._loop.watching
        if watching is not None:
            self._told_ready = True
            log.info("ready, %s", watching_text(watching))

    def _opened(self, stack: ExitStack) -> None:
        self._store = store = stack.enter_context(open_store(self.store_url, create=True))
        self._add_rules()
        book = self.rulebook
        lease = LeaseKeeper(
            store,
            book.name,
            book.settings.lease_seconds,
            self._lease_lost,
            wait_seconds=self._lease_wait_seconds,
            given_up=self._stop,
        )
        take = partial(stack.enter_context, lease)
        waits = self._standby and not took(take)
        if waits:
            self._spark = self._session(stack)
            warm_up(book, store, self._spark, self._policy)
            if self._sessions.own:  # a user's has run before
                made = type(self)
                rehearse(
                    lambda text, spark, url: made(text, spark=spark, store=url),
                    self._spark,
                    lambda: store.of(book.name).lease.holder() is not None,
                )
            wait_for_end(book, store, take, self.waiting, self._stop)
            book = self.rulebook = own_text(book, store, self._load)
        elif not self._standby:
            take()
        self._lease, self._quarantine = lease, None
        self._ledger = ledger = store.of(book.name, lease.epoch)
        self._add_rules()
        book = self.rulebook
        self._file.runs(book)
        given = KeptRulebook(book.text, absolute(book.file), files=book.files)
        ledger.versions.introduce(given, self._settings)
        with self._stopping_cause():
            check_clock(store, book)
            if not waits:
                self._held.say(Activity(STARTING, "starting Spark"))
                self._spark = self._session(stack)
            check_going_on(lambda: self._ended)
            self._changes = Changes(
                self._ledger, book.name, self._file, self._settings, self._take_over
            )
            self._changes.begin(book)
            self._parts = self._checked_parts()
            self._tell_keepings(self._parts)
            self._held.say(Activity(STARTING, "before its first look"))

    def _add_rules(self) -> None:
        """The rules beside the rulebook's text are those that ran last. What somebody has dropped
        since is left out, and keys that he enabled: they may be why no engine starts."""
        name, own = self.rulebook.name, self.rulebook
        kept = self._store.rulebooks().get(name)
        if kept is None:
            return
        asked = self._store.of(name).versions.newest().added
        added = {
            path: asked[path] if "/" in path else text
            for path, text in kept.added.items()
            if path in asked
        }
        if added != own.added:
            found = KeptRulebook(own.text, own.file, added, files=own.files)
            self.rulebook = found.load(self._settings)
            self.rulebook = allowed(self.rulebook, self._policy)

    def _change(self, loop: Loop) -> None:
        """Take over another rulebook, if one is asked for."""
        added, asked = self.rulebook.added, loop.reload_asked
        self._changes.make(added, asked=asked)
        self._loop.reload_asked = False  # the next look finds what is left

    def _session(self, stack: ExitStack) -> SparkSession:
        """The session to use; one that is started for this engine alone ends with it."""
        if not self._shared:
            stack.callback(self._sessions.close)
        return self._sessions.get()

    def _take_over(self, book: Rulebook) -> int:
        """Go on with another text of the rulebook from what the store has; its version. Raises
        InputError and EngineError where it cannot run; everything is as before then."""
        book = allowed(book, self._policy)
        self._loop.finish()
        parts = self._opened_parts(book)
        self._file.runs(book)
        before, self._parts, self.rulebook = self._parts, parts, book
        self._held.seconds = book.settings.lease_seconds
        self._tell_keepings(parts)
        if before is not None:
            before.close(parts)
        return parts.version

    def _checked_parts(self) -> EngineParts:
        """Those of the rulebook as it is, where no loop runs."""
        self._held.say(Activity(STARTING, CHECKING))
        with doing(CHECKING):
            return self._opened_parts(self.rulebook)

    def _opened_parts(self, book: Rulebook) -> EngineParts:
        return open_parts(
            book,
            self._store,
            self._spark,
            self._held,
            self._policy,
            self.wake,
            self._stop.is_set,
            self._parts,
            quarantined=self._quarantined,
        )

    def _quarantined(self, slots: Slots, most: int) -> Quarantine:
        """What this engine knows of its suspects: it outlives the Spark that they end."""
        health = DeltaHealth(self._spark, slots, own=self._sessions.own)
        known = self._quarantine
        if known is None:
            stopped = self._stop.is_set
            known = Quarantine(self._ledger.suspects, GATE, health, most, stopped)
        known.health, known.most = health, most
        self._quarantine = known
        return known

    def _lease_lost(self, error: EngineError) -> None:  # noqa: ARG002
        """From the lease's thread: nothing that runs may land any more (G21)."""
        if self._parts is not None:
            self._parts.cancel()

    def _through(self, call: Callable[[Loop], Answer]) -> Answer:
        """What `call` answers for the loop there is. Outages are waited out as the rulebook says
        now; a Spark that has ended is started again."""
        while True:
            seconds = self.rulebook.settings.outage_max_seconds
            outages = Outages(
                seconds, self._stop.wait, self._recover, self._stop.is_set, tell=self._tell_outage
            )
            try:
                return outages.through(lambda: call(self._loop))
            except Exception as error:
                gone = why_lost(self._spark, error)
                if gone is None or self._stop.is_set():
                    raise
                self._restart_spark(gone)

    def _tell_outage(self, error: EngineError) -> None:
        self._held.say(Activity(WAITING, f"an outage to end: {error.message}"))

    def _restart_spark(self, reason: EngineError) -> None:
        """Go on from what the store has, in another session. Raises EngineError, the reason where
        there is to be no other."""
        most = self.rulebook.settings.spark_restarts_max
        while True:
            self._held.say(Activity(STARTING, "starting Spark again"))
            self._spark = self._sessions.again(self._spark, reason, most)
            with suppress(Exception):  # what is closed asks a Spark that is gone
                self._close_parts()
            self._parts = None
            try:
                self._parts = self._checked_parts()
                return
            except Exception as error:
                gone = why_lost(self._spark, error)
                if gone is None:
                    raise
                reason = gone

    def _recover(self) -> None:
        if gone := why_lost(self._spark):
            raise gone
        self._loop.recover()

    @contextmanager
    def _stopping_cause(self) -> Iterator[None]:
        """Keeps the reason of a stop in the store, for `status` (G7), unless another engine has
        taken over meanwhile. The next run begins with what the store has then."""
        self._ledger.lease.set_stopped(None)
        if self._interrupted:
            self._loop.recover()
            self._interrupted = False
        try:
            yield
        except Exception as error:
            self._interrupted = True
            code = getattr(error, "code", "")
            if isinstance(error, StoppedError):
                if self._open:
                    return
                raise  # it is being entered, and there is to be no run
            if self._open and self._stop.is_set() and code == "spark-lost":
                return  # whoever asked for the stop has ended Java, too
            known = isinstance(error, TidegateError)
            said = str(error) if known else f"{type(error).__name__}: {error}"
            with suppress(EngineError):  # the cause may be the store itself, or the lost lease
                self._ledger.lease.set_stopped(said)
            raise

    def _tell_keepings(self, parts: EngineParts) -> None:
        """Let the store know for how long the tables keep their past. What cannot be read is left
        out: who reads the table says why."""
        with suppress(EngineError):
            self._ledger.keepings.tell(keepings(parts.lake.catalog, self.rulebook.tables))

    def _purge(self, loop: Loop) -> None:
        if self._parts is not None:
            self._tell_keepings(self._parts)
        retention = loop.ports.ledger.retention
        settings, now = self.rulebook.settings, loop.ports.now()
        retention.remove_files(settings, now)
        retention.remove_lost_files(settings, now)
        purge(retention, self.rulebook, now, self._stop.is_set)


def purge(retention: Retention, book: Rulebook, now: int, stopped: Callable[[], bool]) -> None:
    """Forget what is past its retention, in short transactions; much of it not all at once."""
    firings = now - book.settings.firings_retention_days * MICROS_PER_DAY
    history = now - book.settings.history_retention_days * MICROS_PER_DAY
    for _ in range(PURGES_MAX):
        if stopped() or retention.purge(firings, history, PURGED_ROWS) < PURGED_ROWS:
            return
