"""How much of the same a test tries: all of it where nobody waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import settings

SHORT = "short"  # the profile of `make test`; `make mutants` and `make test-long` have others
ONE_IN = 24
EXAMPLES_MIN = 3

Way = TypeVar("Way")


def example_count(count: int, least: int = EXAMPLES_MIN, **more: Any) -> settings:
    """Settings for `count` examples; in the short suite for fewer."""
    return settings(max_examples=fewer(count, least), deadline=None, **more)


def fewer(count: int, least: int = EXAMPLES_MIN) -> int:
    """One in ONE_IN of a count, but `least`, in the short suite; elsewhere the count."""
    return min(count, max(count // ONE_IN, least)) if is_short() else count


def in_turn(ways: Sequence[Way], number: int) -> Sequence[Way]:
    """The ways to try a case of this number: in the short suite one, each in its turn."""
    return [ways[number % len(ways)]] if is_short() else ways


def is_short() -> bool:
    return settings.get_current_profile_name() == SHORT
