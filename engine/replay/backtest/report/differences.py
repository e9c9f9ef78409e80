"""The difference between two backtests for people: sentences and rows, and lines for a terminal.

The two are called 1 and 2. Example of a row of what is only in 1:

    2026-03-02 07:00:05  pay  account_id=7  4 constituents; in 2: damped
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from rich.cells import cell_len

from tidegate.engine.core.text.layout import columns, counted, cut, wrapped
from tidegate.engine.core.text.printable import in_line
from tidegate.engine.replay.backtest.against import Difference
from tidegate.engine.replay.backtest.report.labels import (
    WORDS,
    instant_labels,
    key_label,
    parked_labels,
)

COUNTS = ("only in 1", "only in 2", "of other constituents", "the same")
"""Columns of the table by rule: counts of firings."""
ROWS = ("end", "rule", "key", "firing")
"""Columns of the rows of a kind."""
ROWS_MAX = 20
"""Rows of a kind that a terminal shows: the first."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the three kinds of difference. `rows`: the first out of `count`, with the cells
    `ROWS`; those of rules that both have before others."""

    title: str
    count: int
    rows: Sequence[tuple[str, str, str, str]]


def sentences(found: Difference) -> list[str]:
    """How much differs; the rules that only one of the rulebooks has; what limits would park."""
    said = f"no firing differs, {found.same:,} are the same"
    if found.count:
        differs = "firing differs" if found.count == 1 else "firings differ"
        said = (
            f"{found.count:,} {differs}: {len(found.only_one):,} only in 1, "
            f"{len(found.only_other):,} only in 2, {len(found.differing_one):,} in both, but of "
            f"other constituents; {found.same:,} are the same"
        )
    alone = {
        "1": [rule.name for rule in found.rules if not rule.in_other],
        "2": [rule.name for rule in found.rules if not rule.in_one],
    }
    names = [f"rules that only {n} has: {', '.join(rules)}" for n, rules in alone.items() if rules]
    notes = [note for note in found.other.notes if note not in found.one.notes]
    return [said, *names, *(f"2: {line}" for line in [*notes, *parked_labels(found.other)])]


def by_rule_rows(found: Difference) -> list[tuple[str, int, int, int, int]]:
    """A row for each rule: its name, and `COUNTS`."""
    return [(r.name, r.only_one, r.only_other, r.differing, r.same) for r in found.rules]


def kinds(found: Difference, rows_max: int) -> Iterator[Kind]:
    """The kinds that there are, with at most so many rows each."""
    for number, table in ((1, found.only_one), (2, found.only_other)):
        if len(table):
            yield _only(found, number, table, rows_max)
    if len(found.differing_one):
        first, second = (
            table.slice(0, rows_max) for table in (found.differing_one, found.differing_other)
        )
        pairs = zip(_made_of(found, first), _made_of(found, second), strict=True)
        said = [f"1: {one}; 2: {other}" for one, other in pairs]
        rows = [*_rows(found, first, said)]
        yield Kind("in both, but of other constituents", len(found.differing_one), rows)


def difference_lines(found: Difference, width: int) -> Iterator[str]:
    """The lines for a terminal; none is wider than `width`."""
    for number, side in enumerate((found.one, found.other), 1):
        yield from wrapped(f"{number}: {side.label}", width)
    for sentence in sentences(found):
        yield from wrapped(sentence, width, "  ")
    if not found.count:
        return
    yield ""
    yield from columns(("rule", *COUNTS), by_rule_rows(found), width)
    for kind in kinds(found, ROWS_MAX):
        yield ""
        yield from wrapped(kind.title, width)
        for end, rule, key, said in kind.rows:
            where = f"  {end}  {rule}" + (f"  {key}" if key else "")
            if cell_len(in_line(where)) + len(said) + 2 <= width:
                yield in_line(f"{where}  {said}")
            else:
                yield cut(where, width)
                yield from wrapped(said, width, "    ")
        if len(kind.rows) < kind.count:
            yield f"  .. and {kind.count - len(kind.rows):,} more"


def _only(found: Difference, number: int, table: pa.Table, rows_max: int) -> Kind:
    """Rows of rules that both have stand first: a rule that is new differs in all of its own."""
    both = pa.array([rule.name for rule in found.rules if rule.in_one and rule.in_other])
    shared = pc.is_in(table["rule"], both.cast(pa.string()))
    ordered = pa.concat_tables([table.filter(shared), table.filter(pc.invert(shared))])
    first = ordered.slice(0, rows_max)
    otherwise = first["otherwise"].to_pylist()
    there = [f"; in {3 - number}: {WORDS[fate]}" if fate else "" for fate in otherwise]
    counts = [counted(count, "constituent") for count in first["constituents"].to_pylist()]
    said = [count + other for count, other in zip(counts, there, strict=True)]
    return Kind(f"only in {number}", len(table), [*_rows(found, first, said)])


def _made_of(found: Difference, table: pa.Table) -> Iterator[str]:
    starts = instant_labels(table["start"].cast(pa.int64()).to_numpy(), found.one.span.zone)
    for count, start in zip(table["constituents"].to_pylist(), starts, strict=True):
        yield f"{counted(count, 'constituent')} from {start}"


def _rows(
    found: Difference, table: pa.Table, said: Sequence[str]
) -> Iterator[tuple[str, str, str, str]]:
    ends = instant_labels(table["end"].cast(pa.int64()).to_numpy(), found.one.span.zone)
    rules, keys = table["rule"].to_pylist(), map(key_label, table["key"].to_pylist())
    yield from zip(ends, rules, keys, said, strict=True)
