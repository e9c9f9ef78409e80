"""The user's cache folder: Delta's jars, a Java, compiled kernels."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/tidegate`, or `tidegate` in the platform's cache folder. Made if missing."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        parent = Path(base)
    elif sys.platform == "darwin":
        parent = Path.home() / "Library" / "Caches"
    else:
        parent = Path.home() / ".cache"
    folder = parent / "tidegate"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_whole(file: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file atomically: another process sees all of it or nothing."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.write_bytes(content.encode() if isinstance(content, str) else content)
    draft.chmod(mode)
    draft.replace(file)
