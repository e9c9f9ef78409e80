"""Running entries: in order, retried, settled; what fails holds its rule and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from engine.act.run import Runner, firings_of_entry
from engine.values import Entry
from rules.errors import EngineError
from tests.act.build import FakeSink, Ledger, entry, firings, hex_id, retry, rule, rulebook

HELD = firings("a", ["held", "failed", "held"])


class Run:
    """A runner over fakes; `pauses` are the seconds it slept."""

    def __init__(self, sink: FakeSink, check: Any = lambda: None) -> None:
        self.sink, self.ledger = sink, Ledger()
        self.pauses: list[float] = []
        book = rulebook(rule("a", retry=retry(4)), rule("b"))
        self.runner = Runner(book, sink, self.ledger, check, lambda: 77, self.pauses.append)

    def __call__(self, entries: Sequence[Entry], *, resumed: bool = False) -> int:
        return self.runner.run(entries, lambda _: HELD, resumed=resumed)


def test_entries_run_in_the_order_of_their_numbers() -> None:
    run = Run(FakeSink())
    assert run([entry(3, "a"), entry(1, "b"), entry(2, "a")]) == 3
    assert run.sink.committed == [1, 2, 3]
    assert run.ledger.states == [(1, "done"), (2, "done"), (3, "done")]


def test_dead_and_done_entries_are_left_alone() -> None:
    run = Run(FakeSink())
    run([entry(1, "a", state="dead"), entry(2, "a", state="done"), entry(3, "a")])
    assert run.sink.committed == [3]


def test_an_entry_sees_the_firings_that_it_is_for() -> None:
    run = Run(FakeSink())
    run([entry(1, "a"), entry(2, "a", firing_ids=(hex_id(2),))])
    held, one = run.sink.seen
    assert held.firings["account"].to_pylist() == [0, 2]
    assert held.relation["account"].to_pylist() == [0, 0, 2, 2]
    assert one.relation["account"].to_pylist() == [2, 2]


def test_all_held_is_not_copied() -> None:
    all_held = firings("a", ["held", "none"])
    assert firings_of_entry(entry(1, "a"), all_held) is all_held


def test_failures_are_retried_with_doubling_pauses() -> None:
    run = Run(FakeSink(failing={1: 3}))
    assert run([entry(1, "a")]) == 1
    assert run.pauses == [1.0, 2.0, 3.0]  # the last would be 4, but for the upper bound
    assert [o.attempts for o in run.ledger.outcomes] == [4]


def test_an_entry_that_keeps_failing_stops_the_engine_by_name() -> None:
    run = Run(FakeSink(failing={1: 99}))
    with pytest.raises(EngineError) as stopped:
        run([entry(1, "b", attempts=3)])
    assert stopped.value.code == "action-failed"
    assert (
        "rule b: entry 1 of bucket 9 failed after 6 attempts: [DIVIDE_BY_ZERO] Division by zero."
        in str(stopped.value)
    )
    assert "the next `tidegate run` begins with it" in str(stopped.value)
    assert "; it is INSERT" in str(stopped.value)  # which of the rule's statements
    (outcome,) = run.ledger.outcomes
    assert (outcome.state, outcome.attempts) == ("failed", 6)
    assert outcome.error == "[DIVIDE_BY_ZERO] Division by zero."


def test_g17_a_failing_entry_holds_its_rule_and_nothing_else() -> None:
    run = Run(FakeSink(failing={1: 99}))
    with pytest.raises(EngineError, match="entry 1"):
        run([entry(1, "a"), entry(2, "b"), entry(3, "a"), entry(4, "b")])
    assert run.sink.committed == [2, 4]
    assert run.ledger.states == [(1, "failed"), (2, "done"), (4, "done")]


def test_markers_are_asked_before_a_second_try_only() -> None:
    run = Run(FakeSink(failing={2: 1}))
    run([entry(1, "a"), entry(2, "a")])
    assert run.sink.asked == [2]


def test_a_response_that_was_lost_is_found_by_its_marker() -> None:
    run = Run(FakeSink(failing={1: 1}, landed=[1]))
    assert run([entry(1, "a")]) == 1
    assert run.sink.committed == []
    assert run.ledger.states == [(1, "done")]


def test_after_a_restart_what_landed_is_only_settled() -> None:
    run = Run(FakeSink(landed=[1]))
    assert run([entry(1, "a"), entry(2, "a")], resumed=True) == 2
    assert run.sink.committed == [2]
    assert run.ledger.states == [(1, "done"), (2, "done")]


def test_g21_the_lease_is_checked_before_each_entry_and_attempt() -> None:
    checks = iter([None, None, EngineError("lease-lost", "lost")])

    def check() -> None:
        if error := next(checks):
            raise error

    run = Run(FakeSink(failing={2: 1}), check)
    with pytest.raises(EngineError, match="lost"):
        run([entry(1, "a"), entry(2, "a"), entry(3, "a")])
    assert run.sink.committed == [1]


def test_a_rule_that_is_gone_still_has_its_entries_run() -> None:
    run = Run(FakeSink())
    assert run([entry(1, "gone")], resumed=True) == 1
