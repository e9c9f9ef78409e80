"""Which transition is said to run away, where several would: the first, however history is cut."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from tests.detect.scripts.compared import SECOND, emissions
from tests.detect.scripts.test_reference import ALL_INTERPRETED
from tests.reference.eventscript.compare import STEPS_MAX, canonical, reference
from tests.reference.eventscript.evaluate import Event
from tests.reference.eventscript.scripts import Example
from tidegate.engine.detect.scripts import run
from tidegate.engine.detect.scripts.program import Limits

WHILE = "while (true) { }"


def a(second: int, key: int) -> Event:
    return Event(second * SECOND, "A", {"k": key})


@pytest.mark.parametrize(
    ("regex", "history", "parked"),
    [
        pytest.param(
            "(A(x) { x.k == 1 ? %s !> Z(x.k); } | elapse[1 second]() { x.k == 2 ? %s })*",
            [a(0, 2), a(3, 3), a(5, 1)],
            (1, 2),
            id="a timer of one key before an event of another",
        ),
        pytest.param(
            "(A(x) { !> Z(x.k); } | C() { x.k > 1 ? %s !> Z(50 + x.k); %s })*",
            [a(0, 3), a(0, 2), a(1, 1), Event(2 * SECOND, "C", {})],
            (2, 1),
            id="an event of every key goes by key",
        ),
        pytest.param(
            "(A(x) { !> Z(x.k); } | elapse[4 - x.k seconds]() { x.k > 1 ? %s !> Z(9); %s })*",
            [a(0, 0), a(0, 1), a(0, 2), a(0, 3)],
            (1, 3),
            id="time that runs out after the last event",
        ),
        pytest.param(
            "(A(x) { !> Z(x.k); } | elapse[1 second]() { x.k == 2 ? %s !> Z(9); })*",
            [a(0, 3), a(0, 2), a(0, 1)],
            (1, 2),
            id="time that runs out at one instant goes by key",
        ),
    ],
)
def test_the_first_that_runs_away_parks(
    regex: str, history: list[Event], parked: tuple[int, int]
) -> None:
    body = regex.replace("%s", WHILE)
    text = f"in {{long k;}} A group(A.k), {{}} C\nout long Z\n{body}"
    expected = canonical(reference(Example(text, history, [], None)))
    for cuts in ((), [event.time for event in history]):
        found = emissions(text, history, cuts=cuts, limits=Limits(steps=STEPS_MAX))
        said: Any = found[-1]
        assert said.value["kind"] == "runaway"
        assert (said.time // SECOND, said.key[0]) == parked
        assert canonical(found) == expected


@pytest.mark.parametrize("least", [0, ALL_INTERPRETED])
@pytest.mark.parametrize(
    ("of", "value", "emitted"),
    [("long", 500, '"' + "x" * 1000 + '"'), ("string", "x" * 1000, "x")],
)
def test_long_strings_that_are_emitted_count_as_several_statements(
    least: int, of: str, value: Any, emitted: str
) -> None:
    text = f"in {of} A out string z\n(A(x) {{ for (i: 1, 500) !> z({emitted}); }})*"
    with patch.object(run, "COMPILED_MIN", least):
        (found,) = emissions(text, [Event(0, "A", value)], limits=Limits(steps=3_000))
    assert found.value["kind"] == "runaway"
