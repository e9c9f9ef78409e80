"""What the `where` of a rule may name, and of which part it can be asked."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tidegate.rules.algebra.detector_form import detected
from tidegate.rules.algebra.named_parts import (
    asked_of,
    in_one_row,
    named_parts,
    parts_of,
    together,
)
from tidegate.rules.analysis import predicate_types
from tidegate.rules.analysis.draft import Draft
from tidegate.rules.analysis.key_types import declared_columns
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions.faults import Fault, excerpt
from tidegate.rules.model import Change, ClockEvent, Context, Rule, TableEvent
from tidegate.rules.yaml.kinds import Record, Report

_ONE = "one occurrence must fill it: not under every, any(m, a*), A*, P, P* or + [d]"
_COMPARED = re.compile(r"\b(?:label|event_type)\s*=\s*'(\w+)'", re.IGNORECASE)
_QUALIFIED = re.compile(r"\b(\w+)\s*\.\s*\w+")
_CALLED = re.compile(r"(\w+)\s*[(\[]")
_SPREAD = re.compile(r"\b(max|min)\s*\(\s*((?:old\.)?\w+)\s*\)", re.IGNORECASE)
_PICKING = {"max", "min", "if", "first", "last", "any_value", "abs", "and", "or", "not"}
"""What picks the value of one constituent."""
_CHOOSING = (Context.RESTRICTED, Context.RECENT, Context.CHRONICLE, Context.CONTINUOUS)
_IMAGES = (Change.UPDATE, Change.CHANGE)


def check_where(book: Draft, rule: Rule, record: Record, report: Report) -> None:
    """Add what is wrong with the `where` of a rule."""
    if rule.pattern.where is None:
        return
    if rule.pattern.selection:
        hint = "give a context's name, or leave the where out"
        report.add("where", "a where does not go with select", record.place("where"), hint)
        return
    scalar = record.get("where")[1]
    for fault in _Where(book, rule, report).faults(rule.pattern.where.tree):
        place = scalar.locate(fault.span.start)
        report.add("where", fault.message, place, fault.hint, excerpt(scalar.text, fault.span))


def warn_of_late_if(rule: Rule, report: Report) -> None:
    """Warn of an `if` that compares constituents, where the context may have passed over a match of
    which it is true."""
    condition, pattern = rule.condition, rule.pattern
    if condition is None or condition.query or pattern.where or pattern.selection:
        return
    if not {word.lower() for word in _CALLED.findall(condition.text)} <= _PICKING:
        return  # a where has no functions
    names = _names_compared(condition.text, pattern.on)
    if pattern.context in _CHOOSING and names:
        message = f"if is asked of what context {pattern.context} has chosen: another match, for"
        message += " which it is true, is passed over"
        hint = f"compare {' and '.join(names)} in where:, which is asked before the choice"
        report.warn("late-if", message, condition.place, hint)


def warn_of_one_row(rule: Rule, report: Report) -> None:
    """Warn of a `where` that is true of one row in the place of two: `x.c = y.c` over `x:(a) and
    y:(a)`."""
    where, on = rule.pattern.where, rule.pattern.on
    if where is None:
        return
    parts, compared = named_parts(on), dict[tuple[str, ...], list[p.Predicate]]()
    for term in p.conjuncts(where.tree):
        named = {column.part for column in p.columns(term)}
        compared.setdefault(tuple(sorted(named)), []).append(term)
    for names, terms in compared.items():
        found = [part for name in names for part in parts if name in part.labels]
        if len(names) != 2 or len(found) != 2 or not all(map(_true_of_one, terms)):
            continue
        if in_one_row(found[0], found[1], on):
            one, other = names
            message = f"one row may be both {one} and {other}, and the where is true of it"
            hint = f"add {one}.id <> {other}.id, of a column that tells rows apart; or make what is"
            hint += f" compared part of the key, and count: any(2, {found[0].event}*)"
            report.warn("one-row", message, where.place, hint)


def _true_of_one(term: p.Predicate) -> bool:
    """Whether a comparison of two parts is true where they are one row: `x.c <= y.c`."""
    match term:
        case p.Comparison(
            operator="=" | "<=" | ">=", left=p.Column() as one, right=p.Column() as two
        ):
            return (one.column, one.old) == (two.column, two.old)
    return False


def _names_compared(condition: str, on: x.Expression) -> list[str]:
    """What a condition compares with each other: constituents by label or event type, or the least
    and the greatest value of a column of several constituents."""
    parts = named_parts(on)
    known = {name for part in parts for name in (part.event, *part.labels)}
    labels = {label for part in parts for label in part.labels}
    compared = {*_COMPARED.findall(condition)} & known
    compared |= {*_QUALIFIED.findall(condition)} & labels
    if len(compared) > 1:
        return sorted(compared)
    ends = {(name.lower(), column.lower()) for name, column in _SPREAD.findall(condition)}
    both = any(("min", column) in ends for name, column in ends if name == "max")
    names = dict.fromkeys(min(part.labels, default=part.event) for part in parts)
    return [*names] if both and together(parts, on) else []


class _Where:
    def __init__(self, book: Draft, rule: Rule, report: Report) -> None:
        self._book = book
        self._on = rule.pattern.on
        self._detected = detected(rule.pattern, book.names("rules"))
        self._parts = named_parts(self._on)
        self._report = report

    def faults(self, tree: p.Predicate) -> Iterator[Fault]:
        if not all(part.event in self._book.names("events", "rules") for part in self._parts):
            return  # an event that is not known is said already
        found = [fault for column in p.columns(tree) for fault in self._column(column)]
        yield from found
        if found:
            return
        types = [*predicate_types.faults(tree, self._type)]
        yield from types
        if not types:
            yield from (f for asked in p.conjuncts(tree) for f in self._placed(asked))

    def _column(self, column: p.Column) -> Iterator[Fault]:
        parts, name = parts_of(column, self._parts), column.part
        if not parts:
            yield self._unnamed(column)
            return
        labelled = name in parts[0].labels
        if not labelled and (len(parts) > 1 or x.EndOf(name) in self._on.walk()):
            hint = f"label the one that is meant: x:({name}), and write x.{column.column}"
            yield Fault(column.span, f"several parts of the expression are of {name}", hint)
        elif together(parts, self._on):
            hint = "a label stands once, or once in each alternative of an or"
            yield Fault(column.span, f"the label {name} stands at several parts", hint)
        else:
            yield from (fault for part in parts for fault in self._of_event(column, part.event))
            types = self._types(column)
            if types and predicate_types.common_type(types) is None:
                yield predicate_types.not_common(column, types)

    def _unnamed(self, column: p.Column) -> Fault:
        name = column.part
        known = {n for part in self._parts for n in (part.event, *part.labels)}
        written = {n.label for n in self._on.walk() if isinstance(n, x.Labelled)}
        if name in written | x.names_in(self._on):
            return Fault(column.span, f"{name} cannot be named in a where", _ONE)
        hint = self._report.did_you_mean(name, known) or _ONE
        return Fault(column.span, f"no part of the expression is called {name}", hint)

    def _of_event(self, column: p.Column, event: str) -> Iterator[Fault]:
        kind = self._book.events.get(event)
        if event in self._book.names("rules"):
            hint = "name the event types: write the rule's expression in its place"
            yield Fault(column.span, f"{event} is a rule: many occurrences may fill it", hint)
            return
        if isinstance(kind, ClockEvent):
            hint = "name another part: a clock has an instant alone"
            yield Fault(column.span, f"{event} is a clock, which has no columns", hint)
            return
        table = self._book.tables.get(kind.table) if isinstance(kind, TableEvent) else None
        if column.old:
            if not isinstance(kind, TableEvent) or kind.change not in _IMAGES:
                hint = "old is of updates: write on: update where the event type is declared"
                yield Fault(column.span, f"{event} has no pre-image", hint)
            elif table is not None and not table.key:
                hint = f"add key: [column, ..] to tables.{kind.table}"
                yield Fault(column.span, f"{event} has no pre-image: its table has no key", hint)
            return
        columns = declared_columns(kind) if kind else None
        if columns is not None and _spelt(column.column, columns) is None:
            hint = self._report.did_you_mean(column.column, columns)
            yield Fault(column.span, f"{event} has no column {column.column}", hint)

    def _type(self, column: p.Column) -> str | None:
        """The declared type, which several event types with one label have in common; None where
        only a table knows it."""
        types = self._types(column)
        return predicate_types.common_type(types) if types else None

    def _types(self, column: p.Column) -> set[str]:
        """The declared types of a column; none where only a table knows one."""
        found = set[str]()
        for part in parts_of(column, self._parts):
            columns = declared_columns(self._book.events.get(part.event)) or {}
            declared = columns.get(_spelt(column.column, columns) or "")
            if declared is None or column.old:
                return set()
            found.add(declared)
        return found

    def _placed(self, asked: p.Predicate) -> Iterator[Fault]:
        columns = p.columns(asked)
        if not columns:
            hint = "name a column: label.column or event.column"
            yield Fault(asked.span, "this is the same for every match", hint)
        elif asked_of(self._detected, asked, frozenset(self._book.names("rules"))) is None:
            names = " and ".join(dict.fromkeys(c.part for c in columns))
            message = f"how far {names} may lie apart has no bound"
            hint = "add a within of your choice to the expression, around what the where names"
            yield Fault(asked.span, message, hint)


def _spelt(name: str, columns: Collection[str]) -> str | None:
    """The column that is meant. The case of a name does not matter to SQL."""
    alike = [column for column in columns if column.lower() == name.lower()]
    return name if name in alike else next(iter(alike), None)
