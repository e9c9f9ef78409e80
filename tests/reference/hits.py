"""How often a property test sees what it is about: one that compares nothing with nothing fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

import pytest
from hypothesis import reject

from tests.reference.meaning import TooLargeError

Found = TypeVar("Found", bound=Sized)
_running: list[list[bool]] = []


def saw(found: Found) -> Found:
    """Note what an example of the running test has found; nothing found is no hit."""
    _running[-1].append(len(found) > 0)
    return found


@contextmanager
def small() -> Iterator[None]:
    """Give up an example with more instances than the reference is asked for."""
    try:
        yield
    except TooLargeError:
        reject()


def detecting(test: Callable[..., None]) -> Callable[..., None]:
    """The outermost decorator of a property test, below `parametrize`: fewer hits than one in two
    examples fail it. What it counted is printed."""

    @wraps(test)
    def counted(*args: Any, **kwargs: Any) -> None:
        hits: list[bool] = []
        _running.append(hits)
        try:
            test(*args, **kwargs)
        finally:
            _running.pop()
        said = f"{test.__name__}: {sum(hits)} of {len(hits)} examples detect something"
        print(said)
        if not hits or sum(hits) * 2 < len(hits):
            pytest.fail(f"{said}; at least half must")

    return counted
