"""Why a simulation may have detected nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from tidegate.engine.core.clocks import clock_batches, name_of
from tidegate.engine.core.event_names import with_edges
from tidegate.engine.core.text.layout import counted
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.replay import times
from tidegate.engine.replay.line_counts import looks_like
from tidegate.engine.replay.line_types import declared_signals
from tidegate.engine.replay.trace import Trace
from tidegate.rules.analysis.graph import uses_of
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.model import ClockEvent, Rulebook, ScriptEvent

_SECOND = 1_000_000
_SHOWN_MAX = 40  # characters of a key
_CALENDAR_END = 253_402_214_400 * _SECOND  # 9999-12-31


def nothing_detected(book: Rulebook, trace: Trace, until: int | None) -> str:
    """The last line of a simulation that has detected nothing, with what could be the reason."""
    book = with_edges(book, book.rules)
    said = f"0 detections over {counted(trace.seen.lines, 'line')}"
    reasons = "; ".join(_reasons(book, trace, until))
    return f"{said}: {reasons}" if reasons else said


def doubtful(book: Rulebook, trace: Trace) -> Iterator[str]:
    """What was read and is probably not meant: fields that are not declared, keys that never meet
    or are missing."""
    declared = declared_signals(book)
    for event, name in sorted(trace.seen.undeclared):
        fields = declared[event].fields
        hint = did_you_mean(name, fields) or f"{event} declares {', '.join(fields) or 'no field'}"
        yield f"{name} of {event} is not declared: {hint}"
    yield from _missing(book, trace)
    yield from dict.fromkeys(_never_meeting(with_edges(book, book.rules), trace))
    yield from _lacking(with_edges(book, book.rules), trace)


def rejections(trace: Trace) -> Iterator[str]:
    """The rows that could not become occurrences, by event type and reason; and columns that none
    shows."""
    for (event, reason), count in sorted(trace.changes.rejected.items()):
        yield f"{counted(count, 'row')} rejected for {event}: {reason}"
    for table, columns in trace.changes.hidden.items():
        names = " and ".join(columns)
        yield f"no occurrence shows {names} of {table}: columns: [{columns[0]} as ..] renames it"


def _missing(book: Rulebook, trace: Trace) -> Iterator[str]:
    """Declared fields that a line has not; those of keys are counted in `_lacking`."""
    pers = [item for rule in book.rules.values() for item in rule.pattern.per.items()]
    keys = {(name, column) for name, columns in pers for column in columns}
    for (event, name), meant in sorted(trace.seen.missing.items()):
        if (event, name) in keys or (event, meant) in trace.seen.undeclared:
            continue
        hint = f"did you mean it by {meant!r}?" if meant else "write null if that is meant"
        yield f"{name} of {event} is missing, and null: {hint}"


def _never_meeting(book: Rulebook, trace: Trace) -> Iterator[str]:
    """Events of one rule whose keys are of different kinds throughout, as 7 and "7" are."""
    rules = [rule for rule in book.rules.values() if rule.enabled]
    for per in [rule.pattern.per for rule in rules]:
        for (one, first), (two, second) in combinations(per.items(), 2):
            for column, other in zip(first, second, strict=True):
                mine = trace.seen.kinds.get((one, column), {})
                its = trace.seen.kinds.get((two, other), {})
                if mine and its and not mine.keys() & its.keys():
                    shown = f"{_shown_key(mine)} on {one}, {_shown_key(its)} on {two}"
                    yield f"the keys of {one} and {two} never meet: {shown}"


def _shown_key(kinds: Mapping[str, Any]) -> str:
    """`'7' is text`, `7 is bigint`: one of the values."""
    value = next(iter(kinds.values()))
    kind = {str: "text", int: "bigint", float: "double", bool: "boolean"}.get(type(value), "nested")
    return f"{shortened(repr(value), _SHOWN_MAX)} is {kind}"


def _lacking(book: Rulebook, trace: Trace) -> Iterator[str]:
    rules = [rule for rule in book.rules.values() if rule.enabled]
    for name, columns in dict.fromkeys(item for rule in rules for item in rule.pattern.per.items()):
        for column in columns:
            if lacking := trace.seen.lacking[name, column]:
                yield f"{column} is missing in {counted(lacking, 'line')} of {name}"


def _reasons(book: Rulebook, trace: Trace, until: int | None) -> Iterator[str]:
    seen = trace.seen
    if not seen.lines:
        yield "the trace is empty"
        return
    if seen.later == seen.lines:
        yield "all of them are later than --until"
        return
    if said := _in_another_unit(trace):
        yield said
    rules = [rule for rule in book.rules.values() if rule.enabled]
    scripts = [script for script in book.scripts.values() if script.enabled]
    if not rules and not scripts:
        yield "no rule is enabled"
    yield from doubtful(book, trace)
    needed = dict.fromkeys(name for rule in rules for name in _needed(rule.pattern.on))
    taken = [uses_of(script, ()) for script in scripts]
    needed |= dict.fromkeys(name for names in taken if len(names) == 1 for name in names)
    by_itself = {n for n, e in book.events.items() if isinstance(e, ClockEvent | ScriptEvent)}
    absent = [n for n in needed if not (n in by_itself or n in book.rules or seen.of[n])]
    if absent:
        yield f"no line is {' or '.join(absent)}"
    yield from _clocks(book, [rule.pattern.on for rule in rules], trace, until)


def _clocks(
    book: Rulebook, expressions: Sequence[x.Expression], trace: Trace, until: int | None
) -> Iterator[str]:
    """Time goes on to the last line, or to --until."""
    if trace.first is None or trace.last is None:
        return
    end = trace.last if until is None else until
    names = dict.fromkeys(name for one in expressions for name in _clock_names(book, one))
    reached = clock_batches(book, trace.first, end) if names else {}
    if missed := [name for name in names if name not in reached]:
        upto = times.printed_one(end, iso=trace.iso).strip('"')
        remedy = "--until TIME lets time go on" if until is None else "give a later --until"
        yield f"the clock never reached {' or '.join(missed)} (time ends at {upto}): {remedy}"
    elif until is not None and any(
        isinstance(node, x.Own | x.Plus | w.Window) for one in expressions for node in one.walk()
    ):
        yield "lengths of time that run out after --until are not waited for"


def check_calendar(book: Rulebook, trace: Trace, file: str) -> None:
    """Clocks go up to the year 9999. Raises `InputError` for a trace that goes on."""
    rules = [rule for rule in book.rules.values() if rule.enabled]
    timed = any(True for rule in rules for _ in _clock_names(book, rule.pattern.on))
    if timed and trace.last is not None and trace.last > _CALENDAR_END:
        message = "the trace goes beyond the year 9999, where there are no clock events"
        hint = _in_another_unit(trace)
        raise InputError([Problem("time", message, word_place(file), hint)])


def _in_another_unit(trace: Trace) -> str:
    unit = "" if trace.iso else looks_like((trace.last or 0) / _SECOND)
    return f"the times look like {unit}: a number is seconds since the epoch" if unit else ""


def _clock_names(book: Rulebook, expression: x.Expression) -> Iterator[str]:
    for node in expression.walk():
        if isinstance(node, x.Clock | x.Cron):
            yield name_of(node)
        elif isinstance(node, x.Name) and isinstance(book.events.get(node.name), ClockEvent):
            yield node.name


def _needed(node: x.Expression) -> Iterator[str]:
    """The event types of an expression but those that must be absent."""
    match node:
        case x.Name(name=name) | x.Edge(name=name):
            yield name
        case x.Minus(part=part):
            yield from _needed(part)
        case x.Not(opener=opener, closer=closer):
            yield from _needed(opener)
            yield from _needed(closer)
        case x.Or() | x.AnyOf():
            return  # the others may happen
        case _:
            for part in node.operands():
                yield from _needed(part)
