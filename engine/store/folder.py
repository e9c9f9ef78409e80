"""Files of a folder, by path or by URI: written whole, opened, deleted.

A URI is of one of Arrow's file systems: `file`, `s3`, `gs`, `abfs`, `hdfs`. Everything raises
OSError.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from typing import Any

from pyarrow import fs

_PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700
_CHUNK_BYTES = 1 << 24


@contextmanager
def created(file: str) -> Iterator[Any]:
    """A new file to write to, and the folders to it. On a local disk it is there, whole, when this
    ends, and nobody else may read it."""
    system, path = _place(file)
    if not isinstance(system, fs.LocalFileSystem):
        with system.open_output_stream(path) as sink:
            yield sink
        return
    folder = os.path.dirname(path)
    _make(folder)
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE)
    with open(number, "wb") as local:
        yield local
        local.flush()
        os.fsync(number)
    _sync(folder)


def opened(file: str) -> AbstractContextManager[Any]:
    """A file to read, at any position."""
    system, path = _place(file)
    found: AbstractContextManager[Any] = system.open_input_file(path)
    return found


def exists(file: str) -> bool:
    """Whether a file is seen from here."""
    system, path = _place(file)
    found: bool = system.get_file_info(path).is_file
    return found


def read_through(file: str) -> None:
    """Read all bytes of a file."""
    with opened(file) as source:
        while source.read(_CHUNK_BYTES):
            pass


def deleted(file: str) -> bool:
    """Delete a file; whether it is gone now."""
    try:
        system, path = _place(file)
        system.delete_file(path)
    except FileNotFoundError:
        return True
    except OSError:  # another time
        return False
    return True


def files_older_than(folder: str, instant: int) -> list[str]:
    """The names of a folder's files that were last written before an instant, microseconds. None
    where the folder cannot be read."""
    return sorted(
        info.base_name
        for info in _files(folder)
        if info.mtime_ns is not None and info.mtime_ns // 1_000 < instant
    )


def files_named(folder: str, prefix: str) -> list[str]:
    """The names of a folder's files that begin so. None where the folder cannot be read."""
    return sorted(n for n in (info.base_name for info in _files(folder)) if n.startswith(prefix))


def _files(folder: str) -> list[Any]:
    """What is known of a folder's files."""
    found: list[Any] = []
    with suppress(OSError):
        system, path = _place(folder)
        found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return [info for info in found if info.is_file]


def _make(folder: str) -> None:
    """Make a folder with those that it is in."""
    if not os.path.isdir(folder):
        outer = os.path.dirname(folder)
        _make(outer)
        os.makedirs(folder, _PRIVATE_FOLDER, exist_ok=True)
        _sync(outer)


def _sync(folder: str) -> None:
    """Make the names in a folder durable."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _place(file: str) -> tuple[Any, str]:
    """A file system, and the path in it."""
    scheme, mark, rest = file.partition("://")
    if not mark:
        return fs.LocalFileSystem(), file
    system, inside = _system(f"{scheme}://{rest.partition('/')[0]}/")
    return system, f"{inside.rstrip('/')}/{rest.partition('/')[2]}"


@cache
def _system(root: str) -> tuple[Any, str]:
    """The file system of a URI, and its path there. Some are asked over the net for that."""
    try:
        system, path = fs.FileSystem.from_uri(root)
    except ValueError as error:  # it is in no build of Arrow, or this one is without it
        raise OSError(f"no file system for {root}: {error}") from error
    return system, path
