"""Predicates over rows at hand, by the local evaluator, where there is no Spark to ask (G25, G30).

Example: `amount / parts > 2` over the rows (10, 2), (1, 1), (1, 0) is true, false, and null: the
last row is one on which Spark raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.evaluator.filters import Filter, compile_filter
from tidegate.engine.core.evaluator.nodes import Mask, RaisingError, UndecidedError
from tidegate.engine.core.parameters import OLD
from tidegate.rules.errors import EngineError, InputError, Place, Problem

NEEDS_SPARK = "needs-spark"
_NEW = "new"


def needs_spark_error(what: str) -> EngineError:
    """The error for what only Spark can tell."""
    hint = "tidegate test --spark runs the case with Spark"
    return EngineError(NEEDS_SPARK, f"{what} needs Spark", hint)


def rows_where(rows: pa.Table, where: str, place: Place) -> Mask:
    """The rows of a table that a predicate of a test is true of. Raises InputError where it raises
    on one of them, EngineError `needs-spark`."""
    if where.strip().lower() == "true":
        return np.ones(rows.num_rows, np.bool_)
    said = decided(rows, {"_": where}, "a step")["_"]
    if said.null_count:
        message = f"`{where}` raises on {said.null_count} of the rows that are there"
        raise InputError([Problem("where", message, place, "leave these rows out")])
    return np.asarray(said.to_numpy(), np.bool_)


def decided(rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:
    """The columns of `ReadRequest.where`: true; false, also where it is null; null where the
    predicate raises. Raises EngineError `needs-spark`."""
    columns = {name: rows[name] for name in rows.column_names if name not in (OLD, _NEW)}
    if OLD in rows.column_names:
        names = [field.name for field in rows[OLD].type]
        columns |= {f"{OLD}.{n}": pc.struct_field(rows[OLD], n) for n in names}
    types = {name: values.type for name, values in columns.items()}
    found = {}
    for name, text in where.items():
        known = compile_filter(text, types)
        if known is None:
            raise needs_spark_error(f"the predicate `{text}` of {source}")
        read = pa.table({column: columns[column] for column in known.columns})
        found[name] = pa.array(_answers(known, read, text), pa.bool_())
    return pa.table(found)


def _answers(known: Filter, rows: pa.Table, text: str) -> Iterator[bool | None]:
    """The rows that cannot be decided together are found by halving."""
    try:
        yield from known.run({name: rows[name] for name in known.columns}).tolist()
    except UndecidedError as error:
        if rows.num_rows == 1:
            if not isinstance(error, RaisingError):
                raise needs_spark_error(f"a value that `{text}` is asked of") from None
            yield None
            return
        half = rows.num_rows // 2
        yield from _answers(known, rows.slice(0, half), text)
        yield from _answers(known, rows.slice(half), text)
