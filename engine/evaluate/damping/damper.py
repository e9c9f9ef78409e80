"""Damps the firings of rules by the memory in the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.columns.hashing import row_hash
from tidegate.engine.core.columns.ids import as_hex, key_ids, repeat_ids
from tidegate.engine.core.damping_memory import kind_names
from tidegate.engine.core.ledger import Damping
from tidegate.engine.core.relation_files import in_memory
from tidegate.engine.core.state import ParkingReason
from tidegate.engine.core.values import DAMPED, Answers, Firings, Int64
from tidegate.engine.evaluate.damping.judge import Candidates, judge
from tidegate.engine.evaluate.damping.kernel import DEDUPE
from tidegate.rules.model import Rule

SETTING = "dedupe_keys_max"


class Damped(NamedTuple):
    """Firings with what dropped them, and by rule the rows to remember of the others."""

    firings: tuple[Firings, ...]
    memory: Mapping[str, pa.Table]


@dataclass(slots=True)
class Damper:
    """The damping of one rulebook. Its memory is only in the store, and is read again for each
    bucket. So nothing counts twice if a bucket is taken again.

    An edited rule keeps its memory as long as its key columns keep their names and types. The
    memory of dedupe also begins anew if its columns change.
    """

    store: Damping
    _kept: dict[str, int] = field(default_factory=dict, init=False)  # rows of dedupe, at most
    _fresh: dict[str, int] = field(default_factory=dict, init=False)  # those not stored yet

    def damp(
        self, firings: Iterable[Firings], rules: Mapping[str, Rule], answers: Answers
    ) -> Damped:
        """Damp the firings whose condition holds. Firings of a rule with a detached condition are
        left as they are."""
        found: list[Firings] = []
        memory: dict[str, pa.Table] = {}
        self._fresh = {}
        for of_rule in firings:
            rule = rules[of_rule.rule]
            if rule.damping is not None and not rule.asks_later:
                of_rule, changed = self.damp_rule(of_rule, rule, answers)
                if changed is not None:
                    memory[rule.name] = changed
            found.append(of_rule)
        return Damped(tuple(found), memory)

    def damp_rule(
        self, firings: Firings, rule: Rule, answers: Answers
    ) -> tuple[Firings, pa.Table | None]:
        """Damp the firings of a rule. Returns them with the rows to remember."""
        let = np.asarray(firings.through)
        if rule.damping is None or not let.any():
            return firings, None
        asked = _asked(firings, rule, answers, np.flatnonzero(let))
        recall = partial(self.store.remembered, rule.name)
        judged = judge(rule.damping, asked, recall)
        self._count(rule, judged.fresh)
        kinds = np.zeros(len(firings), np.uint8)
        kinds[let] = judged.kinds
        table = firings.firings.append_column(DAMPED, kind_names(kinds))
        return replace(firings, firings=table), judged.memory

    def _count(self, rule: Rule, fresh: int) -> None:
        """Count the rows of a rule's dedupe. Expired rows may still be counted: `overfull` counts
        again before it acts."""
        if rule.damping is None or rule.damping.dedupe is None:
            return
        if rule.name not in self._kept:
            self._kept[rule.name] = self.store.count(rule.name, DEDUPE, 0)
        self._kept[rule.name] += fresh
        self._fresh[rule.name] = fresh

    def overfull(
        self, limit: int, instant: int, parked: Collection[str]
    ) -> Mapping[str, ParkingReason]:
        """The rules whose dedupe remembers more than `limit` firings after an instant, and why they
        are parked. `parked`: those that are parked already."""
        found = {}
        for rule, count in self._kept.items():
            if count <= limit or rule in parked:
                continue
            count = self.store.count(rule, DEDUPE, instant) + self._fresh.get(rule, 0)
            self._kept[rule] = count
            if count > limit:
                reason = f"its dedupe remembers {count:,} firings, at most {limit:,} ({SETTING})"
                found[rule] = reason, f"make its within: shorter, or raise {SETTING}"
        return found


def _asked(firings: Firings, rule: Rule, answers: Answers, some: Int64) -> Candidates:
    """The input of `judge` for some of a rule's firings."""
    table, index = firings.firings.take(pa.array(some)), pa.array(some)
    keys = key_ids(table.select(firings.key_names), len(some))
    ids = firings.hex_ids().take(index)
    damping = rule.damping
    same = fires = rearms = None
    if damping is not None and damping.dedupe is not None:
        by = [name for name in damping.dedupe.by if name not in firings.key_names]
        all_keys = key_ids(firings.firings.select(firings.key_names), len(firings))
        there = [name for name in by if name in firings.relation.column_names]  # it may be edited
        hashes = np.zeros((len(firings.relation), 2), np.uint64)
        if there:
            hashes = row_hash(in_memory(firings.relation.select(there)))
        repeats = repeat_ids(all_keys, by, hashes, firings.offsets)
        same = as_hex(repeats[some])
    if damping is not None and damping.hysteresis is not None:
        fires = np.asarray(pc.is_in(ids, pa.array(sorted(answers.fires), pa.string())))
        rearms = np.asarray(pc.is_in(ids, pa.array(sorted(answers.rearms), pa.string())))
    at = table["detected_at"].cast(pa.int64()).to_numpy()
    return Candidates(as_hex(keys), at, same, fires, rearms)
