"""What an attempt at an entry does, by the entry's kind: see `engine.act.kinds`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Entry, Fate, Outcome, Progress
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.values import Firings

STOPPED_BY = {
    Fate.SEALED: "its seal stands in the target's log: it waits for a skip or a redrive",
    Fate.PASSED: "its marker was moved without it: another history wrote the target, such as an "
    "engine on a copy of this store (stop one of the two, and start the other anew)",
    Fate.UNKNOWN: "what became of it cannot be known: the target's log was cleaned, or cannot be "
    "read",
    Fate.ABSENT: "its statement left no commit",
}


class NoEffectError(Exception):
    """An attempt ended without an effect that its target's log shows."""

    def __init__(self, fate: Fate) -> None:
        super().__init__(STOPPED_BY[fate])
        self.fate = fate


class SomeFailedError(SinkError):
    """Some of an entry's firings, by their hex ids, could not be acted on: `again` are to be tried
    again, not before `after_seconds`; `never` would fail again. `passing` and `lasting` say why of
    each alone. The others are done. `cut_short`: by a stop, which is no attempt."""

    def __init__(
        self,
        message: str,
        again: Sequence[str] = (),
        never: Sequence[str] = (),
        passing: str = "",
        lasting: str = "",
        after_seconds: float = 0,
        *,
        cut_short: bool = False,
    ) -> None:
        super().__init__(message)
        self.cut_short = cut_short
        self.again = tuple(again)
        self.never = tuple(never)
        self.passing = passing or message
        self.lasting = lasting or message
        self.after_seconds = after_seconds


class Present(Protocol):
    """What the rules say now, for entries that were stored before."""

    def asked(self, entry: Entry, firings: Firings) -> Outcome:
        """The entry's outcome, with its rule's condition asked: the entries of the rule's actions,
        for the firings that hold, and all of them, decided. Raises SinkError."""
        ...

    def damped(self, outcome: Outcome) -> Outcome:
        """The outcome of a condition that was asked, just before it is settled: without what is
        damped by what was settled up to now."""
        ...

    def otherwise(self, entry: Entry) -> tuple[Entry, ...]:
        """The entries of the alternative of the entry's rule, none if it has none any more."""
        ...

    def watched(self, rule: str) -> frozenset[str]:
        """The events of the rule's action that some rule names, as `end_of pay`."""
        ...

    def renewed(self, entry: Entry) -> Entry | str:
        """The entry that takes another one's place; or why there is none."""
        ...


class Executor(Protocol):
    """Does the entries of one kind. May be called from several threads at once."""

    def attempt(self, waiting: Waiting, firings: Firings, present: Present) -> Outcome:
        """Try an entry, whose `firings` are all to be acted on; its outcome, `done`. Raises
        whatever it fails with: SinkError, `NoEffectError`."""
        ...

    def seal(self, entry: Entry, firings: Firings) -> Fate:
        """Make sure that an entry which was tried can have no effect any more; its fate then.
        Raises SinkError."""
        ...


def done(entry: Entry) -> Outcome:
    """The outcome of an attempt that did what the entry says."""
    return Outcome(entry, Progress(state="done", attempts=entry.progress.attempts + 1))
