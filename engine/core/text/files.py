"""Files that are written whole or not at all.

Example: a page is written beside its place, and moved to it. One that stands there stays until
then.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import get_ident

_LINKS_MAX = 40  # of Linux
DRAFT_SECONDS = 86_400
"""A draft that is older was left by a process that was killed."""
_OPEN = ("/proc/", "/dev/fd/", "/dev/std")


def write_whole(file: Path, text: str) -> None:
    """Write a file: who reads it sees what was there before, or all of the text. A link stays one,
    a file that is replaced keeps its mode, and what is no file, such as a pipe, is written through.
    Raises OSError."""
    if is_special(file):
        with file.open("a", encoding="utf-8") as through:
            through.write(text)
        return
    real = _real(file)
    mode = stat.S_IMODE(real.stat().st_mode) if real.exists() else None
    forget_drafts(real.parent, re.escape(real.name))
    part = draft_of(file)
    try:
        part.touch(0o666 if mode is None else 0o600)
        part.write_text(text, encoding="utf-8")
        if mode is not None:
            part.chmod(mode)
        part.replace(real)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_new(files: Iterable[Path], text: str) -> Path:
    """Write a text to the first of these names, all in one folder, that nobody has. Who sees the
    file sees all of the text. Returns its name. Raises OSError."""
    names = iter(files)
    file = next(names)
    part = draft_of(file)
    try:
        part.write_text(text, encoding="utf-8")
        while not _named(part, file):
            file = next(names)
    finally:
        part.unlink(missing_ok=True)
    return file


def _named(part: Path, file: Path) -> bool:
    """Give a file a name, unless it is taken; whether it was free."""
    try:
        os.link(part, file)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links: the name is taken first, empty
        with suppress(FileExistsError):
            file.open("x").close()
            part.replace(file)
            return True
        return False
    return True


def is_special(file: Path) -> bool:
    """Whether it is no file but a pipe, a device, or, as `/dev/stdout`, what is open already; by
    whatever links."""
    at = file.absolute()
    for _ in range(_LINKS_MAX):
        if str(at).startswith(_OPEN):
            return True
        if not at.is_symlink():
            break
        at = at.parent / os.readlink(at)
    return file.exists() and not file.is_file() and not file.is_dir()


def draft_of(file: Path) -> Path:
    """Where a file is written before it is moved to its place."""
    real = _real(file)
    return real.with_name(f".{real.name}.{os.getpid()}-{get_ident()}")


def forget_drafts(folder: Path, names: str) -> None:
    """Remove the drafts in a folder that are older than `DRAFT_SECONDS`, of files whose whole names
    match a pattern."""
    form, before = re.compile(rf"\.(?:{names})\.\d+-\d+"), time.time() - DRAFT_SECONDS
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # another run may remove it, or it is not ours to remove
                ours = form.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
                if ours and entry.stat(follow_symlinks=False).st_mtime < before:
                    os.unlink(entry.path)


def _real(file: Path) -> Path:
    return file.resolve() if file.is_symlink() else file
