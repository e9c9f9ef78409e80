"""What arrives at a script in one step: the occurrences of all inputs in one order, with their
names, values and keys.

Simultaneous ones are taken by the order of the `in` declarations, then by `order_by`, then by their
parameters (S1); those that another script has emitted, as they were emitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.detector import order
from tidegate.engine.detector.occurrences import Ranking
from tidegate.engine.script.columns import as_column, input_values, value_column
from tidegate.engine.script.context import Context, Fault
from tidegate.engine.script.expressions import Expressions
from tidegate.engine.script.values import column_of
from tidegate.engine.values import Batch, Int64, UInt64
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.types import Basic, Structure


@dataclass(frozen=True, slots=True)
class Source:
    """How an input reads its occurrences. `value`: the column of a value that is no structure.
    `emitted`: they are a script's, in the order in which they were emitted. `ids`: the column set
    of their ids (`Batch.ids`)."""

    value: str | None = None
    order_by: tuple[str, ...] = ()
    emitted: bool = False
    ids: str = ""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """n occurrences in order. `name`: what each is called, None where no case holds; `key`: by key
    column, the values, null for those of every key; `every[n]`: it goes to all instances.
    `ids`: uint64[n, 2]. `faults`: by number, what has failed before it arrived."""

    time: list[int]
    name: list[str | None]
    value: list[Any]
    every: np.ndarray
    key: list[pa.Array]
    ids: UInt64
    depth: npt.NDArray[np.int32]
    faults: Mapping[int, Sequence[Fault]]

    def __len__(self) -> int:
        return len(self.time)


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
        self._groups = {
            each.name: [expressions.value(part) for part in each.group] for each in program.inputs
        }

    def read(self, batches: Mapping[str, Batch]) -> Arrivals:
        """The occurrences of some inputs, by the input's name."""
        read = [each for each in self._program.inputs if len(batches.get(each.name, ()))]
        chosen = [batches[each.name] for each in read]
        faults: dict[int, list[Fault]] = {}
        names: list[str | None] = []
        values: list[Any] = []
        keys: list[list[pa.Array]] = [[] for _ in self._program.key_types]
        every = [np.empty(0, np.bool_)]
        for each, batch in zip(read, chosen, strict=True):
            source = self._sources.get(each.name, Source())
            table = batch.table.take(pa.array(batch.row))
            own = input_values(each, source.value, table, len(batch))
            names += self._named(each, batch, own, len(values), faults)
            columns = self._keys(each, source, batch, table, own, len(values), faults)
            for column, more in zip(keys, columns, strict=True):
                column.append(more)
            values += own
            every.append(np.full(len(own), not each.group))
        order = self._order(read, chosen)
        whole = np.concatenate([np.empty(0, np.int64), *(batch.time for batch in chosen)])
        ids = np.concatenate([np.empty((0, 2), np.uint64), *self._ids(read, chosen)])
        depth = np.concatenate([np.empty(0, np.int32), *map(_depth, chosen)])
        joined = [pa.concat_arrays(column) if column else pa.nulls(0) for column in keys]
        if order is None:
            return Arrivals(
                whole.tolist(),
                names,
                values,
                np.concatenate(every),
                joined,
                ids,
                depth,
                faults,
            )
        place = order.tolist()
        moved = {old: new for new, old in enumerate(place)} if faults else {}
        return Arrivals(
            whole[order].tolist(),
            [names[i] for i in place],
            [values[i] for i in place],
            np.concatenate(every)[order],
            [column.take(pa.array(order)) for column in joined],
            ids[order],
            depth[order],
            {moved[old]: said for old, said in faults.items()},
        )

    def _ids(self, read: Sequence[tree.Input], batches: Sequence[Batch]) -> list[np.ndarray]:
        sources = (self._sources.get(each.name, Source()) for each in read)
        return [b.ids_by(source.ids) for b, source in zip(batches, sources, strict=True)]

    def _named(
        self,
        read: tree.Input,
        batch: Batch,
        values: Sequence[Any],
        first: int,
        faults: dict[int, list[Fault]],
    ) -> list[str | None]:
        """What each value is called."""
        if read.case is None:
            return [read.name] * len(values)
        context, branches, otherwise = self._context, self._cases[read.name], read.case.otherwise
        found: list[str | None] = []
        context.event = read.name
        for number, value in enumerate(values):
            context.raw = value
            found.append(next((name for when, name in branches if when([])), otherwise))
            if context.found:
                self._failed(first + number, int(batch.time[number]), faults)
        return found

    def _keys(
        self,
        read: tree.Input,
        source: Source,
        batch: Batch,
        table: pa.Table,
        values: Sequence[Any],
        first: int,
        faults: dict[int, list[Fault]],
    ) -> list[pa.Array]:
        """The key columns; null where the input has no group."""
        kinds = self._program.key_types
        if not read.group:
            return [column_of([None] * len(values), kind) for kind in kinds]
        columns = []
        for expression, kind, value in zip(read.group, kinds, self._groups[read.name], strict=True):
            column = _plain(read, source, expression, table)
            if column is not None:
                columns.append(as_column(column, kind))
                continue
            self._context.event = read.name
            keys = []
            for number, raw in enumerate(values):
                self._context.raw = raw
                keys.append(value([]))
                if self._context.found:
                    self._failed(first + number, int(batch.time[number]), faults)
            columns.append(column_of(keys, kind))
        return [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]

    def _failed(self, number: int, time: int, faults: dict[int, list[Fault]]) -> None:
        found = self._context.found
        faults.setdefault(number, []).extend(fault._replace(time=time) for _, fault in found)
        found.clear()

    def _order(self, read: Sequence[tree.Input], batches: Sequence[Batch]) -> Int64 | None:
        """The order of the occurrences of several inputs; None where they have it already."""
        ranks = [self._rank(each, batch) for each, batch in zip(read, batches, strict=True)]
        if len(batches) == 1 and ranks[0] is None:
            return None
        if not batches:
            return None
        time = np.concatenate([batch.time for batch in batches])
        of = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
        zero = [np.zeros(len(b), np.int64) if r is None else r
                for b, r in zip(batches, ranks, strict=True)]  # fmt: skip
        return np.lexsort((np.concatenate(zero), of, time))

    def _rank(self, read: tree.Input, batch: Batch) -> Int64 | None:
        """The ranks of simultaneous occurrences of one input; None where they are in order."""
        source, time = self._sources.get(read.name, Source()), batch.time
        same = np.flatnonzero(time[1:] == time[:-1])
        if source.emitted or not len(same):
            return None
        tied = np.unique(np.concatenate([same, same + 1]))
        table = batch.table.take(pa.array(batch.row[tied]))
        rank = time[tied]
        for name in source.order_by:
            rank = order.refine(rank, table.select([name]))
        found = np.zeros(len(time), np.int64)
        found[tied] = self._ranking.refine(rank, table)
        return found


def _plain(
    read: tree.Input, source: Source, expression: tree.Expression, table: pa.Table
) -> pa.ChunkedArray | None:
    """The column that a group's expression is; None where it has to be calculated."""
    if expression.type == Basic.OBJECT:
        return None
    match expression:
        case tree.Raw() if not isinstance(read.type, Structure):
            return value_column(read, source.value, table)
        case tree.Field(structure=tree.Raw(), name=name) if name in table.column_names:
            return table.column(name)
    return None


def _depth(batch: Batch) -> np.ndarray:
    return np.zeros(len(batch), np.int32) if batch.depth is None else batch.depth
