"""How kernels are compiled: without the GIL, with a cache on disk that every copy of the same
sources shares.

Numba looks at the file of a kernel and not at those of the kernels that it calls, and it keeps
what it compiled beside the sources. Here a kernel's folder is named by a digest of all sources
that kernels are made of. So nothing stale is ever found there, nothing need be deleted, and
a second checkout, an installed wheel or a parallel process compiles nothing again.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CacheImpl, _CacheLocator

from tidegate.engine.core.columns.user_cache import cache_folder

_ENGINE = Path(__file__).parents[2]


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

    def __init__(self, folder: Path, line: int) -> None:
        self.folder = folder
        self.line = line

    def get_cache_path(self) -> str:
        return str(self.folder)

    def get_source_stamp(self) -> str:
        return digest()

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
            folder = kernel_folder() / digest() / module
            locator = cls(folder, function.__code__.co_firstlineno)
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator


def kernel_folder() -> Path:
    """`NUMBA_CACHE_DIR`, or `kernels` in the user's folder for caches."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return Path(chosen) if chosen else cache_folder() / "kernels"


@cache
def digest() -> str:
    """Names the state of all modules that hold kernels, and of numba. Such a module takes nothing
    from others (a test holds it), so no kernel is made of anything else."""
    hashed = hashlib.sha256(numba.__version__.encode())
    for file, content in kernel_modules():
        hashed.update(f"{file.relative_to(_ENGINE)} {len(content)}\n".encode() + content)
    return hashed.hexdigest()[:16]


def kernel_modules() -> Iterator[tuple[Path, bytes]]:
    """The modules that import numba, from here or itself, and their sources."""
    others = (file for file in _ENGINE.rglob("*.py") if file != Path(__file__))
    for file in sorted(others):
        content = file.read_bytes()
        if b"numba_cache import" in content or b"\nfrom numba" in content:
            yield file, content


_USUAL = [locator.__name__ for locator in CacheImpl._locator_classes]
numba.config.CACHE_LOCATOR_CLASSES = ",".join([f"{__name__}.{KernelFolder.__name__}", *_USUAL])
