"""The `where` of a rule: the detector finds what the reference finds, in every context, however the
history is cut."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.load import PLACE
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import compared, comparing, detecting, drawn_for, resuming
from tests.reference.planted import planted
from tests.reference.strategies import (
    EVERYTHING,
    SECOND,
    expected,
    rulebooks,
    written,
)
from tests.support.agreement import agreed
from tests.support.history import run
from tidegate import parse, rules
from tidegate.engine.detect.events.graph.flat import assignment_node
from tidegate.engine.detect.events.graph.flat.assignment_node import Assignments
from tidegate.engine.detect.events.step.compile import compile_book
from tidegate.rules.algebra.detector_form import detected
from tidegate.rules.algebra.named_parts import asked_of, named_parts, parts_of, together
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.predicate_parser import parse_predicate
from tidegate.rules.model import Constraint, Context, Rule, Rulebook

OPERATORS = tuple(operator for operator in EVERYTHING if operator is not x.Labelled)
FLAT: tuple[type[x.Expression], ...] = ()
"""Expressions of `FORMS` instead of operators."""
FORMS = (
    "{a} ; {b}",
    "{a} ; {a}",
    "{a} ; {b} ; {c}",
    "{a} ; {a} ; {b}",
    "{a} and {b}",
    "{a} and {b} and {c}",
    "{a} or {b}",
    "({a} and {b}) ; {c}",
    "{a} ; ({b} or {c})",
    "any(2, {a}, {b}, {c})",
    "not({b})[{a}, {c}]",
    "({a} ; {b}) - {c}",
    "({a} ; {b} within 3 s) ; {c}",
)
SEARCHED = ("{a} and {b} and {c}", "({a} and {b}) ; {c}")
FEW = (x.Or, x.And, x.Seq, x.Not, x.AnyOf, x.Own, x.Within)
CASES = 96


def labelled(e: x.Expression, names: list[str]) -> x.Expression:
    """The expression with a label around each event type in it; those of an `or` share theirs."""
    if isinstance(e, x.Name):
        names.append(f"p{len(names)}")
        return x.Labelled(names[-1], e)
    return x.with_operands(e, [labelled(operand, names) for operand in e.operands()])


def conditions(columns: list[str]) -> st.SearchStrategy[str]:
    """Over these columns, whose values are 0, 1 and null."""
    column = st.sampled_from(columns)
    number = st.sampled_from(["0", "1", "0.5", "1e0"])
    moved = st.builds("{} {} {}".format, column, st.sampled_from("+-*"), number | column)
    operand = st.one_of(
        column, column, column, moved, st.builds("abs({} - {})".format, column, column)
    )
    signs = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    pair = st.builds("{} {} {}".format, operand, signs, operand)
    simple = st.one_of(
        pair,
        pair,
        st.builds("{} {} {}".format, operand, signs, number),
        st.builds("{} is {}".format, column, st.sampled_from(["null", "not null"])),
    )
    other = st.one_of(simple, simple.map("not ({})".format))
    joined = st.builds("({}) {} ({})".format, other, st.sampled_from(["and", "or"]), other)
    return st.one_of(other, joined)


@st.composite
def constrained(draw: st.DrawFn, rule: Rule, events: list[str], rules: list[str]) -> Rule:
    """The rule with a `where`, if it has a part that can be named; a length around it, if what is
    named needs one."""
    on = written(labelled(rule.pattern.on, []))
    parts = [part for part in named_parts(on) if part.event in events]
    if not parts:
        return rule
    names = [name for part in parts for name in part.labels]
    own = [part.event for part in parts]
    names += [name for name in own if own.count(name) == 1]
    text = draw(conditions([f"{name}.v" for name in names]))
    where = Constraint(parse_predicate(text), text, PLACE)
    pattern = replace(rule.pattern, on=on, where=where)
    found = replace(rule, pattern=pattern)
    if not bounded(found, rules):
        on = written(x.Within(on, x.Duration(0, draw(st.integers(6, 12)) * SECOND)))
        found = replace(found, pattern=replace(pattern, on=on))
    return found if bounded(found, rules) else rule


def bounded(rule: Rule, rules: list[str]) -> bool:
    pattern = rule.pattern
    assert pattern.where
    on = detected(pattern, rules)
    parts = named_parts(on)
    asked = p.conjuncts(pattern.where.tree)
    fits = all(not together(parts_of(c, parts), on) for a in asked for c in p.columns(a))
    return fits and all(asked_of(on, a, frozenset(rules)) is not None for a in asked)


@st.composite
def books(
    draw: st.DrawFn, operators: tuple[type[x.Expression], ...], depth: int
) -> tuple[Rulebook, list[Line]]:
    """One rule, or two of which the second may use the first as an event."""
    contexts = list(Context)
    if operators is FLAT:
        book = draw(rulebooks(contexts=contexts, last=flat))
    else:
        book = draw(rulebooks(operators, contexts, depth=depth, rules_max=2))
    rules: dict[str, Rule] = {}
    for name, rule in book.rules.items():
        rules[name] = draw(constrained(rule, [*book.events], [*rules]))
    book = replace(book, rules=rules)
    return book, draw(planted(book))


def flat(names: tuple[str, ...]) -> st.SearchStrategy[x.Expression]:
    """Each of `FORMS` over the event types in any order."""
    orders = [dict(zip("abc", order, strict=True)) for order in permutations(names)]
    drawn = st.builds(str.format_map, st.sampled_from(FORMS), st.sampled_from(orders))
    return drawn.map(parse)


def check(context: Context, case: tuple[Rulebook, list[Line]], data: st.DataObject) -> None:
    rulebook, history, until, answer = agreed(context, case, data)
    if any(rule.pattern.where for rule in rulebook.rules.values()):
        compared(answer != expected(unconstrained(rulebook), history, until=until))


def unconstrained(book: Rulebook) -> Rulebook:
    rules = {
        name: replace(rule, pattern=replace(rule.pattern, where=None))
        for name, rule in book.rules.items()
    }
    return replace(book, rules=rules)


@pytest.mark.parametrize("operators", [FLAT, FEW, OPERATORS], ids=["flat", "few", "every"])
@resuming
@comparing
@detecting
def test_what_a_where_leaves_is_chosen_among_as_by_the_reference(
    operators: tuple[type[x.Expression], ...],
) -> None:
    """`comparing`: at least one in three conditions decides otherwise than none."""
    for context in Context:
        draw(context, operators)


def draw(context: Context, operators: tuple[type[x.Expression], ...]) -> None:
    @drawn_for(f"{context} {len(operators)}")
    @given(data=st.data())
    @example_count(CASES)
    def some(data: st.DataObject) -> None:
        depth = 1 if operators is FLAT else data.draw(st.sampled_from([1, 2]))
        check(context, data.draw(books(operators, depth)), data)

    some()


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("operators", [FLAT, FEW, OPERATORS], ids=["flat", "few", "every"])
@pytest.mark.parametrize("context", Context)
@resuming
@comparing
@detecting
@given(data=st.data())
@example_count(20_000 // 18 + 1)
def test_in_twenty_thousand_cases(
    context: Context, operators: tuple[type[x.Expression], ...], data: st.DataObject
) -> None:
    check(context, data.draw(books(operators, data.draw(st.sampled_from([1, 2, 3])))), data)


NODES = """
from tidegate import parse, rules
from tidegate.rules.algebra.detector_form import detected
from tidegate.engine.detect.events.graph.search.sifted import sifted
book = rules.load('''
rulebook: r
events: {%s, z: {signal: {v: bigint}}}
rules: {r: {on: "(%s) ; z within 1 h", where: x.v < z.v}}
''')
pattern = book.rules["r"].pattern
print(sifted(detected(pattern), pattern.where.tree, ()))
"""


def test_a_node_with_a_where_has_one_name_in_all_processes() -> None:
    """Else what it carries is lost by a restart."""
    types = "abcdefgh"
    events = ", ".join(f"{name}: {{signal: {{v: bigint}}}}" for name in types)
    code = NODES % (events, " or ".join(f"x:({name})" for name in types))
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1


BOUNDED = """
rulebook: r
events: {{a: {{signal: {{v: bigint}}}}, b: {{signal: {{v: bigint}}}}, c: {{signal: {{v: bigint}}}}}}
rules: {{r: {{on: "({}) within 9 s", where: {}, context: {}}}}}
"""


@pytest.mark.parametrize("form", FORMS)
def test_flat_expressions_are_compiled(form: str) -> None:
    """In `continuous` an a of `a and b and c` that has begun an assignment may be in another."""
    for context in Context:
        on = written(labelled(parse(form.format(a="a", b="b", c="c")), []))
        text = BOUNDED.format(format_expression(on), "p0.v is null or p0.v < 2", context)
        if form.startswith("not"):
            text = text.replace("p0", "p1")
        book = rules.load(text)
        shape = compile_book(book, {"r": 0}, {})[1].roots["r"].shape
        searched = context is Context.CONTINUOUS and form in SEARCHED
        assert isinstance(shape, Assignments) is not searched


def test_pairs_without_end_reach_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignment_node, "LEFT_MAX", 5)
    book = rules.load(
        "rulebook: r\nevents: {a: {signal: {v: bigint}}, b: {signal: {v: bigint}}}\n"
        "rules: {r: {on: a ; b within 1 h, where: a.v < b.v, context: chronicle}}\n"
    )
    lines = [("a", n, {"v": 1}) for n in range(3)] + [("b", 10 + n, {"v": 2}) for n in range(2)]
    with pytest.raises(EngineError, match="leaves more than 5 occurrences"):
        run(book, lines, [])


@pytest.mark.parametrize("cut", [[], [0], [1 * SECOND], [2 * SECOND], [2 * SECOND, 3 * SECOND]])
def test_what_all_keys_see_may_be_greater_and_fail_the_condition(cut: list[int]) -> None:
    """Two a's, which have no key, are the last instance of `any`; of the key it is b and an a."""
    book = rules.load(
        "rulebook: r\n"
        "events: {a: {signal: {v: bigint}}, b: {signal: {k: bigint, v: bigint}}}\n"
        "rules: {r: {on: 'o:(b) and (f:(a) ; any(2, p:(a), q:(b), r:(a))) within 6 s',"
        " per: {b: k}, where: q.v = 0}}\n"
    )
    history = [
        ("a", 1 * SECOND, {"v": 0}),
        ("b", 2 * SECOND, {"k": 1, "v": 0}),
        ("b", 2 * SECOND, {"k": 2, "v": 1}),
        ("a", 3 * SECOND, {"v": 0}),
    ]
    answer = expected(book, history)
    assert run(book, history, cut) == answer
    (found,) = answer
    assert '"key": {"k": 1}' in found
