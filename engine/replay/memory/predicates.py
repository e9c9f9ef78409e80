"""Predicates over rows at hand, by the local evaluator, where there is no Spark to ask (G25, G30).

Example: `amount / parts > 2` over the rows (10, 2), (1, 1), (1, 0) is true, false, and null: the
last row is one on which Spark raises.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tidegate.engine.core.evaluator.filters import decide
from tidegate.engine.core.evaluator.nodes import Mask, UndecidedError
from tidegate.engine.replay.cases.mode import NEEDS_SPARK
from tidegate.rules.errors import EngineError, InputError, Place, Problem


def needs_spark_error(what: str) -> EngineError:
    """The error for what only Spark can tell."""
    return EngineError(NEEDS_SPARK, f"{what} needs Spark", "run the case with --spark")


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
    found = {}
    for name, text in where.items():
        what = f"the predicate `{text}` of {source}"
        try:
            said = decide({name: text}, rows)
        except UndecidedError:
            raise needs_spark_error(f"{what}, for one of its rows,") from None
        if said is None:
            raise needs_spark_error(what)
        found[name] = said[name]
    return pa.table(found)
