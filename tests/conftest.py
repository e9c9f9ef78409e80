"""What tests share: one Spark session for the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """For two workers: one runs all tests that share the Spark session, the other the rest, file by
    file."""
    for item in items:
        shared = "spark" in getattr(item, "fixturenames", ())
        group = "spark" if shared else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session, started at its first use: two cores, Delta, quiet."""
    from connectors.delta.session import start_session

    session = start_session("tidegate-tests", {"spark.master": "local[2]"})
    yield session
    session.stop()
