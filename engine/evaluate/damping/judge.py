"""Damping of one rule: some firings are dropped; of the others it remembers rows.

Example: `cooldown: 10 s`, firings of key 7 at 9:00:00 and 9:00:04. The first passes, the second is
dropped. The row of key 7 then has the instant 9:00:00 and expires at 9:00:10.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.core.damping_memory import MEMORY, Known, Recall, rows, wanted
from tidegate.engine.core.values import FOREVER, Int64
from tidegate.engine.evaluate.damping.kernel import (
    COOLDOWN,
    DEDUPE,
    HYSTERESIS,
    NEVER,
    THROTTLE,
    damp,
)
from tidegate.rules.model import Damping

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The firings of one rule whose condition holds, in their order.

    key[n]: the id of the key. at[n]: the instant. same[n]: with dedupe, the id of the values by
    which a firing repeats another. fires[n], rearms[n]: with hysteresis, whether its conditions
    hold.
    """

    key: pa.StringArray
    at: Int64
    same: pa.StringArray | None = None
    fires: Bools | None = None
    rearms: Bools | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """`kinds`: what dropped each firing, 0 = nothing. `memory`: the rows that changed. `fresh`: how
    many rows of dedupe are new."""

    kinds: npt.NDArray[np.uint8]
    memory: pa.Table
    fresh: int


def judge(damping: Damping, asked: Candidates, recall: Recall) -> Judged:
    """Decide on the firings of one rule. `recall` looks up the rows of their keys."""
    state = _State(damping, asked, recall)
    none = np.zeros(0, np.bool_)
    damp(
        state.order,
        state.begin,
        asked.at,
        none if asked.fires is None else asked.fires,
        none if asked.rearms is None else asked.rearms,
        state.same,
        damping.hysteresis is not None,
        damping.dedupe.within_micros if damping.dedupe else 0,
        damping.cooldown_micros or 0,
        damping.throttle.count if damping.throttle else 0,
        damping.throttle.within_micros if damping.throttle else 0,
        state.armed,
        state.last,
        state.seen,
        state.window,
        state.head,
        state.tail,
        state.verdict,
    )
    return Judged(state.verdict, pa.concat_tables(state.changed()), state.fresh())


class _State:
    """The arrays of the kernel `damp`: loaded from the memory, then changed by the kernel."""

    def __init__(self, damping: Damping, asked: Candidates, recall: Recall) -> None:
        self.damping, self.asked = damping, asked
        coded = asked.key.dictionary_encode()
        self.keys: pa.StringArray = coded.dictionary
        code = coded.indices.to_numpy()
        counts = np.bincount(code, minlength=len(self.keys))
        self.order: Int64 = np.argsort(code, kind="stable")
        self.begin: Int64 = np.concatenate([[0], np.cumsum(counts)])
        self.same: Int64 = np.zeros(0, np.int64)
        self.repeats: pa.StringArray = pa.array([], pa.string())
        if asked.same is not None:
            coded = asked.same.dictionary_encode()
            self.same = coded.indices.to_numpy().astype(np.int64)
            self.repeats = coded.dictionary
        remembered = recall(self._wanted())
        self.armed = np.ones(len(self.keys), np.bool_)
        self.last: Int64 = np.full(len(self.keys), NEVER, np.int64)
        self.seen: Int64 = np.full(len(self.repeats), NEVER, np.int64)
        self.verdict = np.zeros(len(asked.at), np.uint8)
        levels = Known(remembered, HYSTERESIS, self.keys)
        self.armed[levels.place[levels.until == FOREVER]] = False
        cooled = Known(remembered, COOLDOWN, self.keys)
        self.last[cooled.place] = cooled.flat
        seen = Known(remembered, DEDUPE, self.repeats)
        self.seen[seen.place] = seen.flat
        self.before = self.armed.copy(), self.seen.copy()
        self._fill_window(Known(remembered, THROTTLE, self.keys), counts)

    def _wanted(self) -> pa.Table:
        damping = self.damping
        kinds = {
            HYSTERESIS: damping.hysteresis,
            COOLDOWN: damping.cooldown_micros,
            THROTTLE: damping.throttle,
        }
        found = [wanted(kind, self.keys) for kind, asks in kinds.items() if asks is not None]
        return pa.concat_tables([*found, wanted(DEDUPE, self.repeats)])

    def _fill_window(self, known: Known, counts: Int64) -> None:
        """Make the window of each key: its remembered instants, and room for one a firing.

        Example: keys with 2 and 0 remembered instants, and 1 and 3 firings: head [0, 3], tail
        [2, 3], 6 slots."""
        kept = np.zeros(len(self.keys), np.int64)
        kept[known.place] = known.counts
        ends = np.cumsum(kept + counts)
        self.head: Int64 = ends - kept - counts
        self.tail: Int64 = self.head + kept
        self.window: Int64 = np.zeros(int(ends[-1]) if len(ends) else 0, np.int64)
        within = np.arange(len(known.flat)) - np.repeat(
            np.cumsum(known.counts) - known.counts, known.counts
        )
        self.window[np.repeat(self.head[known.place], known.counts) + within] = known.flat

    def changed(self) -> list[pa.Table]:
        """The rows of the memory that changed."""
        damping, found = self.damping, [MEMORY.empty_table()]
        passed = np.zeros(len(self.keys), np.bool_)
        through = self.order[self.verdict[self.order] == 0]
        codes = np.repeat(np.arange(len(self.keys)), np.diff(self.begin))
        passed[codes[self.verdict[self.order] == 0]] = True
        if damping.hysteresis is not None:
            turned = np.flatnonzero(self.armed != self.before[0])
            until = np.where(self.armed[turned], 0, FOREVER)
            ids = self.keys.take(pa.array(turned))
            none = np.zeros(len(turned), np.int64)
            found.append(rows(HYSTERESIS, ids, until, none, none[:0]))
        if damping.cooldown_micros is not None:
            found.append(_latest(COOLDOWN, self.keys, passed, self.last, damping.cooldown_micros))
        if damping.throttle is not None:
            found.append(self._windows(np.flatnonzero(passed), damping.throttle.within_micros))
        if damping.dedupe is not None:
            repeated = np.zeros(len(self.repeats), np.bool_)
            repeated[self.same[through]] = True
            length = damping.dedupe.within_micros
            found.append(_latest(DEDUPE, self.repeats, repeated, self.seen, length))
        return found

    def _windows(self, keys: Int64, length: int) -> pa.Table:
        """The rows of throttle for these keys: the last instants of each, as many as the rate."""
        rate = self.damping.throttle.count if self.damping.throttle else 0
        tail = self.tail[keys]
        counts = np.minimum(tail - self.head[keys], rate)
        ends = np.cumsum(counts)
        at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(tail - ends, counts)
        until = self.window[tail - 1] + length
        return rows(THROTTLE, self.keys.take(pa.array(keys)), until, counts, self.window[at])

    def fresh(self) -> int:
        return int(np.count_nonzero((self.before[1] == NEVER) & (self.seen != NEVER)))


def _latest(kind: int, ids: pa.StringArray, changed: Bools, latest: Int64, length: int) -> pa.Table:
    """Rows with one instant each, for the ids that `changed`."""
    some = np.flatnonzero(changed)
    ones, instants = np.ones(len(some), np.int64), latest[some]
    return rows(kind, ids.take(pa.array(some)), instants + length, ones, instants)
