"""Every test of the store runs on both databases; PostgreSQL where the machine has it. Of the short
suite only those do that show what a database itself answers for; they say so."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stores import made_quickly
from tidegate.engine.store import SqlStore, open_store


@pytest.fixture(scope="session", autouse=True)
def quick_stores() -> None:
    """Not here: a store is as anybody has it."""


@pytest.fixture
def url(slow_store_url: str) -> str:
    return slow_store_url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def store(url: str, empty_store: Path) -> Iterator[SqlStore]:
    if url.startswith("sqlite:///"):
        shutil.copy(empty_store, url.removeprefix("sqlite:///"))
    with made_quickly():
        opened = open_store(url, create=True)
    with opened:
        yield opened
