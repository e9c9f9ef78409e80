"""The kinds of single values in a rulebook (see `rules.form.form`)."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.rules.errors import InputError
from tidegate.rules.expressions.aggregate_parser import parse_aggregates
from tidegate.rules.expressions.durations import duration_micros, lacks_unit
from tidegate.rules.expressions.faults import excerpt
from tidegate.rules.expressions.parser import parse
from tidegate.rules.expressions.predicate_parser import PredicateError, parse_predicate
from tidegate.rules.expressions.predicates import Predicate
from tidegate.rules.form import texts
from tidegate.rules.yaml import kinds as k
from tidegate.rules.yaml import scalars as s
from tidegate.rules.yaml.json_schema import Schema
from tidegate.rules.yaml.kinds import BAD, Kind, Report
from tidegate.rules.yaml.reader import Scalar

# fmt: off
KEYWORDS = (
    "within", "without", "or", "and", "then", "begin_of", "end_of", "failed",
    "at", "cron", "all", "any", "every", "not",
)
# fmt: on

FREE_NAME_PATTERN = rf"(?!(?:{'|'.join(KEYWORDS)})$){texts.NAME}"


def _sql_value(node: Scalar, report: Report) -> object:
    if node.text.strip():
        return node.text
    return report.add("value", "expected a Spark SQL expression, found nothing", node.place)


def _expression(node: Scalar, report: Report) -> object:
    try:
        return parse(node.text, locate=node.locate), node
    except InputError as error:
        report.problems.extend(error.problems)
        return BAD


def _condition(parse: Callable[[str], Predicate], code: str, what: str, like: str) -> Kind:
    def convert(node: Scalar, report: Report) -> object:
        try:
            return parse(node.text), node
        except PredicateError as error:
            fault = error.fault
            place, shown = node.locate(fault.span.start), excerpt(node.text, fault.span)
            return report.add(code, fault.message, place, fault.hint, shown)

    return s.scalar(what, {"type": "string", "minLength": 1}, convert, like)


def _length(read: Callable[[str], object], like: str = "5 min") -> Kind:
    def convert(node: Scalar, report: Report) -> object:
        value = read(node.text)
        if lacks_unit(node.text):
            hint = f"write {node.text} s, or the unit that is meant: {node.text} min"
            report.warn("no-unit", f"{node.text} without a unit is seconds", node.place, hint)
        return value

    schema: Schema = {"type": ["string", "number"]}
    return s.scalar("a length of time", schema, convert, like)


def sql(like: str = "") -> Kind:
    return k.with_node(s.text("Spark SQL", like=like))


NAME = s.text("a name", texts.NAME)
COLUMN = s.text("a column name", like="order_id")
COLUMNS = k.one_or_many("a column or a list of columns", COLUMN)
AN_INSERT = "INSERT INTO late (order_id) SELECT order_id FROM event"
A_QUERY = "SELECT firing_id FROM event .."
LENGTH = _length(duration_micros)
LENGTH_ABOVE_0 = _length(texts.positive_micros)
SPAN_ABOVE_0 = _length(texts.positive_span)  # with months
ZONE = s.parsed("a time zone", texts.zone, "Europe/Berlin")
DATES = k.listing(s.parsed("a date", texts.date, "2026-12-25"))
INSTANT = s.parsed("an instant", texts.instant, "2026-03-02T09:00:00Z")
EXPRESSION = s.scalar(
    "an event expression",
    {"type": "string", "minLength": 1},
    _expression,
    "placed ; paid within 1 h",
)
WHERE = _condition(
    parse_predicate, "where", "a condition between constituents", "w.amount > 1.1 * d.amount"
)
OVER_ROWS = _condition(
    parse_aggregates, "window", "a condition over the rows of a window", "avg(celsius) > 80"
)
SQL_VALUE = s.scalar(
    "a Spark SQL expression",
    {"type": ["string", "number", "boolean"]},
    _sql_value,
    "sum(amount)",
)
SQL_VALUES = k.mapping(SQL_VALUE, ".+", "a name")
SQL_NAME = "a name: letters, digits and _"
ANYTHING = Kind(lambda node, _: node, {})
