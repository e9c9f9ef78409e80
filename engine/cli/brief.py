"""Commands that read, answer and end."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def brief(command: Callable[P, T]) -> Callable[P, T]:
    """A command without the cycle collector: what it makes lives until it ends, and looking through
    a rulebook of 5,000 rules again and again took a quarter of its time."""

    @functools.wraps(command)
    def run(*args: P.args, **options: P.kwargs) -> T:
        enabled = gc.isenabled()
        gc.disable()
        try:
            return command(*args, **options)
        finally:
            if enabled:
                gc.enable()

    return run
