"""The protocols of attempts: `Executor`, one for each kind of entry (`engine.act.kinds`), and
`CurrentRules`, the rules as they are now."""

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
    """Some of an entry's firings could not be acted on; the others are done. `again`: hex ids of
    those to be tried again after `after_seconds`, `passing`: why. `never`: hex ids of those that
    would fail again, `lasting`: why. `cut_short`: a stop ended it, so it does not count as an
    attempt."""

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


class CurrentRules(Protocol):
    """The rules as they are now, for entries that were stored before."""

    def asked(self, entry: Entry, firings: Firings) -> Outcome:
        """Ask the condition of the entry's rule. The outcome has the firings, decided, and as
        successors the entries of the rule's actions for those that hold. Raises SinkError."""
        ...

    def damped(self, outcome: Outcome) -> Outcome:
        """The outcome of `asked`, damped by what is settled up to now. Called just before it is
        settled itself."""
        ...

    def otherwise(self, entry: Entry) -> tuple[Entry, ...]:
        """The entries of the alternative of the entry's rule; none if it has no alternative now."""
        ...

    def watched(self, rule: str) -> frozenset[str]:
        """The edges of the rule's action that some rule names, such as `end_of pay`."""
        ...

    def renewed(self, entry: Entry) -> Entry | str:
        """The entry that takes the place of another, with the present text of its action; or a text
        that says why there is none."""
        ...


class Executor(Protocol):
    """Does the entries of one kind. May be called from several threads at once."""

    def attempt(self, waiting: Waiting, firings: Firings, current: CurrentRules) -> Outcome:
        """Try an entry for all of its `firings`. Returns the outcome `done`. Raises SinkError or
        NoEffectError if it fails."""
        ...

    def seal(self, entry: Entry, firings: Firings) -> Fate:
        """Make sure that an entry that was tried cannot have an effect any more. Returns its fate.
        Raises SinkError."""
        ...


class Sealless:
    """The seal of executors that have nothing to commit; each says why in its own words."""

    __slots__ = ()

    def seal(self, entry: Entry, firings: Firings) -> Fate:  # noqa: ARG002
        return Fate.SEALED


def done(entry: Entry) -> Outcome:
    """The outcome of an attempt that did what the entry says."""
    return Outcome(entry, Progress(state="done", attempts=entry.progress.attempts + 1))
