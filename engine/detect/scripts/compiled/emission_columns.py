"""What the kernel and the interpreter emit in one bucket, by the column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.occurrences.keys import Keys
from tidegate.engine.detect.scripts.compiled import context
from tidegate.engine.detect.scripts.compiled.automaton import Table
from tidegate.engine.detect.scripts.compiled.kernel import UNEXPECTED_FIRST, Int32
from tidegate.engine.detect.scripts.compiled.words import Texts, column, file, to_words
from tidegate.engine.detect.scripts.context import ERROR, Fault
from tidegate.engine.detect.scripts.emissions import ERROR_NAME, ERROR_TYPE, Emissions
from tidegate.engine.detect.scripts.instances import Cause, Emitted
from tidegate.engine.detect.scripts.program import Script
from tidegate.engine.detect.scripts.value_types import column_of
from tidegate.rules.eventscript.types import Basic

TOLD = -1
"""The cause of an emission whose cause stands in `told`."""


class Sink:
    """Emissions in the order in which they are made. `arrays` has room for a number of them; grown
    and replaced when it is full."""

    def __init__(self, script: Script, table: Table, texts: Texts, room: int) -> None:
        self._script, self._table, self._texts = script, table, texts
        self._faults: list[Fault] = []
        self._told: dict[int, tuple[Cause, int, int]] = {}
        self.arrays = context.emissions(table.layout.out, room)

    def grow(self) -> None:
        """Make room for as many again."""
        before = self.arrays
        room = len(before.cause)
        self.arrays = context.emissions(len(before.words), 2 * room)
        for new, old in zip(self.arrays, before, strict=True):
            new[..., :room] = old

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
                words = to_words(emitted.value[n], kinds[output], self._texts)
                for word, part in zip(self._table.layout.outputs[output], words, strict=True):
                    file(own.words, word)[word.place, records] = part
            records += 1
        for each in (emitted.time, emitted.key, emitted.cause, emitted.depth, emitted.number,
                     emitted.output, emitted.value):  # fmt: skip
            each.clear()
        return records

    # columns -----------------------------------------------------------------------------------

    def emissions(self, records: int, identities: Any, time: Int64, keys: Keys) -> Emissions:
        """All emissions, by time, at one instant by key. `time`: of the arrivals; `identities`: ids
        and depths of causes."""
        own, program = self.arrays, self._script.program
        cause, key = own.cause[:records], own.key[:records]
        output, number = own.output[:records], own.number[:records]
        now = time[np.where(cause >= 0, cause, -2 - cause)] if len(time) else cause.copy()
        ids, depth = identities(cause, key)
        if self._told:
            ids, depth = ids.copy(), depth.copy()
        for place, (told, deep, instant) in self._told.items():
            ids[place], depth[place], now[place] = told, deep, instant
        order = _order(now, key, keys) if program.key_names else None
        if order is not None:
            now, key, number = now[order], key[order], number[order]
            ids, depth = ids[order], depth[order]
        names = (*program.outputs, ERROR_NAME)
        code = output.astype(np.int16)
        code[output < 0] = len(names) - 1
        code = code if order is None else code[order]
        values, rows = {}, np.zeros(records, np.int64)
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
            values[name] = column(parts, program.outputs[name], self._texts, count)
        return Emissions(
            self._script.name,
            pa.table(dict(zip(program.key_names, keys.values(key), strict=True))),
            now,
            code,
            rows,
            names,
            values,
            ids,
            depth,
            number,
        )

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


def _order(time: Int64, key: np.ndarray, keys: Keys) -> Int64 | None:
    """By time, and at one instant by key; None where they are so."""
    if len(time) < 2:
        return None
    later = time[1:] > time[:-1]
    if (later | ((time[1:] == time[:-1]) & (key[1:] == key[:-1]))).all():
        return None
    return np.lexsort((keys.ranks(key), time))
