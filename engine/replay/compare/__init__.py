"""`simulate --compare-contexts`: one rule over one trace in every parameter context."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tidegate import rules
from tidegate.engine.core.clocks import clock_batches
from tidegate.engine.core.scratch_folder import scratch_folder
from tidegate.engine.core.values import FOREVER, Batch, Carried
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.replay import json_values
from tidegate.engine.replay.changes import Schemas
from tidegate.engine.replay.compare.model import Column, Comparison, found_in, occurrences_of
from tidegate.engine.replay.simulate import batches, buckets, instant, typing
from tidegate.engine.replay.trace import Trace, read, times
from tidegate.rules.analysis.graph import reached, uses_of
from tidegate.rules.checks.gaps import SIMULATED
from tidegate.rules.errors import EngineError, InputError, Problem, did_you_mean, word_place
from tidegate.rules.expressions.windows import Window
from tidegate.rules.model import Context, Rule, Rulebook, in_context

LINES_MAX = 1_000
"""Lines of a trace that is compared."""
DETECTIONS_MAX = 5_000
"""Detections of one context that are shown: `unrestricted` finds every combination of lines."""
_INSTANTS = 20  # counted at once


def compare(
    path: Path,
    trace: Path,
    rule: str | None,
    until: str | None,
    tell: Callable[[str], None] = lambda _: None,
    schemas: Schemas = lambda _: None,
) -> Comparison:
    """What a rule of the rulebook at `path` detects over `trace` in each context, and what is then
    consumed. `rule` may be left out where there is but one. `tell` is called with each warning.
    `schemas`: of tables whose changes are lines.

    Raises `InputError` for a wrong rulebook, trace or rule, and for a trace of more than
    `LINES_MAX` lines. A context that cannot be detected says so in its column.
    """
    book = rules.load(path, features=SIMULATED)
    for warning in book.warnings:
        tell(f"warning: {warning}")
    last = instant(until, book.timezone)
    return compared(book, _with_contexts(_chosen(book, rule)), trace, last, schemas)


def compared(
    book: Rulebook,
    chosen: Rule,
    trace: Path,
    last: int | None,
    schemas: Schemas = lambda _: None,
) -> Comparison:
    """`compare` for a rule of a rulebook that has been read; `last`: microseconds."""
    book = _alone(book, chosen)
    with scratch_folder() as folder:
        lines = read(trace, book, last, folder, schemas=schemas)
        if lines.count > LINES_MAX:
            message = f"contexts are compared over at most {LINES_MAX:,} lines, not {lines.count:,}"
            hint = "give --until, or a shorter trace"
            raise InputError(
                [Problem("too-long-to-compare", message, word_place(str(trace)), hint)]
            )
        table = next(lines.windows(), None)
    if table is None:
        return Comparison(chosen, lines.iso, (), tuple(Column(c) for c in Context))
    end = (lines.last or 0) if last is None else last
    arrived = batches(lines, typing(book, lines)(table)) | clock_batches(
        book, lines.first or 0, end
    )
    seen = Detector(book, dict.fromkeys(book.rules, 0), json_values).events
    occurrences = occurrences_of(chosen, book, {e: b for e, b in arrived.items() if e in seen})
    columns = tuple(
        _column(book, chosen, context, lines, arrived, last, end) for context in Context
    )
    return Comparison(chosen, lines.iso, occurrences, columns)


def _column(
    book: Rulebook,
    rule: Rule,
    context: Context,
    trace: Trace,
    arrived: dict[str, Batch],
    until: int | None,
    last: int,
) -> Column:
    book = replace(book, rules={**book.rules, rule.name: in_context(rule, context)})
    activations = dict.fromkeys(book.rules, min(trace.first or 0, trace.earliest))
    try:
        if context is Context.UNRESTRICTED:
            _count(Detector(book, activations, json_values), book, rule.name, trace)
        detector = Detector(book, activations, json_values, used=True)
        made, _, _ = detector.step(Carried(), arrived, FOREVER if until is None else until, last)
    except EngineError as error:
        return Column(context, error=error.message)
    found = next((detections for detections in made if detections.rule == rule.name), None)
    return Column(context, tuple(found_in(context, rule, book, trace.iso, found)) if found else ())


def _count(detector: Detector, book: Rulebook, rule: str, trace: Trace) -> None:
    """Raises `EngineError('too-many-detections')`; finds out without making all of them."""
    carried, count, first = Carried(), 0, trace.first or 0
    typed = typing(book, trace)
    for window in buckets(trace, _INSTANTS):
        watermark = int(times(window)[-1])
        arrived = batches(trace, typed(window)) | clock_batches(book, first, watermark)
        found, carried, _ = detector.step(carried, arrived, watermark)
        first = max(first, watermark + 1)
        count += sum(len(detections) for detections in found if detections.rule == rule)
        if count > DETECTIONS_MAX:
            message = f"more than {DETECTIONS_MAX:,} detections, which are not shown"
            raise EngineError("too-many-detections", message, "compare fewer lines")


def _chosen(book: Rulebook, name: str | None) -> Rule:
    known = ", ".join(book.rules)
    if name is None and len(book.rules) == 1:
        return next(iter(book.rules.values()))
    if name is None:
        message = f"contexts are compared for one rule; the rulebook has {known or 'none'}"
        raise InputError([Problem("which-rule", message, word_place("--rule"), "give --rule")])
    if name not in book.rules:
        hint = did_you_mean(name, book.rules)
        raise InputError([Problem("unknown-rule", f"no rule {name!r}", word_place("--rule"), hint)])
    return book.rules[name]


def _with_contexts(rule: Rule) -> Rule:
    """The rule, which is no window. Raises `InputError`."""
    if isinstance(rule.pattern.on, Window):
        message, hint = f"{rule.name} is a window, which has no contexts", "compare another rule"
        raise InputError([Problem("window", message, word_place("--rule"), hint)])
    return rule


def _alone(book: Rulebook, rule: Rule) -> Rulebook:
    """The rulebook with this rule and those whose detections it is made of enabled."""

    def used(name: str) -> Iterator[str]:
        return (each for each in uses_of(book.rules[name], book.rules) if each in book.rules)

    needed = reached([rule.name], used)
    return replace(book, rules={n: replace(r, enabled=n in needed) for n, r in book.rules.items()})
