"""Event time (G5): rows of skewed commits are detected as in the one ordered history."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.load import micros
from tests.loop.test_live import as_fired, moment, without_key
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import cases
from tests.reference.strategies import EVERYTHING, SECOND
from tests.replay.traces import simulated
from tests.support.executors import InProcess
from tests.support.live import Live, RowsFeed, SnapshotFeed
from tests.support.rulebooks import event, rule, rulebook, signal, table
from tidegate import rules
from tidegate.engine.core.state import Parked
from tidegate.engine.store import SqlStore
from tidegate.rules.analysis.graph import lateness_micros
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions.nodes import Clock
from tidegate.rules.model import AHEAD_MICROS, Context, Rulebook, Settings, TableEvent

MINUTE = 60 * SECOND
NINE = micros("2026-03-02T09:00")
BOOK = """\
rulebook: times
tables: {a: {path: /a}, b: {path: /b}}
events:
  row: {on: insert, table: a, time: at, lateness: LATENESS}
  asked: {signal: {k: bigint}}
  hourly: {cron: "0 * * * *", misfire: skip}
rules:
RULES
"""
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
        feed.written.setdefault(name, []).append((instant, rows))


@detecting
def test_g05_skewed_commits_are_detected_as_the_one_ordered_history(
    store: SqlStore, tmp_path: Path
) -> None:
    @given(data=st.data())
    @example_count(30)
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
    assert store.of(live.book.name).rejections.newest(10, whole=True) == []


def test_g05_what_is_late_missing_or_too_far_ahead_is_rejected(store: SqlStore) -> None:
    """The lateness and `ahead` themselves are still taken."""
    own = over_tables(rulebook(rule("a"), tables=(), events=[signal(n, v="bigint") for n in "abc"]))
    feed = RowsFeed()
    live = Live(store, own, "late", 100 * SECOND, feed)
    late, ahead = LATENESS["a"], AHEAD_MICROS
    at = 110 * SECOND
    times = [at - late - 1, at - late, at, None, at + ahead, at + ahead + 1]
    feed.written["a"] = [(at, [*enumerate(times)])]
    live.drain(at + ahead + late + SECOND)
    found = [(firing["end"], firing["constituents"][0]["v"]) for firing in live.found()]
    assert found == [(moment(t / SECOND), v) for v, t in enumerate(times) if v in (1, 2, 4)]
    rejected = store.of("late").rejections.newest(10, whole=True)
    assert sorted((row["fields"]["v"], row["reason"].split(":")[0]) for row in rejected) == [
        (0, "late"),
        (3, "`time"),
        (5, "`time"),
    ]


def loaded(lateness: str = "3 s", book: str = BOOK, **on: str) -> Rulebook:
    lines = "\n".join(f"  {name}: {text}" for name, text in on.items())
    return rules.load(book.replace("LATENESS", lateness).replace("RULES", lines))


def ends(live: Live) -> list[tuple[str, str]]:
    return [(firing["rule"], firing["end"][11:]) for firing in live.found()]


@pytest.mark.parametrize(
    "first",
    ["1969-12-31T23:59", pytest.param("0001-01-01T00:00", marks=pytest.mark.long)],
)
def test_g05_rows_of_a_snapshot_stand_at_their_times_however_far_apart(
    store: SqlStore, first: str
) -> None:
    """Long ago (and in a year before that of any clock, whose days are gone through), days ago, and
    a little ahead; far ahead is refused."""
    times = [first, "2026-02-20T10:00", "2026-03-02T09:30", "2026-03-02T11:00"]
    feed = SnapshotFeed(NINE - 600 * MINUTE, [(n, micros(at)) for n, at in enumerate(times)])
    book = loaded(r="{on: row}", q="{on: hourly}")
    live = Live(store, book, "s", NINE, feed)
    live.drain(NINE + 45 * MINUTE)
    assert [firing["end"][:16] for firing in live.found()] == times[:3]
    (refused,) = store.of("s").rejections.newest(10, whole=True)
    assert refused["reason"] == "`time: at` is more than 1 h after its commit"


def test_g05_rows_of_before_the_start_that_come_after_it_are_seen(store: SqlStore) -> None:
    """As far back as the rule runs behind."""
    feed = RowsFeed()
    live = Live(store, loaded(r="{on: row}"), "b", NINE, feed)
    feed.written["a"] = [(NINE + SECOND // 2, [(n, NINE - n * SECOND) for n in (1, 2)])]
    live.drain(NINE + MINUTE)
    assert ends(live) == [("r", "08:59:58Z"), ("r", "08:59:59Z")]


BETWEEN = """scripts:
  copies:
    text: "in {time detected_at;} r out {time at;} copy (r(x) {!> copy({at: x.detected_at});})*"
