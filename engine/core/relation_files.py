"""The rows of a parameter relation that executors left in files (G26).

The task that detects a rule's firings makes their rows and writes them to a file of its own. The
driver gets the firings alone. Whoever needs rows reads those of some firings, or lets Spark read
the files.

    firing       file  first  rows
    9f3c..          0      0     2      rows 0 and 1 of the first file
    02ab..          1      0     2
    77d0..          0      2     1
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from tidegate.engine.core.columns.memory import in_one

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
BESIDE = "\U0010ffff"
"""The prefix of columns that are no parameters. It comes after all others in order."""
PLACES = ("file", "first", "rows")  # of a firing's rows


class RowsFile(NamedTuple):
    """A file of rows, as the store names it, and its size in bytes."""

    name: str
    bytes: int


class RowsShelf(Protocol):
    """Where files of rows are. It goes through pickle."""

    def write_rows(self, rows: pa.Table, *, always: bool = False) -> RowsFile | None:
        """Write rows to one file, to which nothing points before the bucket is committed. Writes
        nothing, and gives None, where no files are written; and where the rows are too few for a
        file, unless `always`. Raises OutageError."""
        ...

    def read_rows(self, file: str, schema: pa.Schema, at: Int64) -> pa.Table:
        """The rows of a file `at` these places, which ascend, with the columns of a schema. Raises
        EngineError `state-file` where the file is gone or damaged, and OutageError where its
        storage does not answer."""
        ...

    def full(self, file: str) -> str:
        """The path or URI of a file."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class RelationFiles:
    """The rows of n firings of one rule in one bucket. What it is asked for as a table, it answers
    as one.

    shelf    where the files are
    files    all of the bucket's for this rule
    schema   of the rows
    ids      fixed_size_binary[16], the firings, in order
    file     int32[n], the file of each
    first    int32[n], its first row there
    rows     int32[n], how many rows it has, which follow each other
    beside   the schema of `Firings.sources`, if the files have these: as BESIDE and their name
    whole    whether the files have rows of these firings alone
    """

    shelf: RowsShelf
    files: tuple[RowsFile, ...]
    schema: pa.Schema
    ids: pa.Array
    file: Int32
    first: Int32
    rows: Int32
    beside: pa.Schema | None = None
    whole: bool = True

    @property
    def num_rows(self) -> int:
        return int(self.rows.sum())

    def __len__(self) -> int:
        return self.num_rows

    @property
    def column_names(self) -> list[str]:
        names: list[str] = self.schema.names
        return names

    @property
    def offsets(self) -> Int64:
        """Firing i has the rows offsets[i]:offsets[i + 1]."""
        return np.concatenate([[0], np.cumsum(self.rows)]).astype(np.int64)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths or URIs of the files that have rows of these firings."""
        used = np.unique(self.file).tolist()
        return tuple(self.shelf.full(self.files[number].name) for number in used)

    def select(self, columns: Sequence[str]) -> RelationFiles:
        """The same with these columns."""
        fields = [self.schema.field(name) for name in columns]
        return replace(self, schema=pa.schema(fields, self.schema.metadata))

    def of(self, ids: pa.Array) -> RelationFiles:
        """The rows of some firings, by their ids."""
        chosen = pc.is_in(self.ids, ids)
        return self.take(np.flatnonzero(chosen.to_numpy(zero_copy_only=False)))

    def take(self, index: Int64) -> RelationFiles:
        """The rows of the firings at `index`."""
        return replace(
            self,
            ids=self.ids.take(pa.array(index)),
            file=self.file[index],
            first=self.first[index],
            rows=self.rows[index],
            whole=self.whole and len(index) == len(self.ids),
        )

    @property
    def of_none(self) -> RelationFiles:
        """The same of no firings."""
        return replace(self.take(np.empty(0, np.int64)), whole=self.whole)

    def placed(self, firings: pa.Table) -> pa.Table:
        """The firings, with where each has its rows beside."""
        for name in PLACES:
            firings = firings.append_column(BESIDE + name, pa.array(getattr(self, name)))
        return firings

    def of_placed(self, firings: pa.Table) -> tuple[RelationFiles, pa.Table]:
        """The rows of the firings that `placed` has given; and these without what was beside."""
        own = {name: firings[BESIDE + name].to_numpy() for name in PLACES}
        firings = firings.drop_columns([BESIDE + name for name in PLACES])
        return replace(self, ids=in_one(firings["firing_id"]), **own), firings

    def read(self) -> pa.Table:
        """The rows of all firings, in order, in memory. Raises as `RowsShelf.read_rows`."""
        return self._read(self.schema)

    def read_beside(self) -> pa.Table | None:
        """What stands beside them. Raises as `read`."""
        return None if self.beside is None else self._read(self.beside, BESIDE)

    def _read(self, schema: pa.Schema, prefix: str = "") -> pa.Table:
        stored = pa.schema([f.with_name(prefix + f.name) for f in schema], schema.metadata)
        begin = self.offsets[:-1]
        tables, places = [], []
        for number in np.unique(self.file).tolist():
            own = np.flatnonzero(self.file == number)
            own = own[np.argsort(self.first[own], kind="stable")]
            at = _spread(self.first[own], self.rows[own])
            file = self.files[number].name
            tables.append(self.shelf.read_rows(file, stored, at))
            places.append(_spread(begin[own], self.rows[own]))
        if not tables:
            return schema.empty_table()
        table = pa.Table.from_arrays(pa.concat_tables(tables).columns, schema=schema)
        place = np.concatenate(places)
        if (place[1:] > place[:-1]).all():
            return table
        order = np.empty(len(place), np.int64)
        order[place] = np.arange(len(place))
        return table.take(pa.array(order))


Relation: TypeAlias = "pa.Table | RelationFiles"
"""Rows of a parameter relation, wherever they are."""


def in_memory(relation: Relation) -> pa.Table:
    """The rows of a relation. Raises as `RowsShelf.read_rows`."""
    return relation.read() if isinstance(relation, RelationFiles) else relation


def with_beside(relation: pa.Table, sources: pa.Table | None) -> pa.Table:
    """The rows with what stands beside them, as they are stored."""
    if sources is not None:
        for name in sources.column_names:
            relation = relation.append_column(BESIDE + name, sources[name])
    return relation


def on_shelf(
    relation: pa.Table,
    sources: pa.Table | None,
    ids: pa.Array,
    rows: Int64,
    shelf: RowsShelf,
    *,
    always: bool = False,
) -> RelationFiles | None:
    """The rows of some firings, written to a file; None if they stay where they are. `ids`, `rows`:
    see `RelationFiles`. `sources`: what stands beside. `always`: see `RowsShelf`. Raises as it
    does."""
    file = shelf.write_rows(with_beside(relation, sources), always=always)
    if file is None:
        return None
    first, count = (one.astype(np.int32) for one in (np.cumsum(rows) - rows, rows))
    beside = None if sources is None else sources.schema
    number = np.zeros(len(rows), np.int32)
    return RelationFiles(shelf, (file,), relation.schema, ids, number, first, count, beside)


def together(
    parts: Sequence[tuple[RelationFiles, pa.Table]],
) -> tuple[RelationFiles, pa.Table]:
    """The firings of several tasks, one part after the other, as `placed` gives them; and what
    `of_placed` makes their rows of."""
    relations = [relation for relation, _ in parts]
    before = np.cumsum([0, *(len(relation.files) for relation in relations)])
    tables = [
        replace(relation, file=relation.file + np.int32(n)).placed(table)
        for (relation, table), n in zip(parts, before, strict=False)
    ]
    files = tuple(file for relation in relations for file in relation.files)
    whole = all(relation.whole for relation in relations)
    return replace(relations[0].of_none, files=files, whole=whole), pa.concat_tables(tables)


def may_be_in_files(schema: pa.Schema) -> bool:
    """Whether Parquet keeps rows as they are, for Arrow and for Spark."""
    return all(map(_may_be, schema.types))


_KEPT: Collection[pa.DataType] = frozenset(
    {
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.date32(),
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
    }
)


def _may_be(kind: pa.DataType) -> bool:
    if kinds.is_struct(kind):
        return kind.num_fields > 0 and all(_may_be(field.type) for field in kind)
    if kinds.is_map(kind):
        return _may_be(kind.key_type) and _may_be(kind.item_type)
    if kinds.is_list(kind):
        return _may_be(kind.value_type)
    return kinds.is_decimal128(kind) or kind in _KEPT


def _spread(first: Int32 | Int64, count: Int32) -> Int64:
    """first[i], .. first[i] + count[i] - 1 for each i."""
    begin = np.cumsum(count) - count
    return np.repeat(first - begin, count) + np.arange(int(count.sum()))
