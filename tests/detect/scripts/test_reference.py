"""The engine emits what the reference does, for random scripts, histories and cuts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.detect.scripts.compared import SECOND, Out, emissions
from tests.reference.eventscript.evaluate import Emission, Event, key_rank
from tests.reference.eventscript.evaluate import run as evaluated
from tests.reference.eventscript.reading import program
from tests.reference.eventscript.scripts import STEPS_MAX, Example, examples
from tests.reference.examples import example_count
from tests.reference.hits import detecting, resuming, saw
from tidegate.engine.detect.events.state import partitions
from tidegate.engine.detect.scripts import column_expressions, run
from tidegate.engine.detect.scripts.compiled import bucket
from tidegate.engine.detect.scripts.compiled.bucket import Bucket, Done
from tidegate.engine.detect.scripts.inputs import Source
from tidegate.engine.detect.scripts.program import Limits

ALL_INTERPRETED = 10**9


def expected(example: Example) -> list[Out]:
    found = evaluated(
        program(example.text), example.events, until=example.until, steps_max=STEPS_MAX
    )
    return [*map(_out, found)]


def text_of(found: list[Out]) -> list[str]:
    """As text, in which a NaN is itself and -0.0 is not 0.0; without causes."""
    return [repr(out._replace(cause=())) for out in found]


def transitions(found: list[Out]) -> list[int]:
    """For each emission the number of its transition: one key and cause are one transition."""
    own = [(key_rank(out.key), out.cause) for out in found]
    numbers = {each: n for n, each in enumerate(dict.fromkeys(own))}
    return [numbers[each] for each in own]


@resuming
@detecting
@example_count(150)
@given(examples(), st.sampled_from(["auto", "hierarchical"]))
def test_as_the_reference_wherever_it_is_cut(example: Example, machine: str) -> None:
    """Whole; cut, with the keys in as many partitions as there may be."""
    wanted = expected(example)
    saw([out for out in wanted if out.output != "$error"])
    for cuts, rows_max in (((), partitions.ROWS_MAX), (example.cuts, 0)):
        with patch.object(partitions, "ROWS_MAX", rows_max):
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


@resuming
@detecting
@example_count(100)
@given(st.booleans().flatmap(lambda nulls: examples(compilable=True, nulls=nulls)))
def test_a_compiled_script_does_what_an_interpreted_one_does(example: Example) -> None:
    """Where it is cut into buckets each of which is compiled, or each second one; it emits what
    the reference does, and carries the same tables as the interpreter. However many nulls there
    are, rows without any are compiled."""
    wanted = expected(example)
    compiled = tables = None
    for least in (0, ALL_INTERPRETED):
        with (
            patch.object(run, "COMPILED_MIN", least),
            patch.object(column_expressions, "COMPILED_AFTER", least),
            patch.object(bucket, "NULLS_ONE_IN", 1),
            counted() as counts,
        ):
            found = emissions(
                example.text,
                example.events,
                until=example.until,
                cuts=example.cuts,
                limits=Limits(steps=STEPS_MAX),
                carrying=(carried := []),
            )
        assert text_of(found) == text_of(wanted)
        assert transitions(found) == transitions(wanted)
        if least == 0:
            compiled, tables = counts, carried
    assert len(carried) == len(tables)
    for one, other in zip(carried, tables, strict=True):
        assert one.keys() == other.keys()
        assert all(alike(one[name], other[name]) for name in one)
    saw([out for out in wanted if out.output != "$error"] if compiled else [])


@detecting
@example_count(100)
@given(st.data(), st.sampled_from([0, ALL_INTERPRETED]))
def test_outputs_of_another_script_come_as_they_were_emitted(
    data: st.DataObject, least: int
) -> None:
    """Those of each script by themselves; where that is another order than that of declarations."""
    of = {name: data.draw(st.sampled_from(["one", "one", "two", None])) for name in "ABC"}
    scripts = {name: script for name, script in of.items() if script is not None}
    names = data.draw(st.permutations("ABC"))
    text = f"in {', '.join(f'long {name}' for name in names)} out long z, {{}} end\n"
    text += "(A(x) {!> z(x);} | B(y) C(x) {!> z(x * 10 + y);} | C(x) A(y) {!> end();})*"
    drawn = st.tuples(st.integers(0, 2), st.sampled_from("ABC"), st.integers(0, 3))
    history = data.draw(st.lists(drawn, min_size=6, max_size=12))
    events = [Event(each[0] * SECOND, *each[1:]) for each in sorted(history, key=lambda e: e[0])]
    cuts = data.draw(st.lists(st.sampled_from([0, SECOND]), unique=True))
    wanted, declared = (
        evaluated(program(text), events, emitted=emitted) for emitted in (scripts, {})
    )
    with (
        patch.object(run, "COMPILED_MIN", least),
        patch.object(run, "COMPILED_AFTER", least),
    ):
        sources = {name: Source(script=script) for name, script in scripts.items()}
        found = emissions(text, events, cuts=sorted(cuts), sources=sources)
    assert text_of(found) == text_of([_out(each) for each in wanted])
    saw([] if [*map(_out, wanted)] == [*map(_out, declared)] else wanted)


def _out(emission: Emission) -> Out:
    e = emission
    return Out(e.time, e.key, e.output, e.value, e.number, e.cause)


def alike(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables are the same; a NaN is itself, which Arrow does not say."""
    same: bool = one.schema.equals(other.schema, check_metadata=True)
    return same and repr(one.to_pylist()) == repr(other.to_pylist())


@contextmanager
def counted() -> Iterator[list[int]]:
    """How many events each bucket had that was compiled."""
    counts: list[int] = []
    done = Bucket.run

    def counting(bucket: Bucket, activation: int, watermark: int) -> Done:
        found = done(bucket, activation, watermark)
        counts.append(len(found.key))
        return found

    with patch.object(Bucket, "run", counting):
        yield counts
