"""What is allowed and probably not meant (S13, semantics 3)."""

from __future__ import annotations

from tidegate.rules import expression as x
from tidegate.rules.book import Book
from tidegate.rules.bound import of_rule
from tidegate.rules.errors import Problem
from tidegate.rules.faults import excerpt
from tidegate.rules.kinds import Report
from tidegate.rules.model import Change, Context, Rule, Sql, TableEvent
from tidegate.rules.never import fires_never
from tidegate.rules.plain import compared, plain
from tidegate.rules.reader import Scalar
from tidegate.rules.sqlwords import insert_without_columns


def warn(book: Book, report: Report) -> None:
    """Add the warnings of every rule that could be read."""
    for name, node, scalar in book.expressions():
        endless = _never(node, scalar, report)
        _passed_over(book, book.rules[name], node, scalar, report)
        _by_position(book.rules[name], report)
        if not report.problems and not endless:
            _unbounded(book, book.rules[name], node, scalar, report)


def _never(node: x.Expression, scalar: Scalar, report: Report) -> bool:
    """Warn of what never fires and of what never ends; returns whether there is the latter."""
    endless = False
    for below in node.walk():
        if isinstance(below, x.Not) and fires_never(below):
            _warn(
                report,
                "never",
                "not(b)[a, b] never fires: the b that closes the window is inside it",
                scalar,
                below,
                "close it by another event, or by a length of time: not(b)[a, [5 min]]",
            )
        if isinstance(below, x.Minus) and fires_never(below):
            message = "this never fires: what must be absent is part of it"
            hint = "a without b: b is another event, or a longer pattern"
            _warn(report, "never", message, scalar, below, hint)
        if isinstance(below, x.Periodic | x.PeriodicStar) and fires_never(below.closer):
            endless = True
            message = "nothing closes this window: it ticks forever"
            hint = "close it by an event that happens, or by a length of time: P(a, [d], [1 h])"
            _warn(report, "endless", message, scalar, below, hint)
    return endless


def _unbounded(book: Book, rule: Rule, node: x.Expression, scalar: Scalar, report: Report) -> None:
    """Nothing but the history limits what the rule stores."""
    found = of_rule(rule, book.rules)
    if not found.exists:
        message = f"no bound on what this stores: {found.why}"
        _warn(report, "unbounded", message, scalar, node, "; ".join(found.advice))


def _passed_over(
    book: Book, rule: Rule, node: x.Expression, scalar: Scalar, report: Report
) -> None:
    """Rows of one commit are simultaneous, so `restricted` detects one of them."""
    if rule.context is not Context.RESTRICTED or rule.selection or plain(node):
        return
    for below in compared(node):
        event = book.events.get(below.name)
        if not isinstance(event, TableEvent) or event.change is Change.TRANSACTION:
            continue
        if event.time is None and event.name not in rule.per:
            _warn(
                report,
                "passed-over",
                f"rows of {event.name!r} in one commit are simultaneous;"
                " context restricted detects one of them",
                scalar,
                below,
                "add per: COLUMN to the rule, or time: COLUMN to the event",
            )
            return


def _by_position(rule: Rule, report: Report) -> None:
    """An INSERT whose values go by position fails on the day its table gets another column."""
    for action in (*rule.actions, *rule.otherwise):
        table = insert_without_columns(action.text) if isinstance(action, Sql) else None
        if table is not None:
            message = f"INSERT INTO {table.text} names no columns: it fails once the table gets one"
            hint = f"write INSERT INTO {table.text} (a, b) .., or INSERT INTO {table.text} BY NAME"
            report.warn("by-position", message, action.place, hint)


def _warn(
    report: Report, code: str, message: str, scalar: Scalar, node: x.Expression, hint: str
) -> None:
    place = scalar.locate(node.span.start)
    report.warnings.append(Problem(code, message, place, hint, excerpt(scalar.text, node.span)))
