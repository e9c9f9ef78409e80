"""Machine code calculates what the interpreter does, at the edges of `long` and `double` too."""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import product
from math import inf, nan
from unittest.mock import patch

import numpy as np
import pytest

from tests.detect.scripts.compared import Out, batches, emissions, script_of
from tests.reference.eventscript.evaluate import Event
from tidegate.engine.core.values import Carried
from tidegate.engine.detect.scripts import column_expressions, run
from tidegate.engine.detect.scripts.compiled import bucket
from tidegate.engine.detect.scripts.compiled.bucket import Bucket
from tidegate.engine.detect.scripts.compiled.rows import RowExpression
from tidegate.engine.detect.scripts.instances import Stepper
from tidegate.engine.detect.scripts.run import ScriptRunner

LONGS = [0, 1, -1, 2, -2, 3, 7, -10, 2**32, -(2**32) - 1, 10**15, 2**63 - 1, -(2**63)]
DOUBLES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.49999999999999994, 1.5, -2.5, 3.7, 1e300, -1e300,
           2.0**63, -(2.0**63), 4503599627370495.5, 5e-324, inf, -inf, nan]  # fmt: skip
BINARY = ["{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} % {}", "min({}, {})", "max({}, {})"]
TESTS = ["{} < {}", "{} <= {}", "{} > {}", "{} >= {}", "{} == {}", "{} != {}"]
OF_LONG = ["-{}", "abs({})", "double({})", "0 - {} * 3"]
OF_DOUBLE = ["-{}", "abs({})", "floor({})", "ceil({})", "sqrt({})", "round({})", "long({})"]
"""`{}` is an operand."""


def script(kind: str, formulas: list[str]) -> str:
    chosen = "".join(
        f"!> test({formula.format('x.a', 'x.b')});"
        if formula in TESTS
        else f"!> found{'d' if double(kind, formula) else 'l'}({formula.format('x.a', 'x.b')});"
        for formula in formulas
    )
    return (
        f"in {{{kind} a; {kind} b;}} A\n"
        f"out long foundl, double foundd, boolean test\n(A(x) {{{chosen}}})*\n"
    )


def double(kind: str, formula: str) -> bool:
    if kind == "double":
        return not formula.startswith(("round", "long"))
    return formula.startswith("double")


@pytest.mark.parametrize(
    ("kind", "values", "formulas"),
    [
        ("long", LONGS, [*BINARY, *TESTS, *OF_LONG]),
        ("double", DOUBLES, [*BINARY, *TESTS, *OF_DOUBLE]),
    ],
)
def test_every_operation_at_the_edges(kind: str, values: list[float], formulas: list[str]) -> None:
    pairs = [*product(values, values)]
    events = [Event(n + 1, "A", {"a": a, "b": b}) for n, (a, b) in enumerate(pairs)]
    found: dict[int, list[Out]] = {}
    for least in (0, 10**9):
        with (
            patch.object(run, "COMPILED_MIN", least),
            patch.object(Bucket, "run", autospec=True, side_effect=Bucket.run) as on_kernel,
        ):
            found[least] = emissions(script(kind, formulas), events, until=len(events) + 1)
        assert on_kernel.called == (least == 0)
    values_of = [out for out in found[0] if out.output != "$error"]
    assert len(values_of) == len(pairs) * len(formulas)
    assert [*map(bits, found[0])] == [*map(bits, found[10**9])]


def bits(out: Out) -> tuple[object, ...]:
    """An emission, in which a NaN is itself, with its sign."""
    value = struct.pack("<d", out.value) if isinstance(out.value, float) else out.value
    return out._replace(value=value)


def test_cases_and_groups_of_all_rows_at_once() -> None:
    """Rows with a null, and those whose condition or key cannot be calculated, are interpreted."""
    text = """
in {long a; double b; string s;} A
    case {100 / A.a > 20 ? High : A.s == "low" ? Low : A.b < 0.5 ? None}
    group(A.a % 3, A.s == "low")
out {long a; string name;} seen
(High(x) {!> seen({a: x.a, name: "high"});} | Low(x) {!> seen({a: x.a, name: "low"});} | None())*
"""
    rows = product([None, 0, 1, 4, 5, 6], [None, 0.1, 0.9], [None, "low", "other"])
    events = [Event(n + 1, "A", dict(zip("abs", row, strict=True))) for n, row in enumerate(rows)]
    found = []
    for after in (0, 10**9):
        with (
            patch.object(column_expressions, "COMPILED_AFTER", after),
            patch.object(
                RowExpression, "column", autospec=True, side_effect=RowExpression.column
            ) as on_kernel,
        ):
            found.append(emissions(text, events, until=len(events) + 1))
        assert on_kernel.call_count == (3 if after == 0 else 0)
    assert [*map(repr, found[0])] == [*map(repr, found[1])]
    assert {out.value["kind"] for out in found[0] if out.output == "$error"} >= {
        "arithmetic",
        "null",
    }
    assert {out.value["name"] for out in found[0] if out.output == "seen"} == {"high", "low"}


