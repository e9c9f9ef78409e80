"""Identities: the same wherever and however the values are laid out."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tidegate.engine.core.columns.hashing import match_rows, row_hash
from tidegate.engine.core.columns.ids import (
    as_binary,
    as_hex,
    column_set,
    firing_ids,
    occurrence_ids,
    signal_ids,
)
from tidegate.engine.core.values import CLIENT, ENGINE, ChangeKind

GOLDEN = pa.table(
    {
        "n": pa.array([1, None, -3], pa.int32()),
        "d": pa.array([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(12, 2)),
        "f": pa.array([0.5, float("nan"), -0.0]),
        "s": ["a", "späße und mehr als acht Bytes", ""],
        "b": [True, False, None],
        "t": pa.array([0, 1_700_000_000_000_000, None], pa.timestamp("us", "UTC")),
        "l": pa.array([[1, None], [], None], pa.list_(pa.int64())),
        "m": pa.array([[("x", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "o": pa.array([{"x": 1, "y": None}, {"x": None, "y": None}, None]),
    }
)

GOLDEN_IDS = [
    "bda55fcd5408b447f84f4e1fa7bb2c74",
    "42e16bcba024b3c5196c715a425893a7",
    "7e9f92860111a3d4c84c862fb1702091",
]
GOLDEN_FIRINGS = [
    "f7a92f2685e14d5dd68312956bc7cebd",
    "df8b9c7058f5333843f8e4fc373c96a4",
]
GOLDEN_SIGNALS = [
    "517b325acb58cc85ce400d5449e65290",
    "ecac809556dd8ac612bf063fd01c1f0f",
]


def ids(table: pa.Table, **changes: str) -> list[str]:
    n = table.num_rows
    version, kind = np.full(n, 7), np.full(n, ChangeKind.INSERT)
    event, table_id = changes.get("event", "e"), changes.get("table_id", "id")
    found = occurrence_ids(event, table_id, np.arange(n), version, kind, row_hash(table))
    return as_hex(found).to_pylist()


def test_g06_ids_are_the_same_on_every_machine() -> None:
    assert ids(GOLDEN) == GOLDEN_IDS
    key = pa.table({"k": ["x", "y"]})
    at = np.array([5, 6])
    fired = firing_ids("book", "rule", key, at, at + 1, np.array([0, 2, 3]), numbers(GOLDEN))
    assert as_hex(fired).to_pylist() == GOLDEN_FIRINGS
    assert as_hex(signal_ids("s", [("one", CLIENT), ("one", ENGINE)])).to_pylist() == GOLDEN_SIGNALS


def numbers(table: pa.Table) -> np.ndarray:
    n = table.num_rows
    at = np.arange(n)
    return occurrence_ids("e", "id", at, np.full(n, 7), np.full(n, 0), row_hash(table))


def test_g06_chunks_slices_offsets_and_dictionaries_do_not_show() -> None:
    whole = ids(GOLDEN)
    padded = pa.concat_tables([GOLDEN.slice(1, 1), GOLDEN, GOLDEN.slice(0, 2)])
    assert ids(padded.slice(1, 3)) == whole
    assert ids(padded.combine_chunks().slice(1, 3)) == whole
    encoded = GOLDEN.set_column(3, "s", GOLDEN.column("s").dictionary_encode())
    assert ids(encoded) == whole
    large = GOLDEN.set_column(3, "s", GOLDEN.column("s").cast(pa.large_string()))
    assert ids(large) == whole


def test_g06_an_added_null_column_and_a_wider_type_change_nothing() -> None:
    whole = ids(GOLDEN)
    assert ids(GOLDEN.append_column("new", pa.nulls(3, pa.string()))) == whole
    assert ids(GOLDEN.set_column(0, "n", GOLDEN.column("n").cast(pa.int64()))) == whole
    assert ids(GOLDEN.select(list(reversed(GOLDEN.column_names)))) == whole


SEVENS = [
    pa.array([7], pa.int8()),
    pa.array([7], pa.uint64()),
    pa.array([7.0], pa.float32()),
    pa.array([7.0]),
    pa.array([Decimal("7")]),
    pa.array([Decimal("7.000")]),
    pa.array([Decimal("7")], pa.decimal256(60, 20)),
]


@pytest.mark.parametrize(
    ("equal", "others"),
    [
        (SEVENS, [pa.array(["7"]), pa.array([7.5])]),
        ([pa.array([-0.0]), pa.array([0.0]), pa.array([0]), pa.array([Decimal("0.00")])], []),
        ([pa.array([1.5]), pa.array([Decimal("1.50")])], [pa.array([1])]),
        ([pa.array([float("nan")]), pa.array([-float("nan")], pa.float32())], []),
        ([pa.array([Decimal("0.1")]), pa.array([Decimal("0.10")])], [pa.array([0.1])]),
        ([pa.array([2**53]), pa.array([2.0**53])], [pa.array([2**53 + 1])]),
        ([pa.array([1e20]), pa.array([Decimal(10**20)])], [pa.array([Decimal(10**20 + 1)])]),
        ([pa.array([-(2**63)]), pa.array([-(2.0**63)]), pa.array([Decimal(-(2**63))])], []),
    ],
    ids=["7", "0", "1.5", "nan", "0.1", "2**53", "10**20", "-2**63"],
)
def test_g06_equal_numbers_hash_alike_whatever_their_types(
    equal: list[pa.Array], others: list[pa.Array]
) -> None:
    hashes = [row_hash(pa.table({"k": array})).tolist() for array in (*equal, *others)]
    assert hashes[: len(equal)] == [hashes[0]] * len(equal)
    assert hashes[0] not in hashes[len(equal) :]


@given(
    st.integers(-(10**30), 10**30).map(lambda n: Decimal(n).scaleb(-8))
    | st.integers(-(2**65), 2**65).map(Decimal)
    | st.floats(-60_000, 60_000, width=16).map(Decimal)
)
@example_count(300, least=25)
def test_g06_a_decimal_hashes_as_the_equal_number_of_another_type(value: Decimal) -> None:
    def hashed(array: pa.Array) -> list[list[int]]:
        found: list[list[int]] = row_hash(pa.table({"k": array})).tolist()
        return found

    scale = max(-int(value.normalize().as_tuple().exponent), 0)
    own = hashed(pa.array([value], pa.decimal128(38, scale)))
    if scale < 12:
        assert own == hashed(pa.array([value], pa.decimal128(38, scale + 4)))
    assert (own == hashed(pa.array([float(value)]))) == (Decimal(float(value)) == value)
    if value == int(value) and abs(value) < 2**63:
        assert own == hashed(pa.array([int(value)]))
    wide = pa.array([None, value, None, value], pa.decimal256(76, 40))  # as keys that met doubles
    assert hashed(wide) == [[0, 0], *own, [0, 0], *own]
    assert hashed(wide[1:2]) == own


@given(st.integers(-(10**76) + 1, 10**76 - 1), st.integers(0, 76))
@example_count(300, least=25)
def test_g06_a_wide_decimal_hashes_as_the_equal_number_of_another_type(
    digits: int, scale: int
) -> None:
    """Two that are not equal have two hashes."""

    def hashed(value: Decimal) -> list[list[int]]:
        column = pa.array([value], pa.decimal256(76, scale))
        return row_hash(pa.table({"k": column})).tolist()  # type: ignore[no-any-return]

    value = Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale))
    other = Decimal((int(digits < 1), tuple(map(int, str(abs(digits - 1)))), -scale))
    as_double = row_hash(pa.table({"k": pa.array([float(value)])})).tolist()
    assert (hashed(value) == as_double) == (value == float(value))
    assert hashed(value) != hashed(other)
    few = abs(digits) % 10**60
    low, beyond = (Decimal((0, tuple(map(int, str(n))), -scale)) for n in (few, few + 2**200))
    assert hashed(low) != hashed(beyond)


@pytest.mark.parametrize("name", GOLDEN.column_names)
def test_every_column_matters(name: str) -> None:
    at = GOLDEN.column_names.index(name)
    moved = GOLDEN.set_column(at, name, GOLDEN.column(name).take([1, 2, 0]))
    assert len(set(ids(GOLDEN)) | set(ids(moved))) == 6
    renamed = GOLDEN.rename_columns([c + "_" if c == name else c for c in GOLDEN.column_names])
    assert ids(renamed) != ids(GOLDEN)


def test_what_an_occurrence_is_of_matters() -> None:
    assert not set(ids(GOLDEN)) & set(ids(GOLDEN, event="f"))
    assert not set(ids(GOLDEN)) & set(ids(GOLDEN, table_id="other"))


def test_s05_equal_rows_are_numbered() -> None:
    table = pa.table({"n": [1, 2, 1, 1]})
    found = ids(table)
    assert len(set(found)) == 4
    assert found[0] == ids(table.slice(0, 1))[0]
    assert set(ids(table.take([2, 3, 1, 0]))) == set(found)


def test_values_that_sit_in_other_columns_are_other_rows() -> None:
    two = pa.table({"a": pa.array([1, None]), "b": pa.array([None, 1])})
    assert len(set(ids(two))) == 2
    words = pa.table({"a": ["ab", "a", "a\0"], "b": ["c", "bc", "bc"]})
    assert len(set(ids(words))) == 3


def test_firings_tell_apart_key_times_and_constituents() -> None:
    occurrences = numbers(pa.table({"n": [1, 2, 3]}))
    key = pa.table({"k": pa.array([1, 1, None, 1, 1])})
    start, end = np.array([1, 1, 1, 0, 1]), np.array([5, 5, 5, 5, 6])
    offsets = np.array([0, 2, 4, 6, 8, 10])
    picked = np.concatenate([occurrences[[0, 1]], occurrences[[0, 2]], *[occurrences[:2]] * 3])
    found = as_hex(firing_ids("b", "r", key, start, end, offsets, picked)).to_pylist()
    assert len(set(found)) == 5
    swapped = np.concatenate([occurrences[[1, 0]], picked[2:]])
    assert as_hex(firing_ids("b", "r", key, start, end, offsets, swapped)).to_pylist() == found


def test_equal_firings_are_numbered_and_keyless_ones_have_ids() -> None:
    none = pa.table({"k": [1, 1]}).select([])
    at = np.array([1, 1])
    found = firing_ids("b", "r", none, at, at, np.array([0, 0, 0]), np.empty((0, 2), np.uint64))
    assert len(set(as_hex(found).to_pylist())) == 2


def test_binary_and_hex_are_the_same_id() -> None:
    found = numbers(GOLDEN)
    assert [b.hex() for b in as_binary(found).to_pylist()] == as_hex(found).to_pylist()
    assert as_hex(found[:0]).to_pylist() == []


def test_column_sets_are_sets() -> None:
    assert column_set(["b", "a", "a"]) == column_set(["a", "b"]) != column_set(["ab"])


def test_rows_are_matched_by_hash_unless_it_is_ambiguous() -> None:
    a = row_hash(pa.table({"k": [1, 2, 2, 4, 6]}))
    b = row_hash(pa.table({"k": [4, 1, 2, 5, 6, 6]}))
    to_b, to_a = match_rows(a, b)
    assert to_b.tolist() == [1, -2, -2, 0, -2]
    assert to_a.tolist() == [3, 0, -2, -1, -2, -2]


@pytest.mark.parametrize("versions", [[1, 1, 1, 2, 2, 2, 3], [2, 1, 2, 1, 1, 3, 2]])
def test_g06_equal_rows_are_numbered_within_their_version(versions: list[int]) -> None:
    """Whether rows come in the order of their versions or, by event time, in another one."""
    hashes = row_hash(pa.table({"k": [5, 5, 5, 5, 5, 6, 5]}))
    version, kind = np.array(versions), np.zeros(7, np.int64)
    found = as_hex(occurrence_ids("e", "t", np.arange(7), version, kind, hashes)).to_pylist()
    assert len(set(found)) == 7
    for one in set(versions):  # as if that version were all there is
        rows = np.flatnonzero(version == one)
        alone = as_hex(occurrence_ids("e", "t", rows, version, kind, hashes)).to_pylist()
        assert alone == [found[row] for row in rows]
