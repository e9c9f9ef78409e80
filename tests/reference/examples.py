"""How many examples a property test draws: all of them where nobody waits for it."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

SHORT = "short"  # the profile of `make test`; `make mutants` and `make test-long` have others
ONE_IN = 8
EXAMPLES_MIN = 5


def example_count(count: int, least: int = EXAMPLES_MIN, **more: Any) -> settings:
    """Settings for `count` examples. In the short suite for one in ONE_IN, but for `least`."""
    if settings.get_current_profile_name() == SHORT:
        count = min(count, max(count // ONE_IN, least))
    return settings(max_examples=count, deadline=None, **more)
