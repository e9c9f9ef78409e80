"""Entries that overlap, and those that do not (G15, G17)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.acting import FakeLedger, FakeSink, Unasked, executors
from tests.support.make import firings, numbered
from tests.support.rulebooks import rule, rulebook
from tidegate.engine.act.run import Runner
from tidegate.engine.act.threads import Crew
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.values import Firings
from tidegate.rules.errors import EngineError

HELD = firings("a", condition=["held"])
NAMES = "abcdef"
WAIT = 20  # seconds that a test waits for what never comes


class Watched(FakeSink):
    """Each statement runs until as many have met as `together` says, or a moment has passed: which
    ones ran at the same time, and how many at most."""

    def __init__(self, moment: float = 0.2) -> None:
        super().__init__()
        self.moment, self.now, self.pairs = moment, set[int](), set[tuple[int, int]]()
        self.lock, self.order = threading.Lock(), list[int]()
        self.gates: dict[int, threading.Event] = {}
        self.raises: dict[int, Exception] = {}

    def run(self, entry: Entry, firings: Firings) -> None:
        number = entry.number
        with self.lock:
            self.order.append(number)
            self.pairs |= {(min(n, number), max(n, number)) for n in self.now}
            self.now.add(number)
        gate = self.gates.get(number)
        if gate is None:
            threading.Event().wait(self.moment)
        else:
            assert gate.wait(WAIT)
        with self.lock:
            self.now.discard(number)
        if number in self.raises:
            raise self.raises[number]
        super().run(entry, firings)


def runner(sink: FakeSink, size: int = 6, **more: Any) -> Runner:
    book = rulebook(*(rule(name=name) for name in NAMES))
    crew = Crew("test", size)
    run = executors(sink, lambda: 0)
    return Runner(book, run, FakeLedger(HELD), lambda: None, lambda: 0, crew, **more)


def met(entries: Sequence[Entry], size: int = 6) -> tuple[set[tuple[int, int]], list[int]]:
    """The pairs that overlapped, and the order in which entries began."""
    sink = Watched()
    one = runner(sink, size)
    one.add(entries, [])
    assert one.work(Unasked()) == len(entries)
    return sink.pairs, sink.order


APPEND = {"target": "x", "appends": True}


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ({"target": "x"}, {"target": "y"}, True),
        ({"target": "x"}, {"target": "x"}, False),
        (APPEND, APPEND, True),
        (APPEND, {"target": "x"}, False),
        ({**APPEND, "reads": frozenset({"x"})}, APPEND, False),
        ({"target": "x"}, {"target": "y", "reads": frozenset({"x"})}, False),
        ({"target": "y", "reads": frozenset({"x"})}, {"target": "x"}, False),
        ({"target": "x"}, {"target": "y", "stage": 1}, False),
    ],
)
def test_g15_entries_overlap_unless_tables_or_order_part_them(
    first: dict[str, Any], second: dict[str, Any], overlap: bool
) -> None:
    pairs, order = met([numbered(1, "a", **first), numbered(2, "b", **second)])
    assert (pairs == {(1, 2)}) is overlap
    assert overlap or order == [1, 2]


def test_g15_nobody_overtakes_one_that_waits_for_its_tables() -> None:
    """The second waits for the first, and the third for the second, not for the first."""
    entries = [numbered(1, "a", target="x"), numbered(3, "c", target="z")]
    waits = numbered(2, "b", target="y", reads=frozenset({"x", "z"}))
    pairs, order = met([*entries, waits])
    assert (pairs, order) == (set(), [1, 2, 3])


def test_g17_entries_of_a_rule_never_overlap_and_run_in_order() -> None:
    pairs, order = met([numbered(n, "ab"[n % 2], target=f"t{n}") for n in range(1, 7)])
    assert all((first + second) % 2 for first, second in pairs)
    assert [n for n in order if n % 2] == [1, 3, 5]
    assert [n for n in order if not n % 2] == [2, 4, 6]
    assert pairs


def test_no_more_run_at_a_time_than_the_crew_has_hands() -> None:
    pairs, _ = met([numbered(n, NAMES[n], target=f"t{n}") for n in range(6)], size=1)
    assert pairs == set()


def test_g17_detached_entries_are_not_waited_for_and_wake_the_loop_when_they_end() -> None:
    sink, woken = Watched(), threading.Event()
    sink.gates[1] = threading.Event()
    one = runner(sink, wake=woken.set)
    one.add([numbered(1, "a", stage=None), numbered(2, "b"), numbered(3, "c", stage=1)], [])
    assert one.work(Unasked()) == 2
    assert sink.committed == [2, 3]
    assert not woken.is_set()
    sink.gates[1].set()
    assert woken.wait(WAIT)
    assert one.work(Unasked()) == 1
    assert len(one.queues) == 0


def test_g17_detached_entries_leave_the_others_their_hands() -> None:
    sink, aside = Watched(), Crew("aside", 1)
    sink.gates[1] = threading.Event()
    one = runner(sink, size=1, aside=aside)
    one.add([numbered(1, "a", stage=None), numbered(2, "b")], [])
    assert one.work(Unasked()) == 1
    assert sink.committed == [2]
    sink.gates[1].set()
    assert one.work(Unasked(), patient=True) == 1


def test_a_patient_look_waits_for_detached_entries() -> None:
    sink = Watched()
    one = runner(sink)
    one.add([numbered(n, "a", stage=None) for n in (1, 2)], [])
    assert one.work(Unasked(), patient=True) == 2


def test_g21_what_still_runs_when_the_lease_is_lost_has_ended_before_the_next_look() -> None:
    sink = Watched(moment=0.5)
    sink.raises[1] = EngineError("lease-lost", "lost", "let the other go on")
    sink.gates[1] = threading.Event()
    sink.gates[1].set()
    one = runner(sink)
    entries = [numbered(1, "a"), numbered(2, "b", target="y")]
    one.add(entries, [])
    with pytest.raises(EngineError, match="lost"):
        one.work(Unasked())
    assert sink.committed == []
    one.load(entries[1:])
    assert sink.committed == [2]
    assert one.work(Unasked()) == 1
    assert sink.committed == [2]  # its log is asked, it does not run again
