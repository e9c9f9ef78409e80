"""The store of a bench."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bench import BOOK
from tidegate.engine.store import SqlStore, open_store


@pytest.fixture
def store(empty_store: Path, tmp_path: Path) -> Iterator[SqlStore]:
    file = shutil.copy(empty_store, tmp_path / "loop.db")
    with open_store(f"sqlite:///{file}", create=False) as store:
        store.of("loop").versions.register(BOOK, None)
        yield store
