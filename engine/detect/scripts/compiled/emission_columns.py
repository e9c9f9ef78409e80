"""What the kernel and the interpreter emit in one bucket, by the column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.occurrences.keys import Keys
from tidegate.engine.detect.scripts.compiled import context
from tidegate.engine.detect.scripts.compiled.automaton import Table
from tidegate.engine.detect.scripts.compiled.causes import Causes, in_order
from tidegate.engine.detect.scripts.compiled.kernel import UNEXPECTED_FIRST, Found, Int32
from tidegate.engine.detect.scripts.compiled.words import (
    Texts,
    column,
    file,
    has_null,
    replaced,
    to_words,
)
from tidegate.engine.detect.scripts.context import ERROR, Fault
from tidegate.engine.detect.scripts.emissions import ERROR_NAME, ERROR_TYPE, Emissions
from tidegate.engine.detect.scripts.instances import Cause, Emitted
from tidegate.engine.detect.scripts.program import Script
from tidegate.engine.detect.scripts.value_types import column_of, output_column
from tidegate.rules.eventscript.types import Basic, Type

TOLD = -1
"""The cause of an emission whose cause stands in `told`."""


class Sink:
    """Emissions in the order in which they are made. `arrays` has room for a number of them; grown
    and replaced when it is full."""

    def __init__(self, script: Script, table: Table, texts: Texts, room: int) -> None:
        self._script, self._table, self._texts = script, table, texts
        self._faults: list[Fault] = []
        self._told: dict[int, tuple[Cause, int, int]] = {}
        self._nulls: dict[int, Any] = {}
        self.arrays = context.emissions(table.layout.out, room)

    def grow(self) -> None:
        """Make room for as many again."""
        grown = []
        for old in self.arrays:
            new = np.empty((*old.shape[:-1], 2 * old.shape[-1]), old.dtype)
            new[..., : old.shape[-1]] = old
            grown.append(new)
        self.arrays = Found(*grown)

    def take(self, emitted: Emitted, records: int) -> int:
        """Emissions of the interpreter, which are removed there; how many there are now."""
        kinds = [*self._script.program.outputs.values()]
        for n, output in enumerate(emitted.output):
            if records == len(self.arrays.cause):
                self.grow()
            own, cause = self.arrays, emitted.cause[n]
            own.cause[records] = cause if isinstance(cause, int) else TOLD
            if not isinstance(cause, int):
                self._told[records] = cause, emitted.depth[n], emitted.time[n]
            own.key[records] = emitted.key[n]
            own.output[records], own.number[records] = output, emitted.number[n]
            if output == ERROR:
                self._faults.append(emitted.value[n])
            else:
                self._put(records, output, emitted.value[n], kinds[output])
            records += 1
        for each in (emitted.time, emitted.key, emitted.cause, emitted.depth, emitted.number,
                     emitted.output, emitted.value):  # fmt: skip
            each.clear()
        return records

    def _put(self, record: int, output: int, value: Any, kind: Type) -> None:
        words = self._table.layout.outputs[output]
        if has_null(value):
            self._nulls[record] = value
            self.arrays.words[: len(words), record] = 0
            return
        for word, part in zip(words, to_words(value, kind, self._texts), strict=True):
            file(self.arrays.words, word)[word.place, record] = part

    # columns -----------------------------------------------------------------------------------

    def emissions(
        self, records: int, causes: Callable[[Int64, Int32], Causes], keys: Keys
    ) -> Emissions:
        """All emissions, by time, at one instant by key. `causes`: of numbers, in instances of some
        keys."""
        own, program = self.arrays, self._script.program
        key, output, number = own.key[:records], own.output[:records], own.number[:records]
        now, ids, depth = causes(own.cause[:records], key)
        for place, (told, deep, instant) in self._told.items():
            ids[place], depth[place], now[place] = told, deep, instant
        order = None
        if program.key_names and not in_order(now, key):
            order = np.lexsort((keys.ranks(key), now))
        if order is not None:
            now, key, number = now[order], key[order], number[order]
            ids, depth = ids[order], depth[order]
        names = (*program.outputs, ERROR_NAME)
        code = output.astype(np.int16)
        code[output < 0] = len(names) - 1
        code = code if order is None else code[order]
        values, rows = {}, np.empty(records, np.int64)
        for n, name in enumerate(names):
            there = code == n
            count = int(np.count_nonzero(there))
            if not count:
                continue
            mine = slice(records) if count == records else np.flatnonzero(there)
            rows[mine] = np.arange(count)
            chosen = mine if order is None else order[mine]
            if name == ERROR_NAME:
                values[name] = self._errors(output, chosen, now[mine])
                continue
            words = self._table.layout.outputs[n]
            parts = [file(own.words, word)[word.place][chosen] for word in words]
            found = column(parts, program.outputs[name], self._texts, count)
            if self._nulls:
                found = self._with_nulls(found, np.arange(records)[chosen], program.outputs[name])
            values[name] = found
        return Emissions(
            self._script.name,
            pa.table(dict(zip(program.key_names, _keys(keys, key), strict=True))),
            now,
            code,
            rows,
            names,
            values,
            ids,
            depth,
            number,
        )

    def _with_nulls(self, found: pa.Array, record: Int64, kind: Type) -> pa.Array:
        """A column with those values in which there is a null. record[n] is that of row n."""
        rows = np.flatnonzero(np.isin(record, [*self._nulls]))
        own = [self._nulls[n] for n in record[rows].tolist()]
        return replaced(found, rows, output_column(own, kind))

    def _errors(self, output: Int32, chosen: Int64 | slice, time: Int64) -> pa.Array:
        """`$error`s: those of the interpreter, and what was unexpected, by symbol."""
        own = output == ERROR
        place = np.where(own, np.cumsum(own) - 1, len(self._faults) + UNEXPECTED_FIRST - output)
        known = [fault[:4] for fault in self._faults]
        for _, name in self._table.symbols:
            known.append(("unexpected", name, f"{name} is not expected here", ""))
        place = place[chosen]
        fields = [
            column_of([each[n] for each in known], Basic.STRING).take(pa.array(place))
            for n in range(4)
        ]
        return pa.StructArray.from_arrays(
            [*fields, column([time], Basic.TIME, self._texts, len(time))],
            [name for name, _ in ERROR_TYPE.fields],
        )


def _keys(keys: Keys, code: Int32) -> list[pa.Array]:
    """The key columns of some codes, all of which have a key."""
    place = pa.array(code - 1)
    return [column.take(place) for column in keys.columns]
