"""The types of the aggregates in a window's `fire` and `rearm`: Spark's, but for sums of whole
numbers, which have room for every result.

    sum of bigint is a decimal(29,0), where Spark raises past 19 digits
    sum of decimal(12,2) is a decimal(22,2), avg of it a decimal(16,6)
    avg of whole numbers is a double
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from tidegate.rules.analysis.predicate_types import (
    DIGITS_MAX,
    common_type,
    is_whole,
    kind_of,
    not_common,
)
from tidegate.rules.errors import did_you_mean
from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions.faults import Fault

SUM_DIGITS, AVG_DIGITS = 10, 4  # that Spark adds to those of a decimal
AVG_DIGITS_MAX = 18  # of a decimal whose average is exact to the last digit
_ORDERED = ("date", "timestamp", "timestamp_ntz")


def over_rows(
    aggregate: p.Aggregate,
    columns: Collection[Mapping[str, str | None] | None],
    types: dict[p.Column, str | None],
) -> Iterator[Fault]:
    """Sets the Spark SQL type of an aggregate over the rows of event types with these columns, by
    name with their types; yields what is wrong. A column, or all of them, may be None: only a table
    knows. Then so may the type be."""
    types[aggregate] = "bigint" if aggregate.part == "count" else None
    if aggregate.column == p.EVERY_ROW:
        return
    found = [type_of(aggregate, some) for some in columns if some is not None]
    kinds = {kind for has, kind in found if has}
    if None in columns or None in kinds:
        return
    if not kinds:
        name = str(aggregate.of_rows).removeprefix(".")
        hint = did_you_mean(aggregate.column, [n for some in columns for n in some or ()])
        yield Fault(aggregate.span, f"the rows of the window have no column {name}", hint)
        return
    declared = {kind for kind in kinds if kind is not None}
    common = common_type(declared)
    if aggregate.part == "count":
        return
    if common is None:
        yield not_common(aggregate, declared)
        return
    if aggregate.part == "avg" and len({_averaged(kind) for kind in declared}) > 1:
        name, said = aggregate.column, ", ".join(sorted(declared))
        message = f"{aggregate} is of several types, whose averages are rounded apart: {said}"
        hint = f"compare the sum with the count: sum({name}) > 80 * count({name})"
        yield Fault(aggregate.span, message, hint)
        return
    result = result_type(aggregate, common)
    if isinstance(result, Fault):
        yield result
    else:
        types[aggregate] = result


def type_of(aggregate: p.Aggregate, columns: Mapping[str, str | None]) -> tuple[bool, str | None]:
    """Whether the column is among some, and its type. The case of its name does not matter."""
    alike = [name for name in columns if name.lower() == aggregate.column.lower()]
    name = aggregate.column if aggregate.column in alike else next(iter(alike), None)
    return (False, None) if name is None else (True, columns[name])


def _averaged(sql: str) -> str | int:
    """How an average of a type is rounded: as a double, or to digits after the point."""
    kind = kind_of(sql)
    return kind.scale if isinstance(kind, p.Exact) and not is_whole(sql) else "double"


def result_type(aggregate: p.Aggregate, sql: str) -> str | Fault:
    """The Spark SQL type of an aggregate of a column of this type, or what is wrong with it."""
    kind, function = kind_of(sql), aggregate.part
    if function == "count":
        return "bigint"
    if function in ("min", "max"):
        return _extreme(aggregate, sql, kind)
    if kind == "double":
        return "double"
    if not isinstance(kind, p.Exact):
        return Fault(aggregate.span, f"{function} is of numbers, and {aggregate.column} is {sql}",
                     "name a column of numbers, or count it")  # fmt: skip
    digits = kind.whole + kind.scale
    if function == "sum":
        return _decimal(aggregate, digits + SUM_DIGITS, kind.scale)
    if is_whole(sql):
        return "double"
    if digits > AVG_DIGITS_MAX:
        message = f"an average is exact of {AVG_DIGITS_MAX} digits at most, and of {sql} not"
        column = aggregate.column
        hint = f"compare the sum with the count: sum({column}) > 80 * count({column})"
        return Fault(aggregate.span, message, hint)
    return _decimal(aggregate, digits + AVG_DIGITS, kind.scale + AVG_DIGITS)


def _extreme(aggregate: p.Aggregate, sql: str, kind: p.Kind | None) -> str | Fault:
    if isinstance(kind, p.Exact) or kind in _ORDERED:
        return sql
    if kind == "double" and sql.lower().strip() == "double":
        return sql
    if kind == "double":
        hint = "declare the column double: Spark compares a float as one of fewer digits"
        return Fault(aggregate.span, f"{aggregate} is a {sql}", hint)
    message = f"{aggregate.part} is of numbers, dates and timestamps, and {aggregate.column} is"
    return Fault(aggregate.span, f"{message} {sql}", "count it, or ask it in the rule's `if`")


def _decimal(aggregate: p.Aggregate, digits: int, scale: int) -> str | Fault:
    if digits <= DIGITS_MAX:
        return f"decimal({digits},{scale})"
    message = f"{aggregate} may take {digits} digits, and at most {DIGITS_MAX} are exact"
    return Fault(aggregate.span, message, "declare a column of fewer digits, or a double")
