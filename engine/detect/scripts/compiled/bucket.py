"""One bucket of a script on the kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.core.values import FOREVER, Int64
from tidegate.engine.detect.events.occurrences.keys import Keys
from tidegate.engine.detect.scripts.compiled import context, kernel
from tidegate.engine.detect.scripts.compiled.automaton import Table
from tidegate.engine.detect.scripts.compiled.context import EVENTS, KEYS, Columns
from tidegate.engine.detect.scripts.compiled.emission_columns import Sink
from tidegate.engine.detect.scripts.compiled.function import UNDO
from tidegate.engine.detect.scripts.compiled.instance_arrays import Fleet
from tidegate.engine.detect.scripts.compiled.layout import Word
from tidegate.engine.detect.scripts.compiled.words import (
    InterpretedError,
    Texts,
    fixed,
    leaves,
    null_rows,
    words,
)
from tidegate.engine.detect.scripts.emissions import Emissions
from tidegate.engine.detect.scripts.input_columns import filled, input_columns, without_null
from tidegate.engine.detect.scripts.inputs import Arrivals
from tidegate.engine.detect.scripts.instances import ARRIVE, ELAPSE, EVERY, Instance, Stepper
from tidegate.engine.detect.scripts.program import Compiled
from tidegate.engine.detect.scripts.state import Store
from tidegate.engine.detect.scripts.statements import EMITTED_AS_ONE
from tidegate.engine.detect.scripts.value_types import arrow_type
from tidegate.rules.eventscript.types import Basic

Int32 = npt.NDArray[np.int32]

SINGLE_ONE_IN = 64
"""Of so many values one is read by itself, for events that the interpreter takes; then all are read
at once."""
NULLS_ONE_IN = 32
"""A bucket with more nulls among its events is interpreted: kernel and interpreter in turn would
take longer."""
_WORD, _LOOPS = 8, 64  # bytes of a value; names of loops, at most


class Given(NamedTuple):
    """The input of a bucket: the key of each arrival (`EVERY`: all instances), the carried tables
    with the keys of their rows, all keys, and what reads the tables."""

    arrivals: Arrivals
    key: Int32
    tables: Sequence[pa.Table]
    codes: Sequence[Int32]
    keys: Keys
    store: Store


class Done(NamedTuple):
    """The result of a bucket: emissions; and of the instances that are left their keys, columns,
    previous instants, first timers and numbers of timers."""

    emissions: Emissions
    key: Int32
    columns: Mapping[str, pa.Array]
    previous: npt.NDArray[np.int64]
    due: npt.NDArray[np.int64]
    timers: npt.NDArray[np.int64]


class Bucket:
    """Raises `InterpretedError` and `FullError` where the bucket is the interpreter's."""

    def __init__(self, compiled: Compiled, table: Table, given: Given, stepper: Stepper) -> None:
        self._compiled, self._table, self._given = compiled, table, given
        self._stepper, self._arrivals = stepper, given.arrivals
        self._grouped = bool(compiled.script.program.key_names)
        self._texts = Texts(table.layout.texts)
        keys = given.keys.count + 1
        self._fleet = Fleet(compiled, table, keys, given.arrivals, self._texts)
        for carried, code in zip(given.tables, given.codes, strict=True):
            try:
                self._fleet.read(carried, code)
            except InterpretedError:
                self._read(carried, code)
        self._null = np.zeros(sum(each.count for each in given.arrivals.taken), np.bool_)
        self._columns = self._event_columns() | self._key_columns()
        self._events = self._arriving()
        room = max(len(self._arrivals) + len(self._arrivals) // 8, 64)
        self._sink = Sink(compiled.script, table, self._texts, room)
        self._at = np.zeros(kernel.PLACES, np.int64)
        self._at[kernel.LEFT] = FOREVER if stepper.limit is None else stepper.limit
        self._fired = 0
        self._expires = -1 if compiled.expire_micros is None else compiled.expire_micros
        layout = table.layout
        phases = [ARRIVE if place in compiled.arrivals else ELAPSE for place in layout.timed]
        self._phases = np.array(phases, np.int64)
        self._scratch = context.scratch(len(layout.timed), UNDO, len(layout.clocks))
        self._singles = 0
        self._values: list[Any] | None = None
        self._check_room()

    def run(self, activation: int, watermark: int) -> Done:
        """All arrivals, and what is due up to the watermark."""
        fleet, at = self._fleet, self._at
        if not self._grouped and not fleet.after[0] and activation <= watermark:
            self._back(0, self._stepper.start(0, activation))
        while (why := self._pass()) != kernel.DONE:
            if why == kernel.HARD:
                self._set_clocks(int(self._arrivals.time[at[kernel.EVENT]]))
                self._interpret()
            else:
                self._resume(why)
        timed = self._table.layout.timed
        while timed and (why := self._last_pass(watermark)) != kernel.DONE:
            if why == kernel.HARD:
                self._fire(watermark)
            else:
                self._resume(why)
        return self._done(watermark)

    def _pass(self) -> int:
        """Take arrivals, and fire what is due before each. Says why it has stopped."""
        stopped: int = kernel.run(
            self._table.arrays(), self._events, self._fleet.arrays, self._sink.arrays,
            self._scratch, self._timed(), self._known(), self._at, self._grouped, self._expires,
        )  # fmt: skip
        return stopped

    def _last_pass(self, watermark: int) -> int:
        """Fire what is due up to the watermark. Says why it has stopped."""
        stopped: int = kernel.fire_all(
            self._table.arrays(), self._fleet.arrays, self._scratch, self._timed(), self._known(),
            self._at, watermark, self._expires,
        )  # fmt: skip
        return stopped

    def _known(self) -> Int64:
        return self._table.context.words(self._sink.arrays, self._scratch, self._columns)

    def _timed(self) -> kernel.Timed:
        fleet = self._fleet
        return kernel.Timed(
            len(self._table.symbols), self._phases, fleet.arrived, fleet.id, fleet.depth, fleet.made
        )

    def _resume(self, why: int) -> None:
        """Make room, or find the move that is not known."""
        at, fleet = self._at, self._fleet
        if why == kernel.MISS:
            self._table.find(int(at[kernel.STATE]), int(at[kernel.SYMBOL]))
        elif at[kernel.MADE] == len(fleet.made.time):
            fleet.grow()
        else:
            self._sink.grow()

    def _read(self, carried: pa.Table, code: Int32) -> None:
        """Take over a carried table in which some instances have a null: the interpreter's."""
        null = np.zeros(len(carried), np.bool_)
        for n in range(len(self._compiled.variables)):
            null |= null_rows(carried.column(f"v{n}"))
        self._expect_nulls(null)
        for each in self._given.store.read(carried.filter(pa.array(null)), code[null].tolist()):
            self._fleet.put(each.key, each)
        self._fleet.read(carried.filter(pa.array(~null)), code[~null])

    def _expect_nulls(self, null: npt.NDArray[np.bool_]) -> None:
        """Raises `InterpretedError` where too many rows have a null."""
        if np.count_nonzero(null) * NULLS_ONE_IN > len(self._arrivals):
            raise InterpretedError

    # beside the kernel ----------------------------------------------------------------------------

    def _set_clocks(self, now: int) -> None:
        """Say when each clock of the script is next, for what follows."""
        clocks = self._scratch.clocks
        for number, place in enumerate(self._table.layout.clocks):
            if not clocks[number, 0] <= now < clocks[number, 1]:
                clocks[number] = now, self._compiled.due[place]([], now)

    def _interpret(self) -> None:
        """The interpreter takes the event at hand, for one instance."""
        at = self._at
        number, key = int(at[kernel.EVENT]), int(at[kernel.KEY])
        every = self._given.key[number] == EVERY
        before = self._fleet.instance(key) if self._fleet.after[key] else None
        instances = {} if before is None else {key: before}
        row = EVERY if every else key, int(self._arrivals.time[number]), *self._named(number)
        self._stepper.take(instances, [(number, row)])
        after = instances.get(key)
        if after is None:
            self._fleet.drop(key)
        self._back(key, after)
        at[kernel.KEY] = key + 1 if every else 0
        if not every:
            at[kernel.EVENT] += 1

    def _named(self, number: int) -> tuple[str | None, Any]:
        symbol = int(self._arrivals.symbol[number])
        name = None if symbol < 0 else self._table.symbols[symbol][1]
        if self._values is None and self._singles * SINGLE_ONE_IN > len(self._arrivals):
            self._values = self._arrivals.values()
        self._singles += 1
        if self._values is None:
            return name, self._arrivals.value(number)
        return name, self._values[number]

    def _back(self, key: int, instance: Instance | None) -> None:
        """Take what the interpreter has made."""
        at = self._at
        if instance is not None:
            self._fleet.put(key, instance)
        at[kernel.RECORDS] = self._sink.take(self._stepper.emissions, int(at[kernel.RECORDS]))
        at[kernel.LEFT] -= len(self._stepper.fired) - self._fired
        self._fired = len(self._stepper.fired)
        if at[kernel.LEFT] < 0:
            raise InterpretedError  # too many fire: the interpreter says up to when it is not

    def _fire(self, watermark: int) -> None:
        """The interpreter fires what is due, for one instance."""
        key = int(self._at[kernel.KEY])
        instance = self._fleet.instance(key)
        if instance.due <= watermark:
            self._set_clocks(instance.due)
        self._stepper.fire(instance, watermark)
        self._back(key, instance)
        self._at[kernel.KEY] += 1

    def _done(self, watermark: int) -> Done:
        fleet, at, sink = self._fleet, self._at, self._sink
        key = np.flatnonzero(fleet.after > 0).astype(np.int32)
        expires = self._compiled.expire_micros
        if expires is not None:
            key = key[fleet.previous[key] + expires >= watermark]
        emissions = sink.emissions(int(at[kernel.RECORDS]), self._fleet.causes, self._given.keys)
        fleet.let_go()
        words = fleet.words(key)
        timers = (fleet.arrays.timers[key] < FOREVER).sum(axis=1)
        columns = fleet.written(key, words) if len(key) else {}
        return Done(emissions, key, columns, words[kernel.PREVIOUS], words[kernel.DUE], timers)

    # arrays ---------------------------------------------------------------------------------------

    def _arriving(self) -> kernel.Events:
        arrivals = self._arrivals
        symbol = arrivals.symbol
        place = np.arange(len(arrivals)) if arrivals.place is None else arrivals.place
        if arrivals.faults or self._null.any():
            symbol = np.where(self._null[place] & (symbol >= 0), np.int32(kernel.PYTHONS), symbol)
            symbol[[*arrivals.faults]] = kernel.PYTHONS
        return kernel.Events(
            fixed(arrivals.time), fixed(symbol), fixed(self._given.key), fixed(place)
        )

    def _event_columns(self) -> Columns:
        found: Columns = {}
        for taken in self._arrivals.taken:
            columns = input_columns(taken.read, taken.column, taken.table)
            places = self._table.layout.inputs[taken.number]
            if not places:
                continue
            if any(column is None for column in columns):
                null = ~without_null(taken.read, taken.column, taken.table)
                self._expect_nulls(null)
                self._null[taken.first : taken.first + taken.count] = null
                columns = input_columns(taken.read, taken.column, filled(taken.table))
            if any(column is None for column in columns):
                raise InterpretedError
            for word, part in zip(places, columns, strict=True):
                place = self._table.context.place(EVENTS, word)
                found[place] = fixed(words(part, word.kind, self._texts)), taken.first
        return found

    def _key_columns(self) -> Columns:
        """The values of keys, if the script reads them; key 0 has none."""
        layout, keys = self._table.layout, self._given.keys
        found: Columns = {}
        if layout.keys:
            kinds = self._compiled.script.program.key_types
            for word, column, kind in zip(layout.keys, keys.columns, kinds, strict=True):
                (part,) = leaves(column.cast(arrow_type(kind)), kind)
                place = self._table.context.place(KEYS, word)
                found[place] = fixed(words(part, word.kind, self._texts)), 1
        return found

    def _check_room(self) -> None:
        """Instances must stay below their most bytes, whatever strings they store, and emissions of
        long strings, which count as several statements, below the most statements."""
        layout, table, limits = self._table.layout, self._table, self._compiled.script.limits
        longest = self._texts.longest
        texts = sum(_texts(words) for words in layout.variables.values())
        most = _WORD * (layout.width + _LOOPS)
        if most + texts * longest > limits.state_bytes:
            raise InterpretedError
        sizes = [_WORD * len(words) + _texts(words) * longest
                 for words in layout.outputs if _texts(words)]  # fmt: skip
        more = max(sizes, default=0) // EMITTED_AS_ONE
        if more and (table.loops or table.statements * (1 + more) > limits.steps):
            raise InterpretedError


def _texts(words: Sequence[Word]) -> int:
    return sum(word.kind == Basic.STRING for word in words)
