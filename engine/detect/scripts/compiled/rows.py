"""An expression over the values of an input, calculated for all rows at once.

`case` and `group` are such expressions: `in double A case {A > 10.0 ? Hot : Cold}` is the number of
a name for each row. The expression is compiled as a transition that emits it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.scripts.compiled import kernel
from tidegate.engine.detect.scripts.compiled.context import EVENTS, Context, emissions, scratch
from tidegate.engine.detect.scripts.compiled.expressions import Expressions
from tidegate.engine.detect.scripts.compiled.function import F64, Function
from tidegate.engine.detect.scripts.compiled.layout import (
    Counter,
    Layout,
    UncompiledError,
    kinds_of,
    texts_of,
)
from tidegate.engine.detect.scripts.compiled.native import Native
from tidegate.engine.detect.scripts.compiled.words import (
    InterpretedError,
    Texts,
    column,
    file,
    words,
)
from tidegate.engine.detect.scripts.input_columns import input_columns
from tidegate.rules.eventscript import tree


class RowLayout(Layout):
    """That of one expression: no instance, the words of an input's value, one word of a result."""

    def __init__(self, read: tree.Input, result: tree.Expression) -> None:
        self.variables, self.arrays, self.keys = {}, {}, ()
        self.raw = Counter().words([*kinds_of(read.type)])
        (self.result,) = Counter().words([*kinds_of(result.type)])
        self.arriving, self.out, self.texts = len(self.raw), 1, texts_of(result)


class RowExpression:
    """Raises `UncompiledError` where an expression is interpreted only."""

    def __init__(self, read: tree.Input, expression: tree.Expression) -> None:
        self._read, self._type = read, expression.type
        self._layout = RowLayout(read, expression)
        self._context = Context(self._layout)
        function = Function(self._context)
        value = Expressions(function, self._layout).word(expression)
        if (value.type == F64) != self._layout.result.double:
            raise UncompiledError(f"{expression.type} of another type")
        function.emit(0, [self._layout.result], (value,))
        self._native = Native()
        self._address = self._native.address(function)

    def column(
        self, chosen: str | None, table: pa.Table, time: Int64
    ) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """The values, and for which rows there is one: others have failed, and have to be
        interpreted; the column is null there. Raises `InterpretedError` where all have."""
        count = len(time)
        texts = Texts(self._layout.texts)
        columns = {}
        parts = input_columns(self._read, chosen, table)
        for word, given in zip(self._layout.raw, parts, strict=True):
            if given is None:
                raise InterpretedError
            known = self._context.place(EVENTS, word)
            columns[known] = np.ascontiguousarray(words(given, word.kind, texts)), 0
        found, own = emissions(1, count), scratch(0, 0, 0)
        context = self._context.words(found, own, columns)
        done = np.empty(count, np.bool_)
        records = kernel.each_row(self._address, context, time, done)
        part = file(found.words, self._layout.result)[0, :records]
        values = column([part], self._type, texts, records)
        return values if records == count else spread(values, done), done


def spread(values: pa.Array, there: npt.NDArray[np.bool_]) -> pa.Array:
    """A column of all rows from the values of those that are there; null for the others."""
    return values.take(pa.array(np.cumsum(there) - 1, mask=~there))
