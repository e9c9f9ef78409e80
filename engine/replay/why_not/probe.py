"""Detection once more, over the occurrences of one key: of a rule's whole expression, of parts of
it, or of a relaxed one.

Example: `a ; b` was not detected for key 7. Probed are `a`, `b` and `a and b`: which of them had an
instance, and when?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.engine.core.clocks import clock_batches
from tidegate.engine.core.values import Batch, Carried, Detections, Int64
from tidegate.engine.detect.events.graph.search_limits import RuleLimitError
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.replay.why_not.evidence import Asked
from tidegate.engine.replay.why_not.keys import rows_of
from tidegate.rules.algebra.emptiness import every_instance
from tidegate.rules.analysis.graph import reached, used_in, uses_of
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.parser import unlabelled
from tidegate.rules.model import (
    Context,
    Pattern,
    Rule,
    Rulebook,
    SignalEvent,
)

NEVER = "(never)"
"""An event type that does not occur: no rulebook can declare such a name."""


class Part(NamedTuple):
    """A constituent: its event type, its instant, and its position in the batch."""

    event: str
    instant: int
    position: int


@dataclass(frozen=True, slots=True)
class Instances:
    """What a probe has found for the key, in order of `end`."""

    start: Int64
    end: Int64
    number: Int64
    found: Detections | None

    def __len__(self) -> int:
        return len(self.end)

    def span(self, first: int, last: int) -> Instances:
        """Those that end in [first, last]."""
        return self._where((self.end >= first) & (self.end <= last))

    def inside(self, first: int, last: int) -> Instances:
        """Those that lie wholly in [first, last]."""
        return self._where((self.start >= first) & (self.end <= last))

    def _where(self, mask: np.ndarray) -> Instances:
        return Instances(self.start[mask], self.end[mask], self.number[mask], self.found)

    def last(self) -> tuple[int, int] | None:
        """The interval of the last one."""
        return (int(self.start[-1]), int(self.end[-1])) if len(self) else None

    def parts(self, at: int) -> tuple[Part, ...]:
        """The constituents of one, those in every role."""
        found = self.found
        if found is None:
            return ()
        whole = found.used or found
        n = int(self.number[at])
        entries = range(int(whole.offsets[n]), int(whole.offsets[n + 1]))
        return tuple(self._part(whole, entry) for entry in entries)

    @staticmethod
    def _part(found: Detections, entry: int) -> Part:
        event, position = found.events[found.event_code[entry]], int(found.event_row[entry])
        return Part(event, int(found.batches[event].time[position]), position)


_NONE = Instances(*(np.empty(0, np.int64),) * 3, None)


class Probe:
    """Runs expressions over what one key saw. `alone`: only occurrences of the key and of event
    types without a key are given, so that probes need no key of their own."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        pattern, book = asked.rule.pattern, asked.book
        self._used = {
            name: book.rules[name]
            for name in reached(
                used_in(pattern.on, book.rules).keys() & book.rules.keys(),
                lambda name: uses_of(book.rules[name], book.rules).keys() & book.rules.keys(),
            )
        }
        self.alone = not self._used
        expressions = [pattern.on, *(rule.pattern.on for rule in self._used.values())]
        names = {name for each in expressions for name in x.names_in(each)}
        self._names = sorted(names - book.rules.keys())
        self._known: dict[x.Expression, Instances] = {}

    @cached_property
    def batches(self) -> Mapping[str, Batch]:
        """By event type, the occurrences that the probes see."""
        found = {}
        for event in self._names:
            batch = self.asked.occurrences(event)
            if batch is not None and len(batch):
                columns = self.asked.per(event) if self.alone else None
                found[event] = rows_of(batch, columns, self.asked.key) if columns else batch
        return self._clocks(self.asked.begin, self.asked.last) | found

    def _clocks(self, first: int, last: int) -> dict[str, Batch]:
        rules = {rule.name: replace(rule, enabled=True) for rule in self._used.values()}
        rules[self.asked.rule.name] = replace(self.asked.rule, enabled=True)
        return clock_batches(replace(self.asked.book, rules=rules, scripts={}), first, last)

    def count(self, event: str) -> int:
        """How often an event type, or a rule that is used as one, occurred for the key up to the
        instant."""
        found = self.instants(event)
        first = self.asked.begin if event in self.asked.book.rules else -(2**63)
        inside = (found >= first) & (found <= self.asked.until)
        return int(inside.sum())

    def instants(self, event: str) -> Int64:
        """When an event type, or a rule that is used as one, occurred for the key."""
        if event in self.asked.book.rules:
            return self.one(x.Name(event)).end
        batch = self.occurrences(event)
        return np.empty(0, np.int64) if batch is None else batch.time

    def occurrences(self, event: str) -> Batch | None:
        """The occurrences of an event type for the key."""
        batch = self.batches.get(event)
        if batch is not None and not self.alone and (columns := self.asked.per(event)):
            batch = rows_of(batch, columns, self.asked.key)
        return batch

    @cached_property
    def detected(self) -> Instances:
        """The rule itself, in its own context, up to the watermark."""
        pattern = self.asked.rule.pattern
        try:
            return self._run({"": pattern}, self.batches, self.asked.last)[""]
        except RuleLimitError:
            return _NONE

    @cached_property
    def left(self) -> Instances | None:
        """The instances of the rule's expression of which its `where` is true, in `restricted`;
        None if a limit is in the way."""
        own = self.asked.rule.pattern
        try:
            return self._run(
                {"": replace(self._pattern(own.on), on=own.on, where=own.where)},
                self.batches,
                self.asked.last,
            )[""]
        except RuleLimitError:
            return None

    def labelled(
        self, e: x.Expression, context: Context, batches: Mapping[str, Batch]
    ) -> Instances:
        """The instances of an expression, whose constituents have its labels; none if a limit is in
        the way."""
        pattern = replace(self._pattern(e), on=e, context=context)
        try:
            return self._run({"": pattern}, batches, self.asked.last)[""]
        except RuleLimitError:
            return _NONE

    def one(self, e: x.Expression) -> Instances:
        """The instances of one expression, up to the watermark."""
        if e not in self._known:
            self._known[e] = self.each([e])[0]
        return self._known[e]

    def each(
        self,
        expressions: Sequence[x.Expression],
        batches: Mapping[str, Batch] | None = None,
        watermark: int | None = None,
    ) -> list[Instances]:
        """The instances of expressions in `restricted`, which has one whenever there is any
        (semantics 3). One that no probe can detect has none."""
        patterns = {str(n): self._pattern(e) for n, e in enumerate(expressions)}
        given = self.batches if batches is None else batches
        end = self.asked.last if watermark is None else watermark
        try:
            found = self._run(patterns, given, end)
        except RuleLimitError:
            found = {}
            for name, pattern in patterns.items():
                try:
                    found |= self._run({name: pattern}, given, end)
                except RuleLimitError:
                    continue
        return [found.get(str(n), _NONE) for n in range(len(expressions))]

    def _pattern(self, e: x.Expression) -> Pattern:
        own = self.asked.rule.pattern
        named = used_in(e, self.asked.book.rules)
        per = {name: columns for name, columns in own.per.items() if name in named}
        keyed = not self.alone and needs_key(unlabelled(e), per)
        return Pattern(
            unlabelled(e), "", Context.RESTRICTED, None,
            own.key_names if keyed else (), per if keyed else {},
        )  # fmt: skip

    def _run(
        self, patterns: Mapping[str, Pattern], batches: Mapping[str, Batch], watermark: int
    ) -> dict[str, Instances]:
        book = self._book(patterns)
        detector = Detector(book, dict.fromkeys(book.rules, self.asked.begin), used=True)
        found = detector.step(Carried(), batches, watermark, watermark).detections
        by_name = {each.rule: each for each in found}
        return {
            name: self._of_key(by_name.get(f"{name} probed"), bool(pattern.key_names))
            for name, pattern in patterns.items()
        }

    def _book(self, patterns: Mapping[str, Pattern]) -> Rulebook:
        asked = self.asked
        rules: dict[str, Rule] = {n: replace(r, enabled=True) for n, r in self._used.items()}
        for name, pattern in patterns.items():
            named = f"{name} probed"
            rules[named] = Rule(named, asked.rule.place, pattern)
        never = SignalEvent(NEVER, asked.rule.place, {})
        events = {**asked.book.events, NEVER: never}
        return replace(asked.book, rules=rules, events=events, scripts={})

    def _of_key(self, found: Detections | None, keyed: bool) -> Instances:
        if found is None:
            return _NONE
        number = np.arange(len(found))
        if keyed and not self.alone:
            keys = Batch("", found.end, number, found.keys)
            number = rows_of(keys, tuple(found.keys.column_names), self.asked.key).row
        return Instances(found.start[number], found.end[number], number, found)

    def with_instants(self, event: str, instants: Int64) -> Mapping[str, Batch]:
        """The occurrences, with more of one event type at these instants: what it would have been
        with the rows that became none."""
        batch = self.batches.get(event)
        known = np.empty(0, np.int64) if batch is None else batch.time
        time = np.sort(np.concatenate([known, instants]))
        rows = np.arange(len(time))
        return {**self.batches, event: Batch(event, time, rows, pa.table({"n": rows}))}


def needs_key(node: x.Expression, per: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether every instance of a node holds a keyed occurrence (S7)."""

    def keyed(node: x.Expression) -> bool | None:
        if isinstance(node, x.Name | x.Resolved):
            return node.name in per
        return (isinstance(node, x.Aperiodic) and needs_key(node.opener, per)) or None

    return every_instance(node, keyed)
