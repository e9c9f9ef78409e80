"""Every test of the store runs on both databases; PostgreSQL where the machine has it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.engine.store import SqlStore, open_store


@pytest.fixture
def url(store_url: str) -> str:
    return store_url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    with open_store(url, create=True) as opened:
        yield opened
