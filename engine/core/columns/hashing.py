"""128-bit hashes of the rows of Arrow tables.

Each value is mixed with the name of its column by a bijection of 64 bits (the finaliser of
SplitMix64), twice with different seeds. The hash of a row is the sum over its columns. So the order
of columns does not matter, and a null is as if the column were not there. Equal numbers have equal
hashes, whatever their types: 7, 7.0 and 7.00; -0.0 and 0.0; all NaNs.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.core.columns.decimal_words import decimal_words
from tidegate.engine.core.columns.numba_cache import njit
from tidegate.engine.core.values import Int64, UInt64

_C1 = np.uint64(0xBF58476D1CE4E5B9)
_C2 = np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_NULL_ELEMENT = np.uint64(0x6E756C6C)
_TEXTS = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view())


def row_hash(columns: pa.Table) -> UInt64:
    """Hashes uint64[n, 2] of the n rows, from names and values. Types do not matter."""
    total = np.zeros((columns.num_rows, 2), np.uint64)
    for name in columns.column_names:
        at = 0
        for chunk in columns.column(name).chunks:
            _add_column(total[at : at + len(chunk)], name, chunk)
            at += len(chunk)
    return total


def mix_rows(
    hashes: UInt64, seed: tuple[np.uint64, np.uint64], number: npt.NDArray[np.int64]
) -> UInt64:
    """Each row's hash mixed with one seed for all rows and one number for each row."""
    out = np.empty_like(hashes)
    _mix_rows(hashes, seed[0], seed[1], np.ascontiguousarray(number, np.int64), out)
    return out


def sum_by_offsets(hashes: UInt64, offsets: Int64) -> UInt64:
    """The sum of the hashes of each group, each mixed once more: a hash of the multiset. Group i is
    hashes[offsets[i]:offsets[i + 1]]."""
    out = np.zeros((len(offsets) - 1, 2), np.uint64)
    _sum_by_offsets(np.ascontiguousarray(hashes), np.ascontiguousarray(offsets, np.int64), out)
    return out


def mix_chosen(
    hashes: UInt64,
    rows: Int64,
    seed: tuple[np.uint64, np.uint64],
    group: Int64,
    number: Int64,
) -> UInt64:
    """`count_equal(mix_rows(hashes[rows], seed, number[rows]))` in one pass, without large arrays
    in between. Equal rows must be of one group. hashes[n] has number[n] and group[n].
    """
    chosen = group[rows]
    if len(rows) and (chosen[1:] < chosen[:-1]).any():
        return count_equal(mix_rows(hashes[rows], seed, number[rows]))
    begins = np.flatnonzero(np.diff(chosen, prepend=chosen[:1] - 1, append=chosen[-1:] + 1))
    slots = _slots(int(np.diff(begins).max(initial=0)))
    out = np.empty((len(rows), 2), np.uint64)
    slot, seen = np.full(slots, -1, np.int64), np.zeros(slots, np.int64)
    _mix_chosen(hashes, rows, seed[0], seed[1], begins, number, slot, seen, out)
    return out


def count_equal(hashes: UInt64) -> UInt64:
    """The hashes, made distinct: the second, third, .. of equal ones are mixed with 1, 2, .."""
    out = hashes.copy()
    slots = _slots(len(hashes))
    _count_equal(hashes, np.full(slots, -1, np.int32), np.zeros(slots, np.int32), out)
    return out


def match_rows(a: UInt64, b: UInt64) -> tuple[Int64, Int64]:
    """The row of b with the same hash for each row of a, and the row of a for each row of b. -1:
    there is none. -2: the hash is not unique in a or in b.

    Example: hashes a = [x, y, y], b = [y, x] give [1, -2, -2] and [-2, 0]."""
    to_b, to_a = np.full(len(a), -1, np.int64), np.full(len(b), -1, np.int64)
    _match_rows(a, b, np.full(_slots(len(a)), -1, np.int32), to_b, to_a)
    return to_b, to_a


def _slots(rows: int) -> int:
    """The size of an open hash table that is at most half full."""
    return 1 << max(4, (2 * rows).bit_length())


def _add_column(total: UInt64, name: str, array: pa.Array) -> None:
    """Add the hash of every valid value of one column to the rows' totals."""
    array = _plain(array)
    if pa.types.is_struct(array.type):
        _add_struct(total, name, array)
        return
    digest = hashlib.blake2b(name.encode(), digest_size=16).digest()
    seed = np.frombuffer(digest, ">u8").astype(np.uint64)
    valid = _valid(array)
    if pa.types.is_large_binary(array.type):
        _, offsets, data = array.buffers()
        ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
        octets = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
        _add_binary(total, seed, valid, ends, octets)
    elif pa.types.is_list(array.type) or pa.types.is_map(array.type):
        _add_list(total, seed, valid, array)
    elif pa.types.is_decimal(array.type):
        _add_decimals(total, seed, valid, array)
    else:
        _add_words(total, seed, valid, _words(array))


