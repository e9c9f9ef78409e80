"""`within[d]` counts on through other events: as the reference has it, interpreted and compiled, at
d, a microsecond before and after, wherever the history is cut (page, 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.detect.scripts.compared import SECOND, Out, emissions
from tests.detect.scripts.test_reference import ALL_INTERPRETED, counted, text_of
from tests.reference.eventscript.evaluate import Event
from tests.reference.eventscript.evaluate import run as evaluated
from tests.reference.eventscript.reading import program
from tests.reference.examples import example_count
from tests.reference.hits import compared, comparing, detecting, resuming, saw
from tidegate.engine.detect.scripts import column_expressions, run

HEAD = """in {long k; long v;} A group(A.k), {long k; long v;} B group(B.k),
  {long k; long v;} C group(C.k) out time late, long n
"""
SCRIPTS = [
    "(A() B()* (within[10 seconds](t) { !> late(t); } | C()))*",
    "(A() | B() | within[10 seconds](t) { !> late(t); })*",
    "(A(x) (B(y) { !> n(y.v); } | A())* (within[x.v seconds](t) { !> late(t); } | C()))*",
    "(A()+ (within[10 seconds](t) { !> late(t); })?)* - C()",
    "((A() | B() | elapse[7 seconds](e) { !> late(e); })* within[10 seconds](t) { !> late(t); })*",
    "((A() | B())* (within[10 seconds](t) { !> late(t); } | within[5 seconds]()))*",
    "(A()* within[10 seconds](t) { !> late(t); } & (.* within[10 seconds]() .*))*",
    "(.{2} (A() | B())* within[8 seconds](t) { !> late(t); })*",
]


def instants() -> st.SearchStrategy[int]:
    """Whole seconds, and beside them."""
    beside = st.sampled_from([-1, 0, 0, 0, 1])
    return st.builds(lambda second, by: second * SECOND + by, st.integers(0, 26), beside)


def histories() -> st.SearchStrategy[list[Event]]:
    drawn = st.tuples(
        instants(), st.sampled_from("AABBC"), st.sampled_from([1, 1, 1, 2]), st.integers(3, 10)
    )
    found = st.lists(drawn, min_size=4, max_size=10, unique_by=lambda e: e[:2])
    first = Event(0, "A", {"k": 1, "v": 10})
    return found.map(
        lambda each: [first, *(Event(t, n, {"k": k, "v": v}) for t, n, k, v in sorted(each))]
    )


@comparing
@resuming
@detecting
@example_count(120)
@given(st.sampled_from(SCRIPTS), histories(), st.lists(instants(), min_size=1, max_size=4))
def test_as_the_reference_interpreted_and_compiled(
    script: str, history: list[Event], cuts: list[int]
) -> None:
    """`comparing`: in at least one example in three an `elapse` would have emitted otherwise."""
    text, until = HEAD + script, history[-1].time + 15 * SECOND
    wanted = said(text, history, until)
    saw([out for out in wanted if out.output == "late"])
    compared(text_of(wanted) != text_of(said(text.replace("within", "elapse"), history, until)))
    carried: list[list[Mapping[str, pa.Table]]] = []
    for least in (0, ALL_INTERPRETED):
        carried.append([])
        with (
            patch.object(run, "COMPILED_MIN", least),
            patch.object(column_expressions, "COMPILED_AFTER", least),
            counted() as compiled,
        ):
            found = emissions(text, history, until=until, cuts=cuts, carrying=carried[-1])
        assert text_of(found) == text_of(wanted)
        assert any(compiled) == (least == 0)
    one, other = ([tables_of(each) for each in found] for found in carried)
    assert one == other


def tables_of(carried: Mapping[str, pa.Table]) -> dict[str, list[Any]]:
    return {name: table.to_pylist() for name, table in carried.items()}


def said(text: str, history: list[Event], until: int) -> list[Out]:
    found = evaluated(program(text), history, until=until)
    return [Out(e.time, e.key, e.output, e.value, e.number, e.cause) for e in found]
