"""Entries that fail, wait, are held and hold; a queue that is full or told to stop."""

# ruff: noqa: ARG001, ARG005 - fakes take what the ports give

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from tests.support.bench import BOOK, Bench
from tidegate.engine.app.requests import sentence
from tidegate.engine.core.entries import Entry, Outcome
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.values import Answers, Question
from tidegate.engine.store import SqlStore
from tidegate.engine.store.outbox import Outbox


def test_a_report_stays_what_it_was_when_more_is_done(store: SqlStore) -> None:
    bench = Bench(store, commits=3)
    report = bench.loop.bucket()
    assert report is not None
    before = dict(report.seconds)
    bench.loop.work()
    assert report.seconds == before


def test_g17_a_failing_entry_holds_its_rule_while_detection_goes_on(store: SqlStore) -> None:
    bench = Bench(store, commits=3)
    bench.sink.fails = lambda entry: SinkError("[LOCKED] not now") if entry.rule == "a" else None
    assert bench.drain() == [6]
    assert bench.states() == [(1, "pending")]
    bench.clock.later(1)
    bench.feed.commits = 4
    assert bench.drain() == [2]  # detection, and the other rule, go on
    bench.clock.later(2)
    bench.drain()
    assert bench.states() == [(1, "held"), (3, "pending")]
    held, behind = (
        sentence(o, bench.loop.compiled.rulebook.rules)
        for o in store.of("loop").rule_states.obstacles()
    )
    assert "entry 1 of rule a is held: [LOCKED] not now" in held
    assert "\n    it is tried again; or `tidegate redrive 1`" in held
    assert behind == "entry 3 of rule a waits for its turn"
    assert bench.sink.entries == [("b", 2), ("b", 4)]
    bench.sink.fails = lambda entry: None
    bench.drain()
    assert bench.sink.entries == [("b", 2), ("b", 4)]  # the pause is not over
    bench.clock.later(60)
    bench.drain()
    assert bench.sink.entries == [("b", 2), ("b", 4), ("a", 1), ("a", 3)]
    assert bench.sink.effects == bench.expected()


def test_g17_a_held_entry_is_tried_again_by_the_next_run(store: SqlStore) -> None:
    bench = Bench(store, 3, BOOK.replace("on: row", "on: row, on_dead: hold"))
    bench.sink.fails = lambda entry: RuntimeError("the gateway is gone")
    for _ in range(3):
        bench.drain()
        bench.clock.later(60)
    assert bench.states() == [(1, "held"), (2, "held")]
    (first, _) = store.of("loop").rule_states.obstacles()
    assert isinstance(first, Entry)
    assert (first.progress.attempts, first.progress.error) == (
        3,
        "RuntimeError: the gateway is gone",
    )
    bench.sink.fails = lambda entry: None
    bench.restart()
    bench.drain()
    assert bench.sink.effects == bench.expected()


def test_g17_a_pause_outlasts_a_restart(store: SqlStore) -> None:
    bench = Bench(store, 1, BOOK.replace("on: row", "on: row, retry: {backoff: 20s..20s}"))
    bench.sink.fails = lambda _: SinkError("[LOCKED] not now")
    bench.drain()
    bench.sink.fails = lambda _: None
    bench.restart()
    bench.drain()
    assert bench.states() == [(1, "pending"), (2, "pending")]
    bench.clock.later(20)
    bench.drain()
    assert bench.sink.effects == bench.expected()


