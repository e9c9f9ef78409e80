"""Whoever detects: crashes, edits, switches, files in other places and copies of the store change
nothing of what is detected, and no file is deleted that something points to (G15, G16b, G26)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.loop.lives import lived

SEEDS = range(12)
SEEN = (
    "they read", "by executors", "by driver", "executors lost", "killed", "raised", "edited",
    "disable", "enable", "changed", "copied with files", "removed", "lost removed", "purged",
    "files needed", "parked", "faults", "script stopped",
)  # fmt: skip


@pytest.mark.long
def test_g26_lives_with_executors_are_those_of_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sights = Counter[str]()
    for seed in SEEDS:
        (folder := tmp_path / str(seed)).mkdir()
        sights += lived(folder, seed, monkeypatch)
    print(dict(sights))
    assert [what for what in SEEN if not sights[what]] == []
