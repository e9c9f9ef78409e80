"""Rows of firings in files are the rows in memory, whichever of them are asked for."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tests.reference.hits import noted, noting
from tidegate.engine.core.relation_files import RelationFiles, may_be_in_files
from tidegate.engine.core.values import Condition, Firings, Question
from tidegate.engine.detect.events.step.detections import merged_firings
from tidegate.engine.store import shelf as shelves
from tidegate.engine.store.blobs import firings_from_columns, firings_to_columns
from tidegate.engine.store.shelf import FileShelf
from tidegate.rules.errors import EngineError, Place

UTC = pa.timestamp("us", "UTC")


def firings(counts: list[int], first: int = 0, *, known: bool = True) -> Firings:
    """Firings of so many rows each; all values differ."""
    ids = [(first + n).to_bytes(16, "big") for n in range(len(counts))]
    numbers = np.arange(sum(counts)) + 1_000 * first
    of = np.repeat(np.arange(len(counts)), counts)
    table = pa.table(
        {
            "firing_id": pa.array(ids, pa.binary(16)),
            "k": pa.array([first % 7] * len(counts), pa.int64()),
            "detected_at": pa.array(range(len(counts)), UTC),
            "depth": pa.array([1] * len(counts), pa.int32()),
            "condition": ["none"] * len(counts),
            "constituents": pa.array(counts, pa.int32()),
        }
    )
    relation = pa.table(
        {
            "firing_id": pa.array([ids[n].hex() for n in of], pa.string()),
            "v": pa.array(numbers),
            "old": pa.array([{"x": int(n), "t": None} for n in numbers],
                            pa.struct({"x": pa.int64(), "t": UTC})),
        }
    ).replace_schema_metadata({b"transitions": b"[]"})  # fmt: skip
    signal = pa.array([f"client/{n}" for n in numbers], pa.string())
    sources = pa.table({"version": pa.array(numbers), "signal": signal})
    return Firings("r", table, relation, sources if known else None)


def same(filed: Firings, plain: Firings) -> None:
    read = filed.loaded()
    assert read.firings == plain.firings
    assert read.relation.equals(plain.relation, check_metadata=True)
    assert read.sources == plain.sources
    assert filed.offsets.tolist() == plain.offsets.tolist()
    assert filed.relation.num_rows == plain.relation.num_rows
    assert filed.relation.schema.equals(plain.relation.schema, check_metadata=True)


COUNTS = st.lists(st.integers(1, 4), min_size=1, max_size=9)


@noting(several_files=8, some_left_out=8, row_groups=8)
def test_g26_rows_in_files_are_those_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of several tasks, put together; written to the store and read from there; some of them,
    those that follow each other, one column."""
    shelf = FileShelf("", str(tmp_path), "one")

    @given(data=st.data())
    @example_count(200, least=16)
    def some(data: st.DataObject) -> None:
        groups = data.draw(st.sampled_from([1, 3, 1_000]))
        monkeypatch.setattr(shelves, "ROWS_A_GROUP", groups)
        monkeypatch.setattr(shelves, "ROWS_BYTES_MIN", data.draw(st.sampled_from([1, 300])))
        known = data.draw(st.booleans())
        drawn = data.draw(st.lists(COUNTS, min_size=1, max_size=4))
        parts = [firings(counts, 10 * n, known=known) for n, counts in enumerate(drawn)]
        there = [pickle.loads(pickle.dumps(part.on(shelf))) for part in parts]
        in_files = [isinstance(part.relation, RelationFiles) for part in there]
        if known:
            plain, filed = (merged_firings(some, shelf) for some in (parts, there))
        else:  # then a task's rows go to one file, or stay
            plain, filed = parts[0], there[0]
        noted("several files", known and sum(in_files) > 1)
        noted("row groups", groups < 1_000 and any(in_files))
        if isinstance(filed.relation, RelationFiles):
            filed = firings_from_columns(shelf, "r", *firings_to_columns(filed).values())
        same(filed, plain)
        chosen = pa.array(data.draw(st.lists(st.booleans(), min_size=len(plain),
                                             max_size=len(plain))))  # fmt: skip
        less = filed.some(chosen)
        noted("some left out", len(less) < len(plain) and any(in_files))
        same(less, plain.some(chosen))
        first = data.draw(st.integers(0, len(plain)))
        count = data.draw(st.integers(0, 3))
        same(filed.slice(first, count), plain.slice(first, count))
        assert less.loaded(["v"]).rows.select(["v"]) == plain.some(chosen).rows.select(["v"])

    some()


def question(fired: Firings) -> Question:
    condition = Condition("v > 0", query=False, place=Place("f", 1, 1))
    return Question("r", condition, (), frozenset(), fired.relation)


