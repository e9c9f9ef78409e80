"""The four counters by which a run is judged: lost, duplicated, out of order, corrupt."""

from __future__ import annotations

from dataclasses import dataclass

from tests.crash.lake import Lake, Rows, expected


@dataclass(frozen=True)
class Verdict:
    """Rows of the tables that a rulebook writes, against what its source says must be there.

    `out_of_order`: commits of a rule whose entry does not come after the one before it.
    `corrupt`: rows, commits without an origin or markers that can be nobody's.
    """

    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    corrupt: int = 0


def judge(lake: Lake) -> Verdict:
    """Reads tables and their logs only, never the store."""
    totals, effects = expected(lake.rows("moves"), scripts=lake.scripted)
    found, sums = lake.rows("effects"), lake.rows("totals")
    return Verdict(
        lost=(effects - found).total() + len(_accounts(totals) - _accounts(sums)),
        duplicated=sum(n for row, n in (found - effects).items() if row in effects),
        out_of_order=_out_of_order(lake),
        corrupt=sum(n for row, n in (found - effects).items() if row not in effects)
        + (sums - totals).total()
        + _unmarked(lake),
    )


def _accounts(totals: Rows) -> set[int]:
    return {row[0] for row in totals}


def _out_of_order(lake: Lake) -> int:
    wrong = 0
    for table in ("totals", "effects"):
        last: dict[str, int] = {}
        for commit in lake.effect_commits(table):
            wrong += commit["entry"] <= last.get(commit["rule"], 0)
            last[commit["rule"]] = commit["entry"]
    return wrong


def _unmarked(lake: Lake) -> int:
    """Entries in commits without their marker, which is that of the last one of its rule."""
    return sum(
        [(marker["appId"], marker["version"]) for marker in commit["marker"]]
        != [(f"tidegate/{commit['store']}/{commit['rulebook']}/{commit['rule']}", commit["last"])]
        for table in ("totals", "effects")
        for commit in lake.effect_commits(table)
    )
