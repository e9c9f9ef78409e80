"""The files of reports: each is written whole or not at all, and whether that can be done is known
before a backtest runs.

Example: `--html out/page.html`. That `out` is there and takes files is checked at first. Later the
page is written beside its place, and moved to it: a page that stands there stays until then.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident

from tidegate.rules.errors import InputError, Problem, word_place


def check_file(file: Path, option: str) -> None:
    """Raise InputError unless a file can be written. Nothing is left behind."""
    parent = file.absolute().parent
    if not parent.is_dir():
        message, hint = f"there is no folder {parent}", "make it first"
        raise InputError([Problem("no-folder", message, word_place(option), hint)])
    with unwritable(f"{file} cannot be written", option):
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not _is_special(file):
            part = _part(_real(file))
            part.touch()
            part.unlink()


def check_folder(folder: Path) -> None:
    """Raise OSError unless a folder takes files, or can be made. Nothing is left behind."""
    folder = folder.absolute()
    while not os.path.lexists(folder):
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder):
        pass


def write_whole(file: Path, text: str) -> None:
    """Write a file: who reads it sees what was there before, or all of the text. A link stays one,
    and what is no file, such as a pipe, is written through. Raises OSError."""
    if _is_special(file):
        with file.open("a", encoding="utf-8") as through:
            through.write(text)
        return
    file = _real(file)
    part = _part(file)
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def unwritable(what: str, option: str) -> Iterator[None]:
    """Raise InputError, which begins with `what`, where a file cannot be written."""
    try:
        yield
    except OSError as error:
        message = f"{what}: {error.strerror}"
        raise InputError([Problem("unwritable", message, word_place(option))]) from error


def _is_special(file: Path) -> bool:
    """Whether it is no file but a pipe, a device, or, as `/dev/stdout`, what is open already."""
    to = os.readlink(file) if file.is_symlink() else str(file.absolute())
    if to.startswith(("/proc/", "/dev/fd/")):
        return True
    return file.exists() and not file.is_file() and not file.is_dir()


def _part(file: Path) -> Path:
    return file.with_name(f".{file.name}.{os.getpid()}-{get_ident()}")


def _real(file: Path) -> Path:
    return file.resolve() if file.is_symlink() else file
