"""An action that ends Spark's Java, or outlasts its deadline, stops no other rule (G13)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.support.bench import BOOK, Bench
from tests.support.memory import MemorySink
from tidegate.engine.control.status import status_of
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.ports import OutageError, SinkError
from tidegate.engine.core.values import Firings
from tidegate.engine.store import SqlStore
from tidegate.engine.store.suspects import Suspects
from tidegate.rules.errors import EngineError

HOLD = BOOK.replace("a: {on: row,", "a: {on: row, on_dead: hold, retry: {attempts: 3},")


class HarmfulSink(MemorySink):
    """What runs of rule `a` does to Spark, so many times: `death` or `overrun`, before it lands;
    `late`: death after that. Where `seals` are harmful, too, not even these can land."""

    def __init__(self, kind: str, times: int = 1_000, *, seals: bool = False) -> None:
        super().__init__()
        self.kind, self.left, self.done, self.seals = kind, times, 0, seals

    def run(self, entry: Entry, firings: Firings) -> None:
        self.harm(entry, "death", "overrun")
        super().run(entry, firings)
        self.harm(entry, "late")

    def seal(self, entry: Entry) -> None:
        if self.seals:
            self.harm(entry, "death")
        super().seal(entry)

    def harm(self, entry: Entry, *kinds: str) -> None:
        if entry.rule != "a" or self.kind not in kinds or self.done >= self.left:
            return
        self.done += 1
        if self.kind == "overrun":
            raise SinkError("[OVERRUN] it took longer than 1 s", overrun=True)
        raise EngineError("spark-lost", "Spark is gone: it was killed", "run again")


def bench_of(store: SqlStore, sink: HarmfulSink, text: str = BOOK, most: int = 10) -> Bench:
    bench = Bench(
        store,
        1,
        text.replace("rulebook: loop", f"rulebook: loop\nsettings: {{strikes_max: {most}}}"),
    )
    bench.sink = sink
    bench.restart()
    return bench


def run(bench: Bench, starts_max: int = 50) -> int:
    """As an engine does that starts Spark whenever it has ended; how often it had to."""
    for starts in range(starts_max):
        try:
            for _ in range(4):
                bench.drain()
                bench.clock.later(100)
            return starts
        except EngineError as error:
            if error.code != "spark-lost":
                raise
        bench.restart()
    raise AssertionError("Spark ends for ever")


@pytest.mark.parametrize("text", [BOOK, HOLD], ids=["continue", "hold"])
def test_g13_an_action_that_ends_java_is_dead_after_two_deaths(store: SqlStore, text: str) -> None:
    bench = bench_of(store, HarmfulSink("death"), text)
    assert run(bench) == 2
    assert bench.sink.effects == Counter({("b", 0): 1})
    (dead,) = bench.store.of("loop").status.shown()["entries"]
    assert (dead["rule"], dead["state"]) == ("a", "dead")
    assert "action 1 of rule a, which writes out" in dead["error"]
    assert "ended Spark's Java 2 times" in dead["error"]
    bench.restart()
    assert run(bench) == 0  # nor is it due at the next start
    (told,) = bench.store.of("loop").status.shown()["quarantined"]
    assert (told["rule"], told["strikes"]) == ("a", 2)


def test_later_entries_of_the_text_run_alone_and_die_of_one_death(store: SqlStore) -> None:
    bench = bench_of(store, sink := HarmfulSink("death"))
    assert run(bench) == 2
    for commits in (2, 3):
        bench.feed.commits = commits
        assert run(bench) == 1
    assert sink.done == 4
    assert sink.effects == Counter({("b", n): 1 for n in range(3)})


def test_a_text_with_strikes_max_strikes_runs_no_more_until_its_rule_is_enabled(
    store: SqlStore,
) -> None:
    bench = bench_of(store, sink := HarmfulSink("death"), most=3)
    assert run(bench) == 2
    bench.feed.commits = 2
    assert run(bench) == 1
    bench.feed.commits = 3
    assert run(bench) == 0
    errors = [e["error"] for e in bench.store.of("loop").status.shown()["entries"]]
    assert [("in quarantine" in error) for error in errors] == [False, True, True]
    sink.left = 0
    bench.store.of("loop").controls.ask("enable", "a")
    bench.feed.commits = 4
    assert run(bench) == 0
    assert sink.effects == Counter({**{("b", n): 1 for n in range(4)}, ("a", 3): 1})
    assert bench.store.of("loop").status.shown()["quarantined"] == []
    assert [c["answer"] for c in bench.store.of("loop").status.shown()["answered"]] == ["done"]


def test_a_text_in_quarantine_is_shown_while_its_rule_has_it(store: SqlStore) -> None:
    bench = bench_of(store, HarmfulSink("death"))
    assert run(bench) == 2

    def shown(text: str) -> list[str | None]:
        bench.write(text)
        bench.restart()
        return [one["rule"] for one in status_of(store, bench.book)["quarantined"]]

    *others, _, b = BOOK.splitlines(keepends=True)
    assert shown(BOOK) == ["a"]
    assert shown("".join([*others, b])) == []
    assert (
        shown(
            BOOK.replace(
                "a: {on: row, do: [{sql: INSERT INTO out SELECT id",
                "a: {on: row, do: [{sql: INSERT INTO out SELECT 1",
            )
        )
        == []
    )
    assert shown(BOOK) == ["a"]  # as it was: it has not run cleanly


def test_what_landed_before_java_ended_is_done_and_not_run_again(store: SqlStore) -> None:
    bench = bench_of(store, sink := HarmfulSink("late", 1))
    assert run(bench) == 1
    assert sink.effects == Counter({("a", 0): 1, ("b", 0): 1})
    assert bench.states() == []


def test_an_action_that_overruns_once_is_tried_again_and_is_no_suspect_then(
    store: SqlStore,
) -> None:
    bench = bench_of(store, sink := HarmfulSink("overrun", 1))
    assert run(bench) == 0
    assert sink.effects == Counter({("a", 0): 1, ("b", 0): 1})
    assert store.of("loop").suspects.strikes() == ()


def test_g13_an_action_that_overruns_twice_is_dead_whatever_retry_says(store: SqlStore) -> None:
    bench = bench_of(store, sink := HarmfulSink("overrun"), HOLD)
    assert run(bench) == 0
    assert sink.done == 2
    (dead,) = bench.store.of("loop").status.shown()["entries"]
    assert (dead["rule"], dead["state"]) == ("a", "dead")
    assert "outlasted statement_seconds_max 2 times" in dead["error"]
    assert sink.effects == Counter({("b", 0): 1})


def test_what_cannot_even_be_sealed_is_held_and_harms_nothing_more(store: SqlStore) -> None:
    bench = bench_of(store, sink := HarmfulSink("death", seals=True))
    assert run(bench) == 4  # two of the statement, two of its seal
    (held,) = bench.store.of("loop").status.shown()["entries"]
    assert (held["rule"], held["state"]) == ("a", "held")
    assert "cannot be sealed" in held["error"]
    for _ in range(3):
        bench.restart()
        assert run(bench) == 0
    assert sink.done == 4
    assert sink.effects == Counter({("b", 0): 1})


def test_an_action_that_spark_refuses_cleanly_is_no_suspect_any_more(store: SqlStore) -> None:
    """It ran when Java was killed by somebody else, and has a mistake of its own."""
    bench = bench_of(store, sink := HarmfulSink("death", 1))
    sink.fails = lambda entry: SinkError("[NO] never") if entry.rule == "a" else None
    assert run(bench) == 1
    assert store.of("loop").suspects.strikes() == ()
    assert store.of("loop").status.shown()["quarantined"] == []


class Ends(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("landed", [True, False])
def test_g13_kills_in_mid_action_quarantine_nothing_that_lands(
    store: SqlStore, landed: bool
) -> None:
    """Twenty processes end while an action runs; it has landed by then, or the next one lands."""

    class Kills(HarmfulSink):
        def run(self, entry: Entry, firings: Firings) -> None:
            if entry.rule != "a" or self.done >= self.left:
                return super().run(entry, firings)
            self.done += 1
            if landed or self.done % 2 == 0:
                MemorySink.run(self, entry, firings)
            raise Ends

    bench = bench_of(store, sink := Kills("kill", 20))
    for commits in range(2, 22):
        with pytest.raises(Ends):
            run(bench)
        bench.feed.commits = max(bench.feed.commits, commits if landed else 1 + commits // 2)
        bench.restart()
    assert run(bench) == 0
    assert sink.done == 20
    assert sink.effects == bench.expected()
    assert bench.states() == []
    assert store.of("loop").suspects.strikes() == ()


@pytest.mark.parametrize("times", [1, 2])
def test_an_outage_while_a_suspect_is_forgiven_repeats_nothing(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    bench = bench_of(store, sink := HarmfulSink("overrun", 1))
    forgive, left = Suspects.forgive, [times]

    def away(*given: Any) -> None:
        if left[0]:
            left[0] -= 1
            raise OutageError("store-unreachable", "the store is away", "wait")
        forgive(*given)

    monkeypatch.setattr(Suspects, "forgive", away)
    assert run(bench) == 0
    assert left == [0]
    assert sink.effects == bench.expected()
    assert bench.states() == []
