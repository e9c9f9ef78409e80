"""Which detections of a simulation `run` would drop, if every `if` let them through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.columns.hashing import row_hash
from tidegate.engine.core.columns.ids import as_hex, key_ids, repeat_ids
from tidegate.engine.core.damping_memory import MEMORY, kind_names
from tidegate.engine.core.values import Batch, Detections, UInt64
from tidegate.engine.evaluate.damping.judge import Candidates, judge
from tidegate.rules.model import Damping, Dedupe, Rulebook

if TYPE_CHECKING:
    from tidegate.engine.replay.conditions import Outcomes

FORGOTTEN_FROM = 10_000
_NONE: Mapping[str, Outcomes] = {}


@dataclass(slots=True)
class _Memory:
    """What is remembered of one rule, by kind and id: until when, and the instants."""

    rows: dict[tuple[int, str], tuple[int, bytes]] = field(default_factory=dict)
    full: int = field(default_factory=lambda: FORGOTTEN_FROM)

    def recall(self, wanted: pa.Table) -> pa.Table:
        asked = zip(wanted["kind"].to_pylist(), wanted["id"].to_pylist(), strict=True)
        found = [(*one, *self.rows[one]) for one in asked if one in self.rows]
        columns = zip(*found, strict=True) if found else [()] * len(MEMORY)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, MEMORY, strict=True)]
        return pa.table(arrays, schema=MEMORY)

    def learn(self, rows: pa.Table, instant: int) -> None:
        """Remember rows; those that say nothing after an instant are forgotten now and then."""
        columns = [rows[name].to_pylist() for name in MEMORY.names]
        for kind, id, until, instants in zip(*columns, strict=True):
            self.rows[kind, id] = until, instants
        if len(self.rows) > self.full:
            self.rows = {one: row for one, row in self.rows.items() if row[0] > instant}
            self.full = max(FORGOTTEN_FROM, 2 * len(self.rows))


class Damper:
    """The damping of a simulation. `levels`: hysteresis is asked, and not left out."""

    def __init__(self, book: Rulebook, *, levels: bool = False) -> None:
        asked = {
            rule.name: rule.damping if levels else replace(rule.damping, hysteresis=None)
            for rule in book.rules.values()
            if rule.damping is not None
        }
        self._damping = {name: d for name, d in asked.items() if d != Damping()}
        self._memory = {name: _Memory() for name in self._damping}

    def damp(
        self, found: Iterable[Detections], outcomes: Mapping[str, Outcomes] = _NONE
    ) -> Mapping[str, pa.StringArray]:
        """By rule, what drops each of its next detections; null where nothing does. `outcomes`: of
        the rules that were asked. Detections that failed or are dead are passed over."""
        return {
            each.rule: self._of_rule(each, outcomes.get(each.rule))
            for each in found
            if each.rule in self._damping and len(each)
        }

    def _of_rule(self, found: Detections, outcomes: Outcomes | None) -> pa.StringArray:
        damping, memory = self._damping[found.rule], self._memory[found.rule]
        held = np.ones(len(found), np.bool_)
        if outcomes is not None:
            passed = pc.is_in(outcomes.condition, pa.array(["held", "unasked"]))
            held = passed.to_numpy(zero_copy_only=False)
        keys, kinds = key_ids(found.keys, len(found)), np.zeros(len(found), np.uint8)
        same = None if damping.dedupe is None else _repeats(found, keys, damping.dedupe)
        asked = Candidates(
            as_hex(keys[held]),
            found.end[held],
            None if same is None else as_hex(same[held]),
            None if outcomes is None or outcomes.fires is None else outcomes.fires[held],
            None if outcomes is None or outcomes.rearms is None else outcomes.rearms[held],
        )
        if held.any():
            judged = judge(damping, asked, memory.recall)
            memory.learn(judged.memory, int(found.end[-1]))
            kinds[held] = judged.kinds
        return kind_names(kinds)


def _repeats(found: Detections, keys: UInt64, dedupe: Dedupe) -> UInt64:
    """Ids of what detections repeat: of the fields of their constituents."""
    by = [name for name in dedupe.by if name not in found.keys.column_names]

    def hashes(_: str, batch: Batch) -> UInt64:
        there = [name for name in by if name in batch.table.column_names]
        table = batch.table.select(there).take(pa.array(batch.row))
        return row_hash(table) if there else np.zeros((len(batch), 2), np.uint64)

    rows = found.gathered(hashes, np.zeros((len(found.event_row), 2), np.uint64))
    return repeat_ids(keys, by, rows, found.offsets)
