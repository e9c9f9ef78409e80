"""Expressions of `case` and `group`, over the values of an input: for all rows at once where that
pays, row by row else."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.scripts.compiled.layout import UncompiledError
from tidegate.engine.detect.scripts.compiled.rows import RowExpression, spread
from tidegate.engine.detect.scripts.compiled.words import InterpretedError
from tidegate.engine.detect.scripts.input_columns import without_null
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.types import Basic

COMPILED_AFTER = 5_000
"""So many rows are interpreted before an expression is compiled: it takes about as long."""
Bools = npt.NDArray[np.bool_]


class Calculated:
    """One expression of an input."""

    def __init__(self, read: tree.Input, expression: tree.Expression) -> None:
        self._read, self._expression = read, expression
        self._made: RowExpression | None = None
        self._compilable, self._met = True, 0

    def column(
        self, chosen: str | None, table: pa.Table, time: Int64
    ) -> tuple[pa.Array, Bools] | None:
        """The value for each row, and which of them there are: a row with a null, or whose value
        cannot be calculated, is to be interpreted. None: all are."""
        self._met += len(time)
        if self._made is None and self._compilable and self._met >= COMPILED_AFTER:
            try:
                self._made = RowExpression(self._read, self._expression)
            except UncompiledError:
                self._compilable = False
        if self._made is not None:
            with suppress(InterpretedError):
                return self._filled(self._made, chosen, table, time)
        return None

    def _filled(
        self, made: RowExpression, chosen: str | None, table: pa.Table, time: Int64
    ) -> tuple[pa.Array, Bools]:
        whole = without_null(self._read, chosen, table)
        if whole.all():
            return made.column(chosen, table, time)
        column, done = made.column(chosen, table.filter(pa.array(whole)), time[whole])
        column = spread(column, whole)
        whole[whole] = done
        return column, whole


def case_number(case: tree.Case, numbers: dict[str, int]) -> tree.Expression:
    """The number of the name that a case gives; -1: no event."""
    found: tree.Expression = tree.Literal(Basic.LONG, numbers.get(case.otherwise or "", -1))
    for when, name in reversed(case.branches):
        found = tree.Choice(Basic.LONG, when, tree.Literal(Basic.LONG, numbers[name]), found)
    return found
