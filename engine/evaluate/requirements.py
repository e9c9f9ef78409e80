"""Analyses what every rule reads and writes: once for a rulebook, before anything is read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from tidegate.engine.core.parameters import OLD, SAMPLE, input_columns
from tidegate.engine.core.ports import Analyst
from tidegate.engine.core.statement import (
    FieldsStatement,
    SignalStatement,
    SqlStatement,
    Statement,
    SwitchStatement,
    WebhookStatement,
)
from tidegate.engine.core.values import Needs, Reading
from tidegate.engine.evaluate.constraints import where_columns, window_columns, with_asked
from tidegate.engine.evaluate.disabled_keys import silent_keys
from tidegate.engine.evaluate.samples import Sample
from tidegate.engine.evaluate.shape import Shape, all_events, shape_of
from tidegate.rules.analysis.graph import sample_texts
from tidegate.rules.errors import InputError, Problem, did_you_mean
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.nodes import Own, Plus, Seq
from tidegate.rules.model import (
    Condition,
    Pattern,
    Rule,
    Rulebook,
    SignalAction,
    SignalEvent,
    Sql,
    Switch,
    TableEvent,
    Webhook,
)

log = logging.getLogger(__name__)
_MISFIT, _UNRESOLVED = "sql-analysis", "UNRESOLVED_COLUMN"


@dataclass(frozen=True, slots=True)
class PreparedRule:
    """A rule, the shape of its `event`, and the readings of its texts.

    `conditions`: by what is asked (`if`; `fire` and `rearm` of its hysteresis), the text and its
    reading. `statements`: its actions in order, then those of `otherwise`. `wanted`: the schema of
    the relation at run time, with the parameters that `if`, `do` and `per` read, and the tables'
    keys. `id_columns`: by event type, the parameters that occurrence ids are made of (G6).
    `samples`: the queries that its ticks sample. `silent`: the keys for which it is disabled.
    """

    rule: Rule
    shape: Shape
    conditions: Mapping[str, tuple[Condition, Reading]]
    statements: tuple[Statement, ...]
    wanted: pa.Schema
    id_columns: Mapping[str, tuple[str, ...]]
    samples: tuple[Sample, ...] = ()
    silent: pa.Table = field(default_factory=lambda: pa.table({}))


@dataclass(frozen=True, slots=True)
class Prepared:
    """All rules of a rulebook, and what the enabled ones need of capture."""

    rules: Mapping[str, PreparedRule]
    needs: Needs

    @property
    def statements(self) -> Mapping[str, tuple[Statement, ...]]:
        """By rule, its actions in order."""
        return {name: _of(prepared, otherwise=False) for name, prepared in self.rules.items()}

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The samples of all rules."""
        return tuple(sample for prepared in self.rules.values() for sample in prepared.samples)

    @property
    def otherwise(self) -> Mapping[str, tuple[Statement, ...]]:
        """By rule, its actions of `otherwise` in order."""
        return {name: _of(prepared, otherwise=True) for name, prepared in self.rules.items()}


def _of(prepared: PreparedRule, *, otherwise: bool) -> tuple[Statement, ...]:
    first = len(prepared.rule.reaction.actions)
    return tuple(s for s in prepared.statements if (s.action >= first) is otherwise)


def prepare(
    rulebook: Rulebook,
    tables: Mapping[str, pa.Schema],
    analyst: Analyst,
    proven: Collection[str] = (),
) -> Prepared:
    """Analyse every text of a rulebook, given the schemas of its tables by name.

    Raises InputError with the problems of all rules: names and types that do not fit, SQL that is
    refused (G19, G25, G27), columns that are not there.

    `proven`: rules that have run with the same texts before. If one of their texts does not fit the
    tables any more, the others go on. That text is kept, counts as reading all of `event`, and
    fails when it runs. Example: an INSERT into a table that has lost a column since.
    """
    problems = list(_reserved_names(rulebook))
    rules = {}
    for rule in rulebook.rules.values():
        try:
            rules[rule.name] = _prepare_rule(
                rulebook, rule, tables, analyst, proven=rule.name in proven
            )
        except InputError as error:
            found = (_without_row(rule.pattern, problem) for problem in error.problems)
            problems += [problem for problem in found if problem not in problems]
    scripts = {
        script.name: input_columns(rulebook, script, tables, problems)
        for script in rulebook.scripts.values()
        if script.enabled
    }
    if problems:
        raise InputError(problems)
    return Prepared(rules, _needs(rulebook, rules.values(), scripts))


