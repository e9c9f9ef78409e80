"""When a version of a table may be gone, against a walk through the days."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tidegate.engine.core.keeping import (
    DAY_MICROS,
    FILES,
    LOG,
    Claim,
    Keeping,
    Need,
    deadlines,
    gone_at,
)

HOUR = 3_600_000_000
MONDAY = 1_772_409_600_000_000  # 2026-03-02T00:00:00Z
WEEK = Keeping("t", 30 * DAY_MICROS, 7 * DAY_MICROS)


def cleaned(keeping: Keeping, instant: int, now: int) -> bool:
    """Whether log cleaning takes a commit: its file is not younger than the begin of the day, UTC,
    that is the retention ago."""
    if keeping.log_micros is None:
        return False
    ago = now - keeping.log_micros
    return instant <= ago - ago % DAY_MICROS


def vacuumed(keeping: Keeping, instant: int, now: int) -> bool:
    """Whether VACUUM takes what was replaced, or the changes that were made, at an instant."""
    return now - instant >= keeping.files_micros


@given(
    st.integers(0, 100 * 24).map(lambda n: n * HOUR // 4),
    st.none() | st.integers(0, 40 * 24).map(lambda n: n * HOUR),
    st.integers(0, 40 * 24).map(lambda n: n * HOUR),
    st.booleans(),
    st.sampled_from((0, HOUR, 20 * DAY_MICROS)),
)
@example_count(300)
def test_it_is_the_first_instant_at_which_a_version_may_be_gone(
    instant: int, log: int | None, files: int, log_only: bool, stood: int
) -> None:
    keeping = Keeping("t", log, files)

    def gone(now: int) -> bool:
        files = not log_only and vacuumed(keeping, instant + stood, now)
        return cleaned(keeping, instant, now) or files

    found = gone_at(keeping, instant, log_only=log_only, replaced=instant + stood)
    if found is None:
        assert (log, log_only) == (None, True)
        return
    at, by = found
    assert gone(at)
    assert not gone(at - 1)
    only = Keeping("t", log if by == LOG else None, files)
    assert cleaned(only, instant, at) if by == LOG else vacuumed(only, instant + stood, at)


def test_the_first_deadline_comes_first_and_each_need_has_its_limit() -> None:
    ten = MONDAY + 10 * HOUR
    found = deadlines(
        [
            Claim(Need.QUEUE, "t", "pay", 5, ten),
            Claim(Need.CURSOR, "t", "t", 5, ten),
            Claim(Need.CURSOR, "elsewhere", "elsewhere", 5, ten),  # of it nothing is known
        ],
        {"t": WEEK},
        ten,
    )
    assert [(one.claim.need, one.at - ten, one.by, one.gone) for one in found] == [
        (Need.CURSOR, 7 * DAY_MICROS, FILES, False),
        (Need.QUEUE, 30 * DAY_MICROS + 14 * HOUR, LOG, False),
    ]


def test_what_is_older_than_the_log_is_gone_already() -> None:
    begins = Keeping("t", None, 7 * DAY_MICROS, oldest=6, head=9)
    claims = [Claim(Need.QUEUE, "t", "pay", version, MONDAY) for version in (5, 6)]
    [found] = deadlines(claims, {"t": begins}, MONDAY + HOUR)
    assert (found.claim.version, found.at, found.gone) == (5, MONDAY + HOUR, True)


def test_a_deadline_that_is_reached_is_past() -> None:
    claim = Claim(Need.CURSOR, "t", "t", 5, MONDAY)
    for before, gone in ((1, False), (0, True)):
        [found] = deadlines([claim], {"t": WEEK}, MONDAY + 7 * DAY_MICROS - before)
        assert found.gone is gone


def test_an_engine_may_stand_for_the_shorter_of_both() -> None:
    assert (WEEK.stands_micros, WEEK.limit) == (7 * DAY_MICROS, FILES)
    short = Keeping("t", DAY_MICROS, 7 * DAY_MICROS)
    assert (short.stands_micros, short.limit) == (DAY_MICROS, LOG)
    assert Keeping("t", None, 7 * DAY_MICROS).limit == FILES
