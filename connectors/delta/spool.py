"""Rows that need not fit in memory: batches go to a file, which is mapped (G8)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable

import pyarrow as pa


def mapped(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatchFileReader | None:
    """The batches in a file without a name, each as soon as it comes; None if there is none."""
    with tempfile.NamedTemporaryFile(prefix="tidegate-", suffix=".arrow") as file:
        writer = None
        for batch in batches:
            writer = writer or pa.ipc.new_file(file, batch.schema)
            writer.write_batch(batch)
        if writer is None:
            return None
        writer.close()
        file.flush()
        # The file has no name from here on: the mapping keeps its content.
        return pa.ipc.open_file(pa.memory_map(file.name))
