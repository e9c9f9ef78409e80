"""What arrives at a script in one step: the occurrences of all inputs in one order, with their
names, values and keys.

Simultaneous ones are taken by the order of the `in` declarations, then by `order_by`, then by their
parameters (S1). What one other script has emitted, by whatever outputs, comes as it was emitted, in
the place of the first input that takes an output of that script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.values import Batch, Int64, UInt64
from tidegate.engine.detect.events.occurrences import order
from tidegate.engine.detect.events.occurrences.comparison import whole
from tidegate.engine.detect.events.occurrences.occurrences import Ranking
from tidegate.engine.detect.scripts.column_expressions import Calculated, case_number
from tidegate.engine.detect.scripts.compiled.causes import in_turn
from tidegate.engine.detect.scripts.compiled.words import fixed
from tidegate.engine.detect.scripts.context import Context, Fault
from tidegate.engine.detect.scripts.expressions import Expressions, Value
from tidegate.engine.detect.scripts.input_columns import as_column, input_values, value_column
from tidegate.engine.detect.scripts.value_types import arrow_type, column_of
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.types import Basic, Structure


@dataclass(frozen=True, slots=True)
class Source:
    """How an input reads its occurrences. `value`: the column of a value that is no structure.
    `script`: which one has emitted them, if any."""

    value: str | None = None
    order_by: tuple[str, ...] = ()
    script: str | None = None


@dataclass(slots=True)
class InputRows:
    """The occurrences of one input in one bucket: `count` rows of a table. `first`: the place of
    the first. `values`, once they have been read."""

    read: tree.Input
    number: int
    column: str | None
    table: pa.Table
    count: int
    first: int
    values: list[Any] | None = None

    def listed(self) -> list[Any]:
        """The values. Raises `InputError`."""
        if self.values is None:
            self.values = input_values(self.read, self.column, self.table, self.count)
        return self.values

    def some(self, row: Int64) -> list[Any]:
        """The values of some rows. Raises `InputError`."""
        if self.values is not None or len(row) == self.count:
            return [self.listed()[n] for n in row.tolist()]
        if len(row) == 1:
            return input_values(self.read, self.column, self.table.slice(row[0], 1), 1)
        return input_values(self.read, self.column, self.table.take(pa.array(row)), len(row))


@dataclass(frozen=True, slots=True)
class Arrivals:
    """n occurrences in order. `symbol`: what each is called, as a number of `Inputs.symbols`, -1
    where no case holds; `place`: where it stands among all that was `taken`, None = in order;
    `key`: by key column, the values, null for those of every key; `every[n]`: it goes to all
    instances. `ids`: uint64[n, 2]. `faults`: by number, what has failed before it arrived."""

    time: Int64
    symbol: npt.NDArray[np.int32]
    place: Int64 | None
    taken: Sequence[InputRows]
    every: npt.NDArray[np.bool_]
    key: list[pa.Array]
    ids: UInt64
    depth: npt.NDArray[np.int32]
    faults: Mapping[int, Sequence[Fault]]

    def __len__(self) -> int:
        return len(self.time)

    def values(self) -> list[Any]:
        """The value of each. Raises `InputError`."""
        found = [value for each in self.taken for value in each.listed()]
        return found if self.place is None else [found[i] for i in self.place.tolist()]

    def value(self, number: int) -> Any:
        """The value of one. Raises `InputError`."""
        place = number if self.place is None else int(self.place[number])
        of = max((each for each in self.taken if each.first <= place), key=lambda t: t.first)
        return of.some(np.array([place - of.first]))[0]


class Inputs:
    """Reads the inputs of a script. Its errors are `InputError`s."""

    def __init__(
        self,
        program: tree.Program,
        context: Context,
        sources: Mapping[str, Source],
        ranking: Ranking = order,
    ) -> None:
        self._program = program
        self._sources = sources
        self._ranking = ranking
        self._context = context
        expressions = Expressions(context, {})
        self._cases = {
            each.name: [(expressions.operand(when), name) for when, name in each.case.branches]
            for each in program.inputs
            if each.case is not None
        }
        self.symbols = [(n, e) for n, each in enumerate(program.inputs) for e in each.events]
        """(number of the input, name) of each event."""
        self._groups = {
            each.name: [expressions.value(part) for part in each.group] for each in program.inputs
        }
        self._numbers = [
            {name: s for s, (of, name) in enumerate(self.symbols) if of == n}
            for n in range(len(program.inputs))
        ]
        self._calculated = {
            (each.name, expression): Calculated(each, expression)
            for each in program.inputs
            for expression in each.group
        } | {
            (each.name, None): Calculated(each, case_number(each.case, self._numbers[n]))
            for n, each in enumerate(program.inputs)
            if each.case is not None
        }

    def read(self, batches: Mapping[str, Batch]) -> Arrivals:
        """The occurrences of some inputs, by the input's name."""
        read = [n for n, each in enumerate(self._program.inputs) if len(batches.get(each.name, ()))]
        inputs = [self._program.inputs[n] for n in read]
        chosen = [batches[each.name] for each in inputs]
        faults: dict[int, list[Fault]] = {}
        taken: list[InputRows] = []
        symbols: list[npt.NDArray[np.int32]] = []
        keys: list[list[pa.Array]] = [[] for _ in self._program.key_types]
        every = []
        first = 0
        for number, each, batch in zip(read, inputs, chosen, strict=True):
            source = self._sources.get(each.name, Source())
            own = InputRows(each, number, source.value, _rows(batch, batch.row), len(batch), first)
            symbols.append(self._named(own, batch, faults))
            for column, more in zip(keys, self._keys(own, batch, faults), strict=True):
                column.append(more)
            taken.append(own)
            every.append(np.full(len(batch), not each.group))
            first += len(batch)
        order = self._order(inputs, chosen)
        time = joined([batch.time for batch in chosen], np.empty(0, np.int64))
        symbol = joined(symbols, np.empty(0, np.int32))
        all_keys = joined(every, np.empty(0, np.bool_))
        ids = joined([batch.ids_by("") for batch in chosen], np.empty((0, 2), np.uint64))
        depth = joined([*map(_depth, chosen)], np.empty(0, np.int32))
        key = [pa.concat_arrays(c) if len(c) > 1 else c[0] if c else pa.nulls(0) for c in keys]
        if order is None:
            return Arrivals(time, symbol, None, taken, all_keys, key, ids, depth, faults)
        moved = {old: new for new, old in enumerate(order.tolist())} if faults else {}
        return Arrivals(
            time[order],
            symbol[order],
            order,
            taken,
            all_keys[order],
            [column.take(pa.array(order)) for column in key],
            ids[order],
            depth[order],
            {moved[old]: said for old, said in faults.items()},
        )

    def _named(
        self, taken: InputRows, batch: Batch, faults: dict[int, list[Fault]]
    ) -> npt.NDArray[np.int32]:
        """What each value is called, as a number of `symbols`."""
        read, number = taken.read, self._numbers[taken.number]
        if read.case is None:
            return np.full(taken.count, number[read.name], np.int32)
        known = self._calculated[read.name, None].column(taken.column, taken.table, batch.time)
        found, rows = np.full(taken.count, -1, np.int32), np.arange(taken.count)
        if known is not None:
            column, done = known
            found[done] = column.drop_null().to_numpy()
            rows = rows[~done]
        context, branches, otherwise = self._context, self._cases[read.name], read.case.otherwise
        context.event = read.name
        for row, value in zip(rows.tolist(), taken.some(rows), strict=True):
            context.raw, context.now = value, int(batch.time[row])
            name = next((name for when, name in branches if when([])), otherwise)
            found[row] = -1 if name is None else number[name]
            if context.found:
                self._failed(taken.first + row, context.now, faults)
        return found

    def _keys(
        self, taken: InputRows, batch: Batch, faults: dict[int, list[Fault]]
    ) -> list[pa.Array]:
        """The key columns; null where the input has no group."""
        kinds, read = self._program.key_types, taken.read
        if not read.group:
            return [pa.nulls(taken.count, arrow_type(kind)) for kind in kinds]
        columns = []
        for expression, kind, value in zip(read.group, kinds, self._groups[read.name], strict=True):
            column = _plain(taken, expression)
            if column is None:
                column = self._key(taken, batch, expression, value, faults)
            columns.append(as_column(column, kind))
        return [*map(whole, columns)]

    def _key(
        self,
        taken: InputRows,
        batch: Batch,
        expression: tree.Expression,
        value: Value,
        faults: dict[int, list[Fault]],
    ) -> pa.Array:
        """A key column that is calculated."""
        read, context = taken.read, self._context
        known = self._calculated[read.name, expression].column(
            taken.column, taken.table, batch.time
        )
        rows = np.arange(taken.count) if known is None else np.flatnonzero(~known[1])
        context.event = read.name
        keys = []
        for row, raw in zip(rows.tolist(), taken.some(rows), strict=True):
            context.raw, context.now = raw, int(batch.time[row])
            keys.append(value([]))
            if context.found:
                self._failed(taken.first + row, context.now, faults)
        interpreted = column_of(keys, expression.type)
        if known is None:
            return interpreted
        return pc.replace_with_mask(known[0], pa.array(~known[1]), interpreted)

    def _failed(self, number: int, time: int, faults: dict[int, list[Fault]]) -> None:
        found = self._context.found
        faults.setdefault(number, []).extend(fault._replace(time=time) for _, fault in found)
        found.clear()

    def _order(self, read: Sequence[tree.Input], batches: Sequence[Batch]) -> Int64 | None:
        """The order of the occurrences of several inputs; None where they have it already."""
        ranks = [self._rank(each, batch) for each, batch in zip(read, batches, strict=True)]
        alone = len(batches) == 1 and self._sources.get(read[0].name, Source()).script is not None
        if alone or (len(batches) == 1 and ranks[0] is None):
            return None
        if not batches:
            return None
        time = np.concatenate([batch.time for batch in batches])
        of = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
        if not any(rank is not None for rank in ranks):
            return np.argsort(time, kind="stable")
        zero = [np.zeros(len(b), np.int64) if r is None else r
                for b, r in zip(batches, ranks, strict=True)]  # fmt: skip
        together = np.array(self._together(read), np.int64)[of]
        return np.lexsort((of, np.concatenate(zero), together, time))

    def _together(self, read: Sequence[tree.Input]) -> list[int]:
        """For each input the first that takes outputs of the same script: itself, if of none."""
        first: dict[str, int] = {}
        found = []
        for number, each in enumerate(read):
            script = self._sources.get(each.name, Source()).script
            found.append(number if script is None else first.setdefault(script, number))
        return found

    def _rank(self, read: tree.Input, batch: Batch) -> Int64 | None:
        """The ranks of simultaneous occurrences of one input; None where they are in order."""
        source, time = self._sources.get(read.name, Source()), batch.time
        if source.script is not None:
            return batch.place
        same = np.flatnonzero(time[1:] == time[:-1])
        if not len(same):
            return None
        tied = np.unique(np.concatenate([same, same + 1]))
        table = _rows(batch, batch.row[tied])
        rank = time[tied]
        for name in source.order_by:
            rank = order.refine(rank, table.select([name]))
        found = np.zeros(len(time), np.int64)
        found[tied] = self._ranking.refine(rank, table)
        return found


