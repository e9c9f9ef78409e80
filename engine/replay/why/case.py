"""`why --as-test`: a test case of a firing. Its steps insert, update and delete the rows that the
firing is made of, at their instants; it expects the firing.

The store keeps the columns that rules read. Columns that only a filter names are filled so that the
filter holds, and a comment says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidegate.engine.core.evaluator.firings import compile_condition
from tidegate.engine.core.evaluator.nodes import UndecidedError
from tidegate.engine.core.event_names import Edge, EventKey
from tidegate.engine.core.parameters import CHANGE_TYPE, OLD
from tidegate.engine.core.text.layout import listed
from tidegate.engine.core.text.times import micros_text
from tidegate.engine.core.types.spark import arrow_schema, spark_type
from tidegate.engine.replay.why.model import Constituent, Story
from tidegate.engine.replay.why.texts import Texts, tables_of
from tidegate.engine.replay.why.times import Times, key_words
from tidegate.engine.replay.why.yaml_text import comment, flow, quoted, word
from tidegate.engine.store import SqlStore
from tidegate.rules.analysis.graph import lateness_micros, made_of, table_events
from tidegate.rules.errors import InputError, Problem, word_place
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Change, Rule, Rulebook, SignalEvent, TableEvent
from tidegate.rules.sql.filling import filling

_MILLISECOND = 1_000
_ONE_VALUE = ("firing_id", "started_at", "detected_at")  # of all rows of a firing
_SILENT = (x.Aperiodic, x.AperiodicStar, x.Periodic, x.PeriodicStar)
_LEAD = 1_000_000  # from the first step to the first occurrence
Row = dict[str, Any]


@dataclass(slots=True)
class _Step:
    """What happens at an instant. Updates and deletes: by table, pairs of a predicate and the
    values that are set."""

    insert: dict[str, list[Row]] = field(default_factory=dict)
    update: dict[str, list[tuple[str, Row]]] = field(default_factory=dict)
    delete: dict[str, list[str]] = field(default_factory=dict)
    signal: dict[str, list[Row]] = field(default_factory=dict)


@dataclass(slots=True)
class _Case:
    """A case that is being made. `there`: rows by table that are there before. `present`: by table,
    the keys of the rows that are there or were inserted. `said`: comments."""

    book: Rulebook
    rule: Rule
    schemas: Mapping[str, pa.Schema]
    committed: Callable[[str, int], int | None]
    steps: dict[int, _Step] = field(default_factory=dict)
    there: dict[str, list[Row]] = field(default_factory=dict)
    present: dict[str, list[Row]] = field(default_factory=dict)
    said: dict[str, None] = field(default_factory=dict)
    number: int = 0

    def step(self, instant: int) -> _Step:
        return self.steps.setdefault(instant, _Step())


def case_text(store: SqlStore, story: Story) -> str:
    """A test file with one case. Raises InputError where the rulebook's text of then cannot be
    read."""
    ledger = store.of(story.rulebook)
    texts = Texts(ledger.versions)
    book = texts.book(story.rulebook_version, story.rule)
    if book is None or story.rule not in book.rules:
        message = "the rulebook's text of then cannot be read any more"
        raise InputError([Problem("text-gone", message, word_place("--as-test"))])
    stored = {table: arrow_schema(schema) for table, schema in ledger.traces.schemas().items()}
    made = _Case(book, book.rules[story.rule], stored, ledger.traces.instant_of)
    relation = ledger.traces.trace(ledger.traces.place(story.firing_id)).one.relation
    _say_first(story, made, relation)
    seen: dict[Any, int] = {}
    for one in story.constituents:
        row = repr(sorted(one.row.items(), key=lambda item: item[0]))
        whole = (EventKey.of(one.event).event, one.version, row)
        apart = one.time - seen.setdefault(whole, one.time)
        if one.version is None or not 0 < abs(apart) <= _MILLISECOND:  # its begin_of and end_of
            _add(one, made)
    return "\n".join([*_lines(story, made, unfit=_unfit(made.rule, relation)), ""])


def _unfit(rule: Rule, relation: pa.Table) -> bool:
    """Whether the `fire` of a hysteresis does not hold of a firing: then it is damped anywhere."""
    levels = None if rule.damping is None else rule.damping.hysteresis
    if levels is None or levels.fire.query:
        return False
    names = (*rule.pattern.key_names, *_ONE_VALUE)
    known = compile_condition(levels.fire.text, relation.schema, names)
    try:
        return known is not None and not known.held(relation)
    except UndecidedError:
        return False


def _say_first(story: Story, made: _Case, relation: pa.Table) -> None:
    """What holds of the case as a whole."""
    if story.edited is not None:
        made.said["The rule was edited since: its text of now may not fire."] = None
    for name in made_of([story.rule], made.book):
        rule = made.book.rules.get(name)
        if rule is not None and rule.condition is not None and rule.condition.query:
            whose = "Its condition" if name == story.rule else f"The `if` of {name}, which it uses,"
            made.said[f"{whose} is a query, so that the test needs Spark."] = None
            if tables := tables_of(rule.condition.text, made.book):
                needed = listed(f"`{one}`" for one in tables)
                made.said[f"Add the rows of {needed} that it needs to `tables`."] = None
    if any(isinstance(node, _SILENT) for node in made.rule.pattern.on.walk()):
        text = (
            "Not all that a window of A, A*, P or P* begins with is a constituent: add what lacks."
        )
        made.said[text] = None
    if story.damped is not None and not _unfit(made.rule, relation):
        text = f"It was dropped by its {story.damped}: nothing came before it here, so it fires."
        made.said[text] = None


def _add(one: Constituent, made: _Case) -> None:
    """A constituent as a change or signal of a step."""
    key = EventKey.of(one.event)
    kind = made.book.events.get(key.event)
    if isinstance(kind, SignalEvent) and (one.version is None or kind.from_table is None):
        fields = {
            n: value for n, value in _own(kind.name, one.row, made).items() if n in kind.fields
        }
        made.step(one.time).signal.setdefault(kind.name, []).append(fields)
        return
    if key.edge in (Edge.BEGIN_OF, Edge.END_OF, Edge.FAILED) and key.event in made.book.rules:
        made.said[f"`{one.event}` is an event of an action: add what makes that rule fire."] = None
        return
    if one.script is not None:
        takes = listed(_taken(one.script, made.book))
        text = f"`{one.event}` comes of script {one.script}: add {takes} under `steps`, which the"
        made.said[f"{text} script takes. Until then nothing happens here, and the test fails."] = (
            None
        )
        return
    event = next((e for e in table_events(made.book) if e.name == key.event), None)
    if event is None:
        return  # a tick or a clock: it comes by itself
    _change(event, one, made)


def _taken(script: str, book: Rulebook) -> Iterator[str]:
    """What a script takes, for people: `` `hot` (rows of readings) ``."""
    for name in dict.fromkeys(each.event for each in book.scripts[script].inputs.values()):
        table = getattr(book.events.get(name), "table", None)
        yield f"`{name}`" if table is None else f"`{name}` (rows of {table})"


def _own(event: str, row: Mapping[str, Any], made: _Case) -> Row:
    """The parameters of an occurrence under their own names: a key column may have another one."""
    found = dict(row)
    per = made.rule.pattern.per.get(event, ())
    for key, own in zip(made.rule.pattern.key_names, per, strict=False):
        if key != own and key in row:
            found[own] = row[key]
            if key not in per:
                found.pop(key, None)
    return found


def _change(event: TableEvent, one: Constituent, made: _Case) -> None:
    at = one.time
    if event.time is not None and one.version is not None:
        at = made.committed(event.table, one.version) or at
    at -= at % _MILLISECOND
    if event.change.is_commit:
        made.step(at).insert.setdefault(event.table, []).append({})
        text = f"`{event.name}` is a commit: one row of {event.table} without values stands for it."
        made.said[text] = None
        return
    columns = event.columns or {}
    own = _own(event.name, one.row, made)
    row = {columns.get(name, name): value for name, value in own.items()}
    kind = {**one.row}.get(CHANGE_TYPE)
    row.pop(CHANGE_TYPE, None)
    before = row.pop(OLD, None) or {}
    before = {name: value for name, value in before.items() if value is not None}
    if event.time is not None:
        row[event.time] = _instant(one.time)
    change = Change(kind) if event.change is Change.CHANGE and kind else event.change
    guessed = filling(event.where, row, before)
    _tell(event, guessed.now, guessed.before, guessed.unknown, made)
    row = {**guessed.now, **row}
    before = {**guessed.before, **before}
    if change is Change.INSERT:
        made.step(at).insert.setdefault(event.table, []).append(row)
        made.present.setdefault(event.table, []).append(dict(row))
        return
    named = _named(event.table, row, made)
    if change is Change.DELETE:
        _put(event.table, row, made)
        made.step(at).delete.setdefault(event.table, []).append(named)
        return
    set_ = {name: value for name, value in row.items() if name not in _key(event.table, made)}
    for name in event.of:
        if name not in set_ or before.get(name, object()) == set_.get(name):
            set_[name] = _other(event.table, name, set_.get(name), made)
            text = f"`of: {name}`: its values are not kept, and are made up."
            made.said[text] = None
    if not set_:
        text = f"`{event.name}`: no other column of the row is kept, so that nothing changes."
        made.said[text] = None
    key = {name: row[name] for name in _key(event.table, made) if name in row}
    state = _put(event.table, {**before, **key}, made)
    if any(state.get(name) != value for name, value in before.items()):
        made.step(at - _MILLISECOND).update.setdefault(event.table, []).append((named, before))
        made.said["Rows are set back 1 ms before they are updated once more."] = None
    state |= set_
    made.step(at).update.setdefault(event.table, []).append((named, set_))


def _tell(
    event: TableEvent,
    now: Mapping[str, Any],
    before: Mapping[str, Any],
    unknown: Sequence[str],
    made: _Case,
) -> None:
    """Comments on what a filter needs and the store does not keep."""
    if now or before:
        names = ", ".join([*now, *(f"old.{name}" for name in before)])
        text = f"`{event.name}`: {names} not kept by the store; made up from `where`."
        made.said[text] = None
    for part in unknown:
        text = f"`{event.name}`: `{part}` needs columns that are not kept: fill them in."
        made.said[text] = None


def _key(table: str, made: _Case) -> tuple[str, ...]:
    return made.book.tables[table].key


def _named(table: str, row: Row, made: _Case) -> str:
    """A predicate for the row. Of a key that is not kept a value is made up."""
    for name in _key(table, made):
        if name not in row:
            made.number += 1
            row[name] = _of_type(table, name, made.number, made)
    names = _key(table, made) or tuple(row)
    schema = made.schemas.get(table)
    kinds = {} if schema is None else {item.name: item.type for item in schema}
    return " and ".join(f"{n} = {_sql(row[n], kinds.get(n))}" for n in names) or "true"


def _put(table: str, row: Row, made: _Case) -> Row:
    """See that a row is there before the steps, unless it is there already. Returns the row as it
    is after the steps so far."""
    key = _key(table, made)
    same = [
        one for one in made.present.get(table, []) if all(one.get(n) == row.get(n) for n in key)
    ]
    if key and same:
        return same[-1]
    made.there.setdefault(table, []).append(row)
    state = dict(row)
    made.present.setdefault(table, []).append(state)
    return state


def _other(table: str, column: str, value: Any, made: _Case) -> Any:
    """A value of a column that is not `value`, nor null."""
    if value is not None:
        return value
    return _of_type(table, column, 1, made)


def _of_type(table: str, column: str, number: int, made: _Case) -> Any:
    schema = made.schemas.get(table)
    kind = schema.field(column).type if schema is not None and column in schema.names else None
    if kind is None or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return number
    if pa.types.is_decimal(kind):
        return number
    if pa.types.is_boolean(kind):
        return True
    if pa.types.is_timestamp(kind):
        return "2000-01-01T00:00:00"
    if pa.types.is_date(kind):
        return "2000-01-01"
    return str(number)


def _sql(value: Any, kind: pa.DataType | None) -> str:
    """A value as a literal of Spark SQL."""
    if isinstance(value, str):
        typed = ""
        if kind is not None and pa.types.is_temporal(kind):
            typed = "date" if pa.types.is_date(kind) else "timestamp"
        return typed + "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )


def _instant(micros: int) -> str:
    return f"{micros_text(micros)}Z"


# -- the text -----------------------------------------------------------------------------------


def _lines(story: Story, made: _Case, *, unfit: bool) -> Iterator[str]:
    book, times = made.book, Times(story)
    yield f"# tidegate why {story.firing_id} --as-test"
    for text in made.said:
        yield from comment(text)
    if book.file is None:
        yield from comment("Save the rulebook as a file, and name it here.")
    yield f"rulebook: {quoted(_path(book))}"
    yield f"rules: [{word(story.rule)}]"
    schemas = {table: made.schemas[table] for table in book.tables if table in made.schemas}
    if schemas:
        yield "schemas:"
        for table, schema in schemas.items():
            yield f"  {word(table)}:"
            for item in schema:
                yield f"    {word(item.name)}: {quoted(spark_type(item.type))}"
    yield "tests:"
    key = f" for {key_words(story.key)}" if story.key else ""
    yield f"- name: {quoted(f'{story.rule}{key} at {times.local(story.end)}')}"
    if made.there:
        yield "  tables:"
        for table, rows in made.there.items():
            yield f"    {word(table)}:"
            yield from (f"    - {flow(row)}" for row in rows)
    yield "  steps:"
    first = min([story.start, *made.steps])
    begin = first - _LEAD
    yield f"  - {{at: {_instant(begin - begin % _MILLISECOND)}}}"
    for instant, step in sorted(made.steps.items()):
        yield from _step(instant, step)
    behind = lateness_micros(book).get(story.rule, 0)
    until = -(-story.end // _MILLISECOND) * _MILLISECOND + behind
    if until > max(made.steps, default=begin):
        yield f"  - {{until: {_instant(until)}}}"
    yield "  expect:"
    yield "    firings:"
    yield f"      {word(story.rule)}:"
    yield f"      - {flow(_expected(story, unfit=unfit))}"


def _path(book: Rulebook) -> str:
    """The rulebook's path: from the current folder where it stands below it, for a test is most
    often kept there."""
    if book.file is None:
        return f"{book.name}.yaml"
    path = Path(os.path.abspath(book.file))
    return (path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path).as_posix()


def _step(instant: int, step: _Step) -> Iterator[str]:
    yield f"  - at: {_instant(instant)}"
    for name, changes in (("insert", step.insert), ("signal", step.signal)):
        if changes:
            yield f"    {name}:"
            for of, rows in changes.items():
                yield f"      {word(of)}:"
                yield from (f"      - {flow(row)}" for row in rows)
    if step.update:
        yield "    update:"
        for of, updates in step.update.items():
            yield f"      {word(of)}:"
            for where, row in updates:
                yield f"      - {{where: {quoted(where)}, set: {flow(row)}}}"
    if step.delete:
        yield "    delete:"
        for of, predicates in step.delete.items():
            yield f"      {word(of)}:"
            yield from (f"      - {quoted(where)}" for where in predicates)


def _expected(story: Story, *, unfit: bool) -> Row:
    found: Row = {"key": dict(story.key)} if story.key else {}
    found |= {"at": _instant(story.end), "constituents": len(story.constituents)}
    if story.condition.text is not None and not story.condition.query:
        found["condition"] = story.condition.outcome
    if unfit:
        found["damped"] = "hysteresis"
    return found
