"""What an engine checks before its loop: the policy allows the rulebook, tables go on from their
cursors, this machine's clock agrees with the store's (G3). The reason of a failed start is kept in
the store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from tidegate import rules
from tidegate.connectors.clock import SystemClock
from tidegate.connectors.delta.feed import DeltaFeed
from tidegate.engine.capture.resets import with_resets
from tidegate.engine.core.policy import Policy, webhook_problems
from tidegate.engine.core.state import State
from tidegate.engine.detect.scripts.doubts import check_machines
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store.address import default_store
from tidegate.engine.store.holder import this_holder
from tidegate.rules.errors import EngineError, InputError, TidegateError
from tidegate.rules.loader import is_text
from tidegate.rules.model import Rulebook

LEASE_SECONDS = 10


def load_allowed(
    rulebook: str | os.PathLike[str] | Rulebook, settings: Mapping[str, str], policy: Policy
) -> Rulebook:
    """A rulebook, loaded and checked by `allowed`. Raises InputError."""
    book = rulebook if isinstance(rulebook, Rulebook) else rules.load(rulebook, settings=settings)
    return allowed(book, policy)


def allowed(book: Rulebook, policy: Policy) -> Rulebook:
    """The rulebook with the Python functions that the policy lets its scripts call. Raises
    InputError where the policy refuses a webhook, a secret is missing, or a `machine: dfa` is too
    large."""
    if refused := webhook_problems(book, policy, os.environ):
        raise InputError(refused)
    check_machines(book)
    return replace(book, python=policy.python)


def check_cursors(book: Rulebook, store: SqlStore, spark: SparkSession, state: State) -> None:
    """Check that every table can go on from its cursor (G10). That comes before Spark is asked:
    Spark would only say that it cannot read a table with a damaged log. Tables of a catalog are
    left to the loop."""
    _, kept = with_resets(book, state, store.of(book.name).controls.pending())
    feed = DeltaFeed(spark)
    for name, cursor in kept.cursors.items():
        table = book.tables.get(name)
        if table is not None and table.path is not None:
            feed.head(table, cursor)


def check_clock(store: SqlStore, book: Rulebook) -> None:
    """Check that the clocks of this machine and the store agree; with SQLite they are one. Raises
    EngineError `clock-skew`."""
    skew_seconds = abs(store.wall() - SystemClock().wall()) / 1e6
    if skew_seconds > book.settings.skew_max_seconds:
        raise EngineError(
            "clock-skew",
            f"this machine's clock and the store's differ by {skew_seconds:.1f} s, allowed are "
            f"{book.settings.skew_max_seconds} (skew_max_seconds)",
            "set the machine's clock right (NTP), then run again",
        )


@contextmanager
def told_of_failure(
    rulebook: str | os.PathLike[str] | Rulebook, store: str | None
) -> Iterator[None]:
    """Keeps an error of this block as the cause of the stop, for `status`: where the store has run
    this file before, and no engine runs it now."""
    try:
        yield
    except TidegateError as error:
        text = isinstance(rulebook, str) and is_text(rulebook)
        if not (text or isinstance(rulebook, Rulebook)):
            with suppress(EngineError):  # there may be no store yet, or another engine
                file = Path(os.fspath(rulebook)).resolve()
                _keep(store or default_store(file), file, str(error))
        raise


def _keep(url: str, file: Path, cause: str) -> None:
    with open_store(url, create=False) as store:
        for name, kept in store.rulebooks().items():
            if kept.file is not None and Path(kept.file) == file:
                epoch = store.of(name).lease.acquire(this_holder(), LEASE_SECONDS)
                store.of(name, epoch).lease.set_stopped(cause)
                store.of(name, epoch).lease.release()
