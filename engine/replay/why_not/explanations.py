"""Sentences of the rung `parts`: what an operator asked for, and what came instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidegate.engine.core.text.layout import listed
from tidegate.engine.detect.events.graph.calendar import add
from tidegate.engine.replay.why_not.evidence import Answer, Asked
from tidegate.engine.replay.why_not.probe import Instances, Probe
from tidegate.engine.replay.why_not.relaxations import Relaxation, positives
from tidegate.engine.replay.why_not.words import expression_text, lasting
from tidegate.rules.algebra.plain_expressions import plain
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.durations import format_duration

Explain = Callable[[Any, int, int], Answer]


class Explanations:
    """Says for one key what was in the way."""

    def __init__(self, asked: Asked, probe: Probe) -> None:
        self._asked, self._probe, self._words = asked, probe, asked.words
        self._by_kind: Mapping[str, Explain] = {
            "within": self._within,
            "without": self._without,
            "not": self._not,
            "window": self._window,
            "order": self._order,
            "count": self._count,
            "some": self._some,
        }

    def relaxed(self, by: Relaxation, start: int, end: int) -> Answer:
        """Why `by.node` was in the way. [`start`, `end`]: the instance that there is without it."""
        sentence, figures = self._by_kind[by.kind](by.node, start, end)
        named = {"relaxed": by.kind, "part": expression_text(by.node).strip("`")}
        return Answer(sentence, {**named, "start": start, "end": end, **figures})

    def due(self, e: x.Expression, instant: int) -> Answer:
        """It is to be detected after the instant that is asked for."""
        sentence = (
            f"{expression_text(e)} is due{self._words.of_key} at {self._words.at(instant)}, not yet"
            f" at {self._words.at(self._asked.until)}."
        )
        return Answer(sentence, {"due": instant})

    def elsewhen(self, e: x.Expression) -> Answer:
        """It has instances, and none ends when it is asked for."""
        asked, words = self._asked, self._words
        last = self._until(e).last()
        when = words.between(asked.since, asked.until)
        sentence = f"Nothing completed {expression_text(e)}{words.of_key} {when}"
        if last is not None:
            sentence += f"; it was last complete at {words.at(last[1])}"
        return Answer(f"{sentence}.", {"last": last and [*last]})

    def without_instance(self, e: x.Expression) -> Answer:
        """No operator of `e` alone is to blame."""
        asked, words = self._asked, self._words
        when = words.between(asked.begin, asked.until)
        sentence = f"No {expression_text(e)} came about{words.of_key} {when}"
        said = []
        for part in positives(e):
            if not isinstance(part, x.Own):
                last = self._until(part).last()
                if last is not None:
                    said.append(f"{expression_text(part)} last at {words.at(last[1])}")
        if said:
            sentence += f": {listed(said)}"
        return Answer(f"{sentence}.", {"part": expression_text(e).strip("`")})

    # -- one kind each ------------------------------------------------------------------------

    def _within(self, node: x.Within, start: int, end: int) -> Answer:
        found = self._probe.one(node.part).inside(start, end)
        zone = self._asked.book.timezone
        over = [
            int(e) - add(int(s), node.duration, zone)
            for s, e in zip(found.start, found.end, strict=True)
        ]
        long = [n for n, beyond in enumerate(over) if beyond > 0]
        at = min(long, key=over.__getitem__, default=-1)
        if at < 0:
            begun, ended, beyond = start, end, end - add(start, node.duration, zone)
        else:
            begun, ended, beyond = int(found.start[at]), int(found.end[at]), over[at]
        words = self._words
        sentence = (
            f"{expression_text(node.part)} took {lasting(ended - begun)}{words.of_key}, from"
            f" {words.at(begun)} to {words.at(ended)}: {lasting(max(beyond, 0))} longer than"
            f" `within {format_duration(node.duration)}` allows."
        )
        return Answer(sentence, {"from": begun, "to": ended, "beyond_micros": beyond})

    def _without(self, node: x.Minus, start: int, end: int) -> Answer:
        found = self._probe.one(node.part).inside(start, end).last() or (start, end)
        inside = self._probe.one(node.absent).inside(*found)
        return self._stood(node, inside, "inside", node.part, found)

    def _not(self, node: x.Not, start: int, end: int) -> Answer:
        found = self._probe.one(x.Seq(node.opener, node.closer)).inside(start, end).last()
        begun, ended = found or (start, end)
        opened = [
            int(e)
            for s, e in zip(*self._intervals(node.opener, begun, ended), strict=True)
            if s == begun
        ]
        after = min(opened, default=begun)
        between = self._probe.one(node.absent).inside(after + 1, ended)
        return self._stood(node, between, "after", node.opener, (after, ended))

    def _intervals(self, e: x.Expression, first: int, last: int) -> tuple[list[int], list[int]]:
        found = self._probe.one(e).inside(first, last)
        return found.start.tolist(), found.end.tolist()

    def _stood(
        self,
        node: x.Minus | x.Not,
        found: Instances,
        where: str,
        around: x.Expression,
        interval: tuple[int, int],
    ) -> Answer:
        """What must be absent was there."""
        words, (first, last) = self._words, interval
        ends = found.end.tolist()
        when = words.times(ends) if ends else words.between(first, last)
        place = f"inside {expression_text(around)}, {words.between(first, last)}"
        if where == "after":
            place = (
                f"after {expression_text(around)} at {words.at(first)} and not later than"
                f" {words.at(last)}"
            )
        came = f"{expression_text(node.absent)} came{words.of_key} {when}, {place}"
        sentence = f"{came}: {expression_text(node)} allows none there."
        return Answer(sentence, {"stood": ends, "from": first, "to": last})

    def _window(self, node: x.Aperiodic | x.Periodic, start: int, end: int) -> Answer:
        words = self._words
        opened = self._probe.one(node.opener).span(self._asked.begin, end).end
        opener = int(opened[-1]) if len(opened) else start
        closed: int | None
        if isinstance(node.closer, x.Own):
            closed = add(opener, node.closer.duration, self._asked.book.timezone)
        else:
            closers = self._probe.one(node.closer)
            later = closers.end[(closers.start > opener) & (closers.end <= end)]
            closed = int(later[0]) if len(later) else None
        what = "its tick" if isinstance(node, x.Periodic) else expression_text(node.part)
        window = f"The window that {expression_text(node.opener)} opened at {words.at(opener)}"
        by = "" if isinstance(node.closer, x.Own) else f" by {expression_text(node.closer)}"
        at = "" if closed is None else f" at {words.at(closed)}"
        sentence = f"{window}{words.of_key} was closed{by}{at}, before {what} at {words.at(end)}."
        return Answer(sentence, {"opened": opener, "closed": closed, "came": end})

    def _order(self, node: x.Expression, _: int, end: int) -> Answer:
        first, then = positives(node)
        words = self._words
        before, after = self._upto(first, end), self._upto(then, end)
        figures = {"first": before and [*before], "then": after and [*after]}
        one, other = expression_text(first), expression_text(then)
        if before is None or after is None:
            return Answer(f"{one} was not followed by {other}{words.of_key}.", figures)
        if before[1] == after[0] and not isinstance(node, x.Aperiodic):
            sentence = (
                f"{one} and {other} came{words.of_key} at the same instant, {words.at(after[0])};"
                f" {other} must come later."
            )
            return Answer(sentence, figures)
        sentence = (
            f"No {other} came{words.of_key} after {one}, which was last at {words.at(before[1])}:"
            f" {other} was last at {words.at(after[1])}"
        )
        if after[0] < before[1] < after[1]:
            sentence += f", and had begun at {words.at(after[0])}"
        return Answer(f"{sentence}.", figures)

    def _upto(self, e: x.Expression, end: int) -> tuple[int, int] | None:
        return self._probe.one(e).span(self._asked.begin, end).last()

    def _count(self, node: x.AnyRepeat | x.Every | x.Nth, _: int, end: int) -> Answer:
        part, words = expression_text(node.part), self._words
        count = self._number(node.part, end)
        wanted = node.index if isinstance(node, x.Nth) else node.count
        figures = {"count": count, "wanted": wanted}
        if count < wanted:
            sentence = (
                f"{count:,} of the {wanted:,} {part} that it needs came{words.of_key} up to"
                f" {words.at(end)}."
            )
        elif isinstance(node, x.AnyRepeat):
            sentence = f"Fewer than {wanted:,} {part} came{words.of_key} where they must."
        elif isinstance(node, x.Every):
            sentence = (
                f"{count:,} {part} came{words.of_key} up to {words.at(end)}: it counts every"
                f" {wanted:,}th, and the last of these was the {count - count % wanted:,}th."
            )
        else:
            sentence = (
                f"{count:,} {part} came{words.of_key} up to {words.at(end)}: it is the"
                f" {wanted:,}th alone."
            )
        return Answer(sentence, figures)

    def _number(self, part: x.Expression, end: int) -> int:
        """How many of a part there were: every occurrence of a plain one (S9)."""
        if plain(part):
            names = {node.name for node in part.walk() if isinstance(node, x.Name)}
            batches = [self._probe.batches.get(name) for name in names]
            if all(name not in self._asked.book.rules for name in names) and self._probe.alone:
                return sum(len(b.until(end)) for b in batches if b is not None)
        return len(self._probe.one(part).span(self._asked.begin, end))

    def _some(self, node: x.AnyOf, _: int, end: int) -> Answer:
        there = [part for part in node.parts if self._upto(part, end) is not None]
        others = [part for part in node.parts if part not in there]
        came = listed([expression_text(part) for part in there]) or "none"
        words = self._words
        sentence = f"{len(there)} of the {node.count} that it needs came{words.of_key}: {came}"
        if len(there) >= node.count:
            sentence = f"Fewer than {node.count} of {came} came{words.of_key} where they must"
        elif others:
            sentence += f", not {listed([expression_text(part) for part in others], 'or')}"
        return Answer(f"{sentence}.", {"count": len(there), "wanted": node.count})

    def _until(self, e: x.Expression) -> Instances:
        return self._probe.one(e).span(self._asked.begin, self._asked.until)
