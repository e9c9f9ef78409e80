"""Several rulebooks in one process: an engine, with a thread and a lease, for each; and how they
are ended from outside, or told to read their files again."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from types import FrameType
from typing import Any, Self, TypeVar

from pyspark.sql import SparkSession

from tidegate.engine.app.engine import Engine
from tidegate.engine.app.sessions import Sessions
from tidegate.engine.control.rulebooks import the_rulebooks
from tidegate.engine.control.signals import given_once, make_signals
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.core.state import BucketReport
from tidegate.engine.core.text.logs import speak_for
from tidegate.engine.store import open_store
from tidegate.rules.errors import EngineError, InputError, Problem, TidegateError, word_place
from tidegate.rules.model import Rulebook

log = logging.getLogger(__name__)
T = TypeVar("T")
LOOK_SECONDS = 0.05  # whether engines that are being opened are open


class Member:
    """An engine that is opened, run and closed in one thread. Where there are `several`, what is
    logged in it names the rulebook, and its failure is logged at once; it is closed then."""

    def __init__(self, engine: Engine, *, several: bool, skip_held: bool) -> None:
        self.engine = engine
        self.error: Exception | None = None
        self.is_open = False
        self._ended = False  # it has nothing to do, and that is no failure
        self._several = several
        self._skip_held = skip_held
        self._name = engine.rulebook.name
        self._pool = ThreadPoolExecutor(1, f"engine-{self._name}")
        if several:
            self._pool.submit(speak_for, self._name)

    @property
    def waits(self) -> bool:
        """Whether it is a standby, ready, and another engine runs."""
        return self.engine.waiting.is_set()

    @property
    def is_over(self) -> bool:
        return self._ended or self.error is not None

    def open(self) -> Future[None]:
        return self._pool.submit(self._guarded, self._open)

    def do(self, call: Callable[[Engine], T]) -> Future[T | None]:
        """Call it once the engine is open; None if it is not, or the call has failed. An engine
        that was told to end is closed then: another one may take its lease, while others of this
        process are still busy."""

        def done() -> T:
            found = call(self.engine)
            if self.engine.ended:
                self._close()
            return found

        return self._pool.submit(self._guarded, done)

    def close(self) -> None:
        """End the engine after the statements in hand, and its thread."""
        self.engine.end()
        self._pool.submit(self._close).result()
        self._pool.shutdown()

    def _guarded(self, call: Callable[[], T]) -> T | None:
        if self.is_over:
            return None
        try:
            return call()
        except Exception as error:
            self._end(error)
            return None

    def _open(self) -> None:
        self.engine.__enter__()
        self.is_open = True

    def _end(self, error: Exception) -> None:
        code = getattr(error, "code", "")
        with suppress(Exception):  # the reason is known
            self._close()
        asked = code in ("standby-ended", "stopped")
        if asked or (code == "lease-held" and self._skip_held):
            if code == "lease-held":
                log.info("left alone: %s", getattr(error, "message", error))
            self._ended = True
            return
        self.error = error
        if self._several:
            known = isinstance(error, TidegateError)
            said = str(error) if known else f"{type(error).__name__}: {error}"
            log.error("rulebook %s has stopped: %s", self._name, said, exc_info=not known)

    def _close(self) -> None:
        if self.is_open:
            self.is_open = False
            self.engine.__exit__(None, None, None)


Given = str | os.PathLike[str] | Rulebook
OnBucket = Callable[[str, BucketReport], None]


class Engines:
    """Several rulebooks, running side by side on one store and in one Spark session.

    `rulebooks`, `settings` and the rest are as `Engine` takes them, for each of the rulebooks;
    `skip_held`: a rulebook that another engine runs is left to it, and is no failure.

        with Engines(["bank.yaml", "stock.yaml"], store="postgresql:///rules") as engines:
            engines.signal("audited", by="Ada")  # every rulebook that declares it
            engines.run_once()
            engines["bank"].disable("much")

    Making it raises InputError with all that is wrong in all of the rulebooks. Later on, what stops
    an engine is logged at once, its lease is given back, and the others go on; `failures` has the
    errors. Once the others have ended, too, the worst is raised.
    """

    def __init__(
        self,
        rulebooks: Sequence[Given],
        *,
        spark: SparkSession | None = None,
        store: str | None = None,
        settings: Mapping[str, str | float] | None = None,
        spark_conf: Mapping[str, str] | None = None,
        policy: str | os.PathLike[str] | None = None,
        lease_wait_seconds: float = 0,
        standby: bool = False,
        watch: bool = False,
        skip_held: bool = False,
    ) -> None:
        if not rulebooks:
            message, place = "no rulebook is given", word_place("Engines([])")
            raise InputError([Problem("no-rulebook", message, place, "name at least one")])
        several = len(rulebooks) > 1
        if several and store is None:
            message = "several rulebooks have no default store in common"
            raise EngineError("no-store", message, "name its URL (store=)")
        self._sessions = Sessions(spark or SparkSession.getActiveSession(), spark_conf or {})
        self._telling = threading.Lock()
        self._stack: ExitStack | None = None  # while they are open
        made = partial(
            Engine,
            spark=self._sessions,
            store=store,
            settings=settings,
            policy=policy,
            lease_wait_seconds=lease_wait_seconds,
            standby=standby,
            watch=watch,
        )
        engines = _checked(made, rulebooks)
        self.store_url = engines[0].store_url
        self._members = {
            engine.rulebook.name: Member(engine, several=several, skip_held=skip_held)
            for engine in engines
        }

    def __enter__(self) -> Self:
        if self._stack is not None:
            message = "these engines are open already"
            raise EngineError("open", message, "a `with` is entered once; leave it first")
        with ExitStack() as stack:
            self._store = stack.enter_context(open_store(self.store_url, create=True))
            stack.callback(self._sessions.close)
            stack.callback(self._close)
            opened = {member: member.open() for member in self._members.values()}
            while not all(future.done() or m.waits for m, future in opened.items()):
                time.sleep(LOOK_SECONDS)
            if len(self.failures) == len(self._members):
                self._raise_worst()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *raised: Any) -> None:
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.__exit__(*raised)

    def __getitem__(self, rulebook: str) -> Engine:
        return self._members[rulebook].engine

    @property
    def rulebooks(self) -> tuple[Rulebook, ...]:
        return tuple(member.engine.rulebook for member in self._members.values())

    @property
    def failures(self) -> dict[str, Exception]:
        """What has stopped engines, by rulebook."""
        return {name: m.error for name, m in self._members.items() if m.error is not None}

    @property
    def waiting(self) -> bool:
        """Whether all engines that go on are standbys of others."""
        going = [member for member in self._members.values() if not member.is_over]
        return bool(going) and all(member.waits for member in going)

    @property
    def activities(self) -> dict[str, Activity]:
        """What the engines do, by rulebook; those that wait for, or are left to, another engine are
        none of them."""
        going = {name: m for name, m in self._members.items() if not (m.is_over or m.waits)}
        return {name: member.engine.activity for name, member in going.items()}

    @property
    def checking(self) -> tuple[Rulebook, ...]:
        """The rulebooks that are yet to be registered, once their tables and SQL are checked."""
        members = self._members.values()
        return tuple(m.engine.rulebook for m in members if not (m.is_open or m.is_over or m.waits))

    def signal(
        self,
        event: str,
        fields: Mapping[str, Any] | None = None,
        /,
        *,
        id: str | None = None,
        **named: Any,
    ) -> str:
        """Raise an explicit event in every rulebook of the store that declares it, or in none; see
        `Engine.signal`. Each judges the fields by its own declaration."""
        books = the_rulebooks(self._store, None)
        values = given_once(event, fields or {}, named)
        raised = make_signals(books, event, values, id, self._store.wall())
        self._store.raise_everywhere(raised)
        self.wake()
        return next(iter(raised.values())).id

    def reread(self) -> None:
        """Take over the rulebooks' files as they are now. May be called from a signal handler."""
        for member in self._members.values():
            member.engine.reread()

    def wake(self) -> None:
        """Look at once whether there is something to take. May be called from any thread."""
        for member in self._members.values():
            member.engine.wake()

    def run_once(self, on_bucket: OnBucket | None = None) -> dict[str, tuple[BucketReport, ...]]:
        """See `Engine.run_once`; the reports by rulebook."""
        found = self._all(
            lambda name, engine: engine.run_once(on_bucket=self._teller(name, on_bucket))
        )
        return {name: reports or () for name, reports in found.items()}

    def run(
        self,
        *,
        poll_seconds: float = 0.5,
        until_idle: bool = False,
        on_bucket: OnBucket | None = None,
    ) -> None:
        """See `Engine.run`; returns when all have ended. `on_bucket` is called by one at a time,
        with the name of the rulebook."""
        self._all(
            lambda name, engine: engine.run(
                poll_seconds=poll_seconds,
                until_idle=until_idle,
                on_bucket=self._teller(name, on_bucket),
            )
        )

    def obstacles(self) -> dict[str, tuple[str, ...]]:
        """See `Engine.obstacles`; of the engines that are open, by rulebook."""
        return {n: m.engine.obstacles() for n, m in self._members.items() if m.is_open}

    def stop(self) -> None:
        """End the runs that are going on, after the statements in hand; later ones go on from
        there. May be called from any thread."""
        for member in self._members.values():
            member.engine.stop()

    def end(self) -> None:
        """`stop`, and let no other runs begin."""
        for member in self._members.values():
            member.engine.end()

    def _all(self, call: Callable[[str, Engine], T]) -> dict[str, T | None]:
        begun = {name: member.do(partial(call, name)) for name, member in self._members.items()}
        found = {name: future.result() for name, future in begun.items()}
        self._raise_worst()
        return found

    def _teller(
        self, name: str, on_bucket: OnBucket | None
    ) -> Callable[[BucketReport], None] | None:
        if on_bucket is None:
            return None

        def tell(report: BucketReport) -> None:
            with self._telling:
                on_bucket(name, report)

        return tell

    def _raise_worst(self) -> None:
        """Raise what has stopped engines: a failure before a wrong input."""
        if failed := self.failures.values():
            raise max(failed, key=lambda error: getattr(error, "exit_code", EngineError.exit_code))

    def _close(self) -> None:
        self.end()
        for member in self._members.values():
            member.close()


