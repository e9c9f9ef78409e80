"""Compiles kernels with numba, and keeps the machine code in the user's cache.

Numba's own cache lies beside the sources, and does not notice when a called kernel in another file
changes. Here each module has a folder of its own, named by a digest of its source and the sources
of all modules that it imports:

    ~/.cache/tidegate/kernels/core.columns.hashing/5c0f2a..../

An edit changes the digest of that module and of its importers, so only these compile again. Equal
sources in another checkout, wheel or process have the same digest and compile nothing.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

import hashlib
import logging
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.core.caching import CacheImpl, _CacheLocator

from tidegate.engine.core.columns.user_cache import cache_folder

log = logging.getLogger(__name__)
log.setLevel(logging.INFO)  # heard also where a command silences the engine, as `test` does
_ENGINE = Path(__file__).parents[2]
_IMPORTED = re.compile(rb"^from tidegate\.engine\.([\w.]+) import ", re.MULTILINE)


def njit(kernel: Callable[..., Any]) -> Any:
    """A kernel, compiled at its first call. It releases the GIL, so that the thread that renews the
    lease never waits for it."""
    return numba.njit(cache=True, nogil=True)(kernel)


def part(kernel: Callable[..., Any], **options: str) -> Any:
    """A function that kernels call. It must not make arrays, because it does not count references:
    in the loops of kernels, counting took longer than the work itself. `_nrt=False` turns them off.
    Numba uses this option itself; its stubs lack it."""
    chosen: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False, **options}
    return numba.njit(**chosen)(kernel)


def inlined(kernel: Callable[..., Any]) -> Any:
    """A small part, inlined into its callers: passing it a tuple of arrays would take as long as
    its work."""
    return part(kernel, inline="always")


class KernelFolder(_CacheLocator):
    """Tells numba the cache folder of a kernel of this engine."""

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
        """None for functions of others, and if the folder cannot be written. Numba then uses its
        own places."""
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
    """`$NUMBA_CACHE_DIR`, or `kernels` in the user's cache folder."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return Path(chosen) if chosen else cache_folder() / "kernels"


@cache
def digest(module: Path) -> str:
    """A digest of a module, of the modules that it imports, and of numba's version."""
    hashed = hashlib.sha256(numba.__version__.encode())
    for file in sorted(sources(module)):
        content = file.read_bytes()
        hashed.update(f"{file.relative_to(_ENGINE)} {len(content)}\n".encode() + content)
    return hashed.hexdigest()[:16]


def sources(module: Path) -> set[Path]:
    """A module of the engine and all modules that it imports, directly or indirectly."""
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


class Compiling(event.Listener):
    """Says once, on a terminal, that kernels are compiled: on an empty cache that takes half a
    minute. A log that programs read does not depend on what is cached."""

    def __init__(self) -> None:
        self.told = False

    def on_start(self, event: event.Event) -> None:
        """`event`: numba begins to compile a function, which may be of others."""
        source = Path(event.data["dispatcher"].py_func.__code__.co_filename)
        if not self.told and source.is_relative_to(_ENGINE) and sys.stderr.isatty():
            self.told = True
            log.info("compiling the detector for this machine, once: up to a minute")

    def on_end(self, event: event.Event) -> None: ...


event.register("numba:compile", Compiling())
_USUAL = [locator.__name__ for locator in CacheImpl._locator_classes]
numba.config.CACHE_LOCATOR_CLASSES = ",".join([f"{__name__}.{KernelFolder.__name__}", *_USUAL])
