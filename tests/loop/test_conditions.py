"""Conditions that fail for good; what conditions see."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.analysts import EveryIdAnalyst
from tests.support.bench import BOOK, Bench, NoConditions
from tests.support.make import altered, signal
from tidegate.engine.app.requests import sentence
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.statement import encode
from tidegate.engine.core.values import Answers, Failure, Question, Reading
from tidegate.engine.store import SqlStore

CONDITIONAL = BOOK.replace("a: {on: row,", "a: {on: row, if: id > 0,")


class FailingConditions:
    """Conditions that hold, or fail as `why` says."""

    def __init__(self) -> None:
        self.why: Failure | None = Failure("[DIVIDE_BY_ZERO] division", "1 / 0 of account 7")
        self.asked = 0

    def hold(self, questions: Sequence[Question]) -> Answers:
        self.asked += 1
        if self.why is not None:
            return Answers(failed={q.asked: self.why for q in questions})
        ids = (one for q in questions for one in q.relation["firing_id"].to_pylist())
        return Answers(held=frozenset(ids))


def test_g25_a_condition_that_fails_for_good_makes_its_firings_dead_and_can_be_redriven(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=2, text=CONDITIONAL)
    conditions = FailingConditions()
    bench.conditions = conditions
    bench.restart()
    bench.drain()
    assert conditions.asked == 3
    assert bench.sink.effects == Counter({("b", 0): 1, ("b", 1): 1})
    assert bench.states() == [(1, "dead")]
    (dead,) = store.of("loop").rule_states.obstacles()
    assert isinstance(dead, Entry)
    assert (dead.kind, dead.progress.error) == ("condition", "[DIVIDE_BY_ZERO] division")
    assert dead.progress.attempts == 3
    assert "tried again" not in sentence(dead, bench.loop.compiled.rulebook.rules)
    assert "redrive" not in sentence(dead, {})  # nothing would say what to run
    assert {f["condition"] for f in store.of("loop").firings.listed(rule="a")} == {"dead"}
    bench.feed.commits = 3
    conditions.why = None
    bench.drain()
    assert bench.states() == [(1, "dead")]  # the later firings of the rule go on
    store.of("loop").controls.ask("redrive", "1")
    bench.drain()
    assert bench.states() == []
    assert bench.sink.effects == bench.expected()
    assert {f["condition"] for f in store.of("loop").firings.listed(rule="a")} == {"held"}


def test_g18_what_takes_the_place_of_an_entry_is_marked_as_a_new_one(store: SqlStore) -> None:
    bench = Bench(store, commits=2, text=CONDITIONAL)
    bench.conditions = conditions = FailingConditions()
    bench.restart()
    bench.drain()
    current, firings = bench.loop.current, store.of("loop").outbox.firings(1, "a")
    dead, done = (store.of("loop").outbox.entry(number) for number in (1, 2))
    assert dead
    assert done
    with pytest.raises(SinkError, match="DIVIDE_BY_ZERO"):
        current.asked(dead, firings)
    conditions.why = None
    (asked,) = current.asked(dead, firings).successors
    assert asked.firing_ids == tuple(firings.hex_ids().to_pylist())
    spent = {"state": "held", "attempts": 9, "error": "x", "details": "x", "fate": "passed"}
    renewed = current.renewed(altered(done, text="old", target="gone", **spent))
    assert isinstance(renewed, Entry)
    for made, rule, place in ((asked, "a/asked", 1), (renewed, "b/redrive/2/1", 2)):
        assert (made.number, made.turn.place, made.target) == (0, place, "out")
        assert made.app_id == f"tidegate/{store.id}/loop/{rule}"
        assert made.target_version == 0
        assert encode(made.statement) == "INSERT INTO out SELECT id FROM event"
        assert (
            made.state,
            made.progress.attempts,
            made.progress.error,
            made.progress.fate,
        ) == ("pending", 0, None, None)
    assert renewed.progress.details is None


class Noting(NoConditions):
    """Every firing holds; the versions of t at which each was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, int], list[int]]] = []

    def hold(self, questions: Sequence[Question]) -> Answers:
        for q in questions:
            self.asked.append((q.rule, {"t": q.versions["t"]}, q.relation["id"].to_pylist()))
        ids = [i for q in questions for i in q.relation["firing_id"].to_pylist()]
        return Answers(held=frozenset(ids))


