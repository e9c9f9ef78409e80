"""What a run kept, as far as `why-not` needs it, and what is asked of it.

Example: rule `quick` is `large ; large within 5 min` per card. Asked is why it did not fire for
card 7 up to 9:10. Evidence is the rulebook, the spans in which the rule was active, the watermark,
the occurrences of `large`, the rows that became none, and the firings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from tidegate.engine.core.entries import Entry
from tidegate.engine.core.event_names import EventKey, with_edges, without_own
from tidegate.engine.core.values import Batch, Firings
from tidegate.engine.replay.why_not.words import Words
from tidegate.rules.model import Rule, Rulebook

Key = Mapping[str, Any]
"""Values of key columns, as Python has them: 7, "7", None, Decimal, date."""


@dataclass(frozen=True, slots=True)
class ActiveSpan:
    """A time in which a rule saw occurrences: [`begin`, `end`], microseconds. `end` None: it still
    does. `ended_by`: why it ended, such as `parked: 12000 occurrences are not consumed`. `before`:
    why it was not active before, where it had been stopped."""

    begin: int
    end: int | None = None
    ended_by: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class DroppedRow:
    """A row of a change that is no occurrence: its `where` was not true of it, or none of the
    columns in `of` changed.

    `by`: `where` or `of`. `text`: the predicate, or the columns. `row`: the columns of the table,
    or fields of the signal; `old`: those of the pre-image.
    """

    event: str
    instant: int
    by: str
    text: str
    row: Mapping[str, Any]
    old: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row or signal that was rejected (G5). `instant`: where it would stand; None: it has no
    time."""

    event: str
    instant: int | None
    reason: str
    row: Mapping[str, Any]


class Kept(Protocol):
    """What is looked up when it is needed: the sources may have to be read again."""

    def occurrences(self, event: str) -> Batch | None:
        """All occurrences of an event type up to the watermark. `event`: its name in a bucket
        (`engine.core.event_names`)."""
        ...

    def dropped(
        self, event: str, columns: Sequence[str], key: Key, first: int, last: int
    ) -> Sequence[DroppedRow]:
        """The rows of [`first`, `last`] with this key, in these columns, that `where` or `of` of an
        event type dropped, in order of time."""
        ...


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a run kept.

    `book`: the rulebook as it is written. `watermark`: up to where everything was seen; None:
    nothing yet. `active`: by rule, in order of time; the entry is missing if it never was.
    `refused`: rows and signals that were rejected. `firings`: by rule, in order of detection,
    decided. `entries`: of the outbox. `unasked`: by id of a firing (hex), why its condition could
    not be asked.

    Where only a part of the past is looked at: `begin`, `end` bound the occurrences. `unread`: why
    the sources cannot be read; `errors`: how the logs of tables say so. `known_from`: what was
    active before is not known; `firings_from`: firings that ended before may be forgotten. None:
    from the beginning on. `ended_at`: looks up the id of the key's firing that ended at an instant,
    where `firings` begin later.
    """

    book: Rulebook
    watermark: int | None
    active: Mapping[str, Sequence[ActiveSpan]]
    kept: Kept
    refused: Sequence[RefusedRow] = ()
    firings: Mapping[str, Sequence[Firings]] = field(default_factory=dict)
    entries: Sequence[Entry] = ()
    unasked: Mapping[str, str] = field(default_factory=dict)
    begin: int | None = None
    end: int | None = None
    unread: str = ""
    errors: Mapping[str, str] = field(default_factory=dict)
    known_from: int | None = None
    firings_from: int | None = None
    ended_at: Callable[[int], str | None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Rung:
    """The answer to one question of the ladder: `ok` or not, as a sentence, and by its figures."""

    name: str
    ok: bool
    sentence: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


class Answer(NamedTuple):
    """A sentence with what it says as values."""

    sentence: str
    evidence: Mapping[str, Any]


class Asked:
    """The question: why did `rule` not fire for `key` in [`since`, `until`]?

    `book` is the rulebook with edges as event types, `rule` the rule in it. `begin`: occurrences
    are looked at from there on. `since` None: from the activation on.
    """

    def __init__(
        self, evidence: Evidence, rule: str, key: Key, until: int, since: int | None
    ) -> None:
        book = evidence.book
        self.evidence = evidence
        self.book = without_own(with_edges(book, {*book.events, *book.rules}))
        self.rule: Rule = self.book.rules[rule]
        self.key = key
        self.until = until
        spans = [s for s in evidence.active.get(rule, ()) if s.begin <= until]
        self.span = spans[-1] if spans else None
        self.begin = self.span.begin if self.span else until
        if evidence.begin is not None:
            self.begin = max(self.begin, evidence.begin)
        self.since = self.begin if since is None else since
        self.words = Words(book, key, until)

    @property
    def last(self) -> int:
        """Up to where occurrences are looked at."""
        watermark, span = self.evidence.watermark, self.span
        last = self.until if watermark is None else max(watermark, self.until)
        bounds = (self.evidence.end, span.end if span else None)
        return min([last, *(bound for bound in bounds if bound is not None)])

    @property
    def exact(self) -> bool:
        """Whether one instant is asked for."""
        return self.since == self.until

    def occurrences(self, event: str) -> Batch | None:
        """Those of an event type while the rule was active."""
        found = self.evidence.kept.occurrences(event)
        if found is None:
            return None
        first = int(np.searchsorted(found.time, self.begin))
        end = int(np.searchsorted(found.time, self.last, side="right"))
        return found.take(np.arange(first, end))

    def per(self, event: str) -> tuple[str, ...] | None:
        """The columns of the key in an event type; None: it is not keyed."""
        return self.rule.pattern.per.get(event)

    def source_columns(self, event: str) -> tuple[str, ...]:
        """The columns of the key in rows of its source."""
        declared = self.book.events.get(event)
        names: Mapping[str, str] = getattr(declared, "columns", {})
        return tuple(names.get(name, name) for name in self.per(event) or ())

    @staticmethod
    def written(event: str) -> str:
        """The name of an event type in the rulebook."""
        return EventKey.of(event).written
