"""How often a property test sees what it is about: one that compares nothing with nothing fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar
from zlib import crc32

import pyarrow as pa
import pytest
from hypothesis import reject, seed, settings

from tests.reference.meaning import TooLargeError

Found = TypeVar("Found", bound=Sized)
Test = Callable[..., None]
_detecting: list[list[bool]] = []
_resuming: list[list[bool]] = []
_comparing: list[list[bool]] = []
_noting: list[dict[str, list[bool]]] = []


def saw(found: Found) -> Found:
    """Note what an example of the running test has found; nothing found is no hit."""
    _detecting[-1].append(len(found) > 0)
    return found


def stepped(carried: Iterable[pa.Table]) -> None:
    """Note a step of the running test that takes in something, or finds something; it resumes if
    rows were carried into it."""
    if _resuming:
        _resuming[-1].append(any(map(len, carried)))


def compared(differently: bool) -> None:
    """Note a comparison of the running test; both sides were computed `differently`, or not."""
    _comparing[-1].append(differently)


def noted(what: str, seen: bool) -> None:
    """Note for the running test whether an example has shown this, which it asks for."""
    _noting[-1].setdefault(what, []).append(seen)


@contextmanager
def small() -> Iterator[None]:
    """Give up an example with more instances than the reference is asked for."""
    try:
        yield
    except TooLargeError:
        reject()


def detecting(test: Test) -> Test:
    """The outermost decorator of a property test, below `parametrize`: fewer hits than one in two
    examples fail it. What it counted is printed."""
    return _counting(test, _detecting, "examples detect something", 2)


def resuming(test: Test) -> Test:
    """The same of steps, of which at least one in six must resume from what was carried. The first
    step of a history never does, and many tests take each history whole, too."""
    return _counting(test, _resuming, "steps resume from something", 6)


def comparing(test: Test) -> Test:
    """The same of comparisons, of which at least one in three must be of two ways."""
    return _counting(test, _comparing, "comparisons are of two ways", 3)


def noting(**one_in: int) -> Callable[[Test], Test]:
    """The same of what is `noted`: of each of these, at least one in so many; `_` for a blank."""

    def decorated(test: Test) -> Test:
        @wraps(test)
        def counted(*args: Any, **kwargs: Any) -> None:
            hits: dict[str, list[bool]] = {}
            _noting.append(hits)
            try:
                test(*args, **kwargs)
            finally:
                _noting.pop()
            for name, number in one_in.items():
                what = name.replace("_", " ")
                _enough(test, hits.get(what, []), what, number)

        return counted

    return decorated


def _counting(test: Test, running: list[list[bool]], what: str, one_in: int) -> Test:
    @wraps(test)
    def counted(*args: Any, **kwargs: Any) -> None:
        hits: list[bool] = []
        running.append(hits)
        try:
            test(*args, **kwargs)
        finally:
            running.pop()
        _enough(test, hits, what, one_in)

    return counted


def _enough(test: Test, hits: list[bool], what: str, one_in: int) -> None:
    said = f"{test.__name__}: {sum(hits)} of {len(hits)} {what}"
    print(said)
    if not hits or sum(hits) * one_in < len(hits):
        pytest.fail(f"{said}; at least one in {one_in} must")


def drawn_for(name: str) -> Callable[[Test], Test]:
    """Decorates a `given` that is made anew for each parameter: where examples are the same in
    each run, each name has others."""
    if settings.default is not None and settings.default.derandomize:
        return seed(crc32(name.encode()))
    return lambda test: test
