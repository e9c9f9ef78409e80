"""Log lines. The stage of a thread is logged again and again while it takes long. A line names its
rulebook if the process runs several.

Example: after 10, 20, 40, .. seconds: `still asking conditions, 1 to 50 of 120 (20 s)`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field

log = logging.getLogger(__name__)

FIRST_SECONDS = 10.0  # until a stage is logged; then after twice as long, and so on
LOOK_SECONDS = 1.0
QUIET_SECONDS = 60.0  # until an idle engine is logged; then after twice as long
QUIET_SECONDS_MAX = 3600.0
COLUMNS_TOLD_MAX = 80  # characters of the line that lists the watched tables

LOOKING, READING = "looking for new commits in tables", "reading tables"
SAMPLING, ASKING = "taking samples", "asking conditions"  # of the stage that evaluates
RUNNING = "running actions"
STAGES = {
    "plan": LOOKING,
    "capture": READING,
    "detect": "detecting",
    "evaluate": "making firings",
    "commit": "writing to the store",
    "act": RUNNING,
}
"""What the stages of a bucket do."""
_NAME: ContextVar[str] = ContextVar("rulebook", default="")
_HUSHED: ContextVar[bool] = ContextVar("hushed", default=False)


@dataclass(slots=True)
class Stage:
    """`what` is done, `since` a time of the monotonic clock, seconds. `part`: with which things of
    how many, as in `asking conditions, 1 to 50 of 120`."""

    what: str
    since: float = field(default_factory=time.monotonic)
    part: tuple[int, int, int] = (0, 0, 0)  # the first and the last in hand, of how many

    def __str__(self) -> str:
        first, last, count = self.part
        if not last:
            return self.what
        return f"{self.what}, {first:,}{f' to {last:,}' if last > first else ''} of {count:,}"


_own = threading.local()  # `stage`: what the thread is at


@contextmanager
def stage_of(what: str) -> Iterator[Stage]:
    """A context in which this thread is at a stage. `begin` and `go_on` refine it."""
    _own.stage = Stage(what)
    try:
        yield _own.stage
    finally:
        _own.stage = None


@dataclass(slots=True)
class Stages:
    """The stages of one bucket: which is in hand, and how long each of them took, by name.
    `before`: how long they took in tries that came to nothing."""

    before: Mapping[str, float] = field(default_factory=dict)
    now: Stage | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """A context in which a stage of STAGES is in hand."""
        begun = time.perf_counter()
        try:
            with stage_of(STAGES[name]) as self.now:
                yield
        finally:
            self.now = None
            took = time.perf_counter() - begun
            self.seconds[name] = round(self.before.get(name, 0.0) + took, 6)


def begin(what: str, count: int, done: int = 0) -> None:
    """The stage of this thread is `what` now, with `count` things, `done` of which are done."""
    stage: Stage | None = getattr(_own, "stage", None)
    if stage is not None:
        if stage.what != what:
            stage.what, stage.since = what, time.monotonic()
        stage.part = 0, done, count


def go_on(what: str, count: int = 1) -> None:
    """The stage of this thread takes the next `count` things, if it is still at `what`."""
    stage: Stage | None = getattr(_own, "stage", None)
    if stage is not None and stage.what == what:
        _, last, of = stage.part
        stage.part = min(last + 1, of), min(last + count, of), of


@contextmanager
def doing(what: str) -> Iterator[None]:
    """A context that is logged as `what` while it takes long."""
    stage = Stage(what)
    with telling(lambda: stage):
        yield


@contextmanager
def telling(
    now: Callable[[], Stage | None], say: Callable[[str], None] = lambda _: None
) -> Iterator[None]:
    """A context in which a thread watches the stage that `now` returns. A stage that takes long is
    logged. `say` is called with its text when it changes, and with an empty text when it is
    over."""
    ended = threading.Event()
    thread = thread_of(_tell, now, say, ended, name="doing")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _tell(
    now: Callable[[], Stage | None], say: Callable[[str], None], ended: threading.Event
) -> None:
    since, due, said = 0.0, FIRST_SECONDS, ""
    while not ended.wait(min(LOOK_SECONDS, FIRST_SECONDS)):
        stage = now()
        begun = time.monotonic() if stage is None else stage.since
        if begun != since:
            since, due = begun, FIRST_SECONDS
        seconds = time.monotonic() - begun
        told = str(stage) if seconds >= FIRST_SECONDS else ""
        if told != said:
            said = told
            say(said)
        if seconds >= due:
            due *= 2
            log.info("still %s (%.0f s)", stage, seconds)
    if said:
        say("")


class Quiet:
    """Logs now and then that an engine has nothing to do."""

    def __init__(self) -> None:
        self.over()

    def over(self) -> None:
        """Something was done."""
        self._since = time.monotonic()
        self._due = QUIET_SECONDS
        self._pause = QUIET_SECONDS

    def go_on(self, waiting: bool) -> None:
        """Nothing was done. `waiting`: some action waits for its next attempt."""
        seconds = time.monotonic() - self._since
        if seconds >= self._due:
            self._pause = min(2 * self._pause, QUIET_SECONDS_MAX)
            self._due = seconds + self._pause
            more = "; an action waits for its next attempt" if waiting else ""
            log.info("idle: nothing new for %.0f min%s", seconds / 60, more)


def watching_text(versions: Mapping[str, int]) -> str:
    """The line that says what an engine watches. `versions`: by table, the version read next.

    Example: `watching 2 tables from version: accounts 12, orders 7`."""
    if not versions:
        return "watching for signals"
    names = sorted(versions)
    told = f"watching {len(names)} table{'' if len(names) == 1 else 's'} from version: "
    for number, name in enumerate(names):
        one = f"{', ' if number else ''}{name} {versions[name]}"
        if number and len(told) + len(one) > COLUMNS_TOLD_MAX - len(", .."):
            return f"{told}, .."
        told += one
    return told


def speak_for(rulebook: str) -> None:
    """Log for a rulebook from here on: in this thread and in its threads made by `thread_of`."""
    _NAME.set(rulebook)


def speaker() -> str:
    """The rulebook that this thread logs for; empty if the process runs only one."""
    return _NAME.get()


@contextmanager
def nobodys() -> Iterator[None]:
    """A context whose log lines are of the whole process, in this thread and those of
    `thread_of`."""
    token = _NAME.set("")
    try:
        yield
    finally:
        _NAME.reset(token)


def thread_of(call: Callable[..., None], *args: object, name: str) -> threading.Thread:
    """A daemon thread that logs for the same rulebook as its maker."""
    run = copy_context().run
    return threading.Thread(target=run, args=(call, *args), name=name, daemon=True)


@contextmanager
def hushed() -> Iterator[None]:
    """A context whose log lines `is_heard` drops, in this thread and those of `thread_of`."""
    token = _HUSHED.set(True)
    try:
        yield
    finally:
        _HUSHED.reset(token)


def is_heard(record: logging.LogRecord) -> bool:  # noqa: ARG001, a filter of a handler
    return not _HUSHED.get()
