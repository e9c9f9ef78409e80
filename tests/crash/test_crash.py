"""Exactly once: the process ends at a named point, is started again, and nobody can tell.

A crash is `os._exit` in a process of its own; it is restarted in this one, on the same store.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.crash.conftest import Crash, run_process
from tests.crash.lake import BOOK, Lake
from tests.crash.traced import untraced
from tests.crash.verdict import Verdict, judge
from tests.support import written
from tidegate import Engine
from tidegate.engine.control.firings import list_firings
from tidegate.engine.core.failpoints import EXIT_CODE
from tidegate.engine.replay.why.ask import why
from tidegate.engine.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE_COMMIT = ["plan.after=exit", "commit.middle=exit", "commit.before=exit"]

# The bucket's entries: 1, 2 summed, 3 copied, 4 and 5 returned (5 raises signals), 6, 7 singled;
# then in a bucket of its own 8 noted. One process after the other, and how many entries it leaves.
AFTER_COMMIT = [
    ("commit.after=exit", 7),
    ("action.between=exit", 6),  # between the two statements of one rule
    ("action.before=exit:3", 4),
    ("settle.before=exit:2", 3),  # with the signals inserted, not committed
    ("plan.after=exit", 0),  # of the bucket that takes the signals
]
FEW = (["commit.before=exit"], [("action.between=exit", 6)])


def test_the_judge_sees_what_goes_wrong(prepared: Lake, uncrashed: Lake, tmp_path: Path) -> None:
    """The verdict on other tests is worth as much as this one."""
    assert judge(prepared) == Verdict(lost=15, corrupt=2)  # two sums are old
    assert judge(uncrashed) == Verdict()
    lake = uncrashed.copy(tmp_path / "lake")
    (again,) = (row for row in lake.rows("effects") if (row[0], row[2]) == ("copied", 3))
    written.append(lake.folder / "lake" / "effects", [again, ("copied", 9, 99, 1)])
    written.append(lake.folder / "lake" / "totals", [(1, 31, 2)])
    assert judge(lake) == Verdict(duplicated=1, corrupt=2)


@pytest.mark.parametrize(
    ("before", "after"),
    [FEW, pytest.param(BEFORE_COMMIT, AFTER_COMMIT, marks=pytest.mark.long)],
    ids=["few", "all"],
)
def test_crashes_at_one_point_after_the_other(
    spark: SparkSession,
    lake: Lake,
    prepared: Lake,
    uncrashed: Lake,
    crash: Crash,
    before: list[str],
    after: list[tuple[str, int]],
) -> None:
    """Before the transaction the plan is repeated, after it the outbox goes on; in one lake."""
    for point in before:
        assert crash(lake, point) == EXIT_CODE
        assert (lake.kept(), lake.firings()) == (prepared.kept(), prepared.firings()), point
    assert lake.rows("effects") == prepared.rows("effects")
    for point, left in after:
        assert crash(lake, point) == EXIT_CODE
        kept = lake.kept()
        assert kept["bucket"] == prepared.kept()["bucket"] + 1, point
        assert kept["unfinished"] == (left, 0), point
    check_restart(spark, lake, uncrashed)


@pytest.mark.long
def test_every_action_may_be_the_last_one_before_it_is_marked_done(
    spark: SparkSession, lake: Lake, uncrashed: Lake, crash: Crash
) -> None:
    """Each process settles the entry of the one before it, commits the next, and ends."""
    crashes = 0
    while (code := crash(lake, "action.after_commit=exit:2")) == EXIT_CODE:
        crashes += 1
        assert crashes < 20
    assert (code, crashes) == (0, 7)
    check_restart(spark, lake, uncrashed)


@pytest.mark.long
def test_the_command_ends_between_a_commit_and_its_mark(
    spark: SparkSession, lake: Lake, uncrashed: Lake
) -> None:
    """`tidegate run` as a user starts it, with a Spark of its own that ends with it."""
    command = ["tidegate", "run", str(lake.rulebook), "--once", "--store", lake.store]
    assert run_process(command, "action.after_commit=exit:1", {}) == EXIT_CODE
    assert lake.kept()["unfinished"] == (7, 0)
    assert sum(1 for _ in lake.effect_commits("totals")) == 3
    check_restart(spark, lake, uncrashed)


def test_effect_commits_name_store_rule_entry_and_firings(uncrashed: Lake) -> None:
    status = uncrashed.status()
    ids = {(f["rule"], f["firing_id"]) for f in uncrashed.firings()}
    noted = [*uncrashed.effect_commits("totals"), *uncrashed.effect_commits("effects")]
    assert {commit["store"] for commit in noted} == {status["store_id"]}
    assert {commit["rulebook"] for commit in noted} == {BOOK}
    assert {(c["rule"], one) for c in noted for one in c["ids"]} == ids
    assert all(commit["firings"] == len(commit["ids"]) for commit in noted)
    assert {c["depth"] for c in noted if c["rule"] == "noted"} == {2}
    assert {c["depth"] for c in noted if c["rule"] != "noted"} == {1}
    assert len({commit["entry"] for commit in noted}) == len(noted)


def test_g16_rows_of_actions_lead_to_firings_and_back(uncrashed: Lake, tmp_path: Path) -> None:
    """Every row that actions wrote leads to a firing, and the firing to the row's commit."""
    lake = uncrashed.copy(tmp_path / "lake")
    assert lake.rows("effects").total() == 15
    assert untraced(lake) == []
    with open_store(lake.store, create=False) as store:
        found = [f for f in list_firings(lake.store, BOOK) if f["rule"] == "returned"]
        (returned,) = (one for one in found if one["key"] == {"account": 1})
        story = why(store, None, returned["firing_id"][:10])
        (noted,) = story.effects
        assert noted.rule == "noted"
        causes = why(store, None, noted.firing_id).causes
        assert story.firing_id in [one.firing_id for one in causes]
        first, second = story.constituents
        assert (first.table, second.table) == ("moves", "moves")
        assert (first.bucket or 0) < (second.bucket or 0)
        with store.database.write() as connection:
            connection.exec_driver_sql(
                "UPDATE outbox SET effect_version = 99 WHERE effect_version = "
                "(SELECT min(effect_version) FROM outbox WHERE target = 'effects')"
            )
    assert untraced(lake)


def check_restart(spark: SparkSession, lake: Lake, uncrashed: Lake) -> None:
    """Go on, then once more for nothing: all is as without a crash."""
    with Engine(lake.rulebook, spark=spark, store=lake.store) as engine:
        engine.run(until_idle=True)
        assert engine.run_once() == ()
    assert judge(lake) == Verdict()
    for name in ("totals", "effects"):
        assert lake.rows(name) == uncrashed.rows(name)
        assert entries(lake, name) == entries(uncrashed, name)
    assert timeless(lake.firings()) == timeless(uncrashed.firings())
    assert lake.kept() == uncrashed.kept()


def entries(lake: Lake, table: str) -> list[tuple[str, int]]:
    return [(commit["rule"], commit["entry"]) for commit in lake.effect_commits(table)]


def timeless(firings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without when each bucket was taken, and the times of what signals raised: those are of the
    wall clock, as are their ids."""
    return [
        {
            name: value
            for name, value in firing.items()
            if name in ("rule", "key", "depth", "entries")
        }
        if firing["rule"] == "noted"
        else {name: value for name, value in firing.items() if name != "fired_at"}
        for firing in firings
    ]
