"""Versions as ends of a span: the commits that they name are in it, wherever they stand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.replay.backtest.live import Live, tables_of, tried_again
from tests.replay.backtest.test_trial import BOOK, Row, feed_of, fired
from tests.support.make import BEGIN, SECOND
from tidegate.engine.replay.backtest.trial import Asked, tried
from tidegate.engine.store import open_store
from tidegate.rules.errors import InputError

TEXT = BOOK + "  one: {on: a}\n  pair: {on: a ; a within 30 s, per: k}\n"
OF_ONE_SECOND = [(1, n, 1) for n in range(1, 5)] + [(2, 5, 1), (50, 6, 1)]


def ones(rows: Sequence[Row], begin: str, end: str, warm_up: int | None = None) -> list[float]:
    """When `one` fired."""
    tables = [tables_of(TEXT, feed_of(rows), None)]
    found = tried(tables, Asked(begin, end, warm_up=warm_up), BEGIN + 100 * SECOND, lambda *_: None)
    return [at for rule, at in fired(found) if rule == "one"]


@pytest.mark.parametrize("warm_up", [None, 0, 1, SECOND])
def test_commits_of_one_instant_are_parted_by_their_versions(warm_up: int | None) -> None:
    assert ones(OF_ONE_SECOND, "t@1", "t@4", warm_up) == [1, 1.001, 1.002, 1.003]
    assert ones(OF_ONE_SECOND, "t@3", "t@4", warm_up) == [1.002, 1.003]
    assert ones(OF_ONE_SECOND, "2", "2", warm_up) == [1.001]
    assert ones(OF_ONE_SECOND, "4", "5", warm_up) == [1.003, 2]


@pytest.mark.parametrize(
    ("begin", "end", "option"), [("20260301", "20260301", "--from"), ("1", "t@7", "--to")]
)
def test_a_version_that_is_not_there_is_told_with_what_may_be_written(
    begin: str, end: str, option: str
) -> None:
    with pytest.raises(
        InputError, match=f"(?s){option}: table `t` has no version .* 2026-03-01T09:00"
    ):
        ones(OF_ONE_SECOND, begin, end)


def test_a_commit_whose_clock_was_behind_is_in_the_span_that_ends_with_it() -> None:
    rows = [(5, 1, 1), (3, 2, 1), (6, 3, 1)]
    assert ones(rows, "t@1", "t@2") == [5, 5.001]
    assert ones(rows, "t@2", "t@2") == [5.001]
    assert ones(rows, "t@2", "t@3") == [5.001, 6]


def test_a_commit_that_a_bucket_moved_is_in_the_span_that_it_bounds(store_url: str) -> None:
    with open_store(store_url, create=True) as store:
        live = Live(TEXT, store)
        live.clock.at += SECOND
        live.commit("t", [{"id": 1, "k": 1, "v": 1}])
        live.take()
        live.clock.at += SECOND
        live.commit("t", [{"id": 2, "k": 2, "v": 1}], behind=2 * SECOND)
        live.take()
        live.clock.at += SECOND
        live.commit("t", [{"id": 3, "k": 3, "v": 1}])
        live.settle()
        moved = store.of("past").placed.instants("t")[2]
        assert moved > BEGIN + SECOND, "after the watermark of the bucket before"
        for begin, end, ids in (("1", "2", [1, 2]), ("2", "2", [2]), ("2", "3", [2, 3])):
            tables = [tables_of(TEXT, live.feed, store)]
            found = tried(tables, Asked(begin, end), live.clock.at, lambda *_: None)
            assert found.whole["one"].relation["id"].to_pylist() == ids
        assert len(tried_again(live, BEGIN, moved - 1_000).whole["one"]) == 1
