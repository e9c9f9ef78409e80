"""What Spark's executors have installed, looked at before an engine starts.

Example: three executors, one of them on a machine without this package. A job of three tasks meets
each of them. The engine does not start, and its error names that machine and its Python.
"""

from __future__ import annotations

import os
import pickle
import platform
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection
from contextlib import suppress
from importlib import metadata
from typing import NamedTuple

from tidegate.rules.errors import EngineError

PACKAGE = "tidegate"
_UNKNOWN = "an unknown version"  # a checkout on PYTHONPATH
_SIGNS = (
    (re.compile(rf"No module named '{PACKAGE}\b"), "lack it"),
    (re.compile(r"No module named '?([\w.]+)"), "lack {}, which it needs"),
    (re.compile(r"PYTHON_VERSION_MISMATCH.*?different version: ([\d.]+)"), "run Python {}"),
    (re.compile(r'Cannot run program "([^"]+)"'), "cannot start {}"),
)
"""What PySpark says of an installation with which no call comes to run."""


class Installed(NamedTuple):
    """What is installed where an executor runs Python. `process`: the one that starts its workers.
    `lacks`: the error of an import that failed."""

    host: str
    process: int
    python: str
    version: str
    lacks: str


def own_version() -> str:
    """The version of this package here."""
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return _UNKNOWN


def looking(called: bytes) -> Callable[[int], tuple[object, ...]]:
    """A function that gives the fields of an `Installed`. It goes to executors by value, for they
    may lack this module. `called`: a function by its name, pickled; to read it, they import it."""

    def look(_: int) -> tuple[object, ...]:
        lacks, own = "", _UNKNOWN
        try:
            pickle.loads(called)  # noqa: S301, sent by the engine
        except ImportError as error:
            lacks = str(error)
        with suppress(metadata.PackageNotFoundError):
            own = metadata.version(PACKAGE)
        python = f"Python {platform.python_version()}, {sys.executable}"
        return platform.node(), os.getppid(), python, own, lacks

    return look


def check_installed(found: Collection[Installed]) -> None:
    """Raises EngineError `executors-differ` where one differs from the engine's own."""
    where: dict[str, set[str]] = defaultdict(set)
    for one in found:
        how = said(one.lacks) or one.lacks or f"have {one.version}"
        if one.lacks or one.version != own_version():
            where[how].add(f"{one.python} on {one.host}")
    if where:
        told = (f"{how} ({'; '.join(sorted(places))})" for how, places in sorted(where.items()))
        raise differing(", or ".join(told))


def said(details: str) -> str | None:
    """What an error of Spark says of its executors' installation, as in "lack numba"."""
    for sign, how in _SIGNS:
        if met := sign.search(details):
            return how.format(*met.groups())
    return None


def differing(how: str) -> EngineError:
    """That Spark's executors have something else than the engine. `how`: as in "have 0.1.0"."""
    return EngineError(
        "executors-differ",
        f"the engine has {PACKAGE} {own_version()}, and Spark's executors {how}",
        f"install {PACKAGE} {own_version()} where executors run Python (spark.pyspark.python, or "
        "spark.archives), or say `detect: driver`",
    )
