"""Entries that share a commit: INSERTs of one bucket into one table that nobody reads (G16)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Entry, Fate
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.ports import LOST, OutageError, Sink, SinkError, StoppedError
from tidegate.engine.core.statement import SqlStatement
from tidegate.engine.core.values import Firings
from tidegate.rules.errors import EngineError

log = logging.getLogger(__name__)

Beside = Callable[[Callable[[Waiting], bool], int], Sequence[Waiting]]
"""Lists an entry that is ready, and those that may run in its commit (`Queues.beside`)."""


@dataclass(frozen=True, slots=True)
class SharedCommits:
    """Runs entries together that may share a commit.

    `unread`: whether no event type of any rulebook of the store is of a target. What rules write in
    one commit is at one instant, and of no single writer, which a rule that reads it would see.
    `most`: entries in one commit (`entries_per_commit_max`).
    """

    sink: Sink
    unread: Callable[[str], bool]
    most: int

    def group(self, first: Waiting, beside: Beside) -> Sequence[Waiting]:
        """An entry that is ready, and those that share its commit."""
        if not _is_new(first):
            return [first]
        group = beside(partial(_joins, first.entry), self.most)
        alone = len(group) > 1 and not self.unread(first.entry.target or "")
        return [first] if alone else group

    def run(self, entries: Sequence[tuple[Entry, Firings]]) -> frozenset[int]:
        """Run entries in one commit. Returns the numbers of those that the target's log shows. The
        others have to be attempted alone: whatever fails here may fail by one of them, and is none
        of the others' faults. Raises OutageError, and EngineError for what ends the engine."""
        try:
            failpoint("shared.before")
            self.sink.run_together(entries)
            failpoint("shared.after")
            return frozenset(e.number for e, its in entries if self._has_landed(e, its))
        except StoppedError:  # before it began
            pass
        except OutageError:
            raise
        except Exception as error:
            if isinstance(error, EngineError) and error.code in LOST:
                raise
            told = "rule %s and others: %d entries do not share a commit, each runs alone: %s"
            log.warning(told, entries[0][0].rule, len(entries), error)
        return frozenset()

    def passed_over(self, entry: Entry, firings: Firings, before: Sequence[Entry]) -> Fate:
        """The fate of an entry that is passed over while others of its app id, `before` it, are
        open: to seal it would move their marker past them. Raises SinkError if it may have been
        sent in one commit with one of them, which may still land."""
        with_it = [one.number for one in before if _may_share(one, entry)]
        if not with_it:
            return Fate.SEALED  # it was never sent
        if self._has_landed(entry, firings):
            return Fate.EFFECT
        raise SinkError(
            f"it may have been sent in one commit with entry {with_it[0]}: ask again when that is "
            "done, skipped or redriven"
        )

    def _has_landed(self, entry: Entry, firings: Firings) -> bool:
        return self.sink.fate(entry, firings) is Fate.EFFECT


def _joins(first: Entry, waiting: Waiting) -> bool:
    return _is_new(waiting) and _may_share(first, waiting.entry)


def _is_new(waiting: Waiting) -> bool:
    """Whether an entry may share a commit with others, and was never tried."""
    return _is_plain(waiting.entry) and not waiting.tried and not waiting.entry.progress.attempts


def _may_share(first: Entry, other: Entry) -> bool:
    mine, its = ((e.bucket, e.target, e.turn.stage) for e in (first, other))
    return mine == its and _is_plain(first) and _is_plain(other)


def _is_plain(entry: Entry) -> bool:
    """Whether an entry only appends rows that its firings give."""
    said = entry.statement
    return (
        isinstance(said, SqlStatement) and entry.kind == "sql" and said.appends and not said.reads
    )
