"""The engine emits what the reference does, for random scripts, histories and cuts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.reference.eventscript.evaluate import run
from tests.reference.eventscript.reading import program
from tests.reference.eventscript.scripts import STEPS_MAX, Example, examples
from tests.reference.hits import detecting, saw
from tests.script.compared import Out, emissions
from tidegate.engine.script.program import Limits


def expected(example: Example) -> list[Out]:
    found = run(program(example.text), example.events, until=example.until, steps_max=STEPS_MAX)
    return [Out(e.time, e.key, e.output, e.value, e.number) for e in found]


def text_of(found: list[Out]) -> list[str]:
    """As text: a NaN is itself, and -0.0 is not 0.0."""
    return [repr(out) for out in found]


@pytest.mark.parametrize("machine", ["auto", "hierarchical"])
@detecting
@settings(max_examples=150, deadline=None)
@given(examples())
def test_as_the_reference(machine: str, example: Example) -> None:
    options: dict[str, Any] = {"machine": machine, "limits": Limits(steps=STEPS_MAX)}
    wanted = expected(example)
    saw([out for out in wanted if out.output != "$error"])
    for cuts in ([], example.cuts):
        found = emissions(example.text, example.events, until=example.until, cuts=cuts, **options)
        assert text_of(found) == text_of(wanted)
