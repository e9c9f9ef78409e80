"""Every test of the store runs on both databases; PostgreSQL where the machine has it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import postgres
from tidegate.engine.store import SqlStore, open_store


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    yield from postgres.running()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that does not exist yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    server: postgres.Server = request.getfixturevalue("server")
    return server.new_url()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    with open_store(url, create=True) as opened:
        yield opened