rules:
  q: {on: copy}"""


@pytest.mark.parametrize("book", [BOOK, BOOK.replace("rules:", BETWEEN)], ids=["alone", "between"])
@pytest.mark.parametrize("detect", ["driver", "spark"])
@pytest.mark.parametrize("lateness", ["1 s", "10 s", None])
def test_g05_a_lateness_changes_once_nothing_is_held_back(
    store: SqlStore, lateness: str | None, detect: str, book: str
) -> None:
    """Or goes, with `time`. A script may stand between the rule and others. Executors have a rule
    beside it."""

    def of(lateness: str) -> Rulebook:
        keyed = "{on: asked ; asked, per: k, context: recent}"
        made = loaded(lateness, book, r="{on: row}", keyed=keyed)
        return replace(made, settings=replace(made.settings, detect=detect))

    def found() -> list[str]:
        return [end for rule, end in ends(live) if rule == "r"]

    changed = of(lateness or "3 s")
    if lateness is None:
        row = cast(TableEvent, changed.events["row"])
        changed = replace(changed, events={**changed.events, "row": replace(row, time=None)})
    feed = RowsFeed()
    live = Live(store, of("3 s"), "l", NINE, feed, beside=InProcess())
    feed.written["a"] = [(NINE + 10 * SECOND, [(1, NINE + 7 * SECOND), (2, NINE + 9 * SECOND)])]
    live.signal([("asked", NINE + SECOND, {"k": 1})])
    live.drain(NINE + 11 * SECOND)
    assert found() == ["09:00:07Z"]
    live.edit(changed)
    with pytest.raises(EngineError, match="rows of `row` wait for late ones, by a lateness of 3 s"):
        live.drain(NINE + MINUTE)
    live.edit(of("3 s"))
    live.drain(NINE + MINUTE)
    assert found() == ["09:00:07Z", "09:00:09Z"]
    live.edit(changed)
    feed.written["a"].append((NINE + 2 * MINUTE, [(3, NINE + 2 * MINUTE)]))
    live.drain(NINE + 3 * MINUTE)
    assert found()[2:] == ["09:02:00Z"]


@pytest.mark.parametrize("time", ["", ", time: at, lateness: 5 s"])
def test_g05_a_lateness_changes_for_no_rule_while_another_holds_the_same_rows_back(
    store: SqlStore, time: str
) -> None:
    """Rows that wait for `r` are neither lost nor seen twice where `both` goes on as it was."""
    other = "  other: {on: insert, table: b, time: at, lateness: 5 s}\nrules:"
    text = BOOK.replace("rules:", other).replace(
        "RULES", "  r: {on: row}\n  both: {on: row ; other}"
    )
    feed = RowsFeed()
    live = Live(store, rules.load(text.replace("LATENESS", "3 s")), "o", NINE, feed)
    feed.written |= {"a": [(NINE + 10 * SECOND, [(1, NINE + 7 * SECOND), (2, NINE + 9 * SECOND)])]}
    live.drain(NINE + 11 * SECOND)
    live.edit(rules.load(text.replace(", time: at, lateness: LATENESS", time)))
    with pytest.raises(EngineError, match="rows of `row` wait for late ones, by a lateness of 3 s"):
        live.drain(NINE + MINUTE)


def test_g09_what_is_carried_fires_after_its_rule_reads_other_columns(store: SqlStore) -> None:
    feed = RowsFeed()
    live = Live(store, loaded(r="{on: row}", w="{on: 'asked + [20 s]'}"), "c", NINE, feed)
    feed.written["a"] = [(NINE + 10 * SECOND, [(1, NINE + 9 * SECOND)])]
    live.signal([("asked", NINE + SECOND, {})])
    live.drain(NINE + 11 * SECOND)
    assert ends(live) == []
    live.reads = frozenset()
    live.restart()
    live.drain(NINE + MINUTE)
    assert ends(live) == [("r", "09:00:09Z"), ("w", "09:00:21Z")]


def test_g13_a_rule_used_by_one_that_is_behind_is_parked_and_enabled_by_its_name(
    store: SqlStore,
) -> None:
    """`q` is behind, and sees `r` as far behind; `p` is not."""
    on = {"r": "{on: asked ; hourly, context: chronicle}", "q": "{on: r and row}"}
    book = loaded(**on, p="{on: r or asked}", w="{on: row}")
    book = replace(book, settings=replace(book.settings, carried_per_key_max=2))
    feed = RowsFeed()
    live = Live(store, book, "p", NINE, feed)
    live.signal(("asked", NINE + n * SECOND, {}) for n in range(5))
    feed.written["a"] = [(NINE + 10 * SECOND, [(1, NINE + 9 * SECOND)])]
    live.drain(NINE + 10 * SECOND + 1_000)
    live.drain(NINE + MINUTE)
    assert ends(live) == [("w", "09:00:09Z")]
    parked = {one["rule"]: one for one in store.of("p").status.shown()["parked_rules"]}
    assert {rule: one["passed_over"] for rule, one in parked.items()} == {"p": 6, "q": 7, "r": 6}
    assert [parked[rule]["reason"] for rule in "pq"] == ["it uses r"] * 2
    for name in "rpq":
        store.of("p").controls.ask("enable", name)
    live.signal([("asked", NINE + 2 * MINUTE, {})])
    live.drain(NINE + 3 * MINUTE)
    assert not any(isinstance(o, Parked) for o in store.of("p").rule_states.obstacles())
    assert ends(live)[1:] == [("p", "09:02:00Z")]
