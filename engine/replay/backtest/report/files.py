"""The files of reports: whether each can be written is known before a backtest runs.

Example: `--html out/page.html`. That `out` is there and takes files is checked at first.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate.engine.core.text.files import draft_of, is_special
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
        if not is_special(file):
            part = draft_of(file)
            part.touch()
            part.unlink()


def check_folder(folder: Path) -> None:
    """Raise OSError unless a folder takes files, or can be made. Nothing is left behind."""
    folder = folder.absolute()
    while not os.path.lexists(folder):
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder):
        pass


@contextmanager
def unwritable(what: str, option: str) -> Iterator[None]:
    """Raise InputError, which begins with `what`, where a file cannot be written."""
    try:
        yield
    except OSError as error:
        message = f"{what}: {error.strerror}"
        raise InputError([Problem("unwritable", message, word_place(option))]) from error
