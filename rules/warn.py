"""What is allowed and probably not meant (S13, semantics 3)."""

from __future__ import annotations

from rules import expression as x
from rules.book import Book
from rules.errors import Problem
from rules.faults import excerpt
from rules.kinds import Report
from rules.model import Change, Context, Rule, TableEvent
from rules.parser import unlabelled
from rules.reader import Scalar
from rules.shape import is_composite


def warn(book: Book, report: Report) -> None:
    """Add the warnings of every rule that could be read."""
    for name, node, scalar in book.expressions():
        _never(node, scalar, report)
        _passed_over(book, book.rules[name], node, scalar, report)


def _never(node: x.Expression, scalar: Scalar, report: Report) -> None:
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
        if isinstance(below, x.Periodic | x.PeriodicStar) and fires_never(below.closer):
            message = "nothing closes this window: it ticks forever"
            hint = "close it by an event that happens, or by a length of time: P(a, [d], [1 h])"
            _warn(report, "endless", message, scalar, below, hint)


def fires_never(node: x.Expression) -> bool:
    """Whether an expression has no instance in any history, as far as its form shows."""
    match node:
        case x.Not():
            closer, absent = unlabelled(node.closer), unlabelled(node.absent)
            return closer == absent or fires_never(node.opener) or fires_never(node.closer)
        case x.Minus():
            return unlabelled(node.part) == unlabelled(node.absent) or fires_never(node.part)
        case x.Or():
            return all(fires_never(part) for part in node.parts)
        case x.And():
            return any(fires_never(part) for part in node.parts)
        case x.Seq():
            return fires_never(node.first) or fires_never(node.then)
        case x.Within() | x.Labelled() | x.Nth() | x.Every() | x.AnyRepeat():
            return fires_never(node.part)
        case x.Plus():
            return fires_never(node.base)
        case x.Aperiodic():
            return fires_never(node.opener) or fires_never(node.part)
        case x.Periodic():
            return fires_never(node.opener)
        case x.AperiodicStar() | x.PeriodicStar():
            return fires_never(node.opener) or fires_never(node.closer)
        case _:
            return False


def _passed_over(
    book: Book, rule: Rule, node: x.Expression, scalar: Scalar, report: Report
) -> None:
    """Rows of one commit are simultaneous, so `restricted` detects one of them."""
    if rule.context is not Context.RESTRICTED or rule.selection or not is_composite(node):
        return
    for below in node.walk():
        event = book.events.get(below.name) if isinstance(below, x.Name) else None
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


def _warn(
    report: Report, code: str, message: str, scalar: Scalar, node: x.Expression, hint: str
) -> None:
    place = scalar.locate(node.span.start)
    report.warnings.append(Problem(code, message, place, hint, excerpt(scalar.text, node.span)))
