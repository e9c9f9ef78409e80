"""The store of a bench."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bench import BOOK
from tidegate.engine.store import SqlStore, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with open_store(f"sqlite:///{tmp_path}/loop.db", create=True) as store:
        store.of("loop").versions.register(BOOK, None)
        yield store