def _checked(made: Callable[[Given], Engine], rulebooks: Sequence[Given]) -> list[Engine]:
    """The engines. Raises InputError with all that is wrong in all rulebooks."""
    engines: dict[str, Engine] = {}
    problems: list[Problem] = []
    warnings: list[Problem] = []
    for rulebook in rulebooks:
        try:
            engine = made(rulebook)
        except InputError as error:
            problems += error.problems
            warnings += error.warnings
            continue
        book = engine.rulebook
        if (first := engines.setdefault(book.name, engine)) is not engine:
            place = word_place(book.file or "<text>", "rulebook")
            message = f"rulebook `{book.name}` is given twice: {first.rulebook.file or '<text>'}"
            hint = "an engine each needs a name of its own"
            problems.append(Problem("rulebook-twice", message, place, hint))
    if problems:
        raise InputError(problems, warnings)
    return [*engines.values()]


def stop_on_signals(engine: Engine | Engines) -> None:
    """SIGTERM and Ctrl-C end engines after the statements in hand; a second one at once. SIGHUP has
    them read their files again."""

    def end() -> None:
        log.info("stopping after the statements in hand; a second signal ends them at once")
        engine.end()

    def handler(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_DFL)
        # Not here: the interrupted thread may hold the lock that `end` takes.
        threading.Thread(target=end).start()

    signal.signal(signal.SIGTERM, handler)
    signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGHUP, lambda *_: engine.reread())
