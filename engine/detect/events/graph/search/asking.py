"""What a rule's `where` says of assignments: asked in batches, and of each assignment once a step.

An assignment is the entries of an instance: which row fills which role. A condition looks at the
rows in its named roles alone, so assignments that are alike in these have one answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.evaluator.nodes import OutsideError
from tidegate.engine.core.evaluator.predicates import column_type, decision
from tidegate.engine.core.parameters import OLD, TYPED
from tidegate.engine.core.values import Batch, Int64
from tidegate.engine.detect.events.graph.search.comparison import Entries
from tidegate.engine.detect.events.graph.search.sifted import Named, Sifted
from tidegate.engine.detect.events.occurrences.instances import Bools, Int16, Moment
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions.predicates import Column, Predicate

Rows = tuple[int, ...]
"""The rows in the named roles, in the order of the columns; -1 where none is filled."""
Shown = tuple[Int16, Int64, dict[str, Batch]]
"""Of rows: the event type of each as a number, its place in that one's batch; batches by name."""


@dataclass
class Asking:
    """The answers of one step. `rows`: all occurrences that may fill a role, ascending."""

    moment: Moment
    rows: Int64
    _answers: dict[Sifted, dict[Rows, bool]] = field(default_factory=dict)
    _columns: dict[Named, pa.Array] = field(default_factory=dict)

    def true(self, of: Sifted, assignments: Sequence[Entries]) -> Iterable[bool]:
        """Of which of these assignments its condition is true."""
        known = self._answers.setdefault(of, {})
        asked = [_named(of, entries) for entries in assignments]
        new = [rows for rows in dict.fromkeys(asked) if rows not in known]
        if new:
            known.update(zip(new, self._decide(of, new), strict=True))
        return [known[rows] for rows in asked]

    def _decide(self, of: Sifted, asked: Sequence[Rows]) -> list[bool]:
        rows = np.array(asked, dtype=np.int64)
        absent = rows < 0
        at = np.searchsorted(self.rows, np.where(absent, 0, rows))
        at[absent] = len(self.rows)  # where each column has a null
        columns = [self._column(named) for named in of.named]
        found: list[bool] = decided(of, columns, [*at.T], len(asked)).tolist()
        return found

    def _column(self, named: Named) -> pa.Array:
        if named not in self._columns:
            self._columns[named] = column_of(self.moment.numbering.shown(self.rows), named)
        return self._columns[named]


def decided(
    of: Sifted,
    columns: Sequence[pa.Array],
    at: Sequence[Int64],
    count: int,
    *,
    small: bool = False,
) -> Bools:
    """Of which of `count` assignments the condition is true: columns[n] has the value of the n-th
    name at the places at[n]. `small`: as `Decision` has it."""
    names = [str(named.column) for named in of.named]
    values = {n: c.take(pa.array(i)) for n, c, i in zip(names, columns, at, strict=True)}
    return true_of(of.condition, values, count, small=small)


def true_of(
    condition: Predicate, values: Mapping[str, pa.Array], count: int, *, small: bool = False
) -> Bools:
    """Of which of `count` rows the condition is true: values[name] has the values of a column."""
    types = types_of(values)
    with outside(types):
        by = decision(condition, types, small=small)
    return by.true(values, count)


def types_of(values: Mapping[str, pa.Array]) -> tuple[tuple[str, pa.DataType], ...]:
    return tuple((name, column.type) for name, column in values.items())


@contextmanager
def outside(types: tuple[tuple[str, pa.DataType], ...]) -> Iterator[None]:
    """Raises `EngineError('where-types')` where a condition does not fit the types."""
    try:
        yield
    except OutsideError:
        said = ", ".join(f"{name} is {kind}" for name, kind in types)
        raise EngineError(
            "where-types",
            f"a where cannot be asked of columns of these types: {said}",
            "change the where, or the types of the columns",
        ) from None


def column_of(shown: Shown, named: Named) -> pa.Array:
    """The values of a column in rows that are `shown`; then a null."""
    values = values_in(shown, named)
    return pa.concat_arrays([values, pa.nulls(1, values.type)])


def values_in(shown: Shown, named: Named, *, counted: bool = False) -> pa.Array:
    """The values of a column in rows that are `shown`, null in those of other event types.
    `counted`: as `of_one_type` has it."""
    place, index, batches = shown
    pieces, places = [], []
    if _are_of_one_table(batches) and {*batches} <= {*named.events}:
        (batch, *_) = batches.values()
        pieces.append(values_of(batch, index, named.column))
    else:
        for code, event in enumerate(batches):
            if event in named.events and len(at := np.flatnonzero(place == code)):
                pieces.append(values_of(batches[event], index[at], named.column))
                places.append(at)
    try:
        pieces, kind = of_one_type(pieces, counted=counted)
    except OutsideError:
        types = ", ".join(str(piece.type) for piece in pieces)
        message = f"{named.column} is of several types, which do not compare: {types}"
        hint = "label the parts apart, or change the types of the columns"
        raise EngineError("where-types", message, hint) from None
    if len(pieces) == 1 and len(pieces[0]) == len(place):
        return pieces[0]
    whole = pa.concat_arrays([*pieces, pa.nulls(1, kind)])
    source = np.full(len(place), len(whole) - 1)
    if places:
        source[np.concatenate(places)] = np.arange(len(whole) - 1)
    return whole.take(pa.array(source))


def of_one_type(
    pieces: Sequence[pa.Array], *, counted: bool = False
) -> tuple[list[pa.Array], pa.DataType]:
    """The pieces of a column in their common type. `counted`: if they have none, true in place of
    each value, as only their number matters. Raises `OutsideError`."""
    try:
        kind = column_type([piece.type for piece in pieces])
    except OutsideError:
        if not counted:
            raise
        kind, none = pa.bool_(), pa.scalar(None, pa.bool_())
        pieces = [pc.if_else(piece.is_valid(), pa.scalar(True), none) for piece in pieces]
    return [piece.cast(kind) for piece in pieces], kind


def _named(of: Sifted, entries: Entries) -> Rows:
    filled = dict(entries)
    return tuple(
        next((filled[role] for role in named.roles if role in filled), -1) for named in of.named
    )


def values_of(batch: Batch, index: Int64, named: Column) -> pa.Array:
    """A column in some occurrences of a batch; nulls where its table lacks it. The case of a name
    does not matter to SQL."""
    row, wanted = pa.array(batch.row[index]), named.column
    table, column = batch.table, str(named).partition(".")[2]
    if (typed := f"{TYPED}{batch.event}.{column}") in table.column_names:
        return pa.concat_arrays([*table[typed].take(row).chunks, pa.nulls(0, table[typed].type)])
    if named.old:
        if OLD not in table.column_names or not pa.types.is_struct(table[OLD].type):
            return pa.nulls(len(row))
        struct = table[OLD].combine_chunks()
        table = pa.table(struct.flatten(), names=[f.name for f in struct.type])
    alike = [name for name in table.column_names if name.lower() == wanted.lower()]
    if not alike:
        return pa.nulls(len(row))
    values = table[wanted if wanted in alike else alike[0]].take(row)
    found = values.combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = pa.concat_arrays(found.chunks) if found.num_chunks else pa.nulls(0, found.type)
    found = found.dictionary_decode() if pa.types.is_dictionary(found.type) else found
    return found.cast(pa.string()) if pa.types.is_large_string(found.type) else found


def _are_of_one_table(batches: Mapping[str, Batch]) -> bool:
    return len({id(batch) for batch in batches.values()}) == 1