def _plain(taken: InputRows, expression: tree.Expression) -> pa.ChunkedArray | None:
    """The column that a group's expression is; None where it has to be calculated."""
    if expression.type == Basic.OBJECT:
        return None
    match expression:
        case tree.Raw() if not isinstance(taken.read.type, Structure):
            return value_column(taken.read, taken.column, taken.table)
        case tree.Field(structure=tree.Raw(), name=name) if name in taken.table.column_names:
            return taken.table.column(name)
    return None


def _rows(batch: Batch, row: Int64) -> pa.Table:
    """Some rows of a batch's table. Arrow forgets how many there are where it has no columns."""
    if not batch.table.num_columns:
        return pa.table({"": pa.nulls(len(row))})
    if len(row) == len(batch.table) and in_turn(fixed(row)):
        return batch.table
    return batch.table.take(pa.array(row))


Items = TypeVar("Items", bound=np.generic)


def joined(parts: Sequence[npt.NDArray[Items]], none: npt.NDArray[Items]) -> npt.NDArray[Items]:
    """Arrays as one; a single one as it is. `none`: that of no parts."""
    return parts[0] if len(parts) == 1 else np.concatenate([none, *parts])


def _depth(batch: Batch) -> np.ndarray:
    return np.zeros(len(batch), np.int32) if batch.depth is None else batch.depth
