"""Pairs the pre- and post-images of updates by the table's key (G11).

The feed gives the two images of an updated row as two separate rows. They are paired by (version,
key). A pair that is equal in all columns is no update.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.core.columns.hashing import match_rows, mix_rows, row_hash
from tidegate.engine.core.ports import SAME_1, SAME_2, VERSION
from tidegate.engine.core.values import Int64
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Table

_SEED = (np.uint64(0), np.uint64(1))


@dataclass(frozen=True, slots=True)
class Images:
    """Row numbers. before[i] and after[i] are the images of update i. `deleted` and `inserted` are
    pre- and post-images without a partner (`on_unpaired: delete_insert`)."""

    before: Int64
    after: Int64
    deleted: Int64
    inserted: Int64


def pair_images(rows: pa.Table, before: Int64, after: Int64, table: Table) -> Images:
    """Pair the pre-images `before` with the post-images `after` (row numbers of `rows`). Pairs that
    are equal in all columns are left out.

    Raises EngineError `unpaired-update` if a key is not unique among the images of a commit, or an
    update changed it; not if the table's `on_unpaired` is `delete_insert`.
    """
    to_after, to_before = match_rows(_identity(rows, before, table), _identity(rows, after, table))
    if table.on_unpaired == "stop" and (np.any(to_after < 0) or np.any(to_before < 0)):
        raise _unpaired(rows, before[to_after < 0], after[to_before < 0], table)
    paired = to_after >= 0
    first, second = before[paired], after[to_after[paired]]
    changed = ~(_same(rows, SAME_1, first, second) & _same(rows, SAME_2, first, second))
    return Images(first[changed], second[changed], before[~paired], after[to_before < 0])


def changed(before: pa.ChunkedArray, after: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Whether two columns differ, by row. Null equals null, and NaN equals NaN."""
    hashes = [row_hash(pa.table({"value": column})) for column in (before, after)]
    return np.asarray(np.any(hashes[0] != hashes[1], axis=1), np.bool_)


def _identity(rows: pa.Table, at: Int64, table: Table) -> npt.NDArray[np.uint64]:
    versions = rows.column(VERSION).to_numpy()[at]
    return mix_rows(row_hash(rows.select(table.key).take(at)), _SEED, versions)


def _same(rows: pa.Table, mark: str, first: Int64, second: Int64) -> npt.NDArray[np.bool_]:
    values = rows.column(mark).to_numpy()
    return np.asarray(values[first] == values[second], np.bool_)


def _unpaired(rows: pa.Table, before: Int64, after: Int64, table: Table) -> EngineError:
    """The error. It names no value of the key, because logs hold no values of tables."""
    at = np.concatenate([before, after])
    version = int(rows.column(VERSION).to_numpy()[at].min())
    return EngineError(
        "unpaired-update",
        f"table `{table.name}`: version {version}: the images of an update cannot be paired by the "
        f"key ({', '.join(table.key)}): it is not unique in that commit, or the update changed it "
        f"({len(at)} images are without a partner)",
        "declare a key that is unique and never updated, or say `on_unpaired: delete_insert` "
        "(such an update is then a delete and an insert)",
    )
