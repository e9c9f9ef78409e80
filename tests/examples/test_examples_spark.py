"""All tests beside the examples and the cookbook over real Delta tables: those that need Spark, and
the others, whose outcome is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.examples.cases import every_case, read, told
from tidegate.engine.app import spark_worlds
from tidegate.engine.replay.cases.driver import Driver
from tidegate.engine.replay.cases.model import Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Drivers = Callable[[Path], Driver]


@pytest.fixture(scope="module")
def drivers(spark: SparkSession) -> Iterator[Drivers]:
    with spark_worlds(spark) as worlds:

        @lru_cache(1)  # the next file closes the worlds of the one before
        def driver(file: Path) -> Driver:
            made = worlds(read(file))
            return Driver(read(file), lambda _: made.world(), strict=False)

        yield driver


@pytest.mark.long
@pytest.mark.parametrize(("file", "case"), every_case())
def test_a_case_of_an_example_with_spark(file: Path, case: Case, drivers: Drivers) -> None:
    result = drivers(file).run_spark(case, None)
    assert result.outcome == "passed", told(result)
