"""The instances of one bucket as arrays: from the carried tables, and back to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.core.values import FOREVER, Int64
from tidegate.engine.detect.scripts.compiled import kernel
from tidegate.engine.detect.scripts.compiled.automaton import Table
from tidegate.engine.detect.scripts.compiled.causes import Causes, causes_of, in_turn, room_for
from tidegate.engine.detect.scripts.compiled.layout import Items
from tidegate.engine.detect.scripts.compiled.words import (
    InterpretedError,
    Texts,
    column,
    fixed,
    has_null,
    leaves,
    of_words,
    replaced,
    to_words,
    words,
)
from tidegate.engine.detect.scripts.inputs import Arrivals
from tidegate.engine.detect.scripts.instances import ARRIVE, ELAPSE, Instance, Timer, mixed, set_due
from tidegate.engine.detect.scripts.paths import of_text
from tidegate.engine.detect.scripts.program import Compiled
from tidegate.engine.detect.scripts.value_types import arrow_type, column_of
from tidegate.rules.eventscript.types import Array, Basic

Int32 = npt.NDArray[np.int32]


class Fleet:
    """The instances of a bucket as arrays, by the codes of their keys; `keys` instances at most.

    `after`, `previous`, `cause` and `due` are the first words of each instance. `id` and `depth`
    are those of its cause, if that is no arrival. Those that have a null stay with the interpreter
    (`_held`): they seem to be due at any time. Raises `InterpretedError`, `FullError`."""

    def __init__(
        self, compiled: Compiled, table: Table, keys: int, arrivals: Arrivals, texts: Texts
    ) -> None:
        layout = table.layout
        self._compiled, self._table, self._texts = compiled, table, texts
        self._arrivals = arrivals
        self._held: dict[int, Instance] = {}
        self.arrived = Causes(fixed(arrivals.time), fixed(arrivals.ids), fixed(arrivals.depth))
        self.made = room_for(64)
        self.id = np.zeros((keys, 2), np.uint64)
        self.depth = np.zeros(keys, np.int32)
        rows = np.zeros((keys, layout.width), np.int64)
        timers = np.full((keys, len(layout.timed)), FOREVER, np.int64)
        self.arrays = kernel.Instances(rows, rows.view(np.float64), timers)
        self.after, self.previous, self.cause, self.due = rows[:, : kernel.HEAD].T

    # carried -----------------------------------------------------------------------------------

    def read(self, carried: pa.Table, code: Int32) -> None:
        """Take over a carried table; code[n] is the key of row n."""
        own, machine = self.arrays, self._compiled.machine
        paths = carried.column("paths").combine_chunks().dictionary_encode()
        texts = paths.dictionary.to_pylist()
        states = [self._table.number(machine.state(of_text(text))) for text in texts]
        self.after[code] = np.array(states, np.int64)[paths.indices.to_numpy()] + 1
        self.due[code] = FOREVER
        self.previous[code] = carried.column("previous").to_numpy()
        self.cause[code] = -1
        self.id[code, 0] = carried.column("cause0").to_numpy()
        self.id[code, 1] = carried.column("cause1").to_numpy()
        self.depth[code] = carried.column("depth").to_numpy()
        if self._table.layout.timed:
            self._read_timers(carried, code)
        for n, (name, kind) in enumerate(self._compiled.variables):
            stored = carried.column(f"v{n}").combine_chunks()
            if isinstance(kind, Array):
                self._read_array(stored, code, self._table.layout.arrays[name])
                continue
            parts = [*leaves(stored, kind)]
            for word, part in zip(self._table.layout.variables[name], parts, strict=True):
                file = own.doubles if word.double else own.integers
                file[code, word.place] = words(part, word.kind, self._texts)

    def _read_timers(self, carried: pa.Table, code: Int32) -> None:
        at, places = (carried.column(n).combine_chunks() for n in ("timer_at", "timer_place"))
        length = at.value_lengths().to_numpy()
        own = np.repeat(code, length)
        numbers = np.searchsorted(self._table.layout.timed, places.flatten().to_numpy())
        self.arrays.timers[own, numbers] = at.flatten().to_numpy()
        self.due[code] = self.arrays.timers[code].min(axis=1)

    def _read_array(self, stored: pa.Array, code: Int32, items: Items) -> None:
        length = stored.value_lengths()
        flat = stored.flatten()
        if stored.null_count or flat.null_count:
            raise InterpretedError
        lengths = length.to_numpy()
        if lengths.max(initial=0) > items.most:
            raise InterpretedError
        own = self.arrays
        own.integers[code, items.length] = lengths
        rows = np.repeat(code, lengths)
        ends = np.cumsum(lengths)
        places = np.arange(len(flat)) - np.repeat(ends - lengths, lengths) + items.first
        file = own.doubles if items.kind == Basic.DOUBLE else own.integers
        file[rows, places] = words(flat, items.kind, self._texts)

    def words(self, code: Int32) -> Int64:
        """The words of some instances: words[word, n]. Numpy makes the room, as it asks for large
        pages: the faults of small ones took as long as the rest."""
        rows = self.arrays.integers
        words = np.empty((rows.shape[1], len(code)), np.int64)
        kernel.turn(rows, code, words)
        return words

    def written(self, code: Int32, words: Int64) -> dict[str, pa.Array]:
        """The columns of some instances, but for their keys."""
        cause = self.causes(words[kernel.CAUSE], code, instants=False)
        texts = pa.array([state.text for state in self._table.states], pa.string())
        found = {
            "paths": texts.take(pa.array(words[kernel.STATE_AFTER] - 1)),
            "previous": pa.array(words[kernel.PREVIOUS]),
            "cause0": pa.array(cause.ids[:, 0].copy()),
            "cause1": pa.array(cause.ids[:, 1].copy()),
            "depth": pa.array(cause.depth),
            **self._timers(code),
        }
        doubles = words.view(np.float64)
        for n, (name, kind) in enumerate(self._compiled.variables):
            if isinstance(kind, Array):
                found[f"v{n}"] = self._array(words, self._table.layout.arrays[name])
                continue
            places = self._table.layout.variables[name]
            parts = [(doubles if word.double else words)[word.place] for word in places]
            found[f"v{n}"] = column(parts, kind, self._texts, len(code))
        rows = np.flatnonzero(np.isin(code, [*self._held]))
        held = [self._held[key].variables for key in code[rows].tolist()]
        for n, (_, kind) in enumerate(self._compiled.variables if held else ()):
            own = column_of([variables[n] for variables in held], kind)
            found[f"v{n}"] = replaced(found[f"v{n}"], rows, own)
        return found

    def let_go(self) -> None:
        """Say when those that are held are due."""
        for key, instance in self._held.items():
            self.due[key] = instance.due

    def _timers(self, code: Int32) -> dict[str, pa.Array]:
        timers = self.arrays.timers[code]
        ends, at, places = np.zeros(len(code) + 1, np.int32), *np.empty((2, 0), np.int64)
        if self._table.layout.timed:
            there = timers < FOREVER
            np.cumsum(there.sum(axis=1), out=ends[1:])
            at, places = timers[there], np.array(self._table.layout.timed)[np.nonzero(there)[1]]
        return {
            "timer_at": pa.ListArray.from_arrays(pa.array(ends), pa.array(at)),
            "timer_place": pa.ListArray.from_arrays(pa.array(ends), pa.array(places)),
        }

    def _array(self, words: Int64, items: Items) -> pa.Array:
        length = words[items.length]
        file = words.view(np.float64) if items.kind == Basic.DOUBLE else words
        there = np.arange(items.most) < length[:, None]
        flat = file[items.first : items.first + items.most].T[there]
        ends = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
        values = column([flat], items.kind, self._texts, len(flat))
        return pa.ListArray.from_arrays(pa.array(ends), values, pa.list_(arrow_type(items.kind)))

    def grow(self) -> None:
        """Make room for as many causes of timed events again."""
        before, count = self.made, len(self.made.time)
        self.made = room_for(2 * count)
        self.made.time[:count], self.made.ids[:count] = before.time, before.ids
        self.made.depth[:count] = before.depth

    def causes(self, number: Int64, code: Int32, *, instants: bool = True) -> Causes:
        """The causes of some numbers, in instances of some keys; their instants may be left out."""
        if len(number) == len(self._arrivals) and in_turn(number):  # each arrival once
            return self.arrived
        kept = self.arrived, self.made, self.id, self.depth
        return causes_of(number, code, *kept, instants=instants)

    # one instance ------------------------------------------------------------------------------

    def instance(self, key: int) -> Instance:
        """An instance as the interpreter has it."""
        if key in self._held:
            return self._held[key]
        own, compiled = self.arrays, self._compiled
        cause: Any = int(self.cause[key])
        if cause == -1:
            high, low = self.id[key].tolist()
            cause = high, low
        elif cause < 0:
            cause = mixed((0, 0), int(self._arrivals.time[-2 - cause]))
        variables = []
        for name, kind in compiled.variables:
            if isinstance(kind, Array):
                variables.append(self._listed(key, self._table.layout.arrays[name]))
                continue
            parts = (
                (own.doubles if word.double else own.integers)[key, word.place]
                for word in self._table.layout.variables[name]
            )
            variables.append(of_words(parts, kind, self._texts))
        found = Instance(
            key,
            self._table.states[self.after[key] - 1],
            compiled.with_loops(variables),
            int(self.previous[key]),
            cause,
            int(self.depth[key]),
        )
        found.timers = [
            Timer(at, ARRIVE if place in compiled.arrivals else ELAPSE, place)
            for at, place in zip(own.timers[key].tolist(), self._table.layout.timed, strict=True)
            if at < FOREVER
        ]
        set_due(found)
        return found

    def _listed(self, key: int, items: Items) -> list[Any]:
        file = self.arrays.doubles if items.kind == Basic.DOUBLE else self.arrays.integers
        length = int(self.arrays.integers[key, items.length])
        found = file[key, items.first : items.first + length].tolist()
        return [*map(bool, found)] if items.kind == Basic.BOOLEAN else found

    def put(self, key: int, instance: Instance) -> None:
        """Take an instance back from the interpreter."""
        own = self.arrays
        self.after[key] = self._table.number(instance.state) + 1
        self.previous[key] = instance.previous
        if isinstance(instance.cause, int):
            self.cause[key] = instance.cause
        else:
            self.cause[key], self.id[key] = -1, instance.cause
            self.depth[key] = instance.depth
        own.timers[key] = FOREVER
        for timer in instance.timers:
            own.timers[key, self._table.layout.timed.index(timer.place)] = timer.at
        self.due[key] = instance.due
        self._held.pop(key, None)
        if any(map(has_null, instance.variables[: len(self._compiled.variables)])):
            self._held[key], self.due[key] = instance, -FOREVER
            self._texts.note(instance.variables)
            return
        for (name, kind), value in zip(self._compiled.variables, instance.variables, strict=False):
            if isinstance(kind, Array):
                items = self._table.layout.arrays[name]
                own.integers[key, items.length] = len(value)
                file = own.doubles if items.kind == Basic.DOUBLE else own.integers
                file[key, items.first : items.first + len(value)] = value
                continue
            places = self._table.layout.variables[name]
            for word, part in zip(places, to_words(value, kind, self._texts), strict=True):
                (own.doubles if word.double else own.integers)[key, word.place] = part

    def drop(self, key: int) -> None:
        self._held.pop(key, None)
        self.depth[key] = 0
        self.arrays.integers[key] = 0
        self.arrays.timers[key] = FOREVER
