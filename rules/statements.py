"""The SQL of a rulebook as far as it can be judged without Spark: `where`, `if`, `do`, samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from tidegate.rules.book import Book
from tidegate.rules.kinds import BAD, Record, Report
from tidegate.rules.model import TRANSITION_TABLES, Rulebook, TableEvent
from tidegate.rules.nearest import did_you_mean
from tidegate.rules.reader import Fields, Node, Scalar
from tidegate.rules.sqlforms import (
    NO_SUBSTITUTION,
    SqlFault,
    action_fault,
    expression_fault,
    query_fault,
    substituted,
    unread,
)
from tidegate.rules.sqlwords import target_word

_Judge = Callable[[str], SqlFault | None]


def check_statements(book: Book, report: Report) -> None:
    """Add what is wrong with the SQL of events, rules and samples."""
    for record in book.records("events").values():
        if "where" in record.values:
            _say(record.get("where")[1], expression_fault, report)
    declared = {name.lower(): name for name in book.records("tables")}
    for name, record in book.records("rules").items():
        _condition(name, record, declared, report)
        for key in ("do", "otherwise"):
            for action, _ in record.get(key, ()):
                _action(name, record, action, declared, report)
    for value in book.top.get("samples", {}).values():
        if value is not BAD:
            _say(value[1], query_fault, report)


def holds_sql(book: Rulebook) -> bool:
    """Whether there is anything that only Spark can judge."""
    filtered = any(isinstance(e, TableEvent) and e.where for e in book.events.values())
    rules = book.rules.values()
    return filtered or bool(book.samples) or any(r.asks or r.actions for r in rules)


def _condition(rule: str, record: Record, declared: Mapping[str, str], report: Report) -> None:
    given = record.get("if")
    if isinstance(given, Record):
        if "sql" in given.values:
            text, scalar = given.get("sql")
            if not _say(scalar, query_fault, report):
                _reads_event(rule, text, scalar, "this query", declared, report)
    elif given is not None:
        text, scalar = given
        fault = expression_fault(text)
        if fault and fault.message.startswith("this is a query"):
            hint = f"write if: {{sql: {_shortened(text)}}}"
            report.add(fault.code, fault.message, scalar.locate(fault.offset), hint)
        else:
            _say(scalar, expression_fault, report)
    levels = record.get("hysteresis")
    for _, scalar in levels.values.values() if levels else ():
        _say(scalar, expression_fault, report)


def _action(
    rule: str, record: Record, action: Record, declared: Mapping[str, str], report: Report
) -> None:
    if "sql" in action.values:
        text, scalar = action.get("sql")
        judge = action_fault
        if record.get("at_least_once") is True:
            judge = partial(action_fault, unmarked=True)
        if _say(scalar, judge, report) or _undeclared_target(text, scalar, declared, report):
            return
        if not record.has("for_each"):
            _reads_event(rule, text, scalar, "this statement", declared, report)
        return
    for key in ("signal", "webhook"):
        for scalar in _values(action.node.entries.get(key)):
            _say(scalar, expression_fault, report)


def _undeclared_target(
    text: str, scalar: Scalar, declared: Mapping[str, str], report: Report
) -> bool:
    """Report a statement whose target is none of the tables `declared`, by their names in small
    letters; returns whether it is so."""
    word = target_word(text)
    if word is None or word.text.lower() in declared:
        return False
    name = word.text
    hint = f"declare it under tables: {name}: {{path: ..}}"
    message = f"{name!r} is no declared table"
    if name.lower() == "event":
        message, hint = "event is what the rule sees, no table that can be written", ""
    close = did_you_mean(name, declared.values()) if declared else ""
    if close.startswith("did you mean"):
        hint = close
    report.add("unknown-table", message, scalar.locate(word.offset), hint)
    return True


def _reads_event(
    rule: str,
    text: str,
    scalar: Scalar,
    what: str,
    declared: Mapping[str, str],
    report: Report,
) -> None:
    of_tables = (f"{table}_{name}" for table in declared for name in TRANSITION_TABLES)
    hint = unread(text, ("event", f"p_{rule}".lower(), *TRANSITION_TABLES, *of_tables))
    if hint is not None:
        message = f"{what} never reads event: it is the same whatever has fired"
        report.warn("event-unread", message, scalar.locate(0), hint)


def _values(node: Node | None) -> Iterator[Scalar]:
    """The expressions of a signal's fields or a webhook's body."""
    if not isinstance(node, Fields):
        return
    inside = [node.entries.get("body")] if "url" in node.entries else node.entries.values()
    for fields in inside:
        for value in fields.entries.values() if isinstance(fields, Fields) else ():
            if isinstance(value, Scalar):
                yield value


def _say(scalar: Scalar, judge: _Judge, report: Report) -> bool:
    """Report what is wrong with a text; returns whether something is."""
    fault = judge(scalar.text) if scalar.text.strip() else None
    if fault is None:
        if found := substituted(scalar.text):
            message = f"{found[0]} is written as it stands: nothing is substituted in SQL"
            place = scalar.locate(found.start())
            report.warn("substitution", message, place, NO_SUBSTITUTION)
        return False
    said = any(problem.place.path == scalar.place.path for problem in report.problems)
    if not said:
        report.add(fault.code, fault.message, scalar.locate(fault.offset), fault.hint)
    return True


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}.."