class Reads(EveryIdAnalyst):
    def condition(self, *given: object, **more: object) -> Reading:
        found = super().condition(*given, **more)
        return replace(found, tables=frozenset({"t"}))


def test_g14_each_coupling_sees_its_versions(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Three commits in one bucket; the detached condition is asked after it."""
    text = BOOK[: BOOK.index("  a:")] + "".join(
        f"  {mode}: {{on: row, coupling: {mode}, if: {{sql: SELECT firing_id FROM event}}}}\n"
        for mode in ("immediate", "deferred", "detached")
    )
    monkeypatch.setattr(Bench, "analyst", lambda _: Reads())
    bench = Bench(store, commits=3, text=text)
    bench.conditions = noting = Noting()
    bench.restart()
    with caplog.at_level(logging.INFO):
        bench.drain()
    told = [r.getMessage() for r in caplog.records if "fired" in r.getMessage()]
    assert sorted(told) == [f"{m} fired 3 times" for m in ("deferred", "detached", "immediate")]
    assert sorted(noting.asked[:4], key=str) == [
        ("deferred", {"t": 2}, [0, 1, 2]),
        *(("immediate", {"t": n}, [n]) for n in range(3)),
    ]
    assert noting.asked[4:] == [("detached", {"t": 2}, [0, 1, 2])]
    assert {f["condition"] for f in store.of("loop").firings.listed()} == {"held"}
    assert bench.states() == []


class Vacuumed(NoConditions):
    """Every firing holds, but of what sees a version in `gone` nothing can be said."""

    def __init__(self, *gone: int) -> None:
        self.gone = set(gone)
        self.asked: list[list[int]] = []

    def hold(self, questions: Sequence[Question]) -> Answers:
        failed, held = {}, set[str]()
        for q in questions:
            self.asked.append(q.relation["id"].to_pylist())
            if q.versions["t"] in self.gone:
                failed[q.asked] = Failure(f"version {q.versions['t']} is gone", lasting=True)
            else:
                held.update(q.relation["firing_id"].to_pylist())
        return Answers(frozenset(held), failed)


AS_OF = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}}
rules:
  a:
    on: row
    coupling: {condition: immediate, action: MODE}
    if: {sql: SELECT firing_id FROM event}
    do: [{sql: INSERT INTO out SELECT id FROM event}]
"""


@pytest.mark.parametrize("mode", ["immediate", "deferred"])
@pytest.mark.parametrize("cut", [False, True])
def test_g25_a_version_that_is_gone_kills_only_the_firings_that_see_it(
    store: SqlStore,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    mode: str,
    *,
    cut: bool,
) -> None:
    """Commits 0 to 3, in one bucket or in four: 1 and 2 cannot be read any more."""
    monkeypatch.setattr(Bench, "analyst", lambda _: Reads())
    bench = Bench(store, commits=0, text=AS_OF.replace("MODE", mode))
    bench.conditions = conditions = Vacuumed(1, 2)
    bench.restart()
    with caplog.at_level(logging.INFO):
        for commits in (1, 2, 3, 4) if cut else (4,):
            bench.feed.commits = commits
            bench.drain()
    told = [r.getMessage() for r in caplog.records if "fired" in r.getMessage()]
    assert told == ["a fired"] * 2 if cut else ["a fired 2 times"]
    assert bench.sink.effects == Counter({("a", 0): 1, ("a", 3): 1})
    firings = list(store.of("loop").firings.listed())
    assert [f["condition"] for f in firings] == ["held", "dead", "dead", "held"]
    assert [[e["error"] for e in f["entries"]] for f in firings] == [
        [None], ["version 1 is gone"], ["version 2 is gone"], [None],
    ]  # fmt: skip
    (told_of,) = [row for row in store.of("loop").status.shown()["rules"] if row["rule"] == "a"]
    names = ("fired", "condition_failed", "damped", "dead")
    assert [told_of[name] for name in names] == [2, 0, 0, 2]
    dead = [number for number, state in bench.states() if state == "dead"]
    for number, left in zip(dead, (["held", "dead"], ["held", "held"]), strict=True):
        conditions.asked.clear()
        conditions.gone.clear()
        store.of("loop").controls.ask("redrive", str(number))
        bench.drain()
        bench.loop.work()
        assert len(conditions.asked) == 1
        assert len(conditions.asked[0]) == 1
        found = [f["condition"] for f in store.of("loop").firings.listed()]
        assert found == ["held", *left, "held"]
    assert bench.states() == []
    assert bench.sink.effects == Counter({("a", n): 1 for n in range(4)})


def test_g25_dead_firings_are_not_judged_by_the_rule_s_damping(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bench, "analyst", lambda _: Reads())
    text = AS_OF.replace("MODE", "immediate").replace("    if:", "    cooldown: 1 h\n    if:")
    bench = Bench(store, commits=3, text=text)
    bench.conditions = Vacuumed(0)
    bench.restart()
    bench.drain()
    found = [(f["condition"], f.get("damped")) for f in store.of("loop").firings.listed()]
    assert found == [("dead", None), ("held", None), ("held", "cooldown")]
    assert bench.sink.effects == Counter({("a", 1): 1})


ASKED = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}, s: {signal: {id: bigint}}}
settings: {max_cascade_depth: 1}
rules:
  a:
    on: row or s
    coupling: detached
    if: id >= 0
    on_dead: hold
    retry: {attempts: 1}
    do: [DO]
