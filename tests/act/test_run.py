"""Running entries: in order, retried, settled; what fails holds its rule and nothing else."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from tests.support.acting import FakeLedger, FakeSink, Unasked, executors
from tests.support.make import SECOND, firings, hex_ids, numbered
from tests.support.rulebooks import rule, rulebook
from tidegate.engine.act.attempt import firings_of_entry
from tidegate.engine.act.run import Hands, Runner
from tidegate.engine.act.threads import Crew
from tidegate.engine.core.entries import Effect, Entry, Outcome
from tidegate.engine.core.text.logs import stage_of
from tidegate.engine.core.values import Firings
from tidegate.engine.replay.memory.executors import Alone
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Retry

HELD = firings("a", condition=["held", "failed", "held"])
RETRY = Retry(4, backoff_min_micros=SECOND, backoff_max_micros=3 * SECOND)


class Run:
    """A runner over fakes, at the time `now`."""

    def __init__(
        self,
        sink: FakeSink,
        check: Any = lambda: None,
        hands: Hands | None = None,
        outbox: FakeLedger | None = None,
    ) -> None:
        self.sink, self.outbox, self.now = sink, outbox or FakeLedger(HELD), 0
        book = rulebook(rule(name="a", retry=RETRY), rule(name="b", on_dead="hold"))
        self.runner = Runner(
            book,
            executors(sink, lambda: self.now),
            self.outbox,
            check,
            lambda: self.now,
            hands or Alone(),
        )

    def __call__(self, entries: Sequence[Entry] = (), *, resumed: bool = False) -> int:
        if resumed:
            self.runner.load(entries)
        else:
            self.runner.add(entries, [])
        return self.runner.work(Unasked())

    @property
    def states(self) -> list[tuple[int, str]]:
        return [(o.entry.number, o.state) for o in self.outbox.outcomes]


def test_entries_run_in_the_order_of_their_numbers() -> None:
    run = Run(FakeSink())
    assert run([numbered(3, "a"), numbered(1, "b"), numbered(2, "a")]) == 3
    assert run.sink.committed == [1, 2, 3]
    assert run.states == [(1, "done"), (2, "done"), (3, "done")]


def test_dead_and_done_entries_are_left_alone() -> None:
    run = Run(FakeSink())
    run([numbered(1, "a", state="dead"), numbered(2, "a", state="done"), numbered(3, "a")])
    assert run.sink.committed == [3]


def test_an_entry_sees_the_firings_that_it_is_for() -> None:
    run = Run(FakeSink())
    run([numbered(1, "a"), numbered(2, "a", firing_ids=(hex_ids(HELD)[2],))])
    held, one = run.sink.seen
    assert held.firings["account_id"].to_pylist() == [7, 9]
    assert held.relation["account_id"].to_pylist() == [7, 7, 9, 9]
    assert one.relation["account_id"].to_pylist() == [9, 9]


def test_all_held_is_not_copied() -> None:
    all_held = firings("a", condition=["held", "none"])
    assert firings_of_entry(numbered(1, "a"), all_held) is all_held


def test_failures_are_retried_after_doubling_pauses_and_nobody_waits_for_them() -> None:
    run = Run(FakeSink(failing={1: 3}))
    assert run([numbered(1, "a")]) == 0
    tries = [(run.now, len(run.outbox.outcomes))]
    while run.runner.queues:
        run.now += SECOND // 4
        before = len(run.outbox.outcomes)
        run()
        if len(run.outbox.outcomes) > before:
            tries.append((run.now, len(run.outbox.outcomes)))
    # Pauses of 1, 2 and 3 s, less a quarter at most: the last would be 4, but for the upper bound.
    pauses = [(late - early) / SECOND for (early, _), (late, _) in pairwise(tries)]
    assert all(0.75 <= pause / whole <= 1 for pause, whole in zip(pauses, (1, 2, 3), strict=True))
    assert [(o.state, o.progress.attempts) for o in run.outbox.outcomes] == [
        ("pending", 1),
        ("pending", 2),
        ("pending", 3),
        ("done", 4),
    ]


def test_g17_an_entry_that_has_used_up_its_attempts_is_held_and_the_log_says_the_ways_past(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = Run(FakeSink(failing={1: 99}))
    with caplog.at_level(logging.ERROR):
        run([numbered(1, "b", attempts=2)])
    (outcome,) = run.outbox.outcomes
    assert (outcome.state, outcome.progress.attempts) == ("held", 3)
    assert outcome.progress.error == "[DIVIDE_BY_ZERO] Division by zero."
    (said,) = caplog.messages
    assert "rule b: entry 1 of bucket 9 failed 3 times and holds the later entries" in said
    assert "`tidegate redrive 1`" in said
    assert "`tidegate skip 1`" in said
    run.now += 60 * SECOND
    with caplog.at_level(logging.ERROR):
        run()
    assert len(caplog.messages) == 1  # it is said once
    assert [o.progress.attempts for o in run.outbox.outcomes] == [3, 4]


def test_g17_a_held_entry_is_tried_again_at_the_longest_pause_alone() -> None:
    run = Run(FakeSink(failing={1: 99}))
    run([numbered(1, "b", attempts=2)])
    tried = []
    for _ in range(150):
        run.now += SECOND
        before = len(run.outbox.outcomes)
        run()
        tried += [run.now] * (len(run.outbox.outcomes) - before)
    pauses = [late - early for early, late in pairwise([0, *tried])]
    assert len(pauses) >= 2
    assert all(45 * SECOND <= pause <= 61 * SECOND for pause in pauses)  # 60 s, less a quarter


def test_g17_a_failing_entry_holds_its_rule_and_nothing_else() -> None:
    run = Run(FakeSink(failing={1: 99}))
    run([numbered(1, "a"), numbered(2, "b"), numbered(3, "a"), numbered(4, "b")])
    assert run.sink.committed == [2, 4]
    assert run.states == [(1, "pending"), (2, "done"), (4, "done")]


class Several(Alone):
    """Runs calls at once, several of which end together."""

    size = 4


def test_it_says_which_of_the_actions_that_are_due_is_run() -> None:
    class Looked(FakeSink):
        def run(self, entry: Entry, firings: Firings) -> None:
            for _ in range(1_000):
                if str(stage) == f"running actions, {entry.number} of 3":
                    break
                time.sleep(0.005)
            said.append(str(stage))
            super().run(entry, firings)

    said: list[str] = []
    crew = Crew("crew", 1)
    run = Run(Looked(failing={2: 1}), hands=crew)
    with stage_of("running actions") as stage:
        run([numbered(n, rule) for n, rule in enumerate("aab", start=1)])
    crew.close()
    assert said == [f"running actions, {n} of 3" for n in (1, 2, 3)]


class Taken(FakeLedger):
    """The ids of what entry 2 raises are taken."""

    def settle(self, outcomes: Sequence[Outcome]) -> tuple[Entry, ...]:
        if any(o.entry.number == 2 and o.state == "done" for o in outcomes):
            raise EngineError("signal-conflict", "entry 2: the id is taken")
        return super().settle(outcomes)


def test_g22_of_several_outcomes_only_the_one_whose_signal_is_refused_has_failed() -> None:
    run = Run(FakeSink(), hands=Several(), outbox=Taken(HELD))
    commits = {n: Effect(n, n) for n in (1, 2, 3)}
    run.runner.effect = lambda entry: commits.pop(entry.number, None)  # each can be asked for once
    targets = {1: "x", 2: "y", 3: "z"}
    entries = [numbered(n, rule, target=targets[n]) for n, rule in enumerate("abc", start=1)]
    assert run(entries) == 2
    assert [(*s, o.effect) for s, o in zip(run.states, run.outbox.outcomes, strict=True)] == [
        (1, "done", (1, 1)), (2, "pending", None), (3, "done", (3, 3)),
    ]  # fmt: skip
    assert [o.progress.error for o in run.outbox.outcomes if o.progress.error] == [
        "entry 2: the id is taken"
    ]


def test_g16b_the_log_is_asked_after_each_run_and_before_a_second_one() -> None:
    run = Run(FakeSink(failing={2: 1}))
    run([numbered(1, "a"), numbered(2, "a")])
    assert run.sink.asked == [1]
    run.now += SECOND
    run()
    assert run.sink.asked == [1, 2, 2]


def test_a_response_that_was_lost_is_found_in_the_log() -> None:
    run = Run(FakeSink(failing={1: 1}, landed=[1]))
    run([numbered(1, "a")])
    run.now += SECOND
    assert run() == 1
    assert run.sink.committed == []
    assert run.states == [(1, "pending"), (1, "done")]


def test_g16b_a_statement_that_leaves_no_commit_is_not_done() -> None:
    class Silent(FakeSink):
        def run(self, entry: Entry, firings: Firings) -> None:
            pass

    run = Run(Silent())
    assert run([numbered(1, "a")]) == 0
    (outcome,) = run.outbox.outcomes
    assert (outcome.state, outcome.progress.error) == (
        "pending",
        "its statement left no commit",
    )


def test_after_a_restart_what_landed_is_only_settled() -> None:
    run = Run(FakeSink(landed=[1]))
    assert run([numbered(1, "a"), numbered(2, "a")], resumed=True) == 2
    assert run.sink.committed == [2]
    assert run.states == [(1, "done"), (2, "done")]


def test_g21_the_lease_is_checked_before_each_entry() -> None:
    checks = iter([None, EngineError("lease-lost", "lost")])

    def check() -> None:
        if error := next(checks):
            raise error

    run = Run(FakeSink(), check)
    with pytest.raises(EngineError, match="lost"):
        run([numbered(1, "a"), numbered(2, "b"), numbered(3, "a")])
    assert run.sink.committed == [1]


def test_a_rule_that_is_gone_still_has_its_entries_run() -> None:
    run = Run(FakeSink())
    assert run([numbered(1, "gone")], resumed=True) == 1


def test_g17_a_pause_that_is_over_at_once_does_not_keep_the_loop_from_going_on() -> None:
    sink = FakeSink(failing={1: 3})
    run = Run(sink)

    def later() -> int:
        run.now += 4 * SECOND  # each look is later than the longest pause
        return run.now

    run.runner.now = later
    assert run([numbered(1, "a")]) == 0
    assert sink.failing == {1: 2}
    assert run.runner.due is not None
    assert run() == 0
    assert sink.failing == {1: 1}


def test_g19_what_leaves_no_marker_is_done_again_and_its_target_is_not_asked() -> None:
    entries = [numbered(1, "a", kind="unmarked"), numbered(2, "a")]
    run = Run(FakeSink({1: 1}, landed=[1, 2]))
    assert run(entries, resumed=True) == 0  # fails once; 2 waits for it
    run.now = 10 * SECOND
    assert run() == 2
    assert run.sink.committed == [1]
    assert run.sink.asked == [2]
    dying = Run(FakeSink({1: 4}))
    dying([numbered(1, "a", kind="unmarked")])
    for dying.now in range(0, 60 * SECOND, 5 * SECOND):
        dying()
    assert dying.states[-1] == (1, "dead")
