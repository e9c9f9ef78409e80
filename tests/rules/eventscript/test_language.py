"""The language of event scripts: what a text means, what is refused and what is doubtful."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.rules.errors import InputError, Place
from tidegate.rules.eventscript import reader
from tidegate.rules.eventscript import tree as t
from tidegate.rules.eventscript.types import NOTHING, Array, Basic, Structure, Type

FOLDER = Path(__file__).parent
LONG, DOUBLE, STRING, TIME = Basic.LONG, Basic.DOUBLE, Basic.STRING, Basic.TIME
DURATION = Basic.DURATION
POINT = Structure((("x", DOUBLE), ("y", DOUBLE)))
A, B = t.Named("A"), t.Named("B")
ANY = t.Named(None)


def cases(file: str) -> list[object]:
    """`=== title`, the script, `---`, what is said of it, one a line."""
    found: list[object] = []
    for case in (FOLDER / file).read_text(encoding="utf-8").split("=== ")[1:]:
        title, _, rest = case.partition("\n")
        text, _, said = rest.partition("---\n")
        found.append(pytest.param(text, said.splitlines(), id=title))
    return found


def read(text: str) -> t.Program:
    return reader.read(text)[0]


@pytest.mark.parametrize(("text", "said"), cases("refused.txt"))
def test_refused(text: str, said: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    found = [
        f"{p.place.line}:{p.place.column} {p.code} | {p.message}"
        + (f" | {p.hint}" if p.hint else "")
        for p in caught.value.problems
    ]
    assert found == said


@pytest.mark.parametrize(("text", "said"), cases("warned.txt"))
def test_warned(text: str, said: list[str]) -> None:
    _, warnings = reader.read(text)
    found = [f"{p.place.line}:{p.place.column} {p.code} | {p.message}" for p in warnings]
    assert found == said


def number(value: int) -> t.Literal:
    return t.Literal(LONG, value)


@pytest.mark.parametrize(
    ("text", "regex"),
    [
        ("A()", A),
        ("A(a)", t.Named("A", "a")),
        (".", ANY),
        (". ( a )", t.Named(None, "a")),
        (". (A())", t.Sequence((ANY, A))),
        ("A() B()", t.Sequence((A, B))),
        ("A() // one\n/* two */ B()", t.Sequence((A, B))),
        ("(A()) ((B()))", t.Sequence((A, B))),
        ("A() | B() | A()", t.Either((A, B, A))),
        ("A() & B() & A()", t.Both(t.Both(A, B), A)),
        ("A() - B() - A()", t.Without(t.Without(A, B), A)),
        ("A() | (B() - A())", t.Either((A, t.Without(B, A)))),
        ("-A()", t.Without(ANY, A)),
        ("-A() B()", t.Sequence((t.Without(ANY, A), B))),
        ("A() - -B()", t.Without(A, t.Without(ANY, B))),
        ("A()*", t.Repeat(A, 0, None)),
        ("A()+", t.Repeat(A, 1, None)),
        ("A()?", t.Repeat(A, 0, 1)),
        ("A(){3}", t.Repeat(A, 3, 3)),
        ("A(){ 2 , 3 }", t.Repeat(A, 2, 3)),
        ("(A() B()){2,}", t.Repeat(t.Sequence((A, B)), 2, None)),
        ("A(){}", t.Sequence((A, t.Act(t.Block(()))))),
        ("elapse[5 minutes]()", t.Elapse(number(5), 60_000_000)),
        (
            "elapse[2 * (1 minute)]()",
            t.Elapse(t.Binary(DURATION, "*", number(2), t.Literal(DURATION, 60_000_000)), 1),
        ),
        (
            "elapse[2 + 3 minutes /* five */]()",
            t.Elapse(t.Binary(LONG, "+", number(2), number(3)), 60_000_000),
        ),
        (
            "elapse[1 day - 3 minutes]()",
            t.Elapse(
                t.Binary(
                    DURATION,
                    "-",
                    t.Literal(DURATION, 86_400_000_000),
                    t.Literal(DURATION, 180_000_000),
                ),
                1,
            ),
        ),
        (
            "elapse[(1 + 1) minutes]()",
            t.Elapse(t.Binary(LONG, "+", number(1), number(1)), 60_000_000),
        ),
        ("within[5 minutes](at)", t.Within(number(5), 60_000_000, "at")),
        ("elapse[1.5 day](at)", t.Elapse(t.Literal(DOUBLE, 1.5), 86_400_000_000, "at")),
        (
            "arrive[2038-01-19 03:14:08](at)",
            t.Arrive(None, tuple(map(number, (2038, 1, 19, 3, 14, 8))), "at"),
        ),
        ("arrive[8:30]()", t.Arrive(None, (None, None, None, number(8), number(30), number(0)))),
        ("arrive[8::0]()", t.Arrive(None, (None, None, None, number(8), None, number(0)))),
        (
            "arrive[.-.-(1 + 1) .:00:00]()",
            t.Arrive(
                None,
                (
                    None,
                    None,
                    t.Binary(LONG, "+", number(1), number(1)),
                    None,
                    number(0),
                    number(0),
                ),
            ),
        ),
        (
            "arrive[(now() + 1 second)]()",
            t.Arrive(t.Binary(TIME, "+", t.Call(TIME, "now", ()), t.Literal(DURATION, 1_000_000))),
        ),
    ],
)
def test_regular_expressions(text: str, regex: t.Regex) -> None:
    assert read(f"in long A, long B {text}").regex == regex


def statements(text: str) -> tuple[t.Statement, ...]:
    head = "in double A, string S, {double x; double y;} P, time T out long y, {} z out object o "
    regex = read(f"{head} A(a) S(s) P(p) T(at) {{ {text} }}").regex
    assert isinstance(regex, t.Sequence)
    act = regex.items[-1]
    assert isinstance(act, t.Act)
    return act.block.statements


V = t.Variable(DOUBLE, "a")
N = t.Variable(LONG, "n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n = 1;", t.Assign(N, number(1))),
        ("{ n = 1; }", t.Block((t.Assign(N, number(1)),))),
        ("!> y(1);", t.Emit("y", number(1))),
        ("!> z();", t.Emit("z", None)),
        ("!> o(a);", t.Emit("o", V)),
        (
            "a > 1 ? !> z();",
            t.If(t.Binary(Basic.BOOLEAN, ">", V, t.Literal(DOUBLE, 1.0)), t.Emit("z", None), None),
        ),
        (
            "for (i: 1, 2) !> y(i);",
            t.Count("i", number(1), number(2), t.Emit("y", t.Local(LONG, "i"))),
        ),
        ("while (true) {}", t.While(t.Literal(Basic.BOOLEAN, True), t.Block(()))),
        (
            "p.x = 1;",
            t.Assign(t.Field(DOUBLE, t.Variable(POINT, "p"), "x"), t.Literal(DOUBLE, 1.0)),
        ),
        (
            "p = {y: 1, x: a};",
            t.Assign(
                t.Variable(POINT, "p"),
                t.Build(POINT, (("x", V), ("y", t.Literal(DOUBLE, 1.0)))),
            ),
        ),
    ],
)
def test_statements(text: str, said: t.Statement) -> None:
    assert statements(text) == (said,)


def test_a_colon_belongs_to_the_nearest_question() -> None:
    (outer,) = statements("a > 1 ? a > 2 ? !> y(1); : !> y(2);")
    assert isinstance(outer, t.If)
    assert outer.other is None
    assert isinstance(outer.then, t.If)
    assert outer.then.other == t.Emit("y", number(2))


def value(text: str) -> t.Expression:
    """The value of `v = text`, where `a` is a double, `s` a string and `at` a time."""
    (assigned,) = statements(f"v = {text};")
    assert isinstance(assigned, t.Assign)
    return assigned.value


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("1", LONG),
        ("1.0", DOUBLE),
        (".5", DOUBLE),
        ("1e3", DOUBLE),
        ('"a"', STRING),
        ("true", Basic.BOOLEAN),
        ("-9223372036854775808", LONG),
        ("1 + 2 * 3", LONG),
        ("1 / 2", LONG),
        ("1 + a", DOUBLE),
        ("-a % 2", DOUBLE),
        ('s + "b"', STRING),
        ("at - now()", DURATION),
        ("at + 1 second", TIME),
        ("1 day + at", TIME),
        ("at - 1.5 hours", TIME),
        ("10 minutes", DURATION),
        ("at - now() - 5 seconds + 1 hour", DURATION),
        ("at - now() >= 600 seconds", Basic.BOOLEAN),
        ("(at - now()) / 1 minute", LONG),
        ("2 * 5 minutes", DURATION),
        ("5 minutes * a", DURATION),
        ("-(at - now())", DURATION),
        ("microseconds(at - now()) / 2", LONG),
        ("abs(at - now())", DURATION),
        ("max(at - now(), 1 day)", DURATION),
        ("a > 1 && !(s < s) || at >= at", Basic.BOOLEAN),
        ("p == p", Basic.BOOLEAN),
        ("a == null", Basic.BOOLEAN),
        ("p.x", DOUBLE),
        ("{k: 1, l: {m: s}}", Structure((("k", LONG), ("l", Structure((("m", STRING),)))))),
        ("new double[3]", Array(DOUBLE)),
        ("new {long k;}[][3]", Array(Array(Structure((("k", LONG),))))),
        ("a > 1 ? 1 : 2.5", DOUBLE),
        ("a > 1 ? null : 2", LONG),
        ("a > 1 ? 1 : a > 2 ? 2 : 3", LONG),
        ("length(s)", LONG),
        ("length(new long[3])", LONG),
        ("concat(s, s, s)", STRING),
        ("substring(s, 1)", STRING),
        ("substring(s, 1, 2)", STRING),
        ("abs(1)", LONG),
        ("abs(a)", DOUBLE),
        ("min(1, 2, 3)", LONG),
        ("max(1, a)", DOUBLE),
        ("min(at, now())", TIME),
        ("floor(a)", DOUBLE),
        ("ceil(1)", DOUBLE),
        ("sqrt(2)", DOUBLE),
        ("round(a)", LONG),
        ("long(a)", LONG),
        ("long(at)", LONG),
        ("double(1)", DOUBLE),
        ("string(a)", STRING),
        ("isNull(p)", Basic.BOOLEAN),
        ("now()", TIME),
    ],
)
def test_types_of_expressions(text: str, type: Type) -> None:
    assert value(text).type == type


def test_operators_bind_as_in_java() -> None:
    one = value("1 + 2 * 3 > 4 == true && a < 1 || !false")
    two = value("((((1 + (2 * 3)) > 4) == true) && (a < 1)) || (!false)")
    assert one == two
    assert value("1 - 2 - 3") == value("(1 - 2) - 3")


def test_null_is_asked_for() -> None:
    assert value("a == null") == t.Call(Basic.BOOLEAN, "isNull", (V,))
    assert value("null != a") == t.Unary(Basic.BOOLEAN, "!", t.Call(Basic.BOOLEAN, "isNull", (V,)))


def test_strings_have_the_escapes_of_java() -> None:
    node = value(r'"a\n\t\"\\\u00e9\ud83d\ude00"')
    assert node == t.Literal(STRING, 'a\n\t"\\\u00e9\U0001f600')


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("x = 1; x = 2.5;", {"x": DOUBLE}),
        ("y = x; x = 1; x = 2.5; z = y;", {"x": DOUBLE, "y": DOUBLE, "z": DOUBLE}),
        ("n = n + 1;", {"n": LONG}),
        ("n = n + a;", {"n": DOUBLE}),
        ("t = t + 1 second; t = at;", {"t": TIME}),
        ("x = null; x = s;", {"x": STRING}),
        ("q = {u: 1}; q = {u: 2.5};", {"q": Structure((("u", DOUBLE),))}),
        ("k = new long[3]; for (e: k) m = e;", {"k": Array(LONG), "m": LONG}),
        ("k = new string[1]; for (i: 0, 3) for (i: k) m = i;", {"k": Array(STRING), "m": STRING}),
        ("i = 2.5; for (i: 0, 3) m = i;", {"i": DOUBLE, "m": LONG}),
    ],
)
def test_a_variable_has_one_type(text: str, types: dict[str, Type]) -> None:
    head = "in double A, string S, time T A(a) S(s) T(at)"
    variables = read(f"{head} {{ {text} }}").variables
    assert {name: variables[name] for name in types} == types
    assert variables.keys() - types.keys() == {"a", "s", "at"}


def test_a_long_is_widened_where_a_double_is_wanted() -> None:
    (first, second) = statements("n = 1; a = n;")
    assert first == t.Assign(N, number(1))
    assert second == t.Assign(V, t.Call(DOUBLE, "double", (N,)))


def test_markers_of_one_variable() -> None:
    program = read("in long A, double B, string S, {} N A(x) B(x) (A(y) | N()) .(z) S(s) N(n)")
    types = {"x": DOUBLE, "y": LONG, "z": Basic.OBJECT, "s": STRING, "n": NOTHING}
    assert program.variables == types
    assert read("in long A, double B .(z)").variables == {"z": DOUBLE}


def test_declarations() -> None:
    program = read(
        "in Point P group(x, P.y > 1), double B\n"
        "type Point = {double x; double y;}\n"
        "out Point[] line, {} done\n"
        "function double area(Point[], long)\n"
        "in {string type; long in;} X\n"
        'case { in > 1 && X.type == "a" ? High : in < 0 ? Low : High }\n'
        "P() B() High() { !> line(new Point[2]); !> done(); }\n"
        "{ v = area(new Point[1], 2); k = group[1]; }"
    )
    assert [each.name for each in program.inputs] == ["P", "B", "X"]
    assert [each.events for each in program.inputs] == [("P",), ("B",), ("High", "Low")]
    assert program.outputs == {"line": Array(POINT), "done": NOTHING}
    assert program.functions["area"].arguments == (Array(POINT), LONG)
    assert (program.key_names, program.key_types) == (("x", "group1"), (DOUBLE, Basic.BOOLEAN))
    assert program.inputs[0].group[0] == t.Field(DOUBLE, t.Raw(POINT), "x")
    assert program.variables == {"v": DOUBLE, "k": Basic.BOOLEAN}


def test_the_raw_value_has_the_name_of_its_input() -> None:
    program = read("in double Temperature case { Temperature > 40 ? Hot } Hot()")
    case = program.inputs[0].case
    assert case == t.Case(
        (
            (
                t.Binary(Basic.BOOLEAN, ">", t.Raw(DOUBLE), t.Literal(DOUBLE, 40.0)),
                "Hot",
            ),
        ),
        None,
    )


def test_a_text_may_stand_inside_another() -> None:
    """Lines and columns count from where the text begins."""
    with pytest.raises(InputError) as caught:
        reader.read("in int A\nA() B()", Place("rules.yaml", 7, 11, "scripts.s"))
    found = [str(p.place) for p in caught.value.problems]
    assert found == ["rules.yaml:7:14"]


def test_markers_are_counted_before_they_are_expanded() -> None:
    text = "in long A (A(){1000}){1000,}"
    with pytest.raises(InputError, match="1000000 markers and blocks"):
        read(text)
    assert reader.read(text, markers_max=1_000_000)
