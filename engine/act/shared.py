"""Entries that share a commit: INSERTs of one bucket into one table that nobody reads (G16)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Entry, Outcome
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.ports import LOST, Sink
from tidegate.engine.core.statement import SqlStatement
from tidegate.engine.core.values import Firings
from tidegate.rules.errors import EngineError

log = logging.getLogger(__name__)
T = TypeVar("T")

ENTRIES_MAX = 50  # in one commit


@dataclass(frozen=True, slots=True)
class SharedCommits:
    """Runs entries together that may share a commit.

    `unread`: whether no event type of any rulebook of the store is of a target. What rules write in
    one commit is at one instant, and of no single writer, which a rule that reads it would see.
    """

    sink: Sink
    unread: Callable[[str], bool]

    def may_begin(self, waiting: Waiting) -> bool:
        """Whether an entry may share a commit with others: it only appends rows that its firings
        give, and was never tried."""
        entry = waiting.entry
        said = entry.statement
        plain = isinstance(said, SqlStatement) and said.appends and not said.reads
        fresh = not waiting.tried and not entry.progress.attempts
        return plain and fresh and entry.kind == "sql" and self.unread(entry.target or "")

    def may_join(self, first: Entry, waiting: Waiting) -> bool:
        """Whether an entry may share the commit of `first`."""
        mine, its = ((e.bucket, e.target, e.turn.stage) for e in (first, waiting.entry))
        return mine == its and self.may_begin(waiting)

    def run(self, entries: Sequence[tuple[Entry, Firings]]) -> None:
        """Run entries in one commit. Each has to be attempted afterwards: the log says whether it
        has landed. Whatever fails here may fail by one of them, and is none of the others' faults.
        Raises EngineError for what ends the engine."""
        try:
            failpoint("shared.before")
            self.sink.run_together(entries)
            failpoint("shared.after")
        except Exception as error:
            if isinstance(error, EngineError) and error.code in LOST:
                raise
            told = "rule %s and others: %d entries do not share a commit, each runs alone: %s"
            log.warning(told, entries[0][0].rule, len(entries), error)


def each(
    call: Callable[[T], Outcome], group: Sequence[T], others: Sequence[Future[Outcome]]
) -> Outcome:
    """Call it for each of a group, in order. Returns or raises what comes of the first; `others`
    are told what comes of the rest."""
    first = Future[Outcome]()
    for one, future in zip(group, (first, *others), strict=True):
        try:
            found = call(one)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(found)
    return first.result()