def test_g26_a_question_is_asked_of_some_firings_in_files(tmp_path: Path) -> None:
    plain = firings([1, 2, 3, 1])
    filed = plain.on(FileShelf("", str(tmp_path), "one"), always=True)
    ids = plain.hex_ids().take([3, 1])
    for fired in (plain, filed):
        asked = question(fired).of(ids, {"t": 3})
        assert asked.firing_ids.to_pylist() == plain.hex_ids().take([1, 3]).to_pylist()
        assert replace(fired, relation=asked.relation).rows["v"].to_pylist() == [1, 2, 6]
        assert asked.versions == {"t": 3}


def test_spark_is_given_those_files_that_have_rows_of_the_firings(tmp_path: Path) -> None:
    shelf = FileShelf("", str(tmp_path), "one")
    parts = [firings([1, 2], 10 * n).on(shelf, always=True) for n in range(3)]
    names = [part.files[0].name for part in parts]
    wanted = parts[2].firings["firing_id"][1]
    whole = merged_firings(parts, shelf)
    assert isinstance(whole.relation, RelationFiles)
    assert whole.relation.paths == (*names,)
    last = whole.some(pc.equal(whole.firings["firing_id"], wanted))
    assert isinstance(last.relation, RelationFiles)
    assert last.relation.paths == (names[2],)


def test_g26_few_rows_of_many_tasks_share_a_file(tmp_path: Path) -> None:
    """Where some task has left one. Else they stay."""
    shelf = FileShelf("", str(tmp_path), "one")
    parts = [firings([1, 2], 10 * n) for n in range(9)]
    whole = merged_firings([*parts[:4], parts[4].on(shelf, always=True), *parts[5:]], shelf)
    assert len([*tmp_path.iterdir()]) == len(whole.files) == 2
    same(whole, plain := merged_firings(parts, shelf))
    assert plain.files == ()


def test_files_with_rows_of_other_firings_are_known_after_a_restart(tmp_path: Path) -> None:
    """Spark reads whole files as they are, without asking of whom their rows are."""
    shelf = FileShelf("", str(tmp_path), "one")
    filed = firings([1, 2, 3]).on(shelf, always=True)
    some = filed.some(pa.array([True, False, True]))
    other = firings([1], 10).on(shelf, always=True)
    both = [merged_firings([one, other], shelf) for one in (filed, some)]
    for fired, whole in ((filed, True), (some, False), (both[0], True), (both[1], False)):
        stored = firings_from_columns(shelf, "r", *firings_to_columns(fired).values())
        assert isinstance(stored.relation, RelationFiles)
        assert stored.relation.whole is whole
        assert stored.relation.schema.metadata == {b"transitions": b"[]"}


def test_g26_few_rows_stay_and_many_do_not(tmp_path: Path) -> None:
    shelf = FileShelf("", str(tmp_path), "one")
    few, many = (firings([count]) for count in (10, shelves.ROWS_BYTES_MIN // 40))
    assert few.on(shelf) is few
    assert isinstance(many.on(shelf).relation, RelationFiles)
    nowhere = FileShelf("", None, "one")
    assert many.on(nowhere) is many
    assert many.on(nowhere, always=True) is many


@pytest.mark.parametrize("how", ["gone", "torn", "others"])
def test_g26_rows_that_are_not_there_are_named(tmp_path: Path, how: str) -> None:
    shelf = FileShelf("", str(tmp_path), "one")
    filed = firings([2, 1]).on(shelf, always=True)
    (file,) = tmp_path.iterdir()
    if how == "gone":
        file.unlink()
    elif how == "others":
        (other,) = firings([2, 1], 10).on(shelf, always=True).files
        file.write_bytes(Path(other.name).read_bytes())
    else:
        file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(EngineError, match=rf"state file {file} is") as error:
        filed.loaded()
    assert error.value.code == "state-file"
    assert filed.relation.num_rows == 3  # what is known without them


def test_g26_a_flipped_bit_of_rows_is_seen_or_changes_none(tmp_path: Path) -> None:
    plain = firings([400])
    filed = plain.on(FileShelf("", str(tmp_path), "one"), always=True)
    (file,) = tmp_path.iterdir()
    whole, seen = file.read_bytes(), 0
    for place in range(4, len(whole), 37):
        torn = bytearray(whole)
        torn[place] ^= 1
        file.write_bytes(bytes(torn))
        try:
            rows = filed.rows
        except EngineError:
            seen += 1
        else:
            assert rows == plain.rows
    assert seen > len(whole) / 37 / 2


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        (pa.int64(), True),
        (pa.decimal128(38, 4), True),
        (pa.map_(pa.string(), pa.list_(pa.timestamp("us"))), True),
        (pa.struct({"x": UTC}), True),
        (pa.null(), False),
        (pa.struct([]), False),
        (pa.list_(pa.null()), False),
        (pa.struct({"x": pa.null()}), False),
        (pa.map_(pa.string(), pa.null()), False),
        (pa.timestamp("ns"), False),
        (pa.duration("us"), False),
    ],
)
def test_rows_of_some_types_stay_in_memory(kind: pa.DataType, *, kept: bool) -> None:
    assert may_be_in_files(pa.schema({"k": pa.int64(), "v": kind})) is kept
