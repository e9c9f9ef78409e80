"""How kernels are compiled: without the GIL, with a cache on disk that every copy of the same
sources shares.

Numba looks at the file of a kernel and not at those of the kernels that it calls, and it keeps
what it compiled beside the sources. Here a kernel's folder is named by a digest of its module and
of all modules that this one imports. So nothing stale is ever found there, nothing need be
deleted, and a second checkout, an installed wheel or a parallel process compiles nothing again.
An edit of one kernel compiles that one again, and those that call it.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CacheImpl, _CacheLocator

from tidegate.engine.core.columns.user_cache import cache_folder

_ENGINE = Path(__file__).parents[2]
_IMPORTED = re.compile(rb"^from tidegate\.engine\.([\w.]+) import ", re.MULTILINE)


def njit(kernel: Callable[..., Any]) -> Any:
    """A kernel, compiled at its first call. Other threads go on while it runs: the one that renews
    the lease must never wait for it."""
    return numba.njit(cache=True, nogil=True)(kernel)


def part(kernel: Callable[..., Any]) -> Any:
    """A part of a kernel. It works on the arrays that it is given, and makes none.

    It does not count references. In a loop that calls parts, counting took longer than their work.
    """
    return _uncounted(kernel)


def inlined(kernel: Callable[..., Any]) -> Any:
    """A small part, compiled into those that call it. To pass it a bundle of arrays would take as
    long as what it does."""
    return _uncounted(kernel, inline="always")


def _uncounted(kernel: Callable[..., Any], **options: str) -> Any:
    """Numba's own loops are compiled with `_nrt`, too; its stubs leave it out."""
    chosen: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False, **options}
    return numba.njit(**chosen)(kernel)


class KernelFolder(_CacheLocator):
    """Where numba keeps one of our kernels; None for any other function."""

    def __init__(self, folder: Path, stamp: str, line: int) -> None:
        self.folder = folder
        self.stamp = stamp
        self.line = line

    def get_cache_path(self) -> str:
        return str(self.folder)

    def get_source_stamp(self) -> str:
        return self.stamp

    def get_disambiguator(self) -> str:
        return str(self.line)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> KernelFolder | None:
        """Numba goes on to its own places where ours cannot be written."""
        source = Path(file)
        if not source.is_relative_to(_ENGINE):
            return None
        module = ".".join(source.relative_to(_ENGINE).with_suffix("").parts)
        try:
            stamp = digest(source)
            folder = kernel_folder() / module / stamp
            locator = cls(folder, stamp, function.__code__.co_firstlineno)
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator


def kernel_folder() -> Path:
    """`NUMBA_CACHE_DIR`, or `kernels` in the user's folder for caches."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return Path(chosen) if chosen else cache_folder() / "kernels"


@cache
def digest(module: Path) -> str:
    """Names the state of all that the kernels of a module are made of, and of numba."""
    hashed = hashlib.sha256(numba.__version__.encode())
    for file in sorted(sources(module)):
        content = file.read_bytes()
        hashed.update(f"{file.relative_to(_ENGINE)} {len(content)}\n".encode() + content)
    return hashed.hexdigest()[:16]


def sources(module: Path) -> set[Path]:
    """A module of the engine and those that it imports, directly or through others."""
    found: set[Path] = set()
    left = {module}
    while left:
        file = left.pop()
        found.add(file)
        left |= _imported(file) - found
    return found


@cache
def _imported(module: Path) -> set[Path]:
    names = _IMPORTED.findall(module.read_bytes())
    return {_ENGINE.joinpath(*name.decode().split(".")).with_suffix(".py") for name in names}


def kernel_modules() -> Iterator[tuple[Path, bytes]]:
    """The modules that import numba, from here or itself, and their sources."""
    others = (file for file in _ENGINE.rglob("*.py") if file != Path(__file__))
    for file in sorted(others):
        content = file.read_bytes()
        if b"numba_cache import" in content or b"\nfrom numba" in content:
            yield file, content


_USUAL = [locator.__name__ for locator in CacheImpl._locator_classes]
numba.config.CACHE_LOCATOR_CLASSES = ",".join([f"{__name__}.{KernelFolder.__name__}", *_USUAL])
