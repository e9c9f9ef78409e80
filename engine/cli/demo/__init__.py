"""`tidegate demo`: a small bank, its rules, and another process that changes its tables."""

from __future__ import annotations

import logging
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from tidegate.engine.cli import output
from tidegate.engine.cli.demo.process import OtherProcess
from tidegate.engine.cli.demo.screen import Screen
from tidegate.engine.cli.demo.writer import STEPS, copy_rulebook
from tidegate.engine.core.state import BucketReport
from tidegate.rules.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENDING = (signal.SIGTERM, signal.SIGINT)
QUIET_SECONDS = 1.0  # an engine that is idle for so long has seen all that a commit caused
SECONDS_MAX = 240.0


def demo(keep: Path | None = None) -> int:
    """Runs the demo. Its folder is removed at the end unless `keep` names it. Returns 0, or, after
    SIGTERM or Ctrl-C, 128 plus the signal's number.

    Raises EngineError `demo-folder` if `keep` holds something already, `demo-writer`.
    """
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise EngineError("demo-folder", f"{keep} is not empty", "name a new folder")
    folder = (keep or Path(tempfile.mkdtemp(prefix="tidegate-demo-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    before = {number: signal.getsignal(number) for number in _ENDING}
    ended: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        for each in _ENDING:
            signal.signal(each, signal.SIG_IGN)  # it ends already
        ended.append(number)
        logging.disable()
        raise SystemExit(128 + number)

    def listen() -> None:
        for number in _ENDING:
            signal.signal(number, end)

    try:
        listen()
        _show(folder, Screen(), listen, kept=keep is not None)
    except BaseException:
        if not ended:
            raise  # else Spark and the other process may be ending, too
    finally:
        for number, handler in before.items() if not ended else ():
            signal.signal(number, handler)
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    if ended:
        what = f"{folder} is kept" if keep is not None else "its folder is removed"
        output.say(f"the demo was ended: {what}", err=True)
    return 128 + ended[0] if ended else 0


def _show(folder: Path, screen: Screen, listen: Callable[[], None], *, kept: bool) -> None:
    """`listen`: sets the handlers of signals. Spark sets its own when it starts."""
    from tidegate.connectors.java.jars import delta_jars

    rulebook = copy_rulebook("bank", folder)
    delta_jars()  # before two processes ask for them
    with OtherProcess(folder) as other:
        screen.part(
            "1. A small lake",
            "Three Delta tables (customers, accounts, transactions) with their change feed on, "
            f"made\nby another process under {folder}/lake.",
        )
        screen.part(
            "2. The rules",
            "Which changes matter, in which combination, and what to do then, as SQL:\n",
        )
        screen.rulebook(rulebook)
        screen.part(
            "3. The engine runs while the other process commits",
            "Starting Spark twice, once for each process; this takes a while.",
        )
        from tidegate.connectors.delta.session import start_session, stop_session

        spark = start_session("tidegate-demo")
        listen()
        other.wait_ready()
        _run(rulebook, spark, other, screen)
    screen.part("4. What the tables hold now", "Written by the rules, each effect exactly once:")
    for table, order in (("alerts", "at"), ("accounts", "account_id")):
        frame = spark.read.format("delta").load(str(folder / "lake" / table)).orderBy(order)
        screen.table(table, frame.columns, [tuple(row) for row in frame.collect()])
    stop_session(spark)
    if kept:
        screen.part(
            "Kept",
            f"tidegate firings --store sqlite:///{rulebook.with_suffix('.db')}\n"
            f"tidegate run {rulebook}",
        )


def _run(rulebook: Path, spark: SparkSession, other: OtherProcess, screen: Screen) -> None:
    from tidegate.engine.app import Engine
    from tidegate.engine.control.firings import list_firings

    store = f"sqlite:///{rulebook.with_suffix('.db')}"
    shown: set[str] = set()

    def bucket_done(report: BucketReport) -> None:
        if report.firings:
            for firing in list_firings(store, None):
                if firing["firing_id"] not in shown:
                    shown.add(firing["firing_id"])
                    screen.firing(firing)

    with Engine(rulebook, spark=spark, store=store) as engine:
        turns = _turns(other, screen)
        engine.run(
            poll_seconds=0.2,
            on_bucket=bucket_done,
            on_idle=lambda: next(turns, True),
        )


def _turns(other: OtherProcess, screen: Screen) -> Iterator[bool]:
    """One turn each time the engine is idle: a commit, then patience; ends after the last."""
    begun = time.monotonic()
    for number, step in enumerate(STEPS, 1):
        screen.step(number, step)
        other.commit()
        while not other.committed():
            yield False
        at = time.monotonic()
        while time.monotonic() < at + QUIET_SECONDS:
            yield False
        if time.monotonic() > begun + SECONDS_MAX:
            raise EngineError("demo-slow", "the demo takes too long", "is the machine busy?")
