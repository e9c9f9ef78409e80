"""A planted rulebook."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.planted import Planted
from tidegate.engine.store import open_store


@pytest.fixture
def planted(empty_store: Path, tmp_path: Path) -> Iterator[Planted]:
    file = shutil.copy(empty_store, tmp_path / "bank.db")
    with open_store(f"sqlite:///{file}", create=False) as store:
        yield Planted(store, tmp_path / "lake")
