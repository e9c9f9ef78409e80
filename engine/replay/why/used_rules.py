"""Firings of rules that use others as events: a firing of the used rule has some of the rows of a
firing of the user (semantics S8).

Rows are joined by number: rows of one event type are numbered by their instant, the version or
signal that brought them, and their parameters, as far as both relations have them.

Example: `twice` uses `settled`. Its firing has the orders 1 and 2, a firing of `settled` order 1:
all rows of the latter are rows of the former.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.text.times import python_values
from tidegate.engine.core.types.common import common_type
from tidegate.engine.core.values import Firings, Int64
from tidegate.engine.store.firings import parameter_names

Bools = npt.NDArray[np.bool_]
_ELSEWHERE = -1  # the number of a row that the other relation cannot have


def matching(own: Firings, others: Firings, *, later: bool) -> list[str]:
    """The ids of those `others`, firings of another rule, that may have come of a firing, or that
    it may have come of. `own`: the firing alone. `later`: all of its rows are rows of theirs; else
    all of their rows are rows of it. Equal rows count as often as they are there."""
    start, end = own.firings["started_at"][0], own.firings["detected_at"][0]
    begins, ends = others.firings["started_at"], others.firings["detected_at"]
    if later:
        inside = pc.and_(pc.less_equal(begins, start), pc.greater_equal(ends, end))
    else:
        inside = pc.and_(pc.greater_equal(begins, start), pc.less_equal(ends, end))
    if not pc.any(inside).as_py():
        return []
    others = _occurrences(others.some(inside))
    mine, theirs = _numbers(_occurrences(own), others)
    ids = others.hex_ids()
    firing = pc.index_in(others.rows["firing_id"], ids).to_numpy().astype(np.int64)
    fits = _fits(mine, theirs, firing, len(ids), later=later).tolist()
    return [one for one, does in zip(ids.to_pylist(), fits, strict=True) if does]


def _fits(mine: Int64, theirs: Int64, firing: Int64, count: int, *, later: bool) -> Bools:
    """Of each of `count` firings, whether it has all rows `mine`, or, unless `later`, only such
    rows. theirs[n] is a row of the firing firing[n]."""
    wanted = np.bincount(mine)
    known = theirs != _ELSEWHERE
    pairs, counts = np.unique(firing[known] * len(wanted) + theirs[known], return_counts=True)
    of, number = np.divmod(pairs, max(len(wanted), 1))
    if later:
        enough = counts >= wanted[number]
        found = np.bincount(of[enough], minlength=count)
        every: Bools = found == np.count_nonzero(wanted)
        return every if len(mine) else np.zeros(count, np.bool_)
    others = np.bincount(firing[~known], minlength=count)
    others += np.bincount(of[counts > wanted[number]], minlength=count)
    only: Bools = (others == 0) & (np.bincount(firing, minlength=count) > 0)
    return only


def _occurrences(fired: Firings) -> Firings:
    """The same without the rows of firings that have no constituents."""
    rows = pc.is_valid(fired.rows["event_type"])
    sources = None if fired.sources is None else fired.sources.filter(rows)
    return Firings(fired.rule, fired.firings, fired.rows.filter(rows), sources)


def _numbers(own: Firings, others: Firings) -> tuple[Int64, Int64]:
    """The number of each row of two relations: rows of equal numbers are one occurrence."""
    mine = np.zeros(len(own.rows), np.int64)
    theirs = np.full(len(others.rows), _ELSEWHERE, np.int64)
    first = 0
    for event in pc.unique(own.rows["event_type"]).to_pylist():
        at = pc.equal(own.rows["event_type"], event).to_numpy()
        there = pc.equal(others.rows["event_type"], event).to_numpy()
        count = int(at.sum())
        numbers = _numbered(_columns(own, at), _columns(others, there), count)
        mine[at], rest = first + numbers[:count], numbers[count:]
        theirs[there] = np.where(first + rest <= mine[at].max(), first + rest, _ELSEWHERE)
        first = int(mine[at].max()) + 1
    return mine, theirs


def _columns(fired: Firings, rows: Bools) -> dict[str, pa.Array]:
    """What tells some rows apart: instant, source and parameters, a field of a struct a column."""
    chosen = pa.array(rows)
    relation = fired.rows.filter(chosen)
    found = {name: relation[name] for name in ("occurred_at", *parameter_names(fired.rows))}
    if fired.sources is not None:
        sources = fired.sources.filter(chosen)
        found |= {f"\0{name}": sources[name] for name in ("version", "signal")}
    return {
        path: leaf
        for name, column in found.items()
        for path, leaf in _leaves(name, column.combine_chunks())
    }


def _leaves(name: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    if not pa.types.is_struct(array.type):
        yield name, array
        return
    for field, child in zip(array.type, array.flatten(), strict=True):
        yield from _leaves(f"{name}\0{field.name}", child)


def _numbered(mine: dict[str, pa.Array], theirs: dict[str, pa.Array], count: int) -> Int64:
    """Numbers of the rows of two tables, those of the first `count` from 0 on without a gap. What
    one of the tables has no value of says nothing."""
    rows = count + max((len(column) for column in theirs.values()), default=0)
    numbers = np.zeros(rows, np.int64)
    for name in mine.keys() & theirs.keys():
        both = _joined(mine[name], theirs[name])
        if both is not None:
            values = both.dictionary_encode(null_encoding="encode").indices.to_numpy()
            pairs = pa.array(numbers * (int(values.max(initial=0)) + 1) + values)
            numbers = pairs.dictionary_encode().indices.to_numpy().astype(np.int64)
    return numbers


def _joined(one: pa.Array, other: pa.Array) -> pa.Array | None:
    """Two columns of one name in one; None where they say nothing about each other."""
    if one.null_count == len(one) or other.null_count == len(other):
        return None
    kind = common_type(one.type, other.type)
    if kind is None or (one.type != other.type and pa.types.is_temporal(kind)):
        return None
    if pa.types.is_nested(kind):
        texts = [repr(value) for column in (one, other) for value in python_values(column)]
        return pa.array(texts)
    return pa.concat_arrays([column.cast(kind, safe=False) for column in (one, other)])
