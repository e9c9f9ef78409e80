"""Event time (G5): rows of skewed commits are detected as in the one ordered history."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.loop.test_live import as_fired, moment, without_key
from tests.reference.evaluate import Line
from tests.reference.hits import detecting, saw
from tests.reference.planted import cases
from tests.reference.strategies import EVERYTHING, SECOND
from tests.replay.traces import simulated
from tests.support.live import Live, RowsFeed
from tests.support.rulebooks import event, rule, rulebook, signal, table
from tidegate.engine.store import SqlStore
from tidegate.rules.expression import Clock
from tidegate.rules.lateness import lateness_micros
from tidegate.rules.model import AHEAD_MICROS, Context, Rulebook, Settings

LATENESS = {"a": 3 * SECOND, "b": 5 * SECOND}
OPERATORS = tuple(operator for operator in EVERYTHING if operator is not Clock)
NUMBERS = itertools.count()


def over_tables(book: Rulebook) -> Rulebook:
    """The same with rows of tables as a and b; c stays a signal."""
    tables = {name: table(name) for name in LATENESS}
    rows = {
        name: event(name, name, time="at", lateness_micros=micros, columns={"v": "v"})
        for name, micros in LATENESS.items()
    }
    return replace(book, tables=tables, events={**book.events, **rows})


def committed(feed: RowsFeed, found: Sequence[tuple[int, Line]]) -> None:
    """Commit rows at their instants: those of one instant and table together."""
    for (instant, name), lines in itertools.groupby(
        sorted(found, key=lambda each: (each[0], each[1][0])),
        key=lambda each: (each[0], each[1][0]),
    ):
        rows = [(line[2]["v"], line[1]) for _, line in lines]
        feed.tables.setdefault(name, []).append((instant, rows))


@detecting
def test_g05_skewed_commits_are_detected_as_the_one_ordered_history(
    store: SqlStore, tmp_path: Path
) -> None:
    @given(data=st.data())
    @settings(max_examples=60, deadline=None)
    def some(data: st.DataObject) -> None:
        compare(data, store, tmp_path)

    some()


def compare(data: st.DataObject, store: SqlStore, folder: Path) -> None:
    book, history = data.draw(
        cases(operators=OPERATORS, contexts=list(Context), depth=2, rules_max=2, keyed=False)
    )
    limit = data.draw(st.sampled_from([1, 100_000]))
    book = replace(over_tables(book), settings=Settings(timers_per_bucket_max=limit))
    first, last = (pick(time for _, time, _ in history) for pick in (min, max))
    feed = RowsFeed()
    live = Live(store, book, f"g{next(NUMBERS)}", first, feed)
    skewed = [
        (line[1] + data.draw(st.integers(0, LATENESS.get(line[0], 0) // SECOND)) * SECOND, line)
        for line in history
    ]
    cuts = data.draw(st.lists(st.sampled_from([at for at, _ in skewed]), max_size=3))
    end = last + data.draw(st.sampled_from([5, 6, 100])) * SECOND
    before = first - SECOND
    for now in [*sorted(cuts), end]:
        some = [each for each in skewed if before < each[0] <= now]
        live.signal(line for _, line in some if line[0] == "c")
        committed(feed, [each for each in some if each[1][0] != "c"])
        live.drain(now + 1_000)
        before = now
        if data.draw(st.booleans()):
            live.restart()
    behind = lateness_micros(book)
    expected = [
        found
        for until in sorted({end - behind.get(rule, 0) for rule in book.rules})
        for found in simulated(book, history, folder, until=until + 998)
        if end - behind.get(found["rule"], 0) == until
    ]
    found = sorted(map(repr, map(without_key, live.found())))
    assert found == sorted(repr(without_key(as_fired(d))) for d in saw(expected))
    assert store.rejected(live.book.name, 10, whole=True) == []


def test_g05_what_is_late_missing_or_too_far_ahead_is_rejected(store: SqlStore) -> None:
    """The lateness and `ahead` themselves are still taken."""
    own = over_tables(rulebook(rule("a"), tables=(), events=[signal(n, v="bigint") for n in "abc"]))
    feed = RowsFeed()
    live = Live(store, own, "late", 100 * SECOND, feed)
    late, ahead = LATENESS["a"], AHEAD_MICROS
    at = 110 * SECOND
    times = [at - late - 1, at - late, at, None, at + ahead, at + ahead + 1]
    feed.tables["a"] = [(at, [*enumerate(times)])]
    live.drain(at + ahead + late + SECOND)
    found = [(firing["end"], firing["constituents"][0]["v"]) for firing in live.found()]
    assert found == [(moment(t / SECOND), v) for v, t in enumerate(times) if v in (1, 2, 4)]
    rejected = store.rejected("late", 10, whole=True)
    assert sorted((row["fields"]["v"], row["reason"].split(":")[0]) for row in rejected) == [
        (0, "late"),
        (3, "`time"),
        (5, "`time"),
    ]
