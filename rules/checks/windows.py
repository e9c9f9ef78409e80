"""What a window goes with, and what it does not; what may be asked of its rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tidegate.rules.algebra.asked_columns import conditions_of
from tidegate.rules.algebra.transformation import longest_micros, shortest_micros
from tidegate.rules.analysis import aggregate_types, predicate_types
from tidegate.rules.analysis.draft import Draft, refuse
from tidegate.rules.analysis.key_types import declared_columns
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.durations import format_duration
from tidegate.rules.expressions.faults import Fault, excerpt
from tidegate.rules.expressions.nodes import Duration
from tidegate.rules.model import Change, Rule, TableEvent
from tidegate.rules.yaml.kinds import Record, Report
from tidegate.rules.yaml.reader import Scalar

_ALONE = {
    "context": "leave it out: what a window detects is all its rows",
    "where": "ask it of each row, in where: of its event type; or of all of them, in if:",
}
_IMAGES = (Change.UPDATE, Change.CHANGE)
Types = dict[p.Column, str | None]


def check_window(book: Draft, rule: Rule, record: Record, report: Report) -> None:
    """A window chooses by itself, so it takes no context, and no condition between constituents."""
    on = rule.pattern.on
    if not isinstance(on, w.Window):
        return
    for key, hint in _ALONE.items():
        if record.has(key):
            report.add("window", f"a window takes no {key}", record.place(key), hint)
    if isinstance(on, w.Sliding) and on.length.months and not w.calendar(on.every):
        message = "a window of months ends at a local midnight: every counts days or months, too"
        report.add("window", message, record.place("on"), "write every: 1 d, or longer")
    if isinstance(on, w.Sliding) and _leaves_out(on.length, on.every):
        every = format_duration(on.every)
        message = (
            f"some rows are in no window: one of {format_duration(on.length)} ends every {every}"
        )
        hint = f"write window: {every}, or an every that is not longer than the window"
        report.warn("rows-in-no-window", message, record.place("on"), hint)
    names = x.names_in(on)
    if names <= book.names("events", "rules"):  # else an event that is not known is said already
        for asked in conditions_of(rule.pattern):
            scalar = _scalar_of(asked, record)
            for fault in _faults(book, names, asked.tree):
                shown = excerpt(scalar.text, fault.span)
                place = scalar.locate(fault.span.start)
                report.add("window", fault.message, place, fault.hint, shown)


def _leaves_out(length: Duration, every: Duration) -> bool:
    """Whether each window begins after the one before has ended."""
    if length.months and every.months:
        return length.months < every.months
    return longest_micros(length) < shortest_micros(every)


def _scalar_of(asked: w.Asked, record: Record) -> Scalar:
    """The scalar that a condition was read from."""
    pieces: tuple[tuple[int, Scalar], ...] = record.get("on")[1].pieces
    return next(piece for _, piece in pieces if piece.locate(0) == asked.place)


def _faults(book: Draft, names: Collection[str], tree: p.Predicate) -> Iterator[Fault]:
    """What is wrong with a condition over rows of these event types and rules."""
    aggregates = p.aggregates(tree)
    if not aggregates:
        hint = "name an aggregate: count(*), avg(column)"
        yield Fault(tree.span, "this is the same for all rows", hint)
        return
    types: Types = {}
    found = [*_typed(book, names, aggregates, types)]
    yield from found or predicate_types.faults(tree, types.get)


def _typed(
    book: Draft, names: Collection[str], aggregates: Collection[p.Aggregate], types: Types
) -> Iterator[Fault]:
    """Fills in the types of aggregates, None where only a table knows one; yields what is wrong."""
    for aggregate in aggregates:
        columns = [_columns_of(book, name, old=aggregate.old) for name in sorted(names)]
        yield from aggregate_types.over_rows(aggregate, columns, types)


def _columns_of(book: Draft, name: str, *, old: bool) -> dict[str, str | None] | None:
    """The columns of the rows of an event type, or of their pre-images; a rule's detections have
    none. None where only the table knows them."""
    event = book.events.get(name)
    if event is None:
        return {}
    if old:
        keyed = [table.name for table in book.tables.values() if table.key]
        images = isinstance(event, TableEvent) and event.change in _IMAGES and event.table in keyed
        return None if images else {}
    found = declared_columns(event)
    return None if found is None else dict(found)


def resolved(book: Draft, node: x.Resolved, scalar: Scalar, report: Report) -> None:
    """`resolved r` is of a rule r that holds."""
    rule = book.rules.get(node.name)
    if rule is None and node.name in book.records("rules"):
        return  # it could not be read
    if rule is None or not isinstance(rule.pattern.on, w.Holding):
        message = f"{node.name!r} is never over: only a rule that holds is resolved"
        holding = [r.name for r in book.rules.values() if isinstance(r.pattern.on, w.Holding)]
        hint = report.did_you_mean(node.name, holding)
        if not holding:
            hint = f"write {node.name}: {{on: {{holds: raised, until: cleared, for: 10 min}}}}"
        refuse(report, "resolved", message, scalar, node, hint)
