"""What tests share: one Spark session for the whole run of a worker, Java that starts light, and
the databases that a store can be on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.support import postgres

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


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    """A PostgreSQL server, where the machine has its programs."""
    yield from postgres.running()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that does not exist yet, on each of both databases."""
    return _new_url(request, tmp_path)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def slow_store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The same for what takes seconds."""
    return _new_url(request, tmp_path)


def _new_url(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{folder / 'store.db'}"
    server: postgres.Server = request.getfixturevalue("server")
    return server.new_url()