def both(text: str, events: list[Event], until: int) -> list[Out]:
    """What is emitted, compiled as interpreted."""
    found = []
    for least in (0, 10**9):
        with (
            patch.object(run, "COMPILED_MIN", least),
            patch.object(column_expressions, "COMPILED_AFTER", least),
            patch.object(Bucket, "run", autospec=True, side_effect=Bucket.run) as on_kernel,
        ):
            found.append(emissions(text, events, until=until))
        assert on_kernel.called == (least == 0)
    assert [*map(repr, found[0])] == [*map(repr, found[1])]
    return found[0]


def test_a_transition_that_fails_leaves_arrays_as_they_were() -> None:
    text = """
in long A out long seen
{ a = new long[3]; }
(A(x) { a[1] = a[1] + 1; a = a; a[2] = a[2] + a[1]; !> seen(10 / x); !> seen(a[2]); })*
"""
    given = [Event(n + 1, "A", value) for n, value in enumerate([5, 0, 2, 0])]
    found = both(text, given, 5)
    assert [o.value for o in found if o.output == "seen"] == [2, 1, 0, 3, 5, 6, 0, 10]


def test_an_instant_at_which_a_clock_strikes_is_not_its_next() -> None:
    """Whoever waits for the clock from the instant on at which it strikes, waits a minute."""
    text = "in {long k;} A group(A.k) out long struck A() arrive[.::00]() {!> struck(group[0]);}"
    minute = 60_000_000
    given = [Event(at, "A", {"k": k}) for k, at in enumerate([minute // 2, minute, 2 * minute])]
    found = both(text, given, 3 * minute)
    assert [(o.value, o.time // minute) for o in found] == [(0, 1), (1, 2), (2, 3)]


def test_a_case_knows_the_instant_of_its_event() -> None:
    text = """
in {time until;} A case {A.until < now() ? Late : Early}
out boolean late (Late() {!> late(true);} | Early() {!> late(false);})*
"""
    given = [Event(at, "A", {"until": until}) for at, until in ((5, 7), (6, 5), (9, 9), (10, 9))]
    assert [o.value for o in both(text, given, 11)] == [False, True, False, True]


def test_a_span_that_is_no_span_is_an_error_and_never_due() -> None:
    text = """
in long A, double B out long again
(A(n) elapse[n seconds]() {!> again(n);} | B(d) elapse[d seconds]() {!> again(0);})*
"""
    for event, spans in (("A", [2, 0, -1]), ("B", [0.5, 0.0, -0.5])):
        for span in spans:
            found = both(text, [Event(7, event, span)], 10_000_000)
            assert len(found) == 1
            assert (found[0].output == "again") == (span > 0)


def test_a_function_without_operands_is_interpreted() -> None:
    text = "function long f() in long A out long z (A(x) {!> z(x + f());})*"
    events = [Event(n, "A", n) for n in range(1, 4)]
    with patch.object(run, "COMPILED_MIN", 0), patch.object(run, "COMPILED_AFTER", 0):
        found = emissions(text, events, until=4, functions={"f": lambda: 10})
    assert [out.value for out in found] == [11, 12, 13]


def test_rows_with_a_null_are_interpreted_and_the_others_are_not() -> None:
    """An instance that has a null is the interpreter's until it has none; cut anywhere."""
    text = """
in {long k; double v; string s;} A group(A.k)
out {double v; string s;} seen, string name
(A(x) {!> seen({v: x.v, s: x.s}); isNull(x.v) ? !> name(x.s); n = n + 1; last = x.v;})*
"""
    rows = [
        {"k": n % 5, "v": None if n % 40 == 7 else n / 2, "s": None if n % 50 == 3 else f"s{n % 3}"}
        for n in range(200)
    ]
    events = [Event(n + 1, "A", row) for n, row in enumerate(rows)]
    interpreted, found = [], []
    for least in (0, 10**9):
        with (
            patch.object(run, "COMPILED_MIN", least),
            patch.object(bucket, "NULLS_ONE_IN", 10),
            patch.object(Stepper, "take", autospec=True, side_effect=Stepper.take) as taking,
            patch.object(Bucket, "run", autospec=True, side_effect=Bucket.run) as on_kernel,
        ):
            cuts = [48, 90, 148] if least == 0 else []
            outs = emissions(text, events, until=201, cuts=cuts)
        found.append([repr(out._replace(cause=())) for out in outs])
        assert on_kernel.call_count == (4 if least == 0 else 0)
        interpreted.append(sum(len(call.args[2]) for call in taking.call_args_list))
    assert found[0] == found[1]
    assert len(found[0]) == 205
    assert 9 < interpreted[0] < 40
    assert interpreted[1] == 200


def test_loops_go_up_to_their_last_index() -> None:
    """Where that is the greatest long, too; and not at all, where it is below the first."""
    text = """
in {long a; long b;} A, double B out long seen, double each
{ last = new double[3]; }
(A(x) {
    for (i: x.a, x.b) !> seen(i);
    n = 0;
    while (n < 2 && x.b > 0) { n = n + 1; !> seen(-n); }
} | B(d) { last[2] = last[2] + d; for (v: last) !> each(v); })*
"""
    most = 2**63 - 1
    ranges = [(0, 4), (3, 3), (3, 1), (most - 1, most), (-(2**63), -(2**63)), (most, -(2**63))]
    given = [Event(n, "A", {"a": a, "b": b}) for n, (a, b) in enumerate(ranges)]
    found = both(text, [*given, Event(7, "B", 1.5), Event(8, "B", 0.5)], 9)
    assert [o.value for o in found if o.time == 3] == [most - 1, most, -1, -2]
    assert [o.value for o in found if o.output == "each"] == [0.0, 0.0, 1.5, 0.0, 0.0, 2.0]


def test_an_instance_with_a_null_waits_for_its_timer() -> None:
    text = """
in {long k; long v;} A group(A.k) out long late
(A(x) elapse[10 seconds]() {!> late(x.v);})*
"""
    given = [Event(n, "A", {"k": n, "v": None if n == 2 else n}) for n in range(1, 4)]
    carried = []
    for least in (0, 10**9):
        with patch.object(run, "COMPILED_MIN", least), patch.object(bucket, "NULLS_ONE_IN", 1):
            found = emissions(text, given, cuts=[5], until=10_000_002, carrying=(kept := []))
        assert [o.value for o in found] == [1, None]
        carried.append([repr(table.schema.metadata) for each in kept for table in each.values()])
    assert carried[0] == carried[1]


def test_timers_fire_on_the_kernel_as_in_the_interpreter() -> None:
    """More of them than there is room for at first; an `arrive` before an event of its instant, an
    `elapse` behind it; the value of a timed event is its instant; two that are due together."""
    text = """
in {long k;} A group(A.k) out time seen, long due
(A() {n = n + 1; !> due(n);} | elapse[2 seconds](t) {n = n * 2; !> seen(t);}
    | arrive[.::30]() {!> due(-n);} | elapse[2000 milliseconds]() {!> due(n * 100);})*
"""
    apart = text.replace("2000 milli", "2500 milli")
    second = 1_000_000
    given = [Event(n * second, "A", {"k": k}) for n, k in [(1, 1), (2, 2), (30, 2), (32, 1)]]
    both(text, given, 60 * second)
    with patch.object(Stepper, "fire", autospec=True) as interpreted:
        with patch.object(run, "COMPILED_MIN", 0):
            emissions(apart, given, until=20 * second)
        assert not interpreted.called
    found = both(apart, given, 300 * second)
    assert len(found) > 250
    assert {o.output for o in found} == {"seen", "due"}


def test_a_timed_event_is_as_deep_as_what_it_follows() -> None:
    late = "elapse[1 second]() {!> z();}"
    text = f"in long A group(A) out {{}} z (A() {late} {late})*"
    script = script_of(text)
    (batch,) = batches(script.program, [Event(n, "A", n) for n in range(3)]).values()
    deep = replace(batch, depth=np.array([5, 0, 7], np.int32))
    for least in (0, 10**9):
        with patch.object(run, "COMPILED_MIN", least):
            step = ScriptRunner(script, 0).step(Carried(), {"A": deep}, 10_000_000)
        assert step.emissions.depth.tolist() == [5, 0, 7] * 2
