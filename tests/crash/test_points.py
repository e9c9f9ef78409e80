"""Failpoints on real tables: of those that the small lake reaches, each one, in each way. The
normal suite has a few of them in `test_crash.py`, and all over memory (`tests/simulate`)."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tidegate
from tests.crash.conftest import Crash, finish
from tests.crash.lake import Lake
from tests.crash.verdict import Verdict, judge
from tidegate.engine.core.failpoints import EXIT_CODE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNREACHED = """adopt.before answer.before compact.after compact.before condition.asked
    lease.renewed migrate.before otherwise.after otherwise.stored pass.sealed posted.before
    purge.before purge.middle recover.loaded rows.middle rows.written seal.after seal.before
    signal.raised spark.restart state.deleted state.middle state.written strike.before tell.before
    webhook.before webhook.sent"""
CODE = Path(tidegate.__file__).parent
POINTS = {
    name
    for folder in ("engine", "connectors")
    for file in (CODE / folder).rglob("*.py")
    for name in re.findall(r'failpoint\("([\w.]+)"\)', file.read_text(encoding="utf-8"))
}
KINDS = ("exit", "exit:2", "raise", "raise:2", "late")
CELLS = sorted(f"{p}={kind}" for p, kind in product(POINTS - {*UNREACHED.split()}, KINDS))


@pytest.mark.long
@pytest.mark.parametrize("cell", CELLS)
def test_g16b_a_failure_at_a_point_loses_doubles_and_disorders_nothing(
    spark: SparkSession, lake: Lake, uncrashed: Lake, crash: Crash, cell: str
) -> None:
    code = crash(lake, cell)
    if cell.endswith("=exit"):
        assert code == EXIT_CODE, "the point was not reached"
    finish(spark, lake)
    assert judge(lake) == Verdict()
    for table in ("totals", "effects"):
        assert lake.rows(table) == uncrashed.rows(table)
