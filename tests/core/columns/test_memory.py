"""What is held of large columns: none twice, and nothing that nobody uses."""

from __future__ import annotations

import pickle
import resource
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.support import make
from tidegate.engine.core.columns import memory
from tidegate.engine.core.relation_files import RelationFiles
from tidegate.engine.core.values import Firings
from tidegate.engine.detect.events.step.detections import merged_firings
from tidegate.engine.store.shelf import FileShelf

COUNT = 20_000
ID_BYTES = 16


def many(folder: Path, first: int) -> Firings:
    """Firings with their rows in a file, and ids that nothing compresses."""
    ids = np.random.default_rng(first).bytes(COUNT * ID_BYTES)
    of = pa.FixedSizeBinaryArray.from_buffers(pa.binary(ID_BYTES), COUNT, [None, pa.py_buffer(ids)])
    at = pa.array(first + np.arange(COUNT)).cast(make.UTC)
    table = pa.table({"firing_id": of, "k": pa.array([first] * COUNT), "detected_at": at})
    relation = pa.table({"firing_id": Firings("r", table, table).hex_ids(), "v": range(COUNT)})
    return Firings("r", table, relation).on(FileShelf("", str(folder), "one"), always=True)


def address(ids: pa.Array) -> int:
    found: int = ids.buffers()[1].address
    return found


def test_one_chunk_is_not_copied() -> None:
    one, two = pa.array([1, 2]), pa.chunked_array([[1], [2]])
    assert address(memory.in_one(pa.chunked_array([one]))) == address(one)
    assert memory.in_one(two).to_pylist() == [1, 2]
    assert memory.in_one(two.slice(0, 0)).to_pylist() == []


def test_a_column_of_one_value_takes_little() -> None:
    """However long it is."""
    before = pa.total_allocated_bytes()
    of_one = pa.chunked_array([pa.repeat("none", 1 << 20), pa.repeat("none", 40)])
    small = memory.of_one_value(of_one)
    assert small == of_one
    assert small.type == of_one.type
    del of_one
    assert pa.total_allocated_bytes() - before < 1 << 20


@pytest.mark.parametrize("last", ["held", None])
@pytest.mark.parametrize("count", [1 << 16, 1 << 17])
def test_a_column_of_two_values_is_left_as_it_is(last: str | None, count: int) -> None:
    chunks = [pa.repeat("none", count), pa.array([last], pa.string())]
    column = pa.chunked_array(chunks)
    assert memory.of_one_value(column) == column


def test_firings_of_one_depth_are_merged_into_little_memory(tmp_path: Path) -> None:
    depth = pa.array(np.ones(COUNT, np.int32))
    some = [many(tmp_path, n) for n in range(4)]
    parts = [replace(p, firings=p.firings.append_column("depth", depth)) for p in some]
    merged = merged_firings(parts, None)
    chunks = merged.firings["depth"].chunks
    assert len(merged) == 4 * COUNT
    assert len({chunk.buffers()[1].address for chunk in chunks}) == 1 < len(chunks)
    assert merged.firings["depth"].to_pylist() == [1] * 4 * COUNT


def test_ids_of_firings_are_sent_once(tmp_path: Path) -> None:
    fired = many(tmp_path, 0)
    written = pickle.dumps(fired)
    assert len(written) < 2 * ID_BYTES * COUNT
    read = pickle.loads(written)
    assert read.firings == fired.firings
    assert read.rows == fired.rows
    assert address(read.relation.ids) == address(read.firings["firing_id"].chunk(0))


def test_firings_are_merged_in_the_place_of_their_parts(tmp_path: Path) -> None:
    """Merging needs a column more than the firings take; not all of them twice."""
    parts = [pickle.loads(pickle.dumps(many(tmp_path, n))) for n in range(4)]
    rows = pa.concat_tables([part.rows for part in parts]).num_rows
    before = pa.total_allocated_bytes()
    merged = merged_firings(parts, None)
    one = merged.firings.nbytes // len(merged.firings.column_names)
    assert not parts
    assert pa.total_allocated_bytes() < before + one
    assert isinstance(merged.relation, RelationFiles)
    assert address(merged.relation.ids) == address(merged.firings["firing_id"].chunk(0))
    assert len(merged.rows) == rows


def test_large_arrays_are_given_back_when_they_are_let_go_of() -> None:
    """Malloc would keep their room: a larger one was let go of before."""
    if memory._trim() is None:
        pytest.skip("no malloc_trim here")
    memory.give_back()
    larger = np.ones(3 << 20, np.int64)
    del larger
    before = resident()
    small, large = [], [np.ones(1 << 20, np.int64) for _ in range(8)]
    while large:
        del large[-1]
        small.append(np.ones(1_000))
    assert resident() - before < 8 << 20


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[int] = []
    monkeypatch.setattr(memory, "_trim", lambda: trimmed.append)
    memory.give_back()
    assert trimmed == [0]
    monkeypatch.setattr(memory, "_trim", lambda: None)
    memory.give_back()
