"""What is compiled is compiled again when any source it may be made of has changed."""

from __future__ import annotations

import os
from pathlib import Path

from tidegate.engine.detector.compiled import forget_stale


def package(folder: Path, source_seconds: int, compiled_seconds: int) -> list[str]:
    """Two sources, the kernels of one of which are compiled; what is left of them."""
    cache = folder / "__pycache__"
    cache.mkdir(exist_ok=True)
    for file, seconds in (
        (folder / "calls.py", 10),
        (folder / "called.py", source_seconds),
        (cache / "calls.kernel-3.py311.nbi", compiled_seconds),
        (cache / "calls.kernel-3.py311.1.nbc", compiled_seconds),
    ):
        file.touch()
        os.utime(file, (seconds, seconds))
    forget_stale(folder)
    return sorted(file.name for file in cache.iterdir())


def test_kernels_that_call_a_changed_one_are_forgotten(tmp_path: Path) -> None:
    assert package(tmp_path, source_seconds=30, compiled_seconds=20) == []


def test_kernels_newer_than_every_source_are_kept(tmp_path: Path) -> None:
    assert len(package(tmp_path, source_seconds=15, compiled_seconds=20)) == 2
