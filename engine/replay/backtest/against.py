"""The difference between two backtests over one span: what fired only in one, only in the other,
and what fired in both of other constituents.

Firings are matched by (rule, key, end), null keys being equal, and duplicates one by one: if a rule
fired three times for a key at one instant in one, and twice in the other, one of them is only in
the first.

Example: the limit in `if:` goes from 100 to 200. A firing over 150 is only in the first; in the
other its condition failed, which `otherwise` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import Int64
from tidegate.engine.replay.backtest.counts import asked_for, fates, fired
from tidegate.engine.replay.backtest.model import Backtest

MATCHED_BY = ("rule", "key", "end")


@dataclass(frozen=True, slots=True)
class RuleDifference:
    """How a rule differs: counts of firings. `in_one`, `in_other`: whether the rulebook has it."""

    name: str
    in_one: bool
    in_other: bool
    only_one: int
    only_other: int
    differing: int
    same: int


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two backtests. Tables have rows as `FIRINGS` says, in their order.

    `only_one`, `only_other`: firings that the other has not; their column `otherwise` says what
    became of the same detection there (a word of `FATES`), null: there is none. `differing_one`,
    `differing_other`: row by row the same rule, key and end, but other constituents. `rules`: those
    of one in its order, then those that only the other has.
    """

    one: Backtest
    other: Backtest
    only_one: pa.Table
    only_other: pa.Table
    differing_one: pa.Table
    differing_other: pa.Table
    same: int
    rules: tuple[RuleDifference, ...]

    @property
    def count(self) -> int:
        """How many firings differ; a pair of other constituents is one."""
        return len(self.only_one) + len(self.only_other) + len(self.differing_one)


def compared(one: Backtest, other: Backtest) -> Difference:
    """The difference. Raises `ValueError` if the spans are not the same."""
    if (one.span.begin, one.span.end) != (other.span.begin, other.span.end):
        raise ValueError(f"backtests over {one.span} and {other.span} cannot be compared")
    a, b = _sides(asked_for(one), asked_for(other))
    same = _pairs(a.equal, a.fired, b.equal, b.fired)
    left_a, left_b = _without(a.fired, same[0]), _without(b.fired, same[1])
    differing = _pairs(a.group, left_a, b.group, left_b)
    only_a, only_b = _without(left_a, differing[0]), _without(left_b, differing[1])
    found = Difference(
        one,
        other,
        _with_otherwise(a, only_a, b),
        _with_otherwise(b, only_b, a),
        a.firings.take(differing[0]),
        b.firings.take(differing[1]),
        len(same[0]),
        (),
    )
    return replace(found, rules=tuple(_rules(found, a.firings.take(same[0]))))


@dataclass(frozen=True, slots=True)
class _Side:
    """The detections of one backtest. `fired`: the rows of those that fired. `group`, `equal`: by
    row a number that stands, on both sides, for the same rule, key and end; and for these and the
    same constituents."""

    firings: pa.Table
    fired: Int64
    group: Int64
    equal: Int64


def _sides(*tables: pa.Table) -> list[_Side]:
    both = pa.concat_tables(tables)
    group = np.zeros(len(both), np.int64)
    for name in MATCHED_BY:
        group = _with_column(group, both[name])
    equal = _with_column(group, both["made_of"])
    first = len(tables[0])
    return [
        _Side(table, np.flatnonzero(fired(table)), group[rows], equal[rows])
        for table, rows in zip(tables, (slice(0, first), slice(first, None)), strict=True)
    ]


def _with_column(codes: Int64, column: pa.ChunkedArray) -> Int64:
    """Numbers for pairs of a number and a value, nulls being equal."""
    values = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    coded = values.dictionary_encode(null_encoding="encode")
    wide = codes * max(1, len(coded.dictionary)) + coded.indices.to_numpy()
    found: Int64 = np.unique(wide, return_inverse=True)[1].reshape(-1)
    return found


def _pairs(codes_a: Int64, a: Int64, codes_b: Int64, b: Int64) -> tuple[Int64, Int64]:
    """The rows of `a` and `b` that have the same number, one by one: of three and two rows of the
    same number two are paired, the first ones. In order of `a`."""
    width = 1 + max(len(a), len(b))
    _, at_a, at_b = np.intersect1d(
        codes_a[a] * width + _before(codes_a[a]),
        codes_b[b] * width + _before(codes_b[b]),
        assume_unique=True,
        return_indices=True,
    )
    order = np.argsort(at_a)
    return a[at_a[order]], b[at_b[order]]


def _before(codes: Int64) -> Int64:
    """How often each number came before."""
    order = np.argsort(codes, kind="stable")
    begins = np.flatnonzero(np.diff(codes[order], prepend=-1))
    sizes = np.diff(np.append(begins, len(codes)))
    before = np.empty(len(codes), np.int64)
    before[order] = np.arange(len(codes)) - np.repeat(begins, sizes)
    return before


def _without(rows: Int64, others: Int64) -> Int64:
    return np.setdiff1d(rows, others, assume_unique=True)


def _with_otherwise(side: _Side, rows: Int64, other: _Side) -> pa.Table:
    """Rows of a side with what became of the same detection on the other."""
    quiet = _without(np.arange(len(other.firings)), other.fired)
    known, first = np.unique(other.group[quiet], return_index=True)
    wanted = side.group[rows]
    at = np.searchsorted(known, wanted)
    found = np.isin(wanted, known)
    place = np.where(found, first[np.where(found, at, 0)], 0) if len(known) else at
    words = fates(other.firings).take(pa.array(quiet)).take(pa.array(place, mask=~found))
    return side.firings.take(rows).append_column("otherwise", words)


def _rules(found: Difference, same: pa.Table) -> Iterator[RuleDifference]:
    tables = (found.only_one, found.only_other, found.differing_one, same)
    counts = [Counter(table["rule"].to_pylist()) for table in tables]
    in_one, in_other = ({r.name: r for r in b.rules if r.shown} for b in (found.one, found.other))
    for name in {**in_one, **in_other}:
        only_one, only_other, differing, alike = (count[name] for count in counts)
        yield RuleDifference(
            name, name in in_one, name in in_other, only_one, only_other, differing, alike
        )
