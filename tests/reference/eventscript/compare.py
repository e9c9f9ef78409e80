"""An engine against the reference on one example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import reject

from tests.reference.eventscript.evaluate import Emission, key_rank, run
from tests.reference.eventscript.reading import program
from tests.reference.eventscript.runs import ERROR
from tests.reference.eventscript.scripts import Example

STEPS_MAX = 300
# From an example to what an engine emits, in any order of keys, with `script_steps_max` STEPS_MAX
# and a bucket that ends at each of the cuts. Causes and numbers are compared by what they tell
# apart: one cause is one transition.
Engine = Callable[[Example], Sequence[Emission]]


def agree(engine: Engine, example: Example) -> list[Emission]:
    """Asserts that the engine emits what the reference does, and gives that. An example in which it
    matters how statements are counted is given up."""
    expected = reference(example, STEPS_MAX)
    if canonical(expected) != canonical(reference(example, STEPS_MAX * 4)):
        reject()
    assert canonical(engine(example)) == canonical(expected)
    return expected


def reference(example: Example, steps_max: int = STEPS_MAX) -> list[Emission]:
    return run(program(example.text), example.events, until=example.until, steps_max=steps_max)


def canonical(emissions: Sequence[Emission]) -> list[Any]:
    """What is compared: in order of time and key, and by transition."""
    ordered = sorted(emissions, key=lambda each: (each.time, key_rank(each.key)))
    transitions = list(dict.fromkeys((each.key, each.cause) for each in ordered))
    return [
        (
            each.time,
            bare(each.key),
            each.output,
            fault(each.value) if each.output == ERROR else bare(each.value),
            transitions.index((each.key, each.cause)),
        )
        for each in ordered
    ]


def fault(value: dict[str, Any]) -> Any:
    """Of a `$error`: which of the faults the page names apart, and of an unexpected event which.
    Messages, places and the kinds of failing expressions are an engine's own."""
    if value["kind"] == "unexpected":
        return "unexpected", value["event"], value["at"]
    return value["kind"] if value["kind"] == "runaway" else "failing", value["at"]


def bare(value: Any) -> Any:
    """A value that is equal only to its like: 1 is not 1.0, 0.0 is not -0.0, NaN is NaN."""
    if isinstance(value, dict):
        return [(name, bare(each)) for name, each in sorted(value.items())]
    if isinstance(value, list | tuple):
        return [bare(each) for each in value]
    return repr(value)
