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

from tidegate.engine.core.values import Batch, Int64, UInt64
from tidegate.engine.detect.events.occurrences import order
from tidegate.engine.detect.events.occurrences.comparison import whole
from tidegate.engine.detect.events.occurrences.occurrences import Ranking
from tidegate.engine.detect.scripts.column_expressions import Calculated, Faults, calculated_case
from tidegate.engine.detect.scripts.compiled.causes import in_turn
from tidegate.engine.detect.scripts.compiled.words import fixed
from tidegate.engine.detect.scripts.context import Context, Fault
from tidegate.engine.detect.scripts.expressions import Expressions
from tidegate.engine.detect.scripts.input_columns import InputRows, as_column
from tidegate.engine.detect.scripts.value_types import arrow_type
from tidegate.rules.eventscript import tree


@dataclass(frozen=True, slots=True)
class Source:
    """How an input reads its occurrences. `value`: the column of a value that is no structure.
    `script`: which one has emitted them, if any."""

    value: str | None = None
    order_by: tuple[str, ...] = ()
    script: str | None = None


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
        self._program, self._ranking = program, ranking
        self._sources = {each.name: sources.get(each.name, Source()) for each in program.inputs}
        self.symbols = [(n, e) for n, each in enumerate(program.inputs) for e in each.events]
        """(number of the input, name) of each event."""
        expressions = Expressions(context, {})
        self._groups = {
            read.name: [Calculated(read, part, expressions.value(part), context) for part in group]
            for read, group in ((each, each.group) for each in program.inputs)
        }
        self._named: dict[str, int | Calculated] = {}
        for n, each in enumerate(program.inputs):
            numbers = {name: s for s, (of, name) in enumerate(self.symbols) if of == n}
            self._named[each.name] = (
                numbers[each.name]
                if each.case is None
                else calculated_case(each, each.case, numbers, expressions)
            )

    def read(self, batches: Mapping[str, Batch]) -> Arrivals:
        """The occurrences of some inputs, by the input's name."""
        read = [n for n, each in enumerate(self._program.inputs) if len(batches.get(each.name, ()))]
        inputs = [self._program.inputs[n] for n in read]
        chosen = [batches[each.name] for each in inputs]
        faults: Faults = {}
        taken: list[InputRows] = []
        symbols: list[npt.NDArray[np.int32]] = []
        keys: list[list[pa.Array]] = [[] for _ in self._program.key_types]
        first = 0
        for number, each, batch in zip(read, inputs, chosen, strict=True):
            value, table = self._sources[each.name].value, _rows(batch, batch.row)
            taken.append(own := InputRows(each, number, value, table, len(batch), first))
            symbols.append(self._symbols(own, batch.time, faults))
            for column, more in zip(keys, self._keys(own, batch.time, faults), strict=True):
                column.append(more)
            first += len(batch)
        order = self._order(inputs, chosen)
        time = joined([batch.time for batch in chosen], np.empty(0, np.int64))
        symbol = joined(symbols, np.empty(0, np.int32))
        every = np.array([not each.group for each in inputs], np.bool_)
        all_keys = np.repeat(every, [len(batch) for batch in chosen])
        ids = joined([batch.ids_by("") for batch in chosen], np.empty((0, 2), np.uint64))
        depth = joined([batch.depths for batch in chosen], np.empty(0, np.int32))
        key = [pa.concat_arrays(c) if len(c) > 1 else c[0] if c else pa.nulls(0) for c in keys]
        if order is not None:
            time, symbol, all_keys = time[order], symbol[order], all_keys[order]
            ids, depth = ids[order], depth[order]
            key = [column.take(pa.array(order)) for column in key]
            moved = {old: new for new, old in enumerate(order.tolist())} if faults else {}
            faults = {moved[old]: said for old, said in faults.items()}
        return Arrivals(time, symbol, order, taken, all_keys, key, ids, depth, faults)

    def keys(self, read: tree.Input, batch: Batch) -> list[pa.Array]:
        """The key columns of the occurrences of one input, which has a group."""
        number, value = self._program.inputs.index(read), self._sources[read.name].value
        taken = InputRows(read, number, value, _rows(batch, batch.row), len(batch), 0)
        return self._keys(taken, batch.time, {})

    def _symbols(self, taken: InputRows, time: Int64, faults: Faults) -> npt.NDArray[np.int32]:
        """What each value is called, as a number of `symbols`."""
        named = self._named[taken.read.name]
        if isinstance(named, int):
            return np.full(taken.count, named, np.int32)
        found: npt.NDArray[np.int64] = named.column(taken, time, faults).to_numpy()
        return found.astype(np.int32)

    def _keys(self, taken: InputRows, time: Int64, faults: Faults) -> list[pa.Array]:
        """The key columns; null where the input has no group."""
        kinds, group = self._program.key_types, self._groups[taken.read.name]
        if not group:
            return [pa.nulls(taken.count, arrow_type(kind)) for kind in kinds]
        columns = (
            as_column(part.column(taken, time, faults), kind)
            for part, kind in zip(group, kinds, strict=True)
        )
        return [*map(whole, columns)]

    def _order(self, read: Sequence[tree.Input], batches: Sequence[Batch]) -> Int64 | None:
        """The order of the occurrences of several inputs; None where they have it already."""
        ranks = [self._rank(each, batch) for each, batch in zip(read, batches, strict=True)]
        emitted = [self._sources[each.name].script is not None for each in read]
        if not batches or (len(batches) == 1 and (emitted[0] or ranks[0] is None)):
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
            script = self._sources[each.name].script
            found.append(number if script is None else first.setdefault(script, number))
        return found

    def _rank(self, read: tree.Input, batch: Batch) -> Int64 | None:
        """The ranks of simultaneous occurrences of one input; None where they are in order."""
        source, time = self._sources[read.name], batch.time
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
