"""The past of tables: where its commits stand, how it is read, and what is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from tests.replay.backtest.live import NO_ROWS, tables_of
from tests.replay.backtest.test_trial import BOOK, HOUR, Vacuumed, feed_of, fired, found
from tests.support.make import BEGIN, SECOND
from tidegate import rules
from tidegate.engine.core.ports import ReadRequest
from tidegate.engine.core.values import TableRange
from tidegate.engine.replay.backtest.past import Listing, PastFeed, TablePast
from tidegate.engine.replay.backtest.trial import Asked, tried
from tidegate.engine.replay.memory.feed import MemoryFeed
from tidegate.engine.replay.memory.observation import moment
from tidegate.rules.errors import InputError
from tidegate.rules.model import Table

ONE = BOOK + "  one: {on: a}\n"
PAIR = BOOK + "  pair: {on: a ; b within 30 s, per: k%s}\n"


def past_of(feed: MemoryFeed, stored: dict[int, int]) -> TablePast:
    """The past of `t` from BEGIN on."""
    return Listing(feed, rules.load(ONE).tables["t"], BEGIN, stored).until(BEGIN + HOUR)


def test_what_vacuum_took_is_told_with_the_instant_of_the_first_version_that_is_left() -> None:
    feed = Vacuumed(feed_of([(n, 7, 1) for n in range(1, 6)]).tables)
    says = r"committed at 2026-03-02T09:00:03Z(?s:.*) --from 2026-03-02T09:00:03Z$"
    with pytest.raises(InputError, match=says):
        found(ONE, feed)
    assert fired(found(ONE, feed, 3)) == [("one", 3), ("one", 4), ("one", 5)]


def test_a_stored_commit_stands_behind_one_of_the_log_before_it() -> None:
    feed = feed_of([(5, 1, 1), (6, 2, 1), (7, 3, 1)])
    past = past_of(feed, {2: BEGIN + 3 * SECOND})
    assert [at - BEGIN for at in past.instants] == [5_000_000, 5_001_000, 7_000_000]
    assert [commit.instant for commit in past.commits] == [*past.instants]


class Spans(MemoryFeed):
    """Which versions are read at once, and which of these are not."""

    def __init__(self, feed: MemoryFeed) -> None:
        super().__init__(feed.tables)
        self.read_: list[tuple[int, int, Sequence[int]]] = []

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        self.read_.append((span.first, span.last, sorted(span.skipped)))
        return super().read(table, span, request)


def test_a_piece_ends_before_other_columns_and_leaves_out_what_changes_no_row() -> None:
    feed = feed_of([(1, 1, 1), (2, 2, 1)])
    table = feed.tables["t"]
    table.commit(BEGIN + 3 * SECOND, NO_ROWS, (), None)  # version 3
    table.commit(BEGIN + 4 * SECOND, NO_ROWS, (), None)
    table.widen(BEGIN + 5 * SECOND, pa.schema({"w": pa.int64()}))  # version 5
    feed, model = Spans(feed), rules.load(ONE).tables["t"]
    past = past_of(feed, {})
    shown = PastFeed(feed, {"t": past}, lambda: BEGIN + HOUR)
    span = TableRange("t", 1, 1, {1: past.instants[0]}, past.cursor)
    for version in (1, 2):
        span = replace(span, first=version, last=version, instants={})
        assert len(shown.read(model, span, ReadRequest(("k",), frozenset({"insert"})))) == 1
    assert feed.read_ == [(1, 4, [3, 4])]


def test_a_span_that_ends_in_the_future_ends_now() -> None:
    text = ONE + "  none: {on: 'not(b)[a, [2 s]]'}\n"
    feed, end = feed_of([(5, 7, 1), (9, 7, 1)]), moment(BEGIN + HOUR)
    run = tried(
        [tables_of(text, feed, None)],
        Asked(moment(BEGIN), end),
        BEGIN + 10 * SECOND,
        lambda *_: None,
    )
    assert run.span.end == BEGIN + 10 * SECOND
    assert fired(run) == [("one", 5), ("none", 7), ("one", 9)]


def test_commits_that_change_no_row_are_not_counted() -> None:
    feed = feed_of([(1, 7, 1), (2, 7, 1)])
    feed.tables["t"].commit(BEGIN + 3 * SECOND, NO_ROWS, (), None)
    assert found(ONE, feed).notes[0].endswith(" 0 of 2 commits in it are theirs.")


@pytest.mark.parametrize(
    ("damping", "seconds"),
    [
        ("cooldown: 1 h", 3_600),
        ("throttle: 3 per 2 h", 7_200),
        ("dedupe: {by: [v], within: 90 min}", 5_400),
        ("cooldown: 1 h, dedupe: {by: [v], within: 90 min}", 5_400),
    ],
)
def test_it_begins_as_much_earlier_as_damping_remembers(damping: str, seconds: int) -> None:
    assert found(PAIR % f", {damping}", []).warm_up == (30 + seconds) * SECOND


def test_a_hysteresis_remembers_for_ever() -> None:
    levels = ", hysteresis: {fire: max(v) > 5, rearm: max(v) < 3}"
    (said,) = [note for note in found(PAIR % levels, []).notes if "would remember" in note]
    assert said.startswith("What pair would remember")
