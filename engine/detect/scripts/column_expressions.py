"""Expressions of `case` and `group`, over the values of an input: for all rows at once where that
pays, row by row else."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.scripts.compiled.layout import UncompiledError
from tidegate.engine.detect.scripts.compiled.rows import RowExpression, spread
from tidegate.engine.detect.scripts.compiled.words import InterpretedError
from tidegate.engine.detect.scripts.context import Context, Fault, Variables
from tidegate.engine.detect.scripts.expressions import Expressions, Value
from tidegate.engine.detect.scripts.input_columns import InputRows, value_column, without_null
from tidegate.engine.detect.scripts.value_types import column_of
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.types import Basic, Structure

COMPILED_AFTER = 5_000
"""So many rows are interpreted before an expression is compiled: it takes about as long."""
Bools = npt.NDArray[np.bool_]
Faults = dict[int, list[Fault]]
"""By the number of an arrival, what has failed before it arrived."""


class Calculated:
    """One expression of an input. `value`: it as a closure over `context`."""

    def __init__(
        self, read: tree.Input, expression: tree.Expression, value: Value, context: Context
    ) -> None:
        self._read, self._expression = read, expression
        self._value, self._context = value, context
        self._made: RowExpression | None = None
        self._compilable, self._met = True, 0

    def column(self, rows: InputRows, time: Int64, faults: Faults) -> pa.Array | pa.ChunkedArray:
        """The value for each row. What fails is added to `faults`."""
        plain = self._plain(rows)
        if plain is not None:
            return plain
        known = self._at_once(rows.column, rows.table, time)
        left = np.arange(rows.count) if known is None else np.flatnonzero(~known[1])
        context, values = self._context, []
        context.event = self._read.name
        for row, raw in zip(left.tolist(), rows.some(left), strict=True):
            context.raw, context.now = raw, int(time[row])
            values.append(self._value([]))
            if context.found:
                said = [fault._replace(at=context.now) for _, fault in context.found]
                faults.setdefault(rows.first + row, []).extend(said)
                context.found.clear()
        interpreted = column_of(values, self._expression.type)
        if known is None:
            return interpreted
        return pc.replace_with_mask(known[0], pa.array(~known[1]), interpreted)

    def _plain(self, rows: InputRows) -> pa.ChunkedArray | None:
        """The column that the expression is; None where it has to be calculated."""
        if self._expression.type == Basic.OBJECT:
            return None
        match self._expression:
            case tree.Raw() if not isinstance(self._read.type, Structure):
                return value_column(self._read, rows.column, rows.table)
            case tree.Field(structure=tree.Raw(), name=name) if name in rows.table.column_names:
                return rows.table.column(name)
        return None

    def _at_once(
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


def calculated_case(
    read: tree.Input, case: tree.Case, numbers: dict[str, int], expressions: Expressions
) -> Calculated:
    """The number of the name that a case gives; -1: no event."""
    otherwise = numbers.get(case.otherwise or "", -1)
    branches = [(expressions.operand(when), numbers[name]) for when, name in case.branches]
    compiled: tree.Expression = tree.Literal(Basic.LONG, otherwise)
    for when, name in reversed(case.branches):
        compiled = tree.Choice(Basic.LONG, when, tree.Literal(Basic.LONG, numbers[name]), compiled)

    def number(variables: Variables) -> int:
        return next((number for when, number in branches if when(variables)), otherwise)

    return Calculated(read, compiled, number, expressions.context)
