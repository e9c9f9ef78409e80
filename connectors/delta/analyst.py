"""Judges every SQL text of a rulebook: whether it is let in, and what it reads. Implements
`engine.core.ports.Analyst`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.connectors.delta.analysis import Analysis, unresolved
from tidegate.connectors.delta.catalog import (
    Catalog,
    active_session_kept,
    quoted,
    show,
    spark_schema,
)
from tidegate.connectors.delta.faults import SPARK_ERRORS
from tidegate.connectors.delta.functions import changing, moment_cast
from tidegate.connectors.delta.gate import CATALOG, Gate, Locate, Verdict
from tidegate.connectors.delta.jobs import OverrunError
from tidegate.connectors.delta.owner_sql import Owned
from tidegate.connectors.delta.places import Texts
from tidegate.connectors.delta.plans import Plans
from tidegate.engine.core.columns.transitions import (
    named_transitions,
    transition_table,
    transitions_of,
)
from tidegate.engine.core.types.spark import arrow_type
from tidegate.engine.core.values import Reading
from tidegate.rules.errors import InputError, Place, Problem
from tidegate.rules.model import Rule, Rulebook, SignalAction, Sql, Webhook

Read = TypeVar("Read")
_SAMPLE_HINT = "a sample is a query of the rulebook's tables, without `event`"
_CLOCK_HINT = "evaluated again it must say the same; detected_at is the time to use"


class DeltaAnalyst:
    """The verdicts for one rulebook. A text is analysed once for each schema of `event`.

    It has a session of its own, in which `event` is an empty view. `statement` and `target` may be
    called from several threads.
    """

    def __init__(
        self,
        catalog: Catalog,
        rulebook: Rulebook,
        functions: Collection[str] = (),
        unmarked: Collection[str] = (),
    ) -> None:
        """`functions` and `unmarked`: what the operator's policy lets in, see `Gate`."""
        with catalog.session() as session:
            self._session = session
        self._plans = Plans(session)
        self._gate = Gate(self._plans, rulebook.tables, rulebook.reads, functions, unmarked)
        self._owned = Owned(catalog, self._gate)
        declared = [(CATALOG, catalog.database, name) for name in rulebook.tables]
        self._relations = [*declared, *rulebook.reads]
        self._functions = functions
        self._jobs, self._seconds_max = catalog.jobs, rulebook.settings.statement_seconds_max
        self._texts = Texts(rulebook)
        self._lock = threading.Lock()
        self._known: dict[Hashable, Any] = {}
        self._actions: dict[tuple[str, str, tuple[str, ...], bool], Reading] = {}
        self._events: dict[pa.Schema, DataFrame] = {}  # empty

    def of(self, rulebook: Rulebook) -> DeltaAnalyst:
        """An analyst of another rulebook over the same tables. It keeps the verdicts so far."""
        other = copy(self)
        other._texts = Texts(rulebook)
        other._known, other._actions = dict(self._known), {}
        return other

    def action(
        self,
        rule: Rule,
        action: Sql,
        event: pa.Schema,
        parameters: Sequence[str],
        *,
        resolve: bool = True,
    ) -> Reading:
        """See `engine.core.ports.Analyst`."""
        if not resolve:
            locate = self._texts.locate(action.place)
            names = named_transitions(event)
            verdict = self._gate.action(
                action.text,
                locate,
                parameters,
                rule.name,
                names,
                at_least_once=rule.reaction.at_least_once,
            )
            return _reading(verdict, event.names)
        key = rule.name, action.text, tuple(parameters), rule.reaction.at_least_once
        self._actions.pop(key, None)  # it may have fitted another schema, and not this one
        found = self._statement(
            rule.name, action.text, action.place, event, parameters, rule.reaction.at_least_once
        )
        self._owned.check_once(found.target, action.place)
        self._actions[key] = found
        return found

    def statement(
        self,
        rule: str,
        text: str,
        place: Place,
        event: pa.Schema,
        parameters: Sequence[str],
        *,
        at_least_once: bool,
    ) -> Reading:
        """The verdict on a text that an entry holds. The store kept it: its rule may be gone or
        changed. The target is judged anew, for its owner may have changed it since."""
        with self._lock:
            known = self._actions.get((rule, text, tuple(parameters), at_least_once))
            found = known or self._statement(rule, text, place, event, parameters, at_least_once)
        self.target(found.target, place)
        return found

    def target(self, table: str | None, place: Place) -> None:
        """Judge the SQL that a table's owner has written into the table. A write to the table would
        run it. Raises InputError."""
        with self._lock:
            self._owned.check(table, place)

    def _statement(
        self,
        rule: str,
        text: str,
        place: Place,
        event: pa.Schema,
        parameters: Sequence[str],
        at_least_once: bool,
    ) -> Reading:
        locate = self._texts.locate(place)
        own = _own_names(rule, text)

        def read() -> Reading:
            names = named_transitions(event)
            verdict = self._gate.action(
                text, locate, parameters, rule, names, at_least_once=at_least_once
            )
            made_of = self._transitions(verdict, event, locate)
            frame = self._event(event, own)
            types = {name: frame.schema[name].dataType for name in parameters}
            plan = self._plans.bind(verdict.plan, types, {}) if types else verdict.plan
            found = self._analysis((*own, *verdict.transitions)).statement(verdict, plan, locate)
            reading = _reading(verdict, found.columns | made_of)
            return replace(reading, fixed_source=found.fixed_source, own_rows=found.own_rows)

        key = ("action", text, own, tuple(parameters), event, at_least_once)
        return self._once(key, place, read)

    def condition(
        self, rule: Rule, event: pa.Schema, per_firing: Sequence[str], *, resolve: bool = True
    ) -> Reading:
        """See `engine.core.ports.Analyst`."""
        condition = rule.condition
        if condition is None:
            return Reading(frozenset())
        locate, names = self._texts.locate(condition.place), named_transitions(event)
        if not resolve and condition.query:
            return _reading(self._gate.query(condition.text, locate, rule.name, names), event.names)
        if not resolve:
            self._gate.expression(condition.text, locate)
            return Reading(frozenset(event.names))
        own = _own_names(rule.name, condition.text)

        def read_query() -> Reading:
            verdict = self._gate.query(condition.text, locate, rule.name, names)
            made_of = self._transitions(verdict, event, locate)
            self._event(event, own)
            analysis = self._analysis((*own, *verdict.transitions))
            found = analysis.statement(verdict, verdict.plan, locate)
            _check_firing_id(found.output, locate)
            return _reading(verdict, found.columns | made_of)

        def read_expression() -> Reading:
            named = {"if": (condition.text, "boolean", locate)}
            return self._expressions(named, event, per_firing, cast=False)

        read = read_query if condition.query else read_expression
        key = ("if", condition.query, condition.text, own, tuple(per_firing), event)
        return self._once(key, condition.place, read)

    def sample(self, text: str, place: Place) -> tuple[Reading, pa.DataType]:
        """See `engine.core.ports.Analyst`."""
        locate = self._texts.locate(place)

        def read() -> tuple[Reading, pa.DataType]:
            verdict = self._gate.query(text, locate)
            found = self._analysis(()).statement(verdict, verdict.plan, locate, _SAMPLE_HINT)
            if len(found.output) != 1:
                message = f"a sample is one value, this query has {len(found.output)} columns"
                hint = "SELECT max(price) FROM prices"
                raise InputError([Problem("sql-result", message, locate(0), hint)])
            [(_, kind)] = found.output
            return Reading(frozenset(), tables=verdict.reads), arrow_type(kind)

        return self._once(("sample", text), place, read)

    def fields(
        self,
        rule: Rule,  # noqa: ARG002
        action: SignalAction | Webhook,
        event: pa.Schema,
        per_firing: Sequence[str],
        types: Mapping[str, str],
    ) -> Reading:
        """See `engine.core.ports.Analyst`."""
        locate = self._texts.locate(action.place)
        named = {
            name: (text, types.get(name), lambda _: locate(0))
            for name, text in action.fields.items()
        }

        def read() -> Reading:
            return self._expressions(named, event, per_firing, cast=True)

        texts = tuple((name, text, kind) for name, (text, kind, _) in named.items())
        return self._once(("fields", texts, tuple(per_firing), event), action.place, read)

    def _expressions(
        self,
        named: Mapping[str, tuple[str, str | None, Locate]],
        event: pa.Schema,
        per_firing: Sequence[str],
        *,
        cast: bool,
    ) -> Reading:
        """What several expressions over the rows of one firing read.

        `named`: name -> (text, Spark type or None, places). With `cast`, a value is cast to its
        type; else it must be of that type. Raises InputError with the problems of all of them.
        """
        frame = self._event(event, ("event",))
        columns: frozenset[str] = frozenset()
        problems: list[Problem] = []
        for text, kind, locate in named.values():
            try:
                columns |= self._one(frame, per_firing, text, kind, locate, cast=cast)
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(problems)
        return Reading(columns)

    def _one(
        self,
        frame: DataFrame,
        per_firing: Sequence[str],
        text: str,
        kind: str | None,
        locate: Locate,
        *,
        cast: bool,
    ) -> frozenset[str]:
        """The columns that one expression reads. Raises InputError."""
        value = self._plans.column(self._gate.expression(text, locate))
        value = value.cast(kind) if cast and kind is not None else value
        try:
            grouped = group(frame, per_firing, value)
            plan: Any = grouped._jdf.queryExecution().analyzed()
        except SPARK_ERRORS as error:
            raise unresolved(error, locate) from None
        columns = self._expression(plan, locate)
        found = grouped.schema[-1].dataType.simpleString()
        if not cast and found != kind:
            message = f"the condition is {found}, not {kind}"
            raise InputError([Problem("sql-type", message, locate(0), "write a comparison")])
        return columns

    def _expression(self, plan: Any, locate: Locate) -> frozenset[str]:
        """The columns that the last expression of an Aggregate reads."""
        analysis = self._analysis(("event",))
        parts = analysis.parts(plan, locate)
        if parts.all[0].kind != "Aggregate":
            message = "window functions and functions that return rows are refused here"
            hint = "use if: {sql: SELECT firing_id FROM event ..}"
            raise InputError([Problem("sql-kind", message, locate(0), hint)])
        last = parts.held(parts.all[0], "aggregateExpressions")[-1]
        of_last = [last, *parts.below(last)]
        replaced = self._plans.replaced(plan)
        if clock := changing(of_last) or moment_cast(self._plans.walk(replaced)):
            message = f"{clock} is refused: its value changes with time"
            raise InputError([Problem("sql-nondeterministic", message, locate(0), _CLOCK_HINT)])
        return analysis.columns(parts, of_last)

    def _analysis(self, own: Collection[str]) -> Analysis:
        return Analysis(self._plans, own, self._relations, self._functions)

    def _event(self, schema: pa.Schema, names: Sequence[str]) -> DataFrame:
        """`event` as an empty view of this schema."""
        if schema not in self._events:
            with active_session_kept(self._session):
                self._events[schema] = self._session.createDataFrame([], spark_schema(schema))
        for name in names:
            self._events[schema].createOrReplaceTempView(name)
        return self._session.table("event")

    def _transitions(self, verdict: Verdict, event: pa.Schema, locate: Locate) -> frozenset[str]:
        """Make the transition tables that a text reads, as empty views. Returns the columns of
        `event` that they are made of. Raises InputError for a table that the rule cannot have."""
        known = {name: of for of in transitions_of(event) for name in of.names}
        columns: frozenset[str] = frozenset()
        for name in sorted(verdict.transitions):
            if known[name].refused:
                message = f"no {name}: {known[name].refused}"
                raise InputError([Problem("no-net-effect", message, locate(0), known[name].hint)])
            columns |= known[name].reads
            with active_session_kept(self._session):
                show(self._session, transition_table(event.empty_table(), name), name)
        return columns

    def _once(self, key: Hashable, place: Place, read: Callable[[], Read]) -> Read:
        """What `read` answers, asked once for each key. It has a deadline, for Spark evaluates some
        constants while it analyses a text, such as those in VALUES."""
        if key not in self._known:
            try:
                self._known[key] = self._jobs.run(self._seconds_max, read)
            except OverrunError as error:
                message = f"{error} (statement_seconds_max) to resolve this"
                hint = "simplify its constants, or raise statement_seconds_max"
                raise InputError([Problem("sql-overrun", message, place, hint)]) from None
        known: Read = self._known[key]
        return known