def _prepare_rule(
    rulebook: Rulebook,
    rule: Rule,
    tables: Mapping[str, pa.Schema],
    analyst: Analyst,
    *,
    proven: bool,
) -> PreparedRule:
    problems: list[Problem] = []
    samples = []
    for text, place in dict.fromkeys(sample_texts(rulebook, rule)):
        try:
            sample, kind = analyst.sample(text, place)
            samples.append(Sample(text, kind, sample.tables))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    shape = shape_of(rulebook, rule, tables, [sample.kind for sample in samples])
    read_text = partial(_read_text, problems=problems, proven=proven)
    conditions = {}
    for asks, condition in _conditions(rule).items():
        asking = replace(rule, condition=condition)
        ask = partial(analyst.condition, asking, shape.schema, shape.per_firing)
        if (reading := read_text(ask)) is not None:
            conditions[asks] = condition, reading
    repeats = _repeats(rule, shape, problems)
    asked = where_columns(rulebook, rule, tables, problems)
    asked |= window_columns(rulebook, rule, tables, problems)
    readings: list[Reading] = []
    statements: list[Statement] = []
    for number, action in enumerate(rule.reaction.every):
        if isinstance(action, Switch):
            statements.append(SwitchStatement(action.rule, action.enabled, action=number))
            continue
        raised = rulebook.events[action.event] if isinstance(action, SignalAction) else None
        types = raised.fields if isinstance(raised, SignalEvent) else {}
        reading = read_text(partial(_read, rule, action, shape, analyst, types))
        if reading is None:
            continue
        if isinstance(action, Sql):
            reads = reading.tables & rulebook.tables.keys()
            statements.append(
                SqlStatement(
                    action.text,
                    reading.target,
                    reads,
                    reading.appends,
                    reading.unmarked,
                    action=number,
                )
            )
        else:
            made = _with_fields(action, number, types, shape, reading)
            if isinstance(made, WebhookStatement):
                made = replace(made, about=rule.about.said)
            statements.append(made)
        readings.append(reading)
    if problems and not (proven and all(p.code == _MISFIT for p in problems)):
        raise InputError(problems)
    for problem in problems:
        log.warning("a text that fitted no longer does: %s", problem)
    readings += [reading for _, reading in conditions.values()]
    read = repeats.union(*(reading.columns for reading in readings))
    ids = {
        event: with_asked(_id_columns(shape, rule.pattern, event, read), asked.get(event, ()))
        for event in shape.columns
    }
    held = {
        shape.columns[event].get(name, name)
        for event, names in ids.items()
        for name in (*names, *_key_parameters(rulebook, shape, event))
    }
    wanted = shape.narrowed({*held, SAMPLE})
    if any(reading.transitions for reading in readings):
        wanted = wanted.with_metadata(shape.schema.metadata)
    silent = silent_keys(rule, shape.key)
    return PreparedRule(
        rule, shape, conditions, tuple(statements), wanted, ids, tuple(samples), silent
    )


def _without_row(pattern: Pattern, problem: Problem) -> Problem:
    """The problem with a better hint, if a column is missing because the rule has an instant such
    as `a + [2 s]`, which has no row of a."""
    found = next((node for node in pattern.on.walk() if isinstance(node, Plus)), None)
    if found is None or _UNRESOLVED not in problem.message:
        return problem
    meant = format_expression(Seq(found.base, Own(found.duration)))
    shown, base = format_expression(found), format_expression(found.base)
    hint = f"{shown} is an instant, without the row of {base}; {meant} fires then and has it"
    return replace(problem, hint=hint)


def _conditions(rule: Rule) -> Mapping[str, Condition]:
    levels = rule.levels
    asked = {"fire": levels.fire, "rearm": levels.rearm} if levels else {}
    return asked if rule.condition is None else {"if": rule.condition, **asked}


def _read_text(
    read: Callable[..., Reading], *, problems: list[Problem], proven: bool
) -> Reading | None:
    """The reading of a text. What is wrong is added to `problems`. A text that is allowed, but does
    not fit the tables as they are, has a reading only if it is `proven`."""
    try:
        return read(resolve=True)
    except InputError as error:
        problems += error.problems
        allowed = all(problem.code == _MISFIT for problem in error.problems)
        return read(resolve=False) if proven and allowed else None


