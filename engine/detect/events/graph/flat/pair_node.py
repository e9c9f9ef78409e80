"""`a ; b within d` with a `where`: the pairs are made in one scan over all keys, the condition is
asked of all of them at once, and one more scan chooses. Of the general case see `search`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from tidegate.engine.core.evaluator.predicates import is_small
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.flat import pair_scan
from tidegate.engine.detect.events.graph.flat.arrivals import (
    KeyedLine,
    by_rank,
    keyed_line,
    sources_of,
)
from tidegate.engine.detect.events.graph.flat.line import Line
from tidegate.engine.detect.events.graph.search.asking import column_of, decided
from tidegate.engine.detect.events.graph.search.sifted import Sifted
from tidegate.engine.detect.events.graph.search_limits import LimitError, check_carried
from tidegate.engine.detect.events.graph.shape import Scan
from tidegate.engine.detect.events.occurrences.instances import (
    NONE,
    Arrivals,
    Bools,
    Carry,
    Flow,
    Instances,
    Moment,
    Pending,
)
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Context

PAIRS_MAX = 2_000_000  # that are asked at once
LEFT_MAX = 50_000_000  # pairs of one bucket of which a condition is true: 800 MB
_HOW = {
    Context.RESTRICTED: pair_scan.GREATEST,
    Context.CHRONICLE: pair_scan.CHRONICLE,
    Context.RECENT: pair_scan.RECENT,
    Context.CONTINUOUS: pair_scan.CONTINUOUS,
}


@dataclass(frozen=True, slots=True)
class Pairs(Scan):
    """The choice among the pairs of `a ; b` that a condition leaves. `events`: a and b.

    Carries in one slot the a's of the last `span_micros` that are not used up; in `continuous`
    those that have begun nothing.
    """

    context: Context
    asked: Sifted
    events: tuple[str, str]
    span_micros: int
    carried_per_key_max: int = field(repr=False)
    search_steps_max: int = field(repr=False)
    slots: int = 1

    def scan(self, arrivals: Arrivals, carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        sources = sources_of(arrivals, self.events, [0, 1], -1, apart=False)
        line = _key_by_key(keyed_line(arrivals, NONE, sources, carry[0], moment))
        a, b = self._left(line, moment)
        if self.context is Context.UNRESTRICTED:
            found, used = _alike(line, a, b), np.zeros(len(line.line.row), np.bool_)
        elif self.context is Context.CUMULATIVE:
            offsets, positions, used = pair_scan.unite(line.line, a, b)
            code = line.line.code[positions[offsets[:-1]]]
            found = _unions(line, code, offsets, positions, moment)
        else:
            rank = moment.rank[line.line.row]
            a, b, used = pair_scan.choose(_HOW[self.context], line.line, a, b, rank)
            found = _alike(line, a, b)
        kept = self._kept(line, used, moment)
        check_carried([kept], self.carried_per_key_max)
        return Flow(found.by_end(), Pending(kept.key, kept.start)), (kept,)

    def _left(self, line: KeyedLine, moment: Moment) -> tuple[Int64, Int64]:
        """The pairs of which the condition is true, some at a time."""
        counts = pair_scan.candidates(line.line, self.span_micros)
        if counts.max(initial=0) > self.search_steps_max:
            raise self._too_many(line, int(counts.argmax()))
        columns = [column_of(moment, line.line.row, named) for named in self.asked.named]
        sides = [named.roles[0] for named in self.asked.named]
        names = [str(named.column) for named in self.asked.named]
        small = is_small(self.asked.condition, dict(zip(names, columns, strict=True)))
        found: list[tuple[Int64, Int64]] = []
        left = 0
        for since, until in pairwise(_chunks(counts)):
            a, b = pair_scan.pairs(line.line, counts, since, until)
            at = [(a, b)[side] for side in sides]
            true = decided(self.asked, columns, at, len(a), small=small)
            found.append((a[true], b[true]))
            left += len(found[-1][0])
            if left > LEFT_MAX:
                raise self._too_many_left()
        parts = found or [(np.empty(0, np.int64),) * 2]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _too_many(self, line: KeyedLine, position: int) -> LimitError:
        return LimitError(
            "search-steps",
            f"choosing among the instances at {line.line.time[position]} us takes more than"
            f" {self.search_steps_max} steps (setting search_steps_max)",
            "bound the expression by a shorter `within`, or raise search_steps_max",
            int(line.real[line.line.code[position]]),
        )

    def _too_many_left(self) -> LimitError:
        return LimitError(
            "search-steps",
            f"the condition leaves more than {LEFT_MAX:,} pairs in one bucket",
            "bound the expression by a shorter `within`, or lower bucket_rows_max",
        )

    def _kept(self, line: KeyedLine, used: Bools, moment: Moment) -> Instances:
        since = moment.watermark + 1 - self.span_micros
        left = np.flatnonzero((line.line.source == 0) & (line.line.time >= since) & ~used)
        return line.alike(line.line.code[left], left[:, None]).by_end()


def pair_of(e: x.Expression) -> tuple[tuple[str, str], int] | None:
    """The event types and the longest span of an `a ; b within d` of two event types, months left
    out; None for another expression."""
    match e:
        case x.Within(part=x.Seq(first=x.Name(name=a), then=x.Name(name=b)), duration=duration) if (
            duration.fixed and a != b
        ):
            return (a, b), duration.micros
    return None


def _chunks(counts: Int64) -> list[int]:
    """Bounds of positions between which there are about `PAIRS_MAX` pairs."""
    sums = np.cumsum(counts)
    total = int(sums[-1]) if len(sums) else 0
    inner = np.searchsorted(sums, np.arange(PAIRS_MAX, total, PAIRS_MAX)) + 1
    return [*np.unique([0, *inner.tolist(), len(counts)]).tolist()]


def _key_by_key(line: KeyedLine) -> KeyedLine:
    """The line with the positions of each key beside each other."""
    own = line.line
    order = np.argsort(own.code, kind="stable")
    columns = own.source[order], own.code[order], own.time[order], own.row[order]
    return replace(line, line=Line(*columns, own.carried, own.codes, own.rows))


def _alike(line: KeyedLine, a: Int64, b: Int64) -> Instances:
    return line.alike(line.line.code[b], np.stack([a, b], axis=1))


def _unions(
    line: KeyedLine, code: Int64, offsets: Int64, positions: Int64, moment: Moment
) -> Instances:
    """Unions as instances: their entries are sorted before their ends are taken."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((line.line.time[positions], owner))
    return by_rank(line.instances(code.astype(np.int32), offsets, positions[order]), moment)
