"""The rungs `occurrences`, `rejected` and `where`: what arrived for the key, and what of it became
no occurrence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from tidegate.engine.core.event_names import EventKey
from tidegate.engine.core.text.layout import counted, listed
from tidegate.engine.core.values import Int64
from tidegate.engine.replay.why_not.evidence import Asked, DroppedRow, RefusedRow, Rung
from tidegate.engine.replay.why_not.keys import alike, near_keys, rows_of, same_key
from tidegate.engine.replay.why_not.matches import untrue
from tidegate.engine.replay.why_not.probe import Probe
from tidegate.engine.replay.why_not.relaxations import lacking, subexpressions
from tidegate.engine.replay.why_not.sources import Dropped
from tidegate.engine.replay.why_not.words import key_phrase, quoted
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.parser import unlabelled
from tidegate.rules.model import ClockEvent
from tidegate.rules.sql.tree import columns, tree_of

Row = TypeVar("Row", DroppedRow, RefusedRow)
LOST_MAX = 1_000
"""Where others were taken, so many rows that an event type lost are looked at, the last ones."""


class Arrivals:
    """What of the rule's event types arrived for the key while the rule was active, up to the
    instant. `detected`: whether there is a detection that is asked for."""

    def __init__(self, asked: Asked, probe: Probe, *, detected: bool) -> None:
        self._asked, self._probe, self._detected = asked, probe, detected
        self._on = unlabelled(asked.rule.pattern.on)
        named = [e.name for e in subexpressions(self._on) if isinstance(e, x.Name)]
        self.events = [n for n in dict.fromkeys(named) if n not in asked.book.rules]
        self.refused = dict(self._refused(asked.begin))

    @cached_property
    def dropped(self) -> Mapping[str, Sequence[DroppedRow]]:
        """By event type, the rows of the key that `where` or `of` dropped."""
        asked, found = self._asked, dict[str, Sequence[DroppedRow]]()
        for event in self.events:
            columns = asked.per(event)
            key = {} if columns is None else asked.key
            some = asked.evidence.kept.dropped(event, columns or (), key, asked.begin, asked.until)
            if len(some):
                found[event] = some
        return found

    @cached_property
    def lost(self) -> Mapping[str, Sequence[DroppedRow]]:
        """The same without rows that another event type of the rule took: a reading that is not
        `hot` is `cool`, and not lost."""
        found = dict[str, Sequence[DroppedRow]]()
        for event, rows in self.dropped.items():
            others = [self._probe.instants(name) for name in self._beside(event)]
            taken = np.isin(self.instants(rows), np.concatenate([np.empty(0, np.int64), *others]))
            kept = np.flatnonzero(~taken)[-LOST_MAX:]
            if len(kept):
                found[event] = [rows[int(n)] for n in kept] if taken.any() else rows
        return found

    def _beside(self, event: str) -> Iterator[str]:
        """The other event types of the rule over the same table."""
        events = self._asked.book.events
        table = getattr(events.get(event), "table", None)
        for name in x.names_in(self._on) - {event}:
            if table is not None and getattr(events.get(name), "table", None) == table:
                yield name

    def _refused(self, begin: int) -> Iterator[tuple[str, Sequence[RefusedRow]]]:
        """By event type, the rows of the key from `begin` on that were rejected."""
        every = self._asked.evidence.refused
        for event in self.events:
            mine = [row for row in every if self._mine(event, row, begin)]
            if mine:
                yield event, sorted(mine, key=_place)

    def _mine(self, event: str, row: RefusedRow, begin: int) -> bool:
        asked = self._asked
        if row.event not in (event, EventKey.of(event).event):
            return False
        if row.instant is not None and not begin <= row.instant <= asked.until:
            return False
        names = asked.per(event)
        return names is None or any(
            same_key(row.row, each, asked.key) for each in (names, asked.source_columns(event))
        )

    # -- occurrences --------------------------------------------------------------------------

    def occurrences(self) -> Rung:
        """Whether anything of what the rule needs arrived for the key."""
        asked, count = self._asked, self._probe.count
        absent: tuple[str, ...] = ()
        became_none = dict.fromkeys((*self.refused, *self.lost))
        if not self._detected:
            absent = lacking(self._on, lambda name: name in became_none or count(name) > 0)
        counts = {asked.written(event): count(event) for event in self.events}
        evidence: dict[str, Any] = {"counts": counts}
        if not absent:
            said = [counted(number, f"`{event}`", f"`{event}`") for event, number in counts.items()]
            came = listed(said) if said else "What it needs"
            none = [f"`{asked.written(e)}`" for e in became_none if not count(e)]
            rest = f" Rows for {listed(none)} became no occurrences." if none else ""
            return Rung("occurrences", True, f"{came} came{asked.words.of_key}.{rest}", evidence)
        near = [(event, *one) for event in absent for one in self._near(event)]
        evidence["missing"] = [asked.written(event) for event in absent]
        evidence["near"] = [
            {"event": asked.written(event), "key": dict(key), "count": number, "last": last}
            for event, key, number, last in near
        ]
        said = [*self._missing(absent), *self._later(absent), *self._earlier(absent)]
        sentence = " ".join([*said, *self._elsewhere(near)])
        return Rung("occurrences", False, sentence, evidence)

    def _near(self, event: str) -> list[tuple[Mapping[str, Any], int, int]]:
        """Other keys for which an event type came up to the instant, that look like the one that is
        asked for: each with how often, and when last."""
        names = self._asked.per(event)
        batch = self._asked.occurrences(event) if names else None
        if names is None or batch is None or not len(batch):
            return []
        mine = rows_of(batch, names, self._asked.key).time
        until = batch.time <= self._asked.until
        others = batch.take(np.flatnonzero(until & ~np.isin(batch.time, mine)))
        return near_keys(others, names, self._asked.key) if len(others) else []

    def _missing(self, absent: Sequence[str]) -> list[str]:
        asked, words = self._asked, self._asked.words
        when = words.between(asked.begin, asked.until)
        rules = [name for name in absent if name in asked.book.rules]
        clocks = [name for name in absent if self._is_clock(name)]
        others = [name for name in absent if name not in rules and name not in clocks]
        said = []
        if others:
            names = listed([f"`{asked.written(name)}`" for name in others], "or")
            said.append(f"No {names} came{words.of_key} {when}.")
        said += [
            f"Rule {asked.written(name)}, which it uses, was not detected{words.of_key} {when}."
            for name in rules
        ]
        said += [f"The clock did not reach `{asked.written(name)}` {when}." for name in clocks]
        return said

    def _later(self, absent: Sequence[str]) -> Iterator[str]:
        """What came for the key after the instant."""
        for event in absent:
            batch = self._probe.batches.get(event)
            if batch is not None and self._probe.alone:
                later = batch.time[batch.time > self._asked.until]
                if len(later):
                    at = self._asked.words.at(int(later[0]))
                    yield f"`{self._asked.written(event)}` came later, at {at}."

    def _earlier(self, absent: Sequence[str]) -> Iterator[str]:
        """Rejected rows that stand before the time that is looked at."""
        for event, rows in self._refused(-(2**62)):
            if event in absent:
                at = self._asked.words.at(rows[-1].instant or 0)
                name = self._asked.written(event)
                yield f"A row for `{name}` of {at} was rejected: {rows[-1].reason}."

    def _is_clock(self, name: str) -> bool:
        declared = self._asked.book.events.get(name)
        return isinstance(declared, ClockEvent) or declared is None

    def _elsewhere(self, near: Sequence[tuple[str, Mapping[str, Any], int, int]]) -> list[str]:
        words, said = self._asked.words, []
        for event, key, number, last in near[:1]:
            name = self._asked.written(event)
            if alike(key, self._asked.key):
                kind = "a text" if any(isinstance(v, str) for v in key.values()) else "no text"
                said.append(
                    f"It came for {key_phrase(key)}, which is {kind}: probably that is meant."
                )
            else:
                how_often = "once" if number == 1 else f"{number:,} times"
                said.append(
                    f"`{name}` came {how_often} for {key_phrase(key)}, last at {words.at(last)}."
                )
        return said

    # -- rejected, where ----------------------------------------------------------------------

    def rejected(self) -> Rung:
        """Whether rows were rejected that would have made the difference."""
        chosen = self._decisive(self.refused, self.lost)
        if chosen is None:
            number = sum(map(len, self.refused.values()))
            said = f"{counted(number, 'row')} rejected{self._asked.words.of_key}."
            return Rung("rejected", True, said, {"rejected": number})
        event, row = chosen
        at = "" if row.instant is None else f" at {self._asked.words.at(row.instant)}"
        name = self._asked.written(event)
        sentence = f"A `{name}`{self._asked.words.of_key}{at} was rejected: {row.reason}."
        mine = self._shown(event, row.row, re.findall(r"\w+", row.reason))
        figures = {"event": name, "instant": row.instant, "reason": row.reason, "row": mine}
        return Rung("rejected", False, sentence, figures)

    def where(self) -> Rung:
        """Whether rows were dropped by `where` or `of` that would have made the difference; or the
        rule's own `where` is true of no match."""
        asked, dropped = self._asked, self.lost
        chosen = self._decisive(dropped, {})
        if chosen is None:
            false = None if self._detected else untrue(asked, self._probe)
            if false is not None:
                return false
            number = sum(map(len, dropped.values()))
            said = f"{counted(number, 'row')} dropped by `where` or `of`{self._asked.words.of_key}."
            return Rung("where", True, said, {"dropped": number})
        event, row = chosen
        name, values = self._asked.written(event), _values(row)
        shown = ", ".join(f"{column} is {quoted(each)}" for column, each in values.items())
        why = f"`where: {row.text}` is not true of it"
        if row.by == "of":
            why = f"it changes none of {row.text}"
        sentence = (
            f"A row{self._asked.words.of_key} at {self._asked.words.at(row.instant)} is no"
            f" `{name}`: {why}{f' ({shown})' if shown else ''}."
        )
        figures = {"event": name, "instant": row.instant, "by": row.by, "text": row.text}
        mine = self._shown(event, row.row)
        return Rung("where", False, sentence, {**figures, "values": values, "row": mine})

    def _shown(
        self, event: str, row: Mapping[str, Any], others: Sequence[str] = ()
    ) -> dict[str, Any]:
        """What is told of a row: its key, and the values of `others`, such as the columns that a
        reason names."""
        asked = self._asked
        names = dict.fromkeys((*(asked.per(event) or ()), *asked.source_columns(event), *others))
        return {name: row[name] for name in names if name in row}

    def _decisive(
        self, rows: Mapping[str, Sequence[Row]], others: Mapping[str, Any]
    ) -> tuple[str, Row] | None:
        """The event type and row without which the rule was not detected; None if the rows make no
        difference. `others`: rows that a later rung tells of."""
        if self._detected or not rows:
            return None
        count = self._probe.count
        absent = lacking(self._on, lambda name: name in others or count(name) > 0)
        for event in absent:
            if event in rows:
                return event, rows[event][-1]
        if absent or not self._probe.alone:
            return None
        for event, some in rows.items():
            instants = self.instants(some)
            given = self._probe.with_instants(event, instants)
            found = self._probe.each([self._on], given)[0].span(
                self._asked.since, self._asked.until
            )
            if len(found):
                taken = [part.instant for part in found.parts(len(found) - 1)]
                timeless = len(some) - len(instants)  # they stand first
                used = np.flatnonzero(np.isin(instants, taken))
                return event, some[timeless + int(used[-1]) if len(used) else -1]
        return None

    @staticmethod
    def instants(rows: Sequence[DroppedRow] | Sequence[RefusedRow]) -> Int64:
        """When rows stand, ascending; those without a time, which come first, are left out."""
        if isinstance(rows, Dropped):
            return rows.instants
        return np.array([row.instant for row in rows if row.instant is not None], np.int64)


def _place(row: RefusedRow) -> tuple[bool, int]:
    """Where a row stands: those without a time come first."""
    return row.instant is not None, row.instant or 0


def _values(row: DroppedRow) -> dict[str, Any]:
    """The values of the columns that a predicate names."""
    if row.by == "of":
        names = [name.strip() for name in row.text.strip("[]").split(",")]
    else:
        tree = tree_of(row.text, expression=True)
        names = [] if tree is None else [mention.name for mention in columns([*tree.walk()])]
    found = {}
    for name in dict.fromkeys(names):
        image, _, column = name.rpartition(".")
        side = row.old if image == "old" else row.row
        if column in side:
            found[name] = side[column]
    return found
