"""What a run of a backtest found: the firings of all buckets in one table, and as JSON lines.

Example: two buckets hold three firings of `a` and one of `b`. The table has four rows in order of
their ends; those of the warm-up are left out.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.columns.hashing import row_hash, sum_by_offsets
from tidegate.engine.core.columns.ids import as_binary, as_hex
from tidegate.engine.core.parameters import ENGINE_COLUMNS, INSTANT
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import DAMPED, Firings
from tidegate.engine.replay.backtest.model import FIRINGS
from tidegate.engine.store.firings import rule_firings

_WHERE = ("event_type", "occurred_at")
_ORDER = [(name, "ascending") for name in ("end", "rule", "key", "start", "firing_id")]


def by_rule(stored: Mapping[tuple[int, str], Firings], begin: int, end: int) -> dict[str, Firings]:
    """The firings of all buckets that end in [begin, end], microseconds, by rule. `stored`: by
    bucket and rule."""
    found: dict[str, list[Firings]] = {}
    for (_, rule), fired in sorted(stored.items()):
        found.setdefault(rule, []).append(fired)
    whole = {rule: _within(_joined(parts), begin, end) for rule, parts in found.items()}
    return {rule: fired for rule, fired in whole.items() if len(fired)}


def _joined(parts: list[Firings]) -> Firings:
    sources = [part.sources for part in parts if part.sources is not None]
    return Firings(
        parts[0].rule,
        _concatenated(part.firings for part in parts),
        _concatenated(part.relation for part in parts),
        _concatenated(sources) if len(sources) == len(parts) else None,
    )


def _concatenated(tables: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="permissive")


def _within(fired: Firings, begin: int, end: int) -> Firings:
    ends = fired.firings["detected_at"].cast(pa.int64())
    return fired.some(pc.and_(pc.greater_equal(ends, begin), pc.less_equal(ends, end)))


def shared_columns(runs: Iterable[Mapping[str, Firings]]) -> dict[str, frozenset[str]]:
    """By rule, the parameters by which constituents are compared: those that all runs read."""
    found: dict[str, frozenset[str]] = {}
    for run in runs:
        for rule, fired in run.items():
            own = _parameters(fired)
            found[rule] = found.get(rule, own) & own
    return found


def _parameters(fired: Firings) -> frozenset[str]:
    labels = pc.unique(fired.rows["label"]).drop_null().to_pylist()
    spans = {f"{label}_{side}" for label in labels for side in ("start", "end")}
    return frozenset(fired.rows.column_names) - ENGINE_COLUMNS.keys() - spans


def firings_of(
    found: Mapping[str, Firings], columns: Mapping[str, Collection[str]] | None = None
) -> pa.Table:
    """The table of `FIRINGS`. `columns`: by rule, the parameters that tell constituents apart."""
    shared = shared_columns([found]) if columns is None else columns
    tables = [_table(fired, shared[rule]) for rule, fired in found.items()]
    return pa.concat_tables([FIRINGS.empty_table(), *tables]).sort_by(_ORDER)


def _table(fired: Firings, columns: Collection[str]) -> pa.Table:
    own, count = fired.firings, len(fired)
    damped = own[DAMPED] if DAMPED in own.column_names else pa.nulls(count, pa.string())
    made = {
        "rule": pa.repeat(pa.scalar(fired.rule, pa.string()), count),
        "firing_id": fired.hex_ids(),
        "key": _keys(fired),
        "start": own["started_at"].cast(INSTANT),
        "end": own["detected_at"].cast(INSTANT),
        "condition": own["condition"],
        "damped": damped,
        "depth": own["depth"],
        "constituents": own["constituents"],
        "made_of": _digests(fired, columns),
    }
    return pa.table(made, schema=FIRINGS)


def _keys(fired: Firings) -> pa.Array:
    """The keys as JSON. Each is written once."""
    columns = fired.firings.select(fired.key_names)
    if not columns.num_columns:
        return pa.repeat(pa.scalar("{}"), len(fired))
    code = as_binary(row_hash(columns)).dictionary_encode().indices
    first = np.unique(code.to_numpy(), return_index=True)[1]
    texts = [json_text.text(row) for row in python_rows(columns.take(pa.array(first)))]
    return pa.array(texts, pa.string()).take(code)


def _digests(fired: Firings, columns: Collection[str]) -> pa.Array:
    """A digest of each firing's constituents, in any order: their event types, times, versions or
    signals, and parameters."""
    rows = fired.rows.select([*_WHERE, *sorted(columns)])
    if fired.sources is not None:
        for name in fired.sources.column_names:
            rows = rows.append_column(f"\0{name}", fired.sources[name])
    return as_hex(sum_by_offsets(row_hash(rows), fired.offsets))


def lines(found: Mapping[str, Firings]) -> Iterator[dict[str, Any]]:
    """The firings, by rule, as `firings --json` prints them, in order of (end, rule). There are no
    entries, and no bucket: how the past is cut says nothing."""
    streams = (rule_firings({}, fired, (), None, None) for _, fired in sorted(found.items()))
    for _, firing in heapq.merge(*streams, key=lambda timed: (timed[0], timed[1]["rule"])):
        del firing["entries"]
        yield firing
