"""What tests share: one Spark session for the whole run of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session, started at its first use: two cores, Delta, quiet."""
    from tidegate.connectors.delta.session import start_session

    session = start_session("tidegate-tests", {"spark.master": "local[2]"})
    yield session
    session.stop()
