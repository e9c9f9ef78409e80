"""Compiles kernels with numba, and keeps the machine code in the user's cache.

Numba's own cache lies beside the sources, and does not notice when a called kernel in another file
changes. Here each module has a folder of its own, named by a digest of its source and the sources
of all modules that it imports:

    ~/.cache/tidegate/kernels/core.columns.hashing/5c0f2a..../

An edit changes the digest of that module and of its importers, so only these compile again. Equal
sources in another checkout, wheel or process have the same digest and compile nothing. Where the
user's cache cannot be written, as often in Spark's executors, a folder of the machine takes its
place.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numba
from numba.core import event
from numba.core.caching import CacheImpl, FunctionCache, _CacheLocator

from tidegate.engine.core.columns.user_cache import cache_folder

log = logging.getLogger(__name__)
log.setLevel(logging.INFO)  # heard also where a command silences the engine, as `test` does
_ENGINE = Path(__file__).parents[2]
_IMPORTED = re.compile(rb"^from tidegate\.engine\.([\w.]+) import ", re.MULTILINE)
_WAIT_SECONDS = 120.0  # for another process that compiles; then this one compiles, too
_LOOK_SECONDS = 0.02


def njit(kernel: Callable[..., Any]) -> Any:
    """A kernel, compiled at its first call. It releases the GIL, so that the thread that renews the
    lease never waits for it."""
    return _kept(numba.njit(nogil=True)(kernel))


def part(kernel: Callable[..., Any], **options: str) -> Any:
    """A function that kernels call. It must not make arrays, because it does not count references:
    in the loops of kernels, counting took longer than the work itself. `_nrt=False` turns them off.
    Numba uses this option itself; its stubs lack it."""
    chosen: dict[str, Any] = {"nogil": True, "_nrt": False, **options}
    return _kept(numba.njit(**chosen)(kernel))


def inlined(kernel: Callable[..., Any]) -> Any:
    """A small part, inlined into its callers: passing it a tuple of arrays would take as long as
    its work."""
    return part(kernel, inline="always")


def _kept(kernel: Any) -> Any:
    """A kernel whose machine code is kept, if there is a place for it. Without compilation
    (NUMBA_DISABLE_JIT) it is the function itself."""
    if numba.config.DISABLE_JIT:
        return kernel
    with suppress(RuntimeError):  # nothing can be written here: each process compiles for itself
        kernel._cache = KernelCache(kernel.py_func)
    return kernel


class KernelCache(FunctionCache):
    """The machine code of a kernel. Of the processes of a machine that lack it at the same time,
    one compiles while the others wait, and these load what it has made.

    A lock is of a module, whose kernels may call those of modules that it imports, and no others:
    so no two processes wait for each other. It ends with its process.
    """

    _held: ClassVar[dict[str, list[int]]] = {}
    """By folder: its lock, once for each kernel of it that this process is compiling."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)
        if found is None:
            self._lock()
            found = super().load_overload(sig, target_context)
            if found is not None:
                self.unlock()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:  # the disk is full: the next process compiles again
            log.debug("a compiled kernel is not kept: %s", error)
        finally:
            self.unlock()

    def _lock(self) -> None:
        held = self._held.setdefault(self.cache_path, [])
        if held:
            held.append(held[0])
            return
        file = os.open(self.cache_path, os.O_RDONLY)
        until = time.monotonic() + _WAIT_SECONDS
        while not _locked(file) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        held.append(file)

    def unlock(self) -> None:
        """One kernel is compiled, or cannot be."""
        held = self._held[self.cache_path]
        file = held.pop()
        if not held:
            os.close(file)


def _locked(file: int) -> bool:
    """Whether a file is locked now, or never can be: not every file system has locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


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


@cache
def kernel_folder() -> Path:
    """The first that can be written of `$NUMBA_CACHE_DIR`, `kernels` in the user's cache folder,
    and a folder of this user in the machine's temporary one. Raises OSError if none can."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    places: list[Callable[[], Path]] = [lambda: Path(chosen)] if chosen else []
    for place in (*places, lambda: cache_folder() / "kernels"):
        with suppress(OSError):
            return _writable(place())
    return _writable(_of_this_user(Path(tempfile.gettempdir(), f"tidegate_kernels_{os.getuid()}")))


def _writable(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    return folder


def _of_this_user(folder: Path) -> Path:
    """A folder in which nobody else has written: what is loaded from it is run."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is not this user's alone")
    return folder


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

    def on_end(self, event: event.Event) -> None:
        cached = getattr(event.data["dispatcher"], "_cache", None)
        failed = event._exc_details is not None  # `is_failed` says the contrary
        if failed and isinstance(cached, KernelCache):  # it will not be saved
            cached.unlock()


event.register("numba:compile", Compiling())
_USUAL = [locator.__name__ for locator in CacheImpl._locator_classes]
numba.config.CACHE_LOCATOR_CLASSES = ",".join([f"{__name__}.{KernelFolder.__name__}", *_USUAL])
