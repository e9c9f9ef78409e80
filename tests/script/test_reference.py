"""The engine emits what the reference does, for random scripts, histories and cuts."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.eventscript.evaluate import key_rank, run
from tests.reference.eventscript.reading import program
from tests.reference.eventscript.scripts import STEPS_MAX, Example, examples
from tests.reference.hits import detecting, saw
from tests.script.compared import Out, emissions
from tidegate.engine.script import state
from tidegate.engine.script.program import Limits


def expected(example: Example) -> list[Out]:
    found = run(program(example.text), example.events, until=example.until, steps_max=STEPS_MAX)
    return [Out(e.time, e.key, e.output, e.value, e.number, e.cause) for e in found]


def text_of(found: list[Out]) -> list[str]:
    """As text, in which a NaN is itself and -0.0 is not 0.0; without causes."""
    return [repr(out._replace(cause=())) for out in found]


def transitions(found: list[Out]) -> list[int]:
    """For each emission the number of its transition: one key and cause are one transition."""
    own = [(key_rank(out.key), out.cause) for out in found]
    numbers = {each: n for n, each in enumerate(dict.fromkeys(own))}
    return [numbers[each] for each in own]


@detecting
@settings(max_examples=150, deadline=None)
@given(examples(), st.sampled_from(["auto", "hierarchical"]))
def test_as_the_reference_wherever_it_is_cut(example: Example, machine: str) -> None:
    """Whole; cut, with the keys in as many partitions as there may be."""
    wanted = expected(example)
    saw([out for out in wanted if out.output != "$error"])
    for cuts, rows_max in (((), state.ROWS_MAX), (example.cuts, 0)):
        with patch.object(state, "ROWS_MAX", rows_max):
            found = emissions(
                example.text,
                example.events,
                until=example.until,
                cuts=cuts,
                machine=machine,
                limits=Limits(steps=STEPS_MAX),
            )
        assert text_of(found) == text_of(wanted)
        assert transitions(found) == transitions(wanted)
