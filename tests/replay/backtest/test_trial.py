"""What a backtest over tables in memory finds, and what it says of the past."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tests.replay.backtest.live import NO_ROWS, ROW, tables_of
from tests.support.make import BEGIN, SECOND
from tidegate.engine.core.ports import ReadRequest, TableHead
from tidegate.engine.core.values import Cursor, TableRange
from tidegate.engine.replay.backtest import past
from tidegate.engine.replay.backtest.against import compared
from tidegate.engine.replay.backtest.chosen import chosen
from tidegate.engine.replay.backtest.model import Backtest
from tidegate.engine.replay.backtest.trial import Asked, tried
from tidegate.engine.replay.memory.feed import MemoryFeed
from tidegate.engine.replay.memory.observation import moment
from tidegate.engine.replay.memory.tables import MemoryTable
from tidegate.rules.errors import EngineError, InputError
from tidegate.rules.model import Table

HOUR = 3_600 * SECOND
BOOK = """\
rulebook: past
tables: {t: {path: /t, key: [id]}, out: {path: /out}}
events:
  a: {on: insert, table: t, where: v = 1}
  b: {on: insert, table: t, where: v = 2}
  hot: {signal: {k: bigint}}
rules:
"""
DO = "do: [{sql: INSERT INTO out SELECT k FROM event}]"
Row = tuple[float, int, int]  # seconds, k, v


def feed_of(rows: Sequence[Row], *names: str) -> MemoryFeed:
    """Tables with a commit a row, in order; the first commit is version 1."""
    tables = {name: MemoryTable(name, NO_ROWS, BEGIN - HOUR) for name in ("t", "out", *names)}
    for number, (seconds, k, v) in enumerate(rows):
        at = BEGIN + int(seconds * SECOND)
        row = pa.Table.from_pylist([{"id": number, "k": k, "v": v, "at": moment(at)}], ROW)
        tables["t"].commit(at, row, (), None)
    return MemoryFeed(tables)


def found(
    text: str,
    rows: Sequence[Row] | MemoryFeed,
    begin: float = 0,
    end: float = 3_600,
    *others: str,
    **asked: Any,
) -> Backtest:
    feed = rows if isinstance(rows, MemoryFeed) else feed_of(rows)
    tables = [tables_of(each, feed, None, each) for each in (text, *others)]
    tables = [replace(t, book=chosen(t.book, asked.get("rule"), None)) for t in tables]
    at = [moment(BEGIN + int(seconds * SECOND)) for seconds in (begin, end)]
    return tried(tables, Asked(at[0], at[1], **asked), BEGIN + 1_000 * HOUR, lambda *_: None)


def fired(run: Backtest) -> list[tuple[str, float]]:
    """The rules that fired, with the seconds of their ends."""
    ends = run.firings["end"].cast(pa.int64()).to_pylist()
    seconds = [(end - BEGIN) / SECOND for end in ends]
    return [*zip(run.firings["rule"].to_pylist(), seconds, strict=True)]


def test_a_signal_stands_a_millisecond_after_its_rule_however_wide_buckets_are() -> None:
    text = BOOK + (
        "  warn: {on: a, per: k, do: [{signal: {hot: {k: k}}}]}\n"
        "  heard: {on: hot ; b, per: k}\n"
        "  done: {on: end_of warn, per: k}\n"
        "  begun: {on: begin_of warn ; end_of warn, per: k}\n"
    )
    run = found(text, [(1, 7, 1), (1.002, 7, 2), (2, 8, 1), (2, 8, 2), (3, 8, 2)])
    assert fired(run) == [
        ("warn", 1),
        ("begun", 1.001),
        ("done", 1.001),
        ("heard", 1.002),
        ("warn", 2),
        ("begun", 2.001),
        ("done", 2.001),
        ("heard", 3),
    ]


def test_a_rule_that_waits_for_late_rows_causes_signals_and_fires_up_to_the_end() -> None:
    late = "  late: {on: insert, table: t, time: at, lateness: 10 min, where: v = 3}\n"
    text = BOOK.replace("  hot:", late + "  hot:") + (
        "  warn: {on: late, per: k, do: [{signal: {hot: {k: k}}}]}\n  heard: {on: hot, per: k}\n"
    )
    run = found(text, [(1, 7, 3), (3_590, 8, 3)])
    assert fired(run) == [("warn", 1), ("heard", 601.001), ("warn", 3_590)]


def test_a_rule_that_is_switched_off_stays_off() -> None:
    text = BOOK + "  off: {on: b, do: [{disable: pair}]}\n  pair: {on: a, per: k}\n"
    assert fired(found(text, [(1, 7, 1), (2, 7, 2), (3, 7, 1)])) == [("pair", 1), ("off", 2)]


def test_actions_are_not_run_and_dry_rules_raise_nothing() -> None:
    text = BOOK + (
        "  warn: {on: a, per: k, mode: dry, do: [{signal: {hot: {k: k}}}]}\n"
        f"  heard: {{on: hot, per: k}}\n  write: {{on: a, {DO}}}\n"
    )
    feed = feed_of([(1, 7, 1)])
    assert fired(found(text, feed)) == [("warn", 1), ("write", 1)]
    assert feed.tables["out"].version == 0


def test_the_pieces_in_which_the_past_is_read_do_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen_by = random.Random(1)
    rows = [(n / 10, chosen_by.randrange(3), chosen_by.randrange(1, 3)) for n in range(120)]
    text = BOOK + (
        "  pair: {on: a ; b within 5 s, per: k}\n"
        "  none: {on: 'not(b)[a, [2 s]]', per: k}\n"
        "  warn: {on: a ; a, per: k, do: [{signal: {hot: {k: k}}}]}\n"
        "  heard: {on: hot ; b, per: k}\n"
    )
    whole = found(text, rows)
    assert len(whole.firings) > 60
    monkeypatch.setattr(past, "PAGE_COMMITS", 7)
    monkeypatch.setattr(past, "PIECE_ROWS", 11)
    assert found(text, rows).firings.equals(whole.firings)


def test_it_begins_as_much_earlier_as_its_rules_remember() -> None:
    text = BOOK + "  pair: {on: a ; b within 30 s, per: k}\n"
    rows = [(1, 7, 1), (2, 7, 2), (40, 8, 1), (50, 9, 1), (60, 7, 1), (65, 8, 2), (66, 7, 2)]
    run = found(text, rows, 62)
    assert (fired(run), run.warm_up) == ([("pair", 65), ("pair", 66)], 30 * SECOND)
    assert fired(found(text, rows, 62, warm_up=5 * SECOND)) == [("pair", 66)]
    assert fired(found(text, rows, 62, warm_up=0)) == []


def test_memory_adds_up_over_rules_that_use_others_and_damping() -> None:
    text = BOOK + (
        "  pair: {on: a ; b within 30 s, per: k}\n"
        "  twice: {on: pair ; pair within 60 s, per: k, cooldown: 1 h}\n"
    )
    assert found(text, []).warm_up == 3_690 * SECOND


def test_a_rule_that_remembers_for_ever_is_named() -> None:
    text = BOOK + "  pair: {on: a ; b, per: k}\n  one: {on: a}\n"
    run = found(text, [(1, 7, 1)])
    assert run.warm_up == 0
    assert any(said.startswith("What pair would remember") for said in run.notes)


class Cleaned(MemoryFeed):
    """The log of `t` begins with version 3."""

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        if after is not None or table.name != "t":
            return super().head(table, after)
        if table.start.kind == "version" and (table.start.value or 0) < 3:
            raise EngineError("version-gone", "its log file was cleaned up")
        known = self.tables[table.name]
        at = replace(self.cursor(known), version=2, instant=known.commits[2].instant)
        return super().head(table, at)


def test_a_history_that_begins_later_is_told_with_the_earliest_time() -> None:
    text = BOOK + "  pair: {on: a ; b within 30 s, per: k}\n"
    feed = Cleaned(feed_of([(1, 7, 1), (10, 7, 2), (20, 7, 1), (40, 7, 2)]).tables)
    with pytest.raises(InputError, match=r"the earliest possible: --from 2026-03-02T09:00:20Z$"):
        found(text, feed, 5)
    with pytest.raises(InputError, match="--from 2026-03-02T09:00:25Z, with this --warm-up"):
        found(text, feed, 12, warm_up=5 * SECOND)
    run = found(text, feed, 25)
    assert (fired(run), run.warm_up) == ([("pair", 40)], 5 * SECOND)
    assert any("rules remember 30 s: the history begins there" in said for said in run.notes)


def test_limits_are_told_and_a_rule_that_fires_often_goes_on() -> None:
    text = BOOK + "  often: {on: a, per: k}\n  pair: {on: a ; b, per: k, context: unrestricted}\n"
    text += "settings: {firings_per_rule_per_minute_max: 3, carried_per_key_max: 5}\n"
    rows = [(20 * n, 7, 1) for n in range(4)] + [(100 + n, 7, 1) for n in range(9)]
    run = found(text, rows)
    often, pair = run.rules
    assert len(run.firings) == 13
    assert often.parked_at == BEGIN + 102 * SECOND
    assert "it fired 4 times within a minute, at most 3 are let" in str(often.parked_why)
    assert pair.parked_at is not None
    assert 100 * SECOND < pair.parked_at - BEGIN < 101 * SECOND, "a sixth `a` is carried"
    assert "carried_per_key_max" in f"{pair.parked_why} {pair.hint}"


def test_one_rule_runs_with_what_it_needs_though_it_is_switched_off() -> None:
    text = BOOK + (
        "  warn: {on: a, per: k, do: [{signal: {hot: {k: k}}}]}\n"
        "  heard: {on: hot, per: k, enabled: false}\n"
        "  other: {on: b}\n"
    )
    run = found(text, [(1, 7, 1), (2, 7, 2)], rule="heard")
    assert fired(run) == [("heard", 1.001)]
    assert [rule.name for rule in run.rules if rule.shown] == ["heard"]
    assert fired(found(text, [(1, 7, 1), (2, 7, 2)])) == [("warn", 1), ("other", 2)]


def test_what_happened_after_the_end_is_not_seen() -> None:
    text = BOOK + "  one: {on: a}\n  none: {on: 'not(b)[a, [2 s]]'}\n"
    rows = [(1, 7, 1), (5, 7, 1), (5.001, 7, 1)]
    assert fired(found(text, rows, 0, 5)) == [("one", 1), ("none", 3), ("one", 5)]


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_seventeen_planted_differences_are_found_and_no_other(seed: int) -> None:
    drawn = random.Random(seed)
    rows = [(n, drawn.randrange(5), drawn.choice([1, 2])) for n in range(1_000)]
    for at in drawn.sample(range(1_000), 17):
        rows[at] = (at, 9, 1)
    text = BOOK + "  one: {on: a, per: k}\n"
    other = text.replace("where: v = 1}", "where: v = 1 AND k < 9}")
    run = found(text, rows, 0, 3_600, other)
    assert run.against is not None
    difference = compared(run, run.against)
    assert (len(difference.only_one), difference.count) == (17, 17)
    assert {row["key"] for row in difference.only_one.to_pylist()} == {'{"k":9}'}


def test_constituents_are_compared_by_what_both_rulebooks_read() -> None:
    text = BOOK + "  last: {on: a ; b, per: k, if: count(*) > 0}\n"
    rows = [(1, 7, 1), (2, 7, 1), (3, 7, 2)]
    run = found(text, rows, 0, 3_600, text.replace("count(*) > 0", "max(v) > 0"))
    assert run.against is not None
    assert compared(run, run.against).count == 0
    contexts = [text.replace("per: k", f"per: k, context: {c}") for c in ("recent", "chronicle")]
    run = found(contexts[0], rows, 0, 3_600, contexts[1])
    assert run.against is not None
    assert len(compared(run, run.against).differing_one) == 1


def test_a_bare_version_is_refused_where_several_tables_raise_events() -> None:
    text = BOOK.replace("out: {path: /out}", "u: {path: /u}").replace(
        "  hot:", "  c: {on: insert, table: u}\n  hot:"
    )
    tables = [tables_of(text + "  one: {on: a and c}\n", feed_of([], "u"), None)]
    with pytest.raises(InputError, match="say t@12 or u@12, or a time"):
        tried(tables, Asked("12"), BEGIN, lambda *_: None)


def test_versions_and_progress() -> None:
    told: list[tuple[int, int]] = []
    tables = [
        tables_of(BOOK + "  one: {on: a}\n", feed_of([(1, 7, 1), (2, 7, 1), (3, 7, 1)]), None)
    ]
    run = tried(tables, Asked("2", "3"), BEGIN + HOUR, lambda *said: told.append(said))
    assert fired(run) == [("one", 2), ("one", 3)]
    assert told[-1] == (2, 2)
    assert run.rows == 2


@pytest.mark.parametrize("coupling", ["deferred", "detached"])
def test_queries_are_asked_as_of_each_detection_whatever_their_coupling(coupling: str) -> None:
    """The queries here hold by the versions that they see."""
    text = BOOK + (
        "  asked:\n    on: a\n    coupling: immediate\n"
        "    if: {sql: SELECT firing_id FROM event JOIN t ON true}\n"
    )
    rows = [(n, 7, 1) for n in range(40)]
    as_of = found(text, rows).firings
    assert 10 < as_of["condition"].to_pylist().count("held") < 30
    other = found(text.replace("immediate", coupling), rows)
    assert other.firings.equals(as_of)
    assert "All queries of conditions are asked as of the instant of detection." in other.notes


@pytest.mark.parametrize("misfire", ["skip", "fire_last", "fire_all"])
def test_no_clock_is_missed(misfire: str) -> None:
    clock = f'  often: {{cron: "*/10 * * * *", misfire: {misfire}}}\n'
    text = BOOK.replace("  hot:", clock + "  hot:") + "  ticks: {on: often}\n  one: {on: a}\n"
    run = found(text, [(1_000, 7, 1)])
    assert [at for rule, at in fired(run) if rule == "ticks"] == [600 * n for n in range(7)]


def test_a_rule_that_waits_for_late_rows_begins_as_much_earlier() -> None:
    late = "  late: {on: insert, table: t, time: at, lateness: 10 min, where: v = 3}\n"
    text = BOOK.replace("  hot:", late + "  hot:") + "  pair: {on: late ; a within 30 s, per: k}\n"
    run = found(text, [(1, 7, 3), (20, 7, 1)], 15)
    assert (run.warm_up, fired(run)) == (630 * SECOND, [("pair", 20)])


class Torn(MemoryFeed):
    """The log of `t` cannot be read from any version on, though it seems to begin early."""

    asked = 0

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        self.asked += 1
        assert self.asked < 50, "it is asked again and again"
        if after is None and table.start.kind == "version":
            raise EngineError("version-gone", "its log file was cleaned up")
        return super().head(table, after)


@pytest.mark.parametrize("begin", [32, 62])
def test_a_history_with_a_hole_is_refused_and_ends(begin: int) -> None:
    text = BOOK + "  pair: {on: a ; b within 31 s, per: k}\n"
    feed = Torn(feed_of([(1, 7, 1), (40, 7, 2)]).tables)
    with pytest.raises(InputError, match="its history begins later than asked"):
        found(text, feed, begin)


class Vacuumed(MemoryFeed):
    """The changes of `t` before version 3 are gone. `fails`: the code of reads of what is left."""

    fails = ""

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        if span.first < 3:
            raise EngineError("version-gone", f"version {span.first} was vacuumed")
        if self.fails:
            raise EngineError(self.fails, "no route to the lake")
        return super().read(table, span, request)


def test_an_outage_is_not_taken_for_what_vacuum_took() -> None:
    text, rows = BOOK + "  one: {on: a}\n", [(n, 7, 1) for n in range(1, 6)]
    feed = Vacuumed(feed_of(rows).tables)
    with pytest.raises(InputError, match="can be read from version 3 on"):
        found(text, feed)
    feed.fails = "table-unreadable"
    with pytest.raises(EngineError, match="no route to the lake"):
        found(text, feed)


def test_a_rule_runs_with_those_that_switch_it() -> None:
    text = BOOK + (
        "  off: {on: b, do: [{disable: pair}]}\n  pair: {on: a, per: k}\n  other: {on: a}\n"
    )
    run = found(text, [(1, 7, 1), (2, 7, 2), (3, 7, 1)], rule="pair")
    assert fired(run) == [("pair", 1)]
    assert [rule.name for rule in run.rules if rule.shown] == ["pair"]


def test_a_rule_runs_with_those_of_whose_actions_it_hears() -> None:
    text = BOOK + (
        "  warn: {on: a, per: k, do: [{signal: {hot: {k: k}}}]}\n"
        "  done: {on: end_of warn, per: k}\n  other: {on: a}\n"
    )
    assert fired(found(text, [(1, 7, 1)], rule="done")) == [("done", 1.001)]
