"""The form of a test file: every key, its kind and its meaning. The one source of truth.

`engine.replay.cases.reader` reads test files by it. Editors get it as JSON Schema: `schema.json`
beside it, which `python -m tidegate.engine.replay.cases.form` writes. A test fails while that file
is stale.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidegate.engine.core.types.spark import arrow_type
from tidegate.engine.replay.cases.model import Delete, ExpectedCount, ExpectedRows, Update, Written
from tidegate.rules.errors import Place
from tidegate.rules.form.value_forms import INSTANT, LENGTH, NAME, sql
from tidegate.rules.yaml import kinds as k
from tidegate.rules.yaml import scalars as s
from tidegate.rules.yaml.json_schema import Schema, either, schema_file
from tidegate.rules.yaml.kinds import BAD, Key, Kind, Record, Report
from tidegate.rules.yaml.reader import Fields, Items, Node, Scalar

ASKED = "?"
"""What is written in place of an expectation that `--accept` is to fill in."""

PARTS = ("firings", "tables", "signals", "webhooks", "emissions")
"""The parts of an expectation that list rows by a name."""

_ROW = "{account_id: 7}"


def _plain(node: Node, report: Report) -> Any:
    """A node as a value of Python."""
    match node:
        case Items():
            return [_plain(item, report) for item in node.items]
        case Fields():
            return {name: _plain(child, report) for name, child in node.entries.items()}
        case Scalar(value=float(number)) if _is_cut(node.text, number):
            message = f"{node.text} has more digits than a double holds"
            return report.add("value", message, node.place, f'quote it: "{node.text}"')
        case Scalar():
            return node.value


def _is_cut(text: str, number: float) -> bool:
    """Whether a finite number, as it is written, has other digits than its double."""
    return ".n" not in text.lower() and ".i" not in text.lower() and Decimal(text) != _of(number)


def _of(number: float) -> Decimal:
    """The shortest decimal number of a double."""
    return Decimal(repr(number))


def _written(node: Node, report: Report) -> Any:
    before = len(report.problems)
    value = _plain(node, report)
    return Written(value, node.place) if len(report.problems) == before else BAD


VALUE = Kind(_written, {})


def _text(kind: Kind) -> Kind:
    """What a kind lets pass, as its text."""

    def read(node: Node, report: Report) -> Any:
        return BAD if kind.read(node, report) is BAD or not isinstance(node, Scalar) else node.text

    return Kind(read, kind.schema, kind.like)


def _checked(kind: Kind) -> Kind:
    """A value that a kind lets pass, as it is written."""

    def read(node: Node, report: Report) -> Any:
        return BAD if kind.read(node, report) is BAD else _written(node, report)

    return Kind(read, kind.schema, kind.like)


def _readable(kind: Kind) -> Kind:
    """A mapping without the entries that could not be read."""

    def read(node: Node, report: Report) -> Any:
        found = kind.read(node, report)
        return found if found is BAD else {n: each for n, each in found.items() if each is not BAD}

    return Kind(read, kind.schema, kind.like, kind.names)


def _mapping(value: Kind, what: str, like: str = "") -> Kind:
    return _readable(k.mapping(value, ".+", what, like=like))


def _as_row(kind: Kind) -> Kind:
    """A record as the values in it."""

    def read(node: Node, report: Report) -> Any:
        found = kind.read(node, report)
        return found.values if isinstance(found, Record) else found

    return Kind(read, kind.schema, kind.like, kind.names)


def _some(what: str, item: Kind, *, text: bool = False) -> Kind:
    """A list, or one item alone, both read as a tuple."""

    def read(node: Node, report: Report) -> Any:
        value = item.read(node, report)
        return BAD if value is BAD else (value,)

    alone = Kind(read, item.schema, item.like, item.names)
    many = k.listing(item)
    if text:
        return k.by_form(what, one=alone, many=many, like=item.like)
    return k.by_form(what, many=many, named=alone, like=item.like)


ROW = _mapping(VALUE, "the name of a column", _ROW)
ROWS = _some("a row, or a list of rows", ROW)


def _update(node: Node, report: Report) -> Any:
    found = _UPDATE.read(node, report)
    if not isinstance(found, Record) or not found.values.keys() >= {"where", "set"}:
        return BAD
    text, where = found.get("where")
    return Update(text, where.place, found.get("set"))


def _delete(node: Node, report: Report) -> Any:
    found = _PREDICATE.read(node, report)
    return BAD if found is BAD else Delete(found[0], found[1].place)


_PREDICATE = sql("account_id = 7")
_UPDATE = k.record(
    "an update",
    Key("where", _PREDICATE, "which rows, as Spark SQL", required=True),
    Key("set", ROW, "their new values", required=True),
    like="{where: account_id = 7, set: {balance: 0}}",
)
UPDATES = _some("an update, or a list", Kind(_update, _UPDATE.schema, _UPDATE.like))
DELETES = _some(
    "a predicate, or a list", Kind(_delete, _PREDICATE.schema, "account_id = 7"), text=True
)
FAIL = k.record(
    "a failure",
    Key("rule", NAME, "whose actions fail", required=True),
    Key("times", s.integer(1), "so many attempts; default 1"),
    like="{rule: tell, times: 2}",
)


def _ask(kind: Kind, make: Callable[[Place], Any]) -> Kind:
    """A kind, or `?` in its place: then `make` makes the value."""

    def read(node: Node, report: Report) -> Any:
        asks = isinstance(node, Scalar) and node.text == ASKED
        return make(node.place) if asks else kind.read(node, report)

    schema: Schema = either([({"const": ASKED}, {"const": ASKED}), ({}, kind.schema)])
    return Kind(read, schema, kind.like, kind.names)


def _listed(item: Kind, *, open_: bool = False) -> Kind:
    """Rows that are wanted: a list, or `?`. `open_`: a list is not all there is, unless
    `{exact: true, rows: [..]}` says so."""
    rows = k.listing(item)

    def read(node: Node, report: Report) -> Any:
        found = rows.read(node, report)
        return BAD if found is BAD else ExpectedRows(found, node.place, exact=not open_)

    whole = k.record(
        "the rows of a table",
        Key("exact", s.FLAG, "true: there are no other rows"),
        Key("rows", rows, "the rows", required=True),
        like="{exact: true, rows: [..]}",
    )

    def read_whole(node: Node, report: Report) -> Any:
        found = whole.read(node, report)
        if not isinstance(found, Record) or "rows" not in found.values:
            return BAD
        return ExpectedRows(found.get("rows"), found.place("rows"), found.get("exact", False))

    kind = Kind(read, rows.schema, rows.like)
    if open_:
        named = Kind(read_whole, whole.schema, whole.like, whole.names)
        kind = k.by_form("rows", many=kind, named=named, like=rows.like)
    return _ask(kind, lambda place: ExpectedRows((), place, asked=True))


def _count(node: Node, report: Report) -> Any:
    found = _NUMBER.read(node, report)
    return BAD if found is BAD else ExpectedCount(found, node.place)


_NUMBER = s.integer(0)
COUNT = _ask(Kind(_count, _NUMBER.schema), lambda place: ExpectedCount(None, place))
_CONSTITUENTS = k.by_form(
    "a number, or a list of rows",
    one=_NUMBER,
    many=k.listing(_mapping(VALUE, "a field", "{event: withdrawal}")),
    like="4, or [{event: withdrawal}]",
)
_DAMPED = s.choice("null", "hysteresis", "dedupe", "cooldown", "throttle")
FIRING = _as_row(
    k.record(
        "a firing",
        Key("key", _checked(_mapping(VALUE, "a column", _ROW)), "values of the key's columns"),
        Key("at", _checked(INSTANT), "the end of the detection"),
        Key("start", _checked(INSTANT), "its start"),
        Key("fired_at", _checked(INSTANT), "when it fired"),
        Key("constituents", _checked(_CONSTITUENTS), "how many, or a list of them"),
        Key(
            "condition",
            _checked(s.choice("held", "failed", "none", "dead")),
            "held | failed | none | dead",
        ),
        Key("damped", _checked(_DAMPED), "what dropped it; null: nothing"),
        Key("depth", _checked(s.integer(0)), "how many actions of rules lie behind it"),
        Key("firing_id", _checked(s.text("a firing's id")), "in hex"),
        like=f"{{key: {_ROW}}}",
        words={
            "end": "at",
            "time": "at",
            "rows": "constituents",
            "count": "constituents",
            "if": "condition",
        },
    )
)


def _by_name(item: Kind, what: str) -> Kind:
    kind = _mapping(item, what, f"{{NAME: {item.like}}}")
    return _ask(k.with_node(kind), lambda place: place)


_EXPECT = k.record(
    "what is expected",
    Key("firings", _by_name(_listed(FIRING), "a rule"), "by rule: all its firings; [] none"),
    Key("only", s.FLAG, "true: no rule fired but those listed"),
    Key(
        "tables",
        _by_name(_listed(ROW, open_=True), "a table"),
        "by table: some of its rows, or {exact: true, rows: [..]}",
    ),
    Key("signals", _by_name(_listed(ROW), "an event"), "by event: all that actions raised"),
    Key("webhooks", _by_name(_listed(ROW), "a rule"), "by rule: the bodies that were sent"),
    Key("emissions", _by_name(_listed(ROW), "an event"), "by event of a script: all emissions"),
    Key("rejected", COUNT, "how many rows and signals were rejected"),
    Key("dead", COUNT, "how many entries are dead"),
    like="{firings: {RULE: []}}",
)
EXPECT = _ask(_EXPECT, lambda place: place)
_ODD = re.compile(
    r"\b(?:(?:var)?char|character) *\( *\d+ *\)|\bstring +collate +\w+", re.IGNORECASE
)


def _type_of(text: str) -> pa.DataType:
    """A type of a column. Raises ValueError, also for texts that are padded, cut, or compared by a
    collation: those of tests are plain ones."""
    if odd := _ODD.search(text):
        raise ValueError(f"texts of a test are plain ones, and not {odd[0]!r}; write STRING")
    return arrow_type(text)


def _columns_of(text: str) -> pa.Schema:
    return pa.schema(list(_type_of(f"struct<{text}>")))


def _columns(node: Node, report: Report) -> Any:
    found = _TYPES.read(node, report)
    return found if found is BAD else pa.schema(list(found.items()))


_DDL = s.parsed("columns with their types", _columns_of, '"id BIGINT, amount DECIMAL(12,2)"')
_TYPES = _mapping(s.parsed("a type", _type_of, "bigint"), "a column", "{id: bigint}")
SCHEMA = k.by_form(
    "columns with their types", one=_DDL, named=Kind(_columns, _TYPES.schema, _TYPES.like)
)
_ADDED = k.record(
    "a change of a table's columns",
    Key("add", SCHEMA, "new columns, as DDL", required=True),
    like='{add: "note STRING"}',
)


def _alter(node: Node, report: Report) -> Any:
    found = _ADDED.read(node, report)
    if not isinstance(found, Record) or "add" not in found.values:
        return BAD
    if not found.get("add").names:
        message = "there is no column here"
        return report.add("value", message, found.place("add"), 'write add: "note STRING"')
    return found.get("add")


ALTER = Kind(_alter, _ADDED.schema, _ADDED.like, _ADDED.names)
STEP = k.record(
    "a step",
    Key("at", _text(INSTANT), "its instant, in the rulebook's zone"),
    Key("after", LENGTH, "how long after the step before"),
    Key("until", _text(INSTANT), "let time go on up to here"),
    Key("insert", k.with_node(_mapping(ROWS, "a table")), "rows by table"),
    Key("update", k.with_node(_mapping(UPDATES, "a table")), "by table: {where: .., set: {..}}"),
    Key("delete", k.with_node(_mapping(DELETES, "a table")), "by table: which rows, as Spark SQL"),
    Key("alter", k.with_node(_mapping(ALTER, "a table")), "by table: {add: new columns, as DDL}"),
    Key("signal", k.with_node(_mapping(ROWS, "an event")), "by event: its fields"),
    Key("fail", FAIL, "the next attempts of a rule's actions fail"),
    Key("expect", EXPECT, "what has happened up to now"),
    like="{after: 5 s, insert: {orders: [{id: 1}]}}",
    words={"inserts": "insert", "raise": "signal", "wait": "after", "time": "at"},
)
CASE = k.record(
    "a test",
    Key("name", s.text("a text", like="what it shows"), "what it shows", required=True),
    Key("tables", _mapping(ROWS, "a table"), "rows that are there before: no events"),
    Key("steps", k.listing(STEP, 1), "what happens", required=True),
    Key("expect", EXPECT, "what has happened at the end"),
    like="{name: .., steps: [..], expect: {..}}",
    words={"given": "tables", "when": "steps", "then": "expect"},
)


FORM = k.record(
    "a test file",
    Key(
        "rulebook",
        k.with_node(s.text("a path", like="bank.yaml")),
        "its path, from this file's folder",
        required=True,
    ),
    Key(
        "rules",
        k.listing(k.with_node(NAME), 1),
        "only these rules run, and those that they use; default all",
    ),
    Key("schemas", _mapping(SCHEMA, "a table"), "by table: its columns, as DDL"),
    Key("defaults", _mapping(ROW, "a table"), "by table: values that rows leave out"),
    Key("tests", k.listing(CASE), "the tests", required=True),
    like="{rulebook: bank.yaml, tests: [..]}",
    words={"cases": "tests", "rule": "rules"},
)
FILE = Path(__file__).with_name("schema.json")


def schema_text() -> str:
    """The schema as JSON text, as `schema.json` should hold it."""
    return schema_file(
        "tests", "Tests of a rulebook: what happens, and what should come.", FORM.schema
    )


if __name__ == "__main__":
    FILE.write_text(schema_text(), encoding="utf-8")