def _add_struct(total: UInt64, name: str, array: pa.StructArray) -> None:
    """Add a struct: its fields, and one value that says that it is not null."""
    present = pa.array(np.ones(len(array), np.int64), mask=~_valid(array))
    _add_column(total, name, present)
    for field, child in zip(array.type, array.flatten(), strict=True):
        _add_column(total, f"{name}.{field.name}", child)


def _add_list(
    total: UInt64, seed: UInt64, valid: npt.NDArray[np.bool_], array: pa.ListArray
) -> None:
    """Add lists and maps. The order counts in a list, and does not count in a map."""
    is_map = pa.types.is_map(array.type)
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    if is_map:
        keys, items = array.keys[first:last], array.items[first:last]
        elements = pa.StructArray.from_arrays([keys, items], ["key", "value"])
    else:
        elements = array.values[first:last]
    hashes = np.zeros((len(elements), 2), np.uint64)
    hashes[~_valid(elements)] = _NULL_ELEMENT
    _add_column(hashes, "element", elements)
    _add_sequences(total, seed, valid, offsets - first, hashes, not is_map)


def _plain(array: pa.Array) -> pa.Array:
    """The array as a type that is hashed: not a dictionary, extension or view; texts as bytes."""
    kind = array.type
    if isinstance(kind, pa.ExtensionType):
        return _plain(array.storage)
    if pa.types.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return array.cast(pa.list_(kind.value_type))
    if kind in _TEXTS or pa.types.is_fixed_size_binary(kind):
        texts = array.cast(pa.large_string()) if pa.types.is_string_view(kind) else array
        return texts.cast(pa.large_binary())
    return array


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _words(array: pa.Array) -> npt.NDArray[np.uint64]:
    """The values as uint64[n, 1]: whole numbers as int64, others as the bits of a double."""
    kind = array.type
    if pa.types.is_floating(kind):
        return _double_words(array.cast(pa.float64()).fill_null(0.0).to_numpy())
    if pa.types.is_null(kind):
        return np.zeros((len(array), 1), np.uint64)
    if pa.types.is_timestamp(kind):
        array = array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    elif pa.types.is_date32(kind):
        array = array.cast(pa.int32())
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise TypeError(f"values of type {kind} have no hash")
    if pa.types.is_uint64(kind):
        return np.asarray(array.fill_null(0), np.uint64).reshape(-1, 1)
    filled = array.cast(pa.int64()).fill_null(0)
    return np.asarray(filled.to_numpy(zero_copy_only=False)).view(np.uint64).reshape(-1, 1)


def _double_words(values: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """The words of doubles. One that equals an int64 has the word of that."""
    values = np.where(np.isnan(values), np.nan, values + 0.0)
    integral = (np.floor(values) == values) & (values >= -(2.0**63)) & (values < 2.0**63)
    numbers = np.where(integral, values, 0.0).astype(np.int64).view(np.uint64)
    return np.where(integral, numbers, values.view(np.uint64)).reshape(-1, 1)


def _add_decimals(
    total: UInt64, seed: UInt64, valid: npt.NDArray[np.bool_], array: pa.Array
) -> None:
    """Add decimals: one word if they equal a whole number or a double, else three."""
    words, own = decimal_words(array)
    _add_words(total, seed, valid & ~own, words[:, :1])
    if own.any():
        _add_words(total, seed, valid & own, words)


@njit
def _mix(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> np.uint64(30))) * _C1
    x = (x ^ (x >> np.uint64(27))) * _C2
    return x ^ (x >> np.uint64(31))


@njit
def _mix_pair(first, second, seed0, seed1, number):  # type: ignore[no-untyped-def]
    step = np.uint64(number) * _GOLDEN
    return _mix(_mix(first + seed0) ^ (step + seed1)), _mix(_mix(second ^ seed1) + (step ^ seed0))


@njit
def _mix_rows(hashes, seed0, seed1, number, out):  # type: ignore[no-untyped-def]
    for i in range(hashes.shape[0]):
        out[i, 0], out[i, 1] = _mix_pair(hashes[i, 0], hashes[i, 1], seed0, seed1, number[i])


