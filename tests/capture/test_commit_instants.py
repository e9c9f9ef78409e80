"""G1: the instant of every commit; the watermark's grid."""

from __future__ import annotations

from tidegate.engine.capture.commit_instants import Instants, Now
from tidegate.engine.core.instants import after_watermark, ceil_watermark, floor_watermark
from tidegate.engine.core.values import Commit

SECOND = 1_000_000


def fix(
    instants: Instants,
    *times: int,
    now: int = 100 * SECOND,
    took: int = 0,
    **bounds: int | None,
) -> list[int]:
    commits = [Commit(version, time) for version, time in enumerate(times)]
    lower = bounds.get("previous"), bounds.get("watermark")
    fixed = instants.fix("id", commits, *lower, now, listed_at=now + took)
    return [commit.instant for commit in fixed]


def test_g01_whole_milliseconds_one_after_another() -> None:
    found = fix(Instants(10 * SECOND), 5_000_400, 5_000_900, 4_000_000, 6_000_000)
    assert found == [5_000_000, 5_001_000, 5_002_000, 6_000_000]


def test_g01_after_the_previous_version_and_the_watermark() -> None:
    assert fix(Instants(0), 1_000, previous=9_000) == [10_000]
    assert fix(Instants(0), 1_000, watermark=8_998) == [9_000]
    assert fix(Instants(0), 20_000, previous=9_000, watermark=8_998) == [20_000]


def test_g01_at_most_now_if_too_far_ahead_but_lower_bounds_win() -> None:
    now = 100 * SECOND + 1
    assert fix(Instants(10 * SECOND), 110 * SECOND, now=now) == [110 * SECOND]
    assert fix(Instants(10 * SECOND), 111 * SECOND, now=now) == [100 * SECOND]
    assert fix(Instants(SECOND), 111 * SECOND, now=now, previous=105 * SECOND) == [
        105 * SECOND + 1_000
    ]


def test_g01_fixed_when_first_listed() -> None:
    instants = Instants(10 * SECOND)
    assert fix(instants, 500 * SECOND, now=100 * SECOND) == [100 * SECOND]
    assert fix(instants, 500 * SECOND, now=200 * SECOND, watermark=50 * SECOND) == [100 * SECOND]
    assert fix(instants, 500 * SECOND, previous=300 * SECOND) == [300 * SECOND + 1_000]  # a reset
    instants.forget("id", 0)
    assert fix(instants, 500 * SECOND, now=200 * SECOND) == [200 * SECOND]


def test_g01_a_commit_as_far_ahead_as_may_be_stays() -> None:
    assert fix(Instants(10 * SECOND), 110 * SECOND) == [110 * SECOND]
    assert fix(Instants(10 * SECOND), 110 * SECOND + 1_000) == [100 * SECOND]


def test_g01_a_reset_to_the_very_instant_of_a_version_moves_it() -> None:
    instants = Instants(10 * SECOND)
    assert fix(instants, 90 * SECOND) == [90 * SECOND]
    assert fix(instants, 90 * SECOND, previous=90 * SECOND) == [90 * SECOND + 1_000]


def test_g01_a_bucket_of_one_table_leaves_the_instants_of_others() -> None:
    instants = Instants(10 * SECOND)
    assert fix(instants, 500 * SECOND, now=100 * SECOND) == [100 * SECOND]
    instants.forget("other", 7)
    assert fix(instants, 500 * SECOND, now=200 * SECOND) == [100 * SECOND]


def test_g01_a_commit_made_during_a_slow_listing_stays() -> None:
    times = [114 * SECOND, 128 * SECOND, 141 * SECOND]  # the last one is ahead all the same
    assert fix(Instants(10 * SECOND), *times, took=30 * SECOND) == [
        114 * SECOND,
        128 * SECOND,
        128 * SECOND + 1_000,
    ]
    assert fix(Instants(10 * SECOND), times[-1], took=30 * SECOND) == [100 * SECOND]


def test_g01_moved_commits_keep_what_the_log_says() -> None:
    commits = [Commit(0, 5_000), Commit(1, 5_000), Commit(2, 9 * SECOND)]
    fixed = Instants(0).fix("id", commits, None, None, SECOND, SECOND)
    assert [commit.logged for commit in fixed] == [None, 5_000, 9 * SECOND]


def test_g02_no_commit_is_cut_from_its_end() -> None:
    watermark = floor_watermark(5_998)
    assert watermark == 5_998
    assert floor_watermark(5_997) == 4_998
    assert [ceil_watermark(time) for time in (4_999, 5_000, 5_998)] == [5_998] * 3
    assert after_watermark(5_998) == 6_000
    for instant in (5_000, 6_000):
        assert (instant - 1 <= watermark) == (instant + 1 <= watermark)


class SteppedClock:
    def __init__(self) -> None:
        self.wall_time, self.steady = 1_000, 50

    def wall(self) -> int:
        return self.wall_time

    def monotonic(self) -> int:
        return self.steady


def test_g03_now_never_goes_back() -> None:
    clock = SteppedClock()
    now = Now(clock, stored=900)
    assert now() == 1_000
    clock.wall_time, clock.steady = 400, 60  # the wall clock was set back
    assert now() == 1_010
    clock.wall_time, clock.steady = 5_000, 70
    assert now() == 5_000
    clock.wall_time, clock.steady = 1_030, 80  # it was ahead for a moment
    assert now() == 5_010


def test_g03_now_starts_from_what_was_stored() -> None:
    clock = SteppedClock()
    now = Now(clock, stored=9_000)
    clock.steady += 7
    assert now() == 9_007
