"""A store on disk for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.engine.store import SqlStore, open_store


@pytest.fixture
def store(empty_store: Path, tmp_path: Path) -> Iterator[SqlStore]:
    file = shutil.copy(empty_store, tmp_path / "why.db")
    with open_store(f"sqlite:///{file}", create=False) as opened:
        yield opened
