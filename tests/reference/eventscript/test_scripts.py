"""Random scripts on the reference."""

from __future__ import annotations

from hypothesis import given, settings

from tests.reference.eventscript.compare import agree, canonical, reference
from tests.reference.eventscript.evaluate import Emission
from tests.reference.eventscript.runs import ERROR
from tests.reference.eventscript.scripts import Example, examples
from tests.reference.hits import detecting, saw

SOME = settings(max_examples=100, deadline=None)


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
