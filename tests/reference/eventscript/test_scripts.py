"""Random scripts on the reference."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from tests.reference.eventscript.compare import agree, canonical, reference
from tests.reference.eventscript.evaluate import Emission, Event
from tests.reference.eventscript.runs import ERROR
from tests.reference.eventscript.scripts import Example, examples
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw

SOME = example_count(100)


def emitted(found: list[Emission]) -> list[Emission]:
    """Without `$error`s."""
    return [each for each in found if each.output != ERROR]


@detecting
@SOME
@given(examples())
def test_most_random_scripts_emit(example: Example) -> None:
    assert saw(emitted(agree(reference, example))) is not None


@detecting
@SOME
@given(examples())
def test_emissions_up_to_an_instant_do_not_depend_on_what_follows(example: Example) -> None:
    """What a bucket may emit at its end is final (batch invariance)."""
    end = example.events[-1].time if example.until is None else example.until
    whole = canonical(reference(example._replace(until=end)))
    saw(whole)
    for cut in example.cuts:
        before = [each for each in example.events if each.time <= cut]
        found = reference(example._replace(events=before, until=min(cut, end)))
        assert canonical(found) == [each for each in whole if each[0] <= cut]


def test_the_comparison_sees_a_lost_a_changed_and_a_moved_emission() -> None:
    text = "in long B out long Y\n(B(n) { !> Y(n); !> Y(n + 1); })*"
    example = Example(text, [Event(1, "B", 1), Event(2, "B", 5)], [1], None)
    right = reference(example)
    other = replace(right[0], value=1.0)
    late = [replace(right[1], cause=("event", 1)), *right[2:]]
    for wrong in (right[:-1], [other, *right[1:]], [right[0], *late], right[::-1]):
        with pytest.raises(AssertionError):
            agree(lambda _, wrong=wrong: wrong, example)
