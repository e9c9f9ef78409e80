"""Warnings of what is allowed, and probably not meant (S13, semantics 3)."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.rules.algebra.bound import Bounds
from tidegate.rules.algebra.plain_expressions import compared, plain
from tidegate.rules.analysis.draft import Draft
from tidegate.rules.analysis.graph import used_in
from tidegate.rules.analysis.keyed_events import event_names
from tidegate.rules.checks.doubts import counts_rows_to_zero, doubts, may_be_empty, unitless
from tidegate.rules.checks.repetition import repetitions
from tidegate.rules.checks.where import warn_of_late_if, warn_of_one_row
from tidegate.rules.errors import Problem, nearest
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.faults import excerpt
from tidegate.rules.model import (
    Change,
    ClockEvent,
    Context,
    EventType,
    Pattern,
    Reaction,
    Rule,
    SignalEvent,
    Sql,
    TableEvent,
)
from tidegate.rules.sql.operations import OPERATIONS, only_rowless, unknown_operations
from tidegate.rules.sql.statement import statement
from tidegate.rules.yaml.kinds import Record, Report
from tidegate.rules.yaml.reader import Scalar


def warn(book: Draft, report: Report) -> None:
    """Add the warnings of every rule that could be read. Those of its bound and its constituents
    are only added if everything that the rule uses could be read, too."""
    for name, record in book.records("events").items():
        _operations(book.events.get(name), record, report)
    sound = _sound(book)
    bounds = Bounds(sound)
    for name, node, scalar in book.expressions():
        rule = book.rules[name]
        found = list(doubts(node, rule, book.rules))
        for doubt in found:
            _warn(report, doubt.code, doubt.message, scalar, doubt.node.span, doubt.hint)
        for offset, number in unitless(scalar.text):
            span = x.Span(offset, offset + len(number))
            hint = f"write {number} s, or the unit that is meant: {number} min"
            _warn(report, "no-unit", f"{number} without a unit is seconds", scalar, span, hint)
        _broadcast(book, rule, node, scalar, report)
        for doubt in repetitions(book, rule, node):
            _warn(report, doubt.code, doubt.message, scalar, doubt.node.span, doubt.hint)
        _passed_over(book, rule.pattern, node, scalar, report)
        _by_position(rule.reaction, report)
        warn_of_late_if(rule, report)
        warn_of_one_row(rule, report)
        if name not in sound:
            continue
        _empty(book, name, node, sound, report)
        endless = any(doubt.code == "endless" for doubt in found)
        if endless or _closed_by_commit(book, rule.pattern, node):
            continue
        bound = bounds.of_rule(rule)
        if not bound.exists:
            message = f"no bound on what this stores: {bound.why}"
            _warn(report, "unbounded", message, scalar, node.span, "; ".join(bound.advice))


def _operations(event: EventType | None, record: Record, report: Report) -> None:
    """Warn of a `where` over commits with an unknown operation, and of one over transactions with
    operations that change no row."""
    where = record.get("where")
    if not where or not isinstance(event, TableEvent) or not event.change.is_commit:
        return
    text, scalar = where
    for name in unknown_operations(text):
        meant = nearest(name, sorted(OPERATIONS))
        hint = (
            f"did you mean {meant!r}?" if meant else "DESCRIBE HISTORY of the table shows its own"
        )
        message = f"Delta on Spark has no operation {name!r}"
        report.warn("unknown-operation", message, scalar.locate(0), hint)
    if event.change is Change.TRANSACTION and (named := only_rowless(text)):
        listed = " or ".join(map(repr, named))
        message = f"this never occurs: {listed} changes no row, and a transaction does"
        hint = "write on: commit, which sees every commit"
        report.warn("rowless", message, scalar.locate(0), hint)


def _sound(book: Draft) -> dict[str, Rule]:
    """The rules all of whose events are known, through rules used as events."""
    named = {name: used_in(node, book.rules).keys() for name, node, _ in book.expressions()}
    sound: dict[str, Rule] = {}
    known = book.events.keys() - named.keys()
    while more := {n: book.rules[n] for n in named if n not in sound and named[n] <= known}:
        sound |= more
        known |= more.keys()
    return {name: sound[name] for name in named if name in sound}


def _broadcast(book: Draft, rule: Rule, node: x.Expression, scalar: Scalar, report: Report) -> None:
    """Warn of event types without the key, whose occurrences go to every key (S7). That may be
    meant, as for a signal to all, or the column was forgotten."""
    if not rule.pattern.per:
        return
    listed = isinstance(book.records("rules")[rule.name].get("per"), dict)
    key = ", ".join(rule.pattern.key_names)
    for name, below in event_names(node).items():
        event = book.events.get(name)
        if name in rule.pattern.per or isinstance(event, ClockEvent):
            continue
        if event is None and name not in book.rules:
            continue  # said to be unknown, or to be wrong
        message = f"{name!r} has no {key}: each of its occurrences goes to every {key}"
        if name in book.rules:
            hint = f"give it a per: {key}"
        elif isinstance(event, SignalEvent) and not listed:
            keyed = ", ".join(
                f"{other}: {columns[0]}" for other, columns in rule.pattern.per.items()
            )
            hint = f"declare it: {name}: {{signal: {{{rule.pattern.key_names[0]}: ..}}}}"
            hint += f"; if it is for all of them: per: {{{keyed}}}"
        elif isinstance(event, SignalEvent) and not event.fields:
            continue  # which has nothing that could be listed
        elif isinstance(event, TableEvent) and (
            event.change.is_commit
            or (event.picks and event.columns.keys().isdisjoint(rule.pattern.key_names))
        ):
            continue  # which has no such column
        else:
            hint = f"list it with its column: per: {{.., {name}: {rule.pattern.key_names[0]}}}"
            if isinstance(event, TableEvent):
                hint += f"; if its table has none, list what {name!r} has: columns: [..]"
        _warn(report, "broadcast", message, scalar, below.span, hint)


def _empty(
    book: Draft, name: str, node: x.Expression, rules: Mapping[str, Rule], report: Report
) -> None:
    """Warn of `count(*) = 0`: a firing without constituents has one row, too (semantics 5)."""
    condition = book.records("rules")[name].get("if")
    if not isinstance(condition, tuple) or not may_be_empty(node, rules):
        return
    text, scalar = condition
    offset = counts_rows_to_zero(text)
    if offset is not None:
        message = "count(*) is never 0: a firing without constituents still has one row"
        hint = "count what happened: count(event_type) = 0"
        report.warn("empty-firing", message, scalar.locate(offset), hint)


def _closed_by_commit(book: Draft, pattern: Pattern, node: x.Expression) -> bool:
    """Whether a rule keeps the rows of one commit: `A*(begin_of t, e, end_of t)`, of one table."""
    if (
        not isinstance(node, x.Aperiodic | x.AperiodicStar)
        or pattern.context is Context.UNRESTRICTED
    ):
        return False
    match node.opener, node.closer:
        case x.BeginOf(name=begun), x.EndOf(name=ended) if begun == ended:
            commit = book.events.get(begun)
        case _:
            return False
    if not isinstance(commit, TableEvent) or not commit.change.is_commit:
        return False
    rows = [book.events.get(below.name) for below in node.part.walk() if isinstance(below, x.Name)]
    return plain(node.part) and all(
        isinstance(row, TableEvent) and row.table == commit.table and row.time is None
        for row in rows
    )


def _passed_over(
    book: Draft, pattern: Pattern, node: x.Expression, scalar: Scalar, report: Report
) -> None:
    """Warn of rows of one commit: they are simultaneous, and `restricted` detects one of them."""
    if pattern.context is not Context.RESTRICTED or pattern.selection or plain(node):
        return
    for below in compared(node):
        event = book.events.get(below.name)
        if not isinstance(event, TableEvent) or event.change.is_commit:
            continue
        if event.time is None and event.name not in pattern.per:
            _warn(
                report,
                "passed-over",
                f"rows of {event.name!r} in one commit are simultaneous;"
                " context restricted detects one of them",
                scalar,
                below.span,
                "add per: COLUMN to the rule, or choose context: chronicle, which detects each",
            )
            return


def _by_position(reaction: Reaction, report: Report) -> None:
    """Warn of an INSERT without column names: it fails once its table gets another column."""
    for action in (*reaction.actions, *reaction.otherwise):
        read = statement(action.text) if isinstance(action, Sql) else None
        if read is not None and (table := read.by_position):
            message = (
                f"INSERT INTO {table} names no columns: it fails once the table gets another column"
            )
            hint = f"write INSERT INTO {table} (a, b) .., or INSERT INTO {table} BY NAME"
            report.warn("by-position", message, action.place, hint)


def _warn(report: Report, code: str, message: str, scalar: Scalar, span: x.Span, hint: str) -> None:
    place = scalar.locate(span.start)
    report.warnings.append(Problem(code, message, place, hint, excerpt(scalar.text, span)))
