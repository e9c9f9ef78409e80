"""The SQL of a rulebook as far as it can be judged without Spark: `where`, `if`, `do`, samples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tidegate.rules.analysis.draft import Draft
from tidegate.rules.checks.columns import filtered_columns, relation_columns
from tidegate.rules.errors import did_you_mean, nearest
from tidegate.rules.model import TRANSITION_TABLES, Rulebook, TableEvent
from tidegate.rules.sql.forms import (
    NO_SUBSTITUTION,
    SqlFault,
    action_fault,
    expression_fault,
    query_fault,
    substituted,
)
from tidegate.rules.sql.statement import (
    Statement,
    aggregates,
    calls,
    functions,
    statement,
    unknown_columns,
)
from tidegate.rules.sql.tokens import sql_tokens, unsteady_words
from tidegate.rules.yaml.kinds import Record, Report
from tidegate.rules.yaml.reader import Fields, Node, Scalar

if TYPE_CHECKING:
    from tidegate.rules.sql.tree import Mention

_Judge = Callable[[str], SqlFault | None]


def check_statements(book: Draft, report: Report, allowed: Collection[str] | None = None) -> None:
    """Add what is wrong with the SQL of events, rules and samples. `allowed`: the functions that
    the operator lets in beside Spark's own; None: they are not known, and none is refused."""
    _Statements(book, report, allowed).check()


def holds_sql(book: Rulebook) -> bool:
    """Whether there is anything that only Spark can judge."""
    filtered = any(isinstance(e, TableEvent) and e.where for e in book.events.values())
    rules = book.rules.values()
    return filtered or bool(book.samples) or any(r.asks or r.reaction.actions for r in rules)