def _repeats(rule: Rule, shape: Shape, problems: list[Problem]) -> frozenset[str]:
    """The columns in the `by` of a rule's dedupe."""
    dedupe = rule.damping.dedupe if rule.damping else None
    known = {c for columns in shape.columns.values() for c in columns.values()} - {OLD}
    known |= {*shape.key.names}
    by = dedupe.by if dedupe else ()
    for column in by:
        if column not in known:
            message = f"dedupe: no event of the rule has the column {column}"
            hint = did_you_mean(column, known)
            problems.append(Problem("unknown-column", message, rule.place, hint))
    return frozenset(by)


def _read(
    rule: Rule,
    action: Sql | SignalAction | Webhook,
    shape: Shape,
    analyst: Analyst,
    types: Mapping[str, str],
    *,
    resolve: bool,
) -> Reading:
    if isinstance(action, Sql):
        return analyst.action(rule, action, shape.schema, parameter_names(rule), resolve=resolve)
    if not resolve:
        return Reading(frozenset(shape.schema.names))
    return analyst.fields(rule, action, shape.schema, shape.per_firing, types)


def parameter_names(rule: Rule) -> tuple[str, ...]:
    """The named parameters of a statement that runs once a firing."""
    if rule.reaction.for_each is None:
        return ()
    return ("firing_id", "started_at", "detected_at", *rule.pattern.key_names)


def _with_fields(
    action: SignalAction | Webhook,
    number: int,
    types: Mapping[str, str],
    shape: Shape,
    reading: Reading,
) -> FieldsStatement:
    fields = action.fields
    group = tuple(name for name in shape.per_firing if name in reading.columns)
    if isinstance(action, SignalAction):
        types = {name: types[name] for name in fields}
        return SignalStatement(fields, types, group, action.event, action=number)
    own = action.url, action.secret, action.headers
    return WebhookStatement(fields, {}, group, *own, action=number)


def _id_columns(
    shape: Shape, pattern: Pattern, event: str, read: frozenset[str]
) -> tuple[str, ...]:
    """The parameters of one event type that a rule reads, and its `per:` columns."""
    names = {name for name, column in shape.columns[event].items() if column in read}
    if OLD in shape.columns[event] and OLD not in read:
        names |= {column for column in read if column.startswith(f"{OLD}.")}
    return tuple(sorted(names | set(pattern.per.get(event, ()))))


def _key_parameters(rulebook: Rulebook, shape: Shape, event: str) -> tuple[str, ...]:
    """The parameters that are the key of the event type's table."""
    kind = rulebook.events[event]
    if not isinstance(kind, TableEvent) or kind.change.is_commit:
        return ()
    key = rulebook.tables[kind.table].key
    return tuple(name for name in shape.columns[event] if kind.columns.get(name, name) in key)


def _needs(
    rulebook: Rulebook,
    rules: Iterable[PreparedRule],
    scripts: Mapping[str, Mapping[str, tuple[str, ...]]],
) -> Needs:
    """What capture must carry. `scripts`: by script, what it reads of each event type."""
    carry: dict[str, set[str]] = {}
    ids: dict[tuple[str, str], tuple[str, ...]] = {}
    for script, taken in scripts.items():
        for event, columns in taken.items():
            ids[script, event] = columns
            if event in rulebook.events:
                carry.setdefault(event, set()).update(columns)
    for prepared in rules:
        rule = prepared.rule
        if not rule.enabled:
            continue
        for event in all_events(rulebook, rule.pattern):
            carry.setdefault(event, set()).update(rule.pattern.per.get(event, ()))
        for event, columns in prepared.id_columns.items():
            ids[rule.name, event] = columns
            keys = _key_parameters(rulebook, prepared.shape, event)
            carry.setdefault(event, set()).update(columns, keys)
    return Needs({event: tuple(sorted(names)) for event, names in carry.items()}, ids)


def _reserved_names(rulebook: Rulebook) -> Iterable[Problem]:
    own = {"event", *(f"p_{rule}".lower() for rule in rulebook.rules)}
    for table in rulebook.tables.values():
        if table.name.lower() in own:
            message = f"table {table.name} is called like a rule's parameter relation"
            yield Problem("reserved-table", message, table.place, "give it another name")
