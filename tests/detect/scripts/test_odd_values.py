"""Values at the edges: doubles as Java has them, and null."""

from __future__ import annotations

from math import inf, nan

import pytest

from tests.detect.scripts.compared import emissions
from tests.reference.eventscript.compare import canonical, reference
from tests.reference.eventscript.evaluate import Event
from tests.reference.eventscript.scripts import Example


@pytest.mark.parametrize(
    ("expression", "given", "gives"),
    [
        ("double(round(x))", 0.49999999999999994, "0.0"),
        ("double(round(x))", -0.5, "0.0"),
        ("double(round(x))", 4503599627370497.5, "4503599627370498.0"),
        ("double(round(x))", nan, "0.0"),
        ("double(round(x))", -inf, "-9.223372036854776e+18"),
        ("min(0.0, x)", -0.0, "-0.0"),
        ("min(x, 0.0)", -0.0, "-0.0"),
        ("max(x, 0.0)", -0.0, "0.0"),
        ("max(0.0, x)", -0.0, "0.0"),
        ("max(1.0, x, 2.0)", nan, "nan"),
    ],
)
def test_functions_of_doubles(expression: str, given: float, gives: str) -> None:
    text = f"in double A out double z\nA(x) {{ !> z({expression}); }}"
    (found,) = emissions(text, [Event(0, "A", given)])
    assert repr(found.value) == gives


NUMBERS = {
    "long": {
        "10": 10,
        "+7": 7,
        "-007": -7,
        "9223372036854775807": 2**63 - 1,
        **dict.fromkeys(("1_0", "", "+", "--1", " 1", "1 ", "1.0", "0x1", "\u0661", "\u00b2")),
        **dict.fromkeys(("9223372036854775808", "1" * 5_000)),
    },
    "double": {
        "1.5": 1.5,
        ".5": 0.5,
        "5.": 5.0,
        "-1e3": -1000.0,
        " 1 ": 1.0,
        "1e999": inf,
        "-Infinity": -inf,
        **dict.fromkeys(("1_0", "1_0.5", "", ".", "1e", "0x1", "\u0661", "\u00a01", "infinit")),
    },
}


@pytest.mark.parametrize(
    ("kind", "given", "gives"),
    [(kind, given, gives) for kind, some in NUMBERS.items() for given, gives in some.items()],
)
def test_texts_that_are_numbers(kind: str, given: str, gives: float | None) -> None:
    """None: a fault, and the default."""
    text = f"in string A out {kind} z\nA(x) {{ !> z({kind}(x)); }}"
    history = [Event(0, "A", given)]
    found = emissions(text, history)
    assert [each.output for each in found] == (["z"] if gives is not None else ["$error", "z"])
    assert found[-1].value == (gives or 0)
    assert canonical(found) == canonical(reference(Example(text, history, [], None)))


def test_a_choice_by_null_fails_as_a_whole() -> None:
    text = "in boolean A\nout long z\n(A(x) { !> z(x ? 1 : 2); x ? !> z(3); : !> z(4); })*"
    history = [Event(n, "A", value) for n, value in enumerate((True, False, None))]
    found = emissions(text, history)
    assert [each.value for each in found if each.output == "z"] == [1, 3, 2, 4, 0, 4]
    assert canonical(found) == canonical(reference(Example(text, history, [], None)))


@pytest.mark.parametrize(
    ("target", "faults"),
    [
        ("q[2].i", ["index"]),
        ("q[1 / 0].i", ["arithmetic"]),  # element 0 then
        ("q[n].i", ["null"]),
        ("r.s.k", ["null"]),
        ("r.a[1 / 0]", ["arithmetic", "null"]),
        ("q[1 / 0].l[1 / 0]", ["arithmetic", "arithmetic", "index"]),
        ("q[9].l[1 / 0]", ["index"]),
    ],
)
def test_the_indices_of_a_target_are_asked_for_once(target: str, faults: list[str]) -> None:
    """Of what stands in no place nothing behind it is asked for."""
    text = (
        "in {long n; {{long k;} s; long[] a;} r;} A\nout long z\n"
        "A(x) { q = new {long i; long[] l;}[2]; n = x.n; r = x.r; r = {s: x.r.s, a: x.r.a};"
        f" !> z(7); {target} = 5; !> z(q[0].i); }}"
    )
    history = [Event(0, "A", {"n": None, "r": {"s": None, "a": None}})]
    found = emissions(text, history)
    after = [each.value for each in found]
    assert [each["kind"] for each in after[after.index(7) + 1 : -1]] == faults
    assert after[-1] == (5 if target == "q[1 / 0].i" else 0)
    assert canonical(found) == canonical(reference(Example(text, history, [], None)))


@pytest.mark.parametrize("call", ['long("1_000")', 'long(double("1_0.5"))'])
def test_a_number_as_text_has_no_underscore(call: str) -> None:
    found = emissions(f"in {{}} A out long z\nA() {{ !> z({call}); }}", [Event(0, "A", {})])
    assert [out.output for out in found] == ["$error", "z"]
