"""The rung `parts`: whether the rule's expression had an instance at all, and what of it was in the
way.

One operator at a time asks for less. Where the expression then has an instance, that operator is
told. Where none of them helps alone, the smallest part without any instance is told instead.

Example: `large ; large within 5 min`, with `large` at 9:00:00 and 9:05:12. Without `within` there
is an instance: it lasts 12 s too long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.engine.core.values import Batch
from tidegate.engine.replay.why_not.evidence import Answer, Asked, Rung
from tidegate.engine.replay.why_not.explanations import Explanations
from tidegate.engine.replay.why_not.probe import Instances, Probe
from tidegate.engine.replay.why_not.relaxations import (
    KINDS,
    Relaxation,
    positives,
    relaxations,
    subexpressions,
)
from tidegate.engine.replay.why_not.windows import WindowWords
from tidegate.engine.replay.why_not.words import expression_text
from tidegate.rules.algebra.transformation import longest_micros
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.parser import unlabelled

_DAYS = 2 * 86_400_000_000  # a window of local days may be so much longer
_LATER = 2**62


@dataclass(frozen=True, slots=True)
class _Helped:
    """A relaxation under which there is an instance: from `start` to `end`."""

    by: Relaxation
    start: int
    end: int


class Parts:
    """Probes the parts of the rule's expression."""

    def __init__(self, asked: Asked, probe: Probe) -> None:
        self._asked, self._probe = asked, probe
        self._on = unlabelled(asked.rule.pattern.on)
        self._explain = Explanations(asked, probe)
        self._windows = WindowWords(asked, probe)

    def rung(self, *, detected: bool) -> Rung:
        """`detected`: the rule itself was."""
        asked, words = self._asked, self._asked.words
        whole = expression_text(asked.rule.pattern.on)
        if detected or len(self._span(self._probe.one(self._on))):
            return Rung("parts", True, f"{whole} came about{words.of_key}.", {})
        answer = self._answer()
        figures = {"parts": [*self._figures()], **answer.evidence}
        return Rung("parts", False, " ".join([answer.sentence, *self._other()]), figures)

    def _span(self, found: Instances) -> Instances:
        return found.span(self._asked.since, self._asked.until)

    def _answer(self) -> Answer:
        if isinstance(self._on, w.Window):
            return self._windows.answer(self._on, self._due())
        helped = self._first(self._on, self._asked.since)
        if helped is not None:
            return self._explain.relaxed(helped.by, helped.start, helped.end)
        due = self._due()
        if len(due):
            return self._explain.due(self._on, int(due.end[0]))
        failing = self._failing()
        if isinstance(failing, x.Resolved) and (said := self._windows.unresolved(failing)):
            return said
        if failing is None:
            return self._explain.elsewhen(self._on)
        helped = self._first(failing, self._asked.begin)
        if helped is not None:
            return self._explain.relaxed(helped.by, helped.start, helped.end)
        return self._explain.without_instance(failing)

    def _first(self, e: x.Expression, since: int) -> _Helped | None:
        """The first relaxation in the order of KINDS under which `e` has an instance that ends in
        [`since`, until]; with its last one."""
        each = sorted(relaxations(e), key=lambda one: KINDS.index(one.kind))
        for one, found in zip(each, self._probe.each([one.whole for one in each]), strict=True):
            interval = found.span(since, self._asked.until).last()
            if interval is not None:
                return _Helped(one, *interval)
        return None

    def _failing(self) -> x.Expression | None:
        """The smallest part without an instance up to the instant; None if the whole has one."""
        every = list(dict.fromkeys(subexpressions(self._on)))
        asked, found = self._asked, self._probe.each(every)
        there = {
            e: len(each.span(asked.begin, asked.until)) > 0
            for e, each in zip(every, found, strict=True)
        }

        def below(e: x.Expression) -> x.Expression | None:
            if there.get(e, True):
                return None
            for part in positives(e):
                if (found := below(part)) is not None:
                    return found
            return e

        return below(self._on)

    def _due(self) -> Instances:
        """What would be detected after the instant if nothing came then, and time went on."""
        until = self._asked.until
        given: Mapping[str, Batch] = {
            event: batch.until(until) for event, batch in self._probe.batches.items()
        }
        found = self._probe.each([self._on], given, until + sum(self._lengths()))[0]
        return found.span(until + 1, _LATER)

    def _lengths(self) -> Iterator[int]:
        for node in self._on.walk():
            if isinstance(node, x.Own | x.Plus):
                yield longest_micros(node.duration)
            elif isinstance(node, x.Periodic | x.PeriodicStar):
                yield longest_micros(node.period)
            elif isinstance(node, w.Window):
                lengths = (getattr(node, name, None) for name in ("length", "every", "gap"))
                yield sum(_DAYS + longest_micros(d) for d in lengths if d)

    def _figures(self) -> Iterator[dict[str, Any]]:
        """How often each part had an instance up to the instant, and the last one."""
        asked, every = self._asked, list(dict.fromkeys(subexpressions(self._on)))
        for e, found in zip(every, self._probe.each(every), strict=True):
            there = found.span(asked.begin, asked.until)
            last = there.last()
            text = expression_text(e).strip("`")
            yield {"part": text, "count": len(there), "last": last and [*last]}

    def _other(self) -> Iterator[str]:
        """When the rule was detected, if it was not when it is asked for."""
        asked, words = self._asked, self._asked.words
        ends = self._probe.detected.end
        before, after = ends[ends < asked.since], ends[ends > asked.until]
        if asked.exact and len(before):
            yield f"It was detected before, at {words.at(int(before[-1]))}."
        if len(after):
            yield f"It was detected later, at {words.at(int(after[0]))}."
