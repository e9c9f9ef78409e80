"""The kernel against the reference, whatever the buckets."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tests.evaluate.damping.reference import Firing, Memory, damped
from tidegate.engine.core.damping_memory import kind_names
from tidegate.engine.evaluate.damping.judge import Candidates, judge
from tidegate.rules.errors import Place
from tidegate.rules.model import DAMPINGS, Condition, Damping, Dedupe, Hysteresis, Throttle

WHEN = Condition("", False, Place())
LEVELS = Hysteresis(WHEN, WHEN)
ROUNDS = 400


class Remembered:
    """The rows that a rule remembers; those that have run out may be forgotten."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, str], tuple[int, bytes]] = {}

    def recall(self, wanted: pa.Table) -> pa.Table:
        asked = zip(wanted["kind"].to_pylist(), wanted["id"].to_pylist(), strict=True)
        found = [(*one, *self.rows[one]) for one in asked if one in self.rows]
        columns = zip(*found, strict=True) if found else [()] * 4
        types = (pa.int8(), pa.string(), pa.int64(), pa.binary())
        arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
        return pa.table(arrays, ["kind", "id", "until", "instants"])

    def learn(self, memory: pa.Table) -> None:
        for row in memory.to_pylist():
            self.rows[row["kind"], row["id"]] = row["until"], row["instants"]

    def forget(self, instant: int) -> None:
        self.rows = {one: row for one, row in self.rows.items() if row[0] > instant}


def judged(damping: Damping, firings: Sequence[Firing], known: Remembered) -> list[str | None]:
    asked = Candidates(
        pa.array([f.key for f in firings], pa.string()),
        np.array([f.at for f in firings], np.int64),
        pa.array([f"{f.key}/{f.repeats}" for f in firings], pa.string())
        if damping.dedupe
        else None,
        np.array([f.fires for f in firings], np.bool_),
        np.array([f.rearms for f in firings], np.bool_),
    )
    found = judge(damping, asked, known.recall)
    before = len(known.rows)
    known.learn(found.memory)
    assert found.fresh <= len(known.rows) - before or not damping.dedupe
    names: list[str | None] = kind_names(found.kinds).to_pylist()
    return names


def drawn(chance: random.Random) -> tuple[Damping, list[Firing]]:
    damping = Damping(
        LEVELS if chance.random() < 0.4 else None,
        Dedupe(("x",), chance.randint(1, 20)) if chance.random() < 0.5 else None,
        chance.randint(1, 8) if chance.random() < 0.5 else None,
        Throttle(chance.randint(1, 4), chance.randint(1, 30)) if chance.random() < 0.6 else None,
    )
    at, firings = 0, []
    for _ in range(chance.randint(0, 60)):
        at += chance.choice((0, 0, 1, 1, 2, 5))
        fires, rearms = chance.random() < 0.6, chance.random() < 0.5
        firings.append(Firing(chance.choice("abc"), at, chance.choice("xy"), fires, rearms))
    return damping, firings


def test_what_is_dropped_is_what_the_reference_drops_however_the_history_is_cut() -> None:
    kinds, over_a_cut = Counter[str | None](), 0
    for seed in range(ROUNDS):
        chance = random.Random(seed)
        damping, firings = drawn(chance)
        right = [*damped(damping, firings, Memory())]
        cuts = sorted({0, len(firings), *(chance.randint(0, len(firings)) for _ in range(4))})
        known, found = Remembered(), []
        for first, end in pairwise(cuts):
            part = judged(damping, firings[first:end], known)
            found += part
            if first and part and part[0] is not None:
                over_a_cut += 1
            if chance.random() < 0.5 and end < len(firings):
                known.forget(firings[end].at)  # as the watermark lets
        assert found == right, (seed, damping)
        kinds.update(found)
    assert kinds.keys() == {None, *DAMPINGS}
    assert min(kinds.values()) > 300, kinds
    assert over_a_cut > 100


def test_a_firing_at_the_very_end_of_the_time_passes() -> None:
    at = [Firing("a", t) for t in (0, 9, 10, 19, 20)]
    every = [None, "cooldown", None, "cooldown", None]
    assert judged(Damping(cooldown_micros=10), at, Remembered()) == every
    twice = Damping(throttle=Throttle(2, 10))
    assert judged(twice, at, Remembered()) == [None, None, None, None, None]
    assert judged(twice, [Firing("a", t) for t in (0, 1, 9, 10, 11)], Remembered()) == [
        None, None, "throttle", None, None,
    ]  # fmt: skip


def test_what_is_dropped_leaves_no_trace_but_for_the_level() -> None:
    """The firing at 5 is dropped by the cooldown, so that at 10 there is nothing to repeat; yet it
    has disarmed its key."""
    known = Remembered()
    both = Damping(dedupe=Dedupe(("x",), 100), cooldown_micros=10)
    firings = [Firing("a", 0, "x"), Firing("a", 5, "y"), Firing("a", 10, "y"), Firing("a", 30, "y")]
    assert judged(both, firings, known) == [None, "cooldown", None, "dedupe"]
    levels = Damping(LEVELS, cooldown_micros=10)
    known = Remembered()
    told = [Firing("a", 0), Firing("a", 1, rearms=True), Firing("a", 2), Firing("a", 20)]
    assert judged(levels, told, known) == [None, "hysteresis", "cooldown", "hysteresis"]


def test_a_firing_that_is_judged_late_is_as_late_as_what_has_passed() -> None:
    """A condition that is redriven is asked after later ones."""
    known = Remembered()
    assert judged(Damping(cooldown_micros=10), [Firing("a", 100)], known) == [None]
    assert judged(Damping(cooldown_micros=10), [Firing("a", 5)], known) == ["cooldown"]
    known, thrice = Remembered(), Damping(throttle=Throttle(3, 10))
    assert judged(thrice, [Firing("a", 100)], known) == [None]
    assert judged(thrice, [Firing("a", 5), Firing("a", 6), Firing("a", 7)], known) == [
        None, None, "throttle",
    ]  # fmt: skip
    assert judged(thrice, [Firing("a", 109), Firing("a", 110)], known) == ["throttle", None]


def test_a_firing_that_is_judged_late_does_not_let_the_window_be_forgotten() -> None:
    """It passes after a younger one, which counts until its own time is over."""
    known, twice = Remembered(), Damping(throttle=Throttle(2, 10))
    assert judged(twice, [Firing("a", 100)], known) == [None]
    assert judged(twice, [Firing("a", 5)], known) == [None]
    known.forget(105)
    assert judged(twice, [Firing("a", 109)], known) == ["throttle"]
    known.forget(110)
    assert judged(twice, [Firing("a", 110)], known) == [None]


def test_a_rate_that_is_edited_counts_what_is_remembered() -> None:
    known, at = Remembered(), [Firing("a", t) for t in range(5)]
    assert judged(Damping(throttle=Throttle(4, 100)), at, known)[-1] == "throttle"
    assert judged(Damping(throttle=Throttle(2, 100)), [Firing("a", 101)], known) == ["throttle"]
    assert judged(Damping(throttle=Throttle(2, 100)), [Firing("a", 102)], known) == [None]
    assert judged(Damping(throttle=Throttle(5, 100)), [Firing("a", 102)], known) == [None]
