"""The changes of a table in one bucket: one Arrow table that all its event types share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.capture.images import Images, pair_images
from tidegate.engine.capture.request import TableRequest
from tidegate.engine.core.parameters import CHANGE_TYPE, OLD
from tidegate.engine.core.ports import KIND, PRE_IMAGE, VERSION
from tidegate.engine.core.values import ChangeKind, Int64, TableRange


@dataclass(frozen=True, slots=True)
class Changes:
    """n changes. `rows`: the columns that the request asked for. `before`: columns of the
    pre-images, null for other changes than updates. Change i has version[i], kind[i]
    (`ChangeKind`), time[i]. `order`: the row numbers in order of time; None if the rows are in that
    order."""

    rows: pa.Table
    before: pa.Table
    version: Int64
    kind: Int64
    time: Int64
    order: Int64 | None

    def in_order(self, mask: npt.NDArray[np.bool_]) -> Int64:
        """The numbers of the rows where the mask is true, in order of time."""
        if self.order is None:
            return np.flatnonzero(mask)
        return self.order[mask[self.order]]

    def column(self, name: str) -> pa.ChunkedArray:
        """A column by the name that filters, ids and rules use: `x`, `old.x`, `old`,
        `_change_type`."""
        if name == CHANGE_TYPE:
            names = pa.array(["insert", "delete", "update", "insert"])
            return pa.chunked_array([names.take(pa.array(self.kind))])
        if name == OLD:
            return self.struct(self.before, self.before.column_names)
        if name.startswith(f"{OLD}."):
            return self.before.column(name.removeprefix(f"{OLD}."))
        return self.rows.column(name)

    def struct(self, table: pa.Table, names: list[str]) -> pa.ChunkedArray:
        """Columns as one struct column, null for other changes than updates."""
        columns = table.select(names).combine_chunks().columns
        arrays = [c.chunk(0) if c.num_chunks else pa.array([], c.type) for c in columns]
        mask = pa.array(self.kind != ChangeKind.UPDATE)
        return pa.chunked_array([pa.StructArray.from_arrays(arrays, names, mask=mask)])


def arrange(rows: pa.Table, span: TableRange, request: TableRequest) -> Changes:
    """The changes made of the rows of a feed: images are paired, kinds and instants are numbers.

    Raises EngineError `unpaired-update`.
    """
    version = rows.column(VERSION).to_numpy()
    codes = rows.column(KIND).to_numpy()
    before = rows.select([])
    if request.paired:
        first, second = (
            np.flatnonzero(codes == PRE_IMAGE),
            np.flatnonzero(codes == ChangeKind.UPDATE),
        )
        images = pair_images(rows, first, second, request.table)
        taken, kind = _put_together(codes, images)
        before = _pre_images(rows, taken, kind, images, request)
        rows, version = rows.take(taken), version[taken]
    else:
        kind = codes.astype(np.int64)
    if span.snapshot:
        kind = np.full(len(kind), ChangeKind.SNAPSHOT, np.int64)
    instants = [span.instants[v] for v in range(span.first, span.last + 1)]
    time = np.array(instants, np.int64)[version - span.first]
    sorted_already = bool(np.all(version[1:] >= version[:-1]))
    order = None if sorted_already else np.argsort(version, kind="stable")
    return Changes(rows, before, version, kind, time, order)


def _put_together(codes: Int64, images: Images) -> tuple[Int64, Int64]:
    """The row numbers of all changes, and their kinds: inserts, then deletes, then updates."""
    inserted = np.concatenate([np.flatnonzero(codes == ChangeKind.INSERT), images.inserted])
    deleted = np.concatenate([np.flatnonzero(codes == ChangeKind.DELETE), images.deleted])
    taken = np.concatenate([inserted, deleted, images.after])
    counts = [len(inserted), len(deleted), len(images.after)]
    return taken, np.repeat(np.arange(3), counts)


def _pre_images(
    rows: pa.Table, taken: Int64, kind: Int64, images: Images, request: TableRequest
) -> pa.Table:
    """The columns of the pre-images beside the changes, null for inserts and deletes."""
    others = len(taken) - len(images.before)
    index = pa.array(
        np.concatenate([np.zeros(others, np.int64), images.before]),
        mask=kind != ChangeKind.UPDATE,
    )
    return rows.select(request.old).take(index)