def test_g16b_an_error_after_the_transaction_never_lets_the_next_bucket_pass_an_entry(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later entry of the rule would raise its marker above the one that is left behind."""
    bench = Bench(store, commits=3)

    def lost(self: Outbox, outcome: Outcome) -> tuple[Entry, ...]:
        raise RuntimeError("the driver has a bug")

    with monkeypatch.context() as patch:
        patch.setattr(Outbox, "settle", lost)
        with pytest.raises(RuntimeError, match="the driver has a bug"):
            bench.drain()
    assert store.of("loop").buckets.load().bucket == 1
    assert bench.states() == [(1, "pending"), (2, "pending")]
    bench.feed.commits = 4
    bench.restart()
    bench.drain()
    assert bench.sink.entries == [("a", 1), ("b", 2), ("a", 3), ("b", 4)]
    assert bench.sink.effects == bench.expected()


def test_g16b_a_response_of_delta_that_was_lost_is_found_in_the_log(store: SqlStore) -> None:
    bench = Bench(store, commits=2)
    bench.sink.lost = lambda entry: SinkError("[IO] no answer")
    bench.drain()
    assert bench.states() == [(1, "pending"), (2, "pending")]
    bench.clock.later(1)
    bench.drain()
    assert bench.states() == []
    assert bench.sink.effects == bench.expected()


def test_g16b_a_marker_that_another_history_passed_is_no_proof(
    store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Two stores with one id, as a copy of a store's file makes: only one of their entries lands,
    and the other is not called done."""
    bench = Bench(store, commits=2)
    app_id = f"tidegate/{store.id}/loop/a"
    bench.sink.commits.append((app_id, 1, ["of another firing"]))
    bench.drain()
    assert bench.sink.entries == [("b", 2)]
    assert bench.states() == [(1, "held")]
    (held,) = store.of("loop").rule_states.obstacles()
    assert isinstance(held, Entry)
    assert held.progress.fate == "passed"
    bench.restart()
    bench.drain()
    assert bench.states() == [(1, "held")]
    assert held.ways_past == ("tidegate redrive 1 --may-double", "tidegate skip 1")
    store.of("loop").controls.ask(
        "redrive", "1"
    )  # the other one may have done it under another number
    bench.drain()
    assert bench.states() == [(1, "held")]
    assert bench.sink.entries == [("b", 2)]
    assert "another history" in caplog.text
    store.of("loop").controls.ask("redrive", "1", option="may-double")
    bench.feed.commits = 3
    bench.drain()
    assert bench.states() == [(4, "held")]  # its marker still is the other one's: till an adoption
    assert bench.sink.effects == bench.expected() - Counter({("a", 2): 1})


def test_g13_a_full_outbox_pauses_planning(store: SqlStore) -> None:
    text = BOOK + "settings: {outbox_entries_max: 2}\n"
    bench = Bench(store, commits=1, text=text)
    bench.sink.fails = lambda entry: SinkError("[NO] x")
    bench.drain()
    bench.feed.commits = 2
    assert bench.drain() == []
    assert bench.loop.full
    assert store.of("loop").buckets.load().bucket == 1
    bench.sink.fails = lambda entry: None
    bench.clock.later(60)
    bench.drain()
    assert bench.sink.effects == bench.expected()


def test_g21_stop_is_looked_at_between_entries(store: SqlStore) -> None:
    bench = Bench(store, commits=1)
    bench.loop.ports.stopped = lambda: bool(bench.sink.entries)
    bench.drain()
    assert bench.sink.entries == [("a", 1)]
    bench.loop.ports.stopped = lambda: False
    bench.drain()
    assert bench.sink.effects == bench.expected()


def test_targets_are_made_ready_at_the_start_and_after_each_write(store: SqlStore) -> None:
    bench = Bench(store, commits=4)
    assert bench.sink.readied.get(timeout=10) == {"out"}
    bench.drain()
    assert bench.sink.readied.get(timeout=10) == {"out"}


def test_a_target_that_nothing_wrote_to_stays_ready(store: SqlStore) -> None:
    bench = Bench(store, commits=0)
    assert bench.sink.readied.get(timeout=10) == {"out"}
    bench.drain()
    assert bench.sink.readied.empty()


def test_g17_dead_entries_hold_nothing_until_so_many_in_a_row_suspend_their_rule(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = BOOK.replace("a: {on: row", "a: {on: row, retry: {attempts: 1}")
    bench = Bench(store, 0, f"{text}settings: {{dead_in_a_row_max: 2}}\n")
    monkeypatch.setattr(bench.sink, "seal", lambda entry: bench.sink.commits.append(sealed(entry)))
    bench.sink.fails = lambda entry: SinkError("[NO] x") if entry.rule == "a" else None
    for bench.feed.commits in range(1, 5):
        bench.drain()
    assert bench.states() == [(1, "dead"), (3, "dead"), (5, "held"), (7, "pending")]
    held = store.of("loop").outbox.entry(5)
    assert held is not None
    assert held.progress.error == (
        "[NO] x; its rule is suspended, for the last 2 were dead (dead_in_a_row_max)"
    )
    bench.sink.fails = lambda entry: None
    numbers = [str(one.number) for one in store.of("loop").dead_letters.stuck("a")]
    assert numbers == ["1", "3", "5"]
    store.of("loop").controls.ask_each("redrive", numbers, None)
    bench.drain()
    assert bench.states() == []
    assert bench.sink.effects == bench.expected()


@pytest.mark.parametrize("lost", [True, False])
def test_g18_before_an_entry_is_dead_its_log_is_asked(store: SqlStore, lost: bool) -> None:
    """Its last answer was lost; or an earlier run sealed it, and could not say so any more."""
    text = BOOK.replace("on: row", f"on: row, retry: {{attempts: {1 if lost else 2}}}")
    bench = Bench(store, 1, text)
    setattr(bench.sink, "lost" if lost else "fails", lambda _: SinkError("[NO] why"))
    bench.drain()
    if lost:
        assert bench.states() == []
        assert bench.sink.effects == bench.expected()
        return
    bench.sink.commits += [
        sealed(e) for e in store.of("loop").rule_states.obstacles() if isinstance(e, Entry)
    ]
    bench.restart()
    bench.clock.later(5)
    bench.drain()
    assert bench.states() == [(1, "dead"), (2, "dead")]
    assert [
        e.progress.error for e in store.of("loop").rule_states.obstacles() if isinstance(e, Entry)
    ] == ["[NO] why"] * 2


def test_g17_a_condition_that_was_asked_is_no_action_that_was_done(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = BOOK.replace("a: {on: row", "a: {on: row, coupling: detached, if: id > 0")
    text = text.replace("coupling: detached", "coupling: detached, retry: {attempts: 1}")
    bench = Bench(store, 0, f"{text}settings: {{dead_in_a_row_max: 2}}\n")
    bench.conditions = AllHold()
    bench.restart()
    monkeypatch.setattr(bench.sink, "seal", lambda entry: bench.sink.commits.append(sealed(entry)))
    bench.sink.fails = lambda entry: SinkError("[NO] x") if entry.rule == "a" else None
    for bench.feed.commits in range(1, 5):
        bench.drain()
        bench.loop.work()
    states = [state for _, state in bench.states()]
    assert states == ["dead", "dead", "held", "pending"]


class AllHold:
    def hold(self, questions: Sequence[Question]) -> Answers:
        ids = (one for q in questions for one in q.relation["firing_id"].to_pylist())
        return Answers(frozenset(ids))


def sealed(entry: Entry) -> tuple[str, int, None]:
    return entry.app_id, entry.number, None