@njit
def _mix_chosen(hashes, rows, seed0, seed1, begins, number, slot, seen, out):  # type: ignore[no-untyped-def]
    """See `mix_chosen`. The groups share one hash table with room for the largest: a slot that a
    group before this one filled counts as empty."""
    mask = slot.shape[0] - 1
    for g in range(begins.shape[0] - 1):
        for i in range(begins[g], begins[g + 1]):
            r = rows[i]
            first, second = _mix_pair(hashes[r, 0], hashes[r, 1], seed0, seed1, number[r])
            at = np.int64(first & np.uint64(mask))
            while slot[at] >= begins[g] and (
                out[slot[at], 0] != first or out[slot[at], 1] != second
            ):
                at = (at + 1) & mask
            if slot[at] < begins[g]:
                slot[at] = i
                seen[at] = 0
                out[i, 0], out[i, 1] = first, second
            else:
                seen[at] += 1
                again = np.uint64(seen[at]) * _GOLDEN
                out[i, 0], out[i, 1] = _mix(first + again), _mix(second ^ again)


@njit
def _sum_by_offsets(hashes, offsets, out):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        for j in range(offsets[i], offsets[i + 1]):
            out[i, 0] += _mix(hashes[j, 0] + _GOLDEN)
            out[i, 1] += _mix(hashes[j, 1] ^ _GOLDEN)


@njit
def _find(hashes, slot, first, second):  # type: ignore[no-untyped-def]
    """The slot of the row with this hash; the empty slot for it if there is no such row."""
    mask = slot.shape[0] - 1
    at = np.int64(first & np.uint64(mask))
    while slot[at] >= 0 and (hashes[slot[at], 0] != first or hashes[slot[at], 1] != second):
        at = (at + 1) & mask
    return at


@njit
def _match_rows(a, b, slot, to_b, to_a):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):
        at = _find(a, slot, a[i, 0], a[i, 1])
        if slot[at] < 0:
            slot[at] = i
        else:
            to_b[slot[at]] = -2
            to_b[i] = -2
    for j in range(b.shape[0]):
        i = slot[_find(a, slot, b[j, 0], b[j, 1])]
        if i < 0:
            continue
        if to_b[i] == -1:
            to_b[i] = j
            to_a[j] = i
        else:
            if to_b[i] >= 0:
                to_a[to_b[i]] = -2
            to_b[i] = -2
            to_a[j] = -2


@njit
def _count_equal(hashes, slot, seen, out):  # type: ignore[no-untyped-def]
    for i in range(hashes.shape[0]):
        at = _find(hashes, slot, hashes[i, 0], hashes[i, 1])
        if slot[at] < 0:
            slot[at] = i
        else:
            seen[at] += 1
            number = np.uint64(seen[at]) * _GOLDEN
            out[i, 0] = _mix(hashes[i, 0] + number)
            out[i, 1] = _mix(hashes[i, 1] ^ number)


@njit
def _add_words(total, seed, valid, words):  # type: ignore[no-untyped-def]
    for i in range(words.shape[0]):
        if valid[i]:
            a = seed[0]
            b = seed[1]
            for j in range(words.shape[1]):
                a = _mix(a ^ words[i, j])
                b = _mix(b + words[i, j] * _GOLDEN)
            total[i, 0] += a
            total[i, 1] += b


@njit
def _add_binary(total, seed, valid, ends, octets):  # type: ignore[no-untyped-def]
    for i in range(ends.shape[0] - 1):
        if valid[i]:
            at = ends[i]
            end = ends[i + 1]
            length = np.uint64(end - at)
            a = _mix(seed[0] ^ length)
            b = _mix(seed[1] + length)
            while at < end:
                word = np.uint64(0)
                for k in range(min(8, end - at)):
                    word |= np.uint64(octets[at + k]) << np.uint64(8 * k)
                a = _mix(a ^ word)
                b = _mix(b + word * _GOLDEN)
                at += 8
            total[i, 0] += a
            total[i, 1] += b


@njit
def _add_sequences(total, seed, valid, offsets, hashes, ordered):  # type: ignore[no-untyped-def]
    for i in range(offsets.shape[0] - 1):
        if valid[i]:
            length = np.uint64(offsets[i + 1] - offsets[i])
            a = _mix(seed[0] ^ length)
            b = _mix(seed[1] + length)
            for j in range(offsets[i], offsets[i + 1]):
                if ordered:
                    a = _mix(a ^ hashes[j, 0])
                    b = _mix(b + hashes[j, 1])
                else:
                    a += _mix(hashes[j, 0])
                    b += _mix(hashes[j, 1])
            total[i, 0] += a
            total[i, 1] += b
