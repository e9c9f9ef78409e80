"""G2, G4, G8, G9, G12: what a bucket holds, planned from listings alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.support.capture import FRESH
from tests.support.rulebooks import event, rulebook, signal, table
from tidegate.engine.capture.commit_instants import Instants
from tidegate.engine.capture.plan import Listing, due, half, list_sources, make_plan, pin
from tidegate.engine.capture.sources import sources
from tidegate.engine.core.ledger import Unplaced
from tidegate.engine.core.ports import TableHead
from tidegate.engine.core.state import State
from tidegate.engine.core.values import Commit, Cursor, Plan, Signal
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook, Table

MS = 1_000
NOW = 1_000_000_998  # a whole millisecond + 998 us: W may be as late as this


def schema(*columns: str) -> str:
    fields = [{"name": c, "type": "integer", "nullable": True, "metadata": {}} for c in columns]
    return json.dumps({"type": "struct", "fields": fields})


def cursor(name: str = "t", version: int = 4, instant: int = 500 * MS) -> Cursor:
    return Cursor(name, f"{name}-id", version, instant, schema("a", "b"))


def commits(*times: int, first: int = 5, rows: int = 10) -> tuple[Commit, ...]:
    return tuple(Commit(first + n, time, rows) for n, time in enumerate(times))


def running(*cursors: Cursor, watermark: int = 600 * MS + 998) -> State:
    return replace(
        FRESH,
        bucket=7,
        watermark=watermark,
        cursors={c.table: c for c in cursors},
        activations={"on_a": 1, "on_b": 1, "on_s": 1},
    )


def book(*names: str, **settings: int) -> Rulebook:
    """Event types a, b, .. over the tables, and a signal s."""
    tables = [table(name, f"/{name}") for name in names]
    events = [event(e, name, "insert") for e, name in zip("ab", names, strict=False)]
    return rulebook(tables=tables, events=[*events, signal("s", x="int")], **settings)


def listed(rules: Rulebook, heads: Sequence[TableHead], now: int = NOW) -> Listing:
    by_table = {head.cursor.table: head for head in heads}
    return Listing(now, by_table, sources(rules).slack_micros(by_table))


def plan(
    rules: Rulebook,
    state: State,
    heads: Sequence[TableHead],
    signals: Sequence[Signal] = (),
    now: int = NOW,
    **more: int,
) -> Plan | None:
    unplaced = Unplaced(tuple(signals))
    return make_plan(rules, state, listed(rules, heads, now), unplaced, {"t": {"a"}}, **more)


def test_g02_a_bucket_holds_all_commits_up_to_now() -> None:
    head = TableHead(cursor(), 6, commits(700 * MS, 800 * MS))
    found = plan(book("t"), running(cursor()), [head])
    assert found
    assert (found.watermark_before, found.watermark, found.bucket) == (600 * MS + 998, NOW, 8)
    (span,) = found.ranges
    assert (span.first, span.last) == (5, 6)
    assert span.instants == {5: 700 * MS, 6: 800 * MS}
    assert span.cursor == replace(cursor(), version=6, instant=800 * MS)
    assert found.pinned == {"t": 6}
    assert not found.more


def test_g02_what_is_left_out_holds_the_watermark_back() -> None:
    left = Commit(6, 800 * MS)
    head = TableHead(cursor(), 6, commits(700 * MS), left_out=left)
    found = plan(book("t"), running(cursor()), [head])
    assert found
    assert found.watermark == 799 * MS + 998
    assert found.more


def test_g02_slack_keeps_the_order_of_several_tables() -> None:
    state = running(cursor("t"), cursor("u"))
    heads = [
        TableHead(cursor("t"), 5, commits(NOW - 998 - 100 * MS)),
        TableHead(cursor("u"), 5, commits(NOW - 998 - 300 * MS)),
    ]
    found = plan(book("t", "u"), state, heads)
    assert found
    assert [span.table for span in found.ranges] == ["u"]
    assert found.watermark == NOW - 200 * MS
    assert found.pinned == {"t": 4, "u": 5}
    assert not found.more  # the other one waits for the slack: nothing to be planned at once
    coarse = [replace(head, coarse_times=True) for head in heads]
    assert plan(book("t", "u"), state, coarse) is None


def test_g02_nothing_new_is_no_bucket() -> None:
    assert plan(book("t"), running(cursor()), [TableHead(cursor(), 4)]) is None
    late = TableHead(cursor(), 5, commits(NOW + 2))
    assert plan(book("t"), running(cursor()), [late]) is None


def test_g02_a_clock_that_was_set_back_takes_no_watermark_back() -> None:
    rules, state = book("t"), replace(running(cursor()), activations={})
    heads = listed(rules, [TableHead(cursor(), 5, commits(601 * MS))], now=400 * MS)
    found = make_plan(rules, state, heads, Unplaced(), {})
    assert found
    assert found.watermark_before == found.watermark == state.watermark
    assert (found.ranges, set(found.activations)) == (
        (),
        {rule.name for rule in rules.rules.values()},
    )


def test_g09_the_first_plan_sets_cursors_and_activations() -> None:
    found = plan(book("t"), FRESH, [TableHead(cursor(), 4)])
    assert found
    (span,) = found.ranges
    assert (span.first, span.last, span.cursor.version) == (5, 4, 4)
    assert found.watermark == found.watermark_before == NOW
    assert found.activations == {"on_a": NOW + 1, "on_s": NOW + 1}


def test_g09_the_first_watermark_lies_before_what_start_reads() -> None:
    head = TableHead(cursor(), 6, commits(300 * MS, 400 * MS))
    found = plan(book("t"), FRESH, [head])
    assert found
    assert found.watermark_before == 299 * MS + 998
    assert found.activations["on_a"] < 300 * MS
    assert found.ranges[0].instants == {5: 300 * MS, 6: 400 * MS}


def test_g09_snapshot_rows_stand_at_the_next_whole_millisecond() -> None:
    found = plan(book("t"), FRESH, [TableHead(cursor(), 4, snapshot=True)])
    assert found
    (span,) = found.ranges
    assert span.snapshot
    assert span.instants == {4: found.watermark_before + 2}
    assert span.instants[4] % MS == 0
    assert found.activations["on_a"] <= span.instants[4] <= found.watermark


def test_g09_a_table_added_later_has_its_old_commits_after_the_watermark() -> None:
    class Feed:
        def head(self, _: Table, after: Cursor | None) -> TableHead:
            if after is not None:
                return TableHead(after, after.version)
            return TableHead(cursor("u", -1, 0), 1, commits(10 * MS, 20 * MS, first=0))

        def version(self, _: Table) -> int:
            return 3

    state = running(cursor(), cursor("other", 1))
    rules = book("t", "u", "other")
    feed: Any = Feed()
    listing = list_sources(rules, sources(rules), state, feed, Instants(0), NOW, lambda: NOW)
    found = make_plan(rules, state, listing, Unplaced(), {})
    assert found
    found = pin(found, rules, feed)
    assert found.ranges[0].instants == {0: 601 * MS, 1: 602 * MS}
    assert found.moved == (("u", 0, 10 * MS, 601 * MS), ("u", 1, 20 * MS, 602 * MS))
    # `other` was a source once.
    assert found.pinned == found.latest == {"t": 4, "u": 1, "other": 3}


def test_g08_rows_lower_the_watermark_and_drop_nothing() -> None:
    rules, state = book("t", bucket_rows_max=25), running(cursor())
    times = [(700 + 10 * n) * MS for n in range(5)]
    taken: list[int] = []
    while True:
        at = state.cursors["t"]
        rest = tuple(c for c in commits(*times) if c.version > at.version)
        found = plan(rules, state, [TableHead(at, 9, rest)])
        if found is None:
            break
        (span,) = found.ranges
        assert span.rows_estimate <= 25
        assert found.more == (span.last < 9)
        taken += range(span.first, span.last + 1)
        state = replace(state, watermark=found.watermark, cursors={"t": span.cursor})
    assert taken == [5, 6, 7, 8, 9]


def test_g08_one_commit_is_never_cut() -> None:
    head = TableHead(cursor(), 6, commits(700 * MS, 800 * MS, rows=1_000))
    found = plan(book("t", bucket_rows_max=25), running(cursor()), [head])
    assert found
    assert found.ranges[0].last == 5


def test_g08_a_failed_span_is_planned_again_smaller() -> None:
    head = TableHead(cursor(), 6, commits(700 * MS, 800 * MS))
    found = plan(book("t"), running(cursor()), [head], until=700 * MS + 998)
    assert found
    assert found.ranges[0].last == 5


def test_g08_simultaneous_commits_of_two_tables_stay_together() -> None:
    state = running(cursor("t"), cursor("u"))
    heads = [
        TableHead(cursor("t"), 6, commits(700 * MS, 710 * MS)),
        TableHead(cursor("u"), 6, commits(700 * MS, 710 * MS)),
    ]
    found = plan(book("t", "u", bucket_rows_max=10), state, heads)
    assert found
    assert [(span.table, span.last) for span in found.ranges] == [("t", 5), ("u", 5)]


def test_g12_a_bucket_ends_before_a_change_of_schema() -> None:
    changing = list(commits(700 * MS, 710 * MS, 720 * MS))
    changing[1] = replace(changing[1], schema=schema("a", "b", "c"))
    state, seen = running(cursor()), []
    for _ in range(2):
        at = state.cursors["t"]
        rest = tuple(c for c in changing if c.version > at.version)
        found = plan(book("t"), state, [TableHead(at, 7, rest)])
        assert found
        (span,) = found.ranges
        seen.append((span.first, span.last, '"c"' in span.cursor.schema))
        state = replace(state, watermark=found.watermark, cursors={"t": span.cursor})
    assert seen == [(5, 5, False), (6, 7, True)]


@pytest.mark.parametrize(
    ("after", "word"),
    [(schema("b"), "drops or renames column `a`"), (schema("b").replace("b", "a"), None)],
)
def test_g12_a_used_column_stops_when_its_commit_comes(after: str, word: str | None) -> None:
    changing = list(commits(700 * MS, 710 * MS))
    changing[1] = replace(changing[1], schema=after)
    head = TableHead(cursor(), 6, tuple(changing))
    assert plan(book("t"), running(cursor()), [head])  # what comes before it is done first
    head = TableHead(cursor(version=5), 6, tuple(changing[1:]))
    if word is None:  # an unused column went
        assert plan(book("t"), running(cursor(version=5)), [head])
        return
    with pytest.raises(EngineError, match=f"table `t`: version 6 {word}") as stop:
        plan(book("t"), running(cursor(version=5)), [head])
    assert stop.value.code == "schema-incompatible"
    assert "tidegate reset t --from 6" in str(stop.value)


def test_g12_a_retyped_column_stops() -> None:
    after = schema("a", "b").replace('"integer"', '"long"', 1)
    head = TableHead(cursor(), 5, (replace(commits(700 * MS)[0], schema=after),))
    with pytest.raises(EngineError, match="changes column `a` from integer to long"):
        plan(book("t"), running(cursor()), [head])


def test_g04_signals_are_placed_after_the_watermark_and_when_received() -> None:
    early = Signal("1", "s", {}, received_at=5)
    late = Signal("2", "s", {}, received_at=900 * MS)
    future = Signal("3", "s", {}, received_at=NOW + 1)
    found = plan(book("t"), running(cursor()), [TableHead(cursor(), 4)], [early, late, future])
    assert found
    assert [(s.id, s.instant) for s in found.signals] == [
        ("1", 600 * MS + 999),
        ("2", 900 * MS),
    ]


def test_g04_a_cap_holds_the_watermark_below_the_first_signal_left_out() -> None:
    taken = Signal("1", "s", {}, received_at=900 * MS + 7)
    rules, state = book("t"), running(cursor())
    head = TableHead(cursor(), 5, commits(950 * MS))
    for left_out, watermark in (
        (901 * MS, 900 * MS + 998),
        (901 * MS + 998, 900 * MS + 998),  # W on its instant would pass it over
        (901 * MS + 999, 901 * MS + 998),
    ):
        unplaced = Unplaced((taken,), left_out)
        found = make_plan(rules, state, listed(rules, [head]), unplaced, {})
        assert found
        assert (found.watermark, found.signals[0].id) == (watermark, "1")
        assert (found.ranges, found.more) == ((), True)
        bare = make_plan(rules, state, listed(rules, [TableHead(cursor(), 4)]), unplaced, {})
        assert bare
        assert bare.more  # of the signal that was left out


def test_g02_when_the_watermark_passes_what_waits() -> None:
    rules, state = book("t", "u"), running(cursor("t"), cursor("u"))
    before = state.watermark or 0
    late = Signal("1", "s", {}, received_at=before - 5)
    head = TableHead(cursor("t"), 5, commits(NOW - 998 - 100 * MS))
    other = TableHead(cursor("u"), 4)
    for heads, signals in (([head, other], ()), ([other], (late,))):
        unplaced = Unplaced(signals)
        at = due(listed(rules, heads), unplaced, before)
        assert at
        early = make_plan(rules, state, listed(rules, heads, at - 1), unplaced, {})
        assert early is None
        assert make_plan(rules, state, listed(rules, heads, at), unplaced, {})
    assert due(listed(rules, [other]), Unplaced(), before) is None


def halved(*instants: int) -> int | None:
    signals = tuple(Signal(str(n), "s", {}, i, instant=i) for n, i in enumerate(instants))
    return half(Plan("test", 8, 600 * MS + 998, NOW, NOW, signals=signals))


def test_g08_a_halved_plan_ends_on_the_grid_after_its_begin() -> None:
    assert halved(601 * MS, 602 * MS, 603 * MS) == 601 * MS + 998
    # No watermark parts what lies in one cell.
    assert halved(600 * MS + 999, 601 * MS, 601 * MS + 998) is None
    assert halved(*range(600 * MS + 999, 601 * MS + 2), 601 * MS + 999) == 601 * MS + 998
    assert halved(*range(601 * MS, 601 * MS + 999), 605 * MS) == 604 * MS + 998
    assert halved(700 * MS + 1, 700 * MS + 2, 700 * MS + 3, 701 * MS + 999) == 701 * MS + 998
    assert halved() is None


def test_depths_and_versions_that_raise_nothing_go_along() -> None:
    first, second = commits(700 * MS, 710 * MS)
    head = TableHead(cursor(), 6, (replace(first, depth=2), replace(second, skip=True)))
    found = plan(book("t"), running(cursor()), [head])
    assert found
    (span,) = found.ranges
    assert (span.depths, span.skipped, span.rows_estimate) == ({5: 2}, {6}, 10)
    assert (found.pinned, found.latest) == ({"t": 6}, {"t": 6})


def test_a_disabled_rule_is_not_activated() -> None:
    rules = book("t")
    rules = replace(
        rules, rules={n: replace(r, enabled=n != "on_a") for n, r in rules.rules.items()}
    )
    found = plan(rules, FRESH, [TableHead(cursor(), 4)])
    assert found
    assert set(found.activations) == {"on_s"}


def test_g26_visible_rows_are_those_of_all_commits_that_count() -> None:
    first, second, third = commits(700 * MS, 800 * MS, 900 * MS)
    heads = [TableHead(cursor("t"), 7, (first, replace(second, skip=True), third)),
             TableHead(cursor("u"), 5, commits(700 * MS, rows=5))]  # fmt: skip
    assert listed(book("t", "u"), heads).rows == 25