"""
DO = "{sql: INSERT INTO out SELECT id FROM event}"


def asking(store: SqlStore, do: str) -> Bench:
    bench = Bench(store, commits=0, text=ASKED.replace("DO", do))
    bench.conditions = conditions = FailingConditions()
    conditions.why = None
    bench.restart()
    return bench


def act(bench: Bench) -> None:
    bench.drain()
    bench.loop.work()


def test_g18_a_redriven_action_of_a_condition_comes_before_the_later_ones(store: SqlStore) -> None:
    bench = asking(store, f"{DO}, {DO}, {DO}")
    bench.feed.commits = 1
    bench.sink.fails = lambda entry: SinkError("[NO] no") if entry.statement.action == 0 else None
    act(bench)
    (first, state), *_ = bench.states()
    assert state == "held"
    bench.sink.fails = lambda _: None
    store.of("loop").controls.ask("redrive", str(first))
    act(bench)
    run = [store.of("loop").outbox.entry(number) for _, number in bench.sink.entries]
    assert [entry.statement.action for entry in run if entry] == [0, 1, 2]
    assert len({app_id for app_id, _, ids in bench.sink.commits if ids}) == 2
    bench.feed.commits = 2
    act(bench)  # what is asked in its turn has one app id, however many buckets there are
    assert len({app_id for app_id, _, ids in bench.sink.commits if ids}) == 2
    assert bench.sink.effects == Counter({("a", 0): 3, ("a", 1): 3})


def test_g22_a_detached_condition_is_asked_of_all_and_only_what_is_too_deep_is_dead(
    store: SqlStore,
) -> None:
    bench = asking(store, DO)
    for number, depth in enumerate((5, 0)):
        told = signal(str(number), bench.clock.at, event="s", fields={"id": number}, depth=depth)
        store.of("loop").signals.raise_signal(told)
    bench.clock.later(1)
    act(bench)
    assert bench.sink.effects == Counter({("a", 1): 1})
    [(dead, state)] = bench.states()
    assert state == "dead"
    store.of("loop").controls.ask("redrive", str(dead))
    act(bench)
    assert bench.sink.effects == Counter({("a", 0): 1, ("a", 1): 1})