def group(frame: DataFrame, columns: Sequence[str], *values: Column) -> DataFrame:
    """One row a firing: `columns`, which are the same in all its rows, then aggregates `_0`, `_1`.

    Example: columns (firing_id, account), value max(amount) -> rows (f1, 7, 500), (f2, 8, 20).
    """
    named = [value.alias(f"_{n}") for n, value in enumerate(values)]
    return frame.groupBy(*(F.col(quoted(name)) for name in columns)).agg(*named)


def _reading(verdict: Verdict, columns: Collection[str]) -> Reading:
    """What the gate has found, as the engine takes it."""
    return Reading(
        frozenset(columns),
        verdict.target,
        verdict.reads,
        appends=verdict.kind == "InsertIntoStatement" and not verdict.unmarked,
        transitions=verdict.transitions,
        unmarked=verdict.unmarked,
    )


def _check_firing_id(output: Sequence[tuple[str, str]], locate: Locate) -> None:
    """Refuse a condition's query unless it returns one column firing_id, of strings."""
    hint = "SELECT firing_id FROM event .. returns the firings that hold"
    kinds = [kind for name, kind in output if name.lower() == "firing_id"]
    if len(kinds) != 1:
        message = f"the condition's query returns {len(kinds) or 'no'} column firing_id"
        message += "s" if kinds else ""
        raise InputError([Problem("sql-result", message, locate(0), hint)])
    if not kinds[0].startswith("string"):
        message = f"the condition's query returns {kinds[0]} as firing_id, not string"
        raise InputError([Problem("sql-result", message, locate(0), hint)])


def _own_names(rule: str, text: str) -> tuple[str, ...]:
    """The names under which a text reads its parameter relation: `event`, and `p_<rule>` where the
    text holds that name."""
    other = f"p_{rule}"
    return ("event", other) if other.lower() in text.lower() else ("event",)