class _Statements:
    """The checks of one rulebook."""

    def __init__(self, book: Draft, report: Report, allowed: Collection[str] | None) -> None:
        self._book = book
        self._report = report
        self._declared = {name.lower(): name for name in book.names("tables")}
        self._transitions = {
            *TRANSITION_TABLES,
            *(f"{table}_{name}" for table in self._declared for name in TRANSITION_TABLES),
        }
        self._known: Collection[str] | None = None
        if allowed is not None:
            self._known = functions().keys() | {name.lower() for name in allowed}

    def check(self) -> None:
        for name, record in self._book.records("events").items():
            if "where" in record.values:
                self._where(name, record.get("where")[1])
        for name, record in self._book.records("rules").items():
            self._condition(name, record)
            for key in ("do", "otherwise"):
                for action, _ in record.get(key, ()):
                    self._action(name, record, action)
        for _, scalar in self._book.top.readable("samples").values():
            self._query(scalar, ())

    def _where(self, event: str, scalar: Scalar) -> None:
        self._steady(scalar)
        if not self._expression(scalar):
            return
        self._columns(scalar, filtered_columns(self._book, event), f"{event} has no column")
        for call in calls(scalar.text, aggregates, expression=True):
            message = f"{call.name}(..) is of many rows, and `where` looks at one alone"
            hint = f"write it into the rule's `if`: {_called(scalar.text, call.offset)} > .."
            self._report.add("sql-aggregate", message, scalar.locate(call.offset), hint)
            return

    def _condition(self, rule: str, record: Record) -> None:
        given = record.get("if")
        if isinstance(given, Record):
            if "sql" in given.values and self._query(given.get("sql")[1], self._own(rule)):
                self._reads_event(rule, given.get("sql")[1], "this query")
        elif given is not None:
            text, scalar = given
            self._steady(scalar)
            fault = expression_fault(text)
            if fault and fault.message.startswith("this is a query"):
                hint = f"write if: {{sql: {_shortened(text)}}}"
                self._report.add(fault.code, fault.message, scalar.locate(fault.offset), hint)
            elif self._expression(scalar):
                self._columns_seen(rule, scalar)
        levels = record.get("hysteresis")
        for _, scalar in levels.values.values() if levels else ():
            self._steady(scalar)
            if self._expression(scalar):
                self._columns_seen(rule, scalar)

    def _action(self, rule: str, record: Record, action: Record) -> None:
        if "sql" not in action.values:
            for key in ("signal", "webhook"):
                for scalar in _values(action.node.entries.get(key)):
                    self._expression(scalar)
            return
        scalar = action.get("sql")[1]
        judge = action_fault
        if record.get("at_least_once") is True:
            judge = partial(action_fault, unmarked=True)
        read = self._read(scalar, judge)
        if read is None or self._undeclared_target(read, scalar):
            return
        if self._undeclared(read, scalar, self._own(rule)):
            return
        if not record.has("for_each"):
            self._reads_event(rule, scalar, "this statement")

    def _steady(self, scalar: Scalar) -> None:
        """Refuse functions whose value depends on when they run (G25)."""
        for word in unsteady_words(scalar.text):
            message = f"{word.text} does not depend on the row alone"
            hint = "compare with a column; in a condition, detected_at is the detecting instant"
            self._report.add("nondeterministic", message, scalar.locate(word.offset), hint)

    def _expression(self, scalar: Scalar) -> bool:
        """Whether nothing is known to be wrong with an expression."""
        well_formed = self._well_formed(scalar, expression_fault)
        return well_formed and not self._unknown_functions(scalar, expression=True)

    def _columns_seen(self, rule: str, scalar: Scalar) -> None:
        made = self._book.rules.get(rule)
        known = relation_columns(self._book, made) if made is not None else None
        self._columns(scalar, known, "no event of the expression has the column")

    def _columns(self, scalar: Scalar, known: Collection[str] | None, lacks: str) -> None:
        """Refuse columns that are not `known`; None: only the tables know them."""
        for column in unknown_columns(scalar.text, known) if known is not None else ():
            hint = self._report.did_you_mean(column.name, known or ())
            place = scalar.locate(column.offset)
            self._report.add("unknown-column", f"{lacks} {column.name}", place, hint)

    def _query(self, scalar: Scalar, own: Collection[str]) -> bool:
        """Whether a query can be read, and nothing is wrong with it."""
        read = self._read(scalar, query_fault)
        return read is not None and not self._undeclared(read, scalar, own)

    def _read(self, scalar: Scalar, judge: _Judge) -> Statement | None:
        """A well-formed statement of known functions; None, too, if sqlglot cannot read it."""
        if not scalar.text.strip() or not self._well_formed(scalar, judge):
            return None
        return None if self._unknown_functions(scalar) else statement(scalar.text)

    def _unknown_functions(self, scalar: Scalar, *, expression: bool = False) -> bool:
        known = self._known
        if known is None:
            return False
        unknown = calls(scalar.text, lambda name: name.lower() not in known, expression=expression)
        for call in unknown:
            message = f"there is no function {call.name}"
            hint = did_you_mean(call.name.lower(), known)
            hint = hint or "one of your own is let in by the operator's policy: functions: [..]"
            self._report.add("sql-function", message, scalar.locate(call.offset), hint)
        return bool(unknown)

    def _undeclared_target(self, read: Statement, scalar: Scalar) -> bool:
        for target in read.targets:
            if target.name.lower() not in self._declared:
                hint = f"declare it under tables: {target.name}: {{path: ..}}"
                message = f"{target.name!r} is no declared table"
                if target.name.lower() == "event":
                    message, hint = "event is what the rule sees, no table that can be written", ""
                self._unknown_table(target, scalar, message, hint, [*self._declared.values()])
                return True
        return False

    def _undeclared(self, read: Statement, scalar: Scalar, own: Collection[str]) -> bool:
        """Report the first relation that is no declared table and none of `own`."""
        for relation in read.relations:
            name = relation.name.lower()
            if not (name in own or name in self._declared or (own and name in self._transitions)):
                message = f"there is no table {relation.name!r} to read"
                hint = f"declare it under tables: {relation.name}: {{path: ..}}"
                if own:
                    hint = f"what has fired is read FROM event; a table: {hint}"
                near = [*self._declared.values(), *own]
                self._unknown_table(relation, scalar, message, hint, near)
                return True
        return False

    def _unknown_table(
        self, named: Mention, scalar: Scalar, message: str, hint: str, known: Sequence[str]
    ) -> None:
        close = nearest(named.name, known)
        hint = f"did you mean {close!r}?" if close else hint
        self._report.add("unknown-table", message, scalar.locate(named.offset), hint)

    def _own(self, rule: str) -> tuple[str, ...]:
        """What a rule's statements may read beside declared tables."""
        return ("event", f"p_{rule}".lower())

    def _reads_event(self, rule: str, scalar: Scalar, what: str) -> None:
        """Warn of a statement that is the same for each firing."""
        read = statement(scalar.text)
        names = {relation.name.lower() for relation in read.relations} if read else set()
        if read is not None and names.isdisjoint({*self._own(rule), *self._transitions}):
            message = f"{what} never reads event: it is the same whatever has fired"
            hint = "select from event: a row for each constituent of what fired"
            self._report.warn("event-unread", message, scalar.locate(0), hint)

    def _well_formed(self, scalar: Scalar, judge: _Judge) -> bool:
        """Whether a text is well-formed; what is wrong with it is reported."""
        fault = judge(scalar.text) if scalar.text.strip() else None
        if fault is None:
            if found := substituted(scalar.text):
                message = f"{found[0]} is written as it stands: nothing is substituted in SQL"
                place = scalar.locate(found.start())
                self._report.warn("substitution", message, place, NO_SUBSTITUTION)
            return True
        said = any(problem.place.path == scalar.place.path for problem in self._report.problems)
        if not said:
            place, hint = scalar.locate(fault.offset), fault.hint
            if fault.code == "sql-syntax" and scalar.commented and not scalar.style:
                hint = "' #' begins a comment in YAML; if it is part of the text, quote all of it"
            self._report.add(fault.code, fault.message, place, hint)
        return False


def _called(text: str, begin: int) -> str:
    """The call that begins at an offset, as written."""
    depth = 0
    for token in (token for token in sql_tokens(text) if token.offset >= begin):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == ")" and depth == 0:
            return _shortened(text[begin : token.offset + 1])
    return text[begin:]


def _values(node: Node | None) -> Iterator[Scalar]:
    """The expressions of a signal's fields or a webhook's body."""
    if not isinstance(node, Fields):
        return
    inside = [node.entries.get("body")] if "url" in node.entries else node.entries.values()
    for fields in inside:
        for value in fields.entries.values() if isinstance(fields, Fields) else ():
            if isinstance(value, Scalar):
                yield value


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}.."
