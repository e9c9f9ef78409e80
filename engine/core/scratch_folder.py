"""Folders for a process's own files, in the system's folder for temporary ones.

A process that is killed leaves its folder behind. So each has a file that its process has locked:
the kernel lets go of the lock however the process ends. Who makes the next folder removes those
that nobody holds. One without that file is left alone.

Example: `simulate` makes `tidegate-ab12`, and is killed. The next one can lock its `.lock`, and
removes the folder.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "tidegate-"
LOCK = ".lock"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder. It is removed at the end, as far as it can be."""
    _sweep(Path(tempfile.gettempdir()))
    opened = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
    held = None
    with suppress(OSError):  # a file system without locks: it stays if the process is killed
        held = _locked(Path(opened.name))
    try:
        yield Path(opened.name)
    finally:
        opened.cleanup()
        if held is not None:
            os.close(held)


def _locked(folder: Path) -> int:
    """The lock of a folder that nobody else knows yet. It has its name once it is held."""
    draft = folder / f"{LOCK}.new"
    held = os.open(draft, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft.rename(folder / LOCK)
    except OSError:
        os.close(held)
        raise
    return held


def _sweep(among: Path) -> None:
    """Remove this user's folders whose processes have ended."""
    for folder in among.glob(f"{PREFIX}*"):
        with suppress(OSError):  # there is no lock, it is held, or the folder is gone by now
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
