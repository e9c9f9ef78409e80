"""What tests share: one Spark session for the whole run of a worker, and Java that starts light."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# The same code gets the same verdict: examples are drawn from the test's own text. `make test-long`
# draws others each time.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("others", deadline=None, print_blob=True)
settings.load_profile("same")

# Most code of a test runs a few times: Java's second compiler takes half of the processor's time
# and gives nothing back. What the first has compiled is kept: in a fifth of this room, the usual
# one, an eighth of the time goes into compiling again. For every Java that a test starts, the
# commands' too.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
    " -XX:+UseSerialGC -XX:MetaspaceSize=400m",
)

# Likewise for the Java code that Spark writes for each query. Commands of their own keep it.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session, started at its first use: two cores, Delta, quiet."""
    from tidegate.connectors.delta.session import start_session

    session = start_session("tidegate-tests", {"spark.master": "local[2]", **INTERPRETED})
    yield session
    session.stop()
