"""Rulebooks of many rules: searches have an end, and shortcuts change nothing."""

from __future__ import annotations

import pytest

from tidegate import rules
from tidegate.rules.algebra.bound import Bounds, own_context
from tidegate.rules.analysis.graph import tangles
from tidegate.rules.errors import InputError, did_you_mean
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Context
from tidegate.rules.yaml.kinds import HINTS_MAX


def test_the_nearest_of_many_names_is_found_and_the_search_has_an_end() -> None:
    names = [f"rule_{n}" for n in range(5_000)] + ["withdrawal", "Deposited"]
    assert did_you_mean("withdrawl", names) == "did you mean 'withdrawal'?"
    assert did_you_mean("deposited", names) == "did you mean 'Deposited'?"
    assert did_you_mean("zzz", names) == ""
    on = "".join(f"  r{n}: {{on: evnt_{n}}}\n" for n in range(3 * HINTS_MAX))
    text = f"rulebook: b\nevents: {{event_1: {{signal: {{}}}}}}\nrules:\n{on}"
    with pytest.raises(InputError) as caught:
        rules.load(text)
    hints = [problem.hint for problem in caught.value.problems]
    assert len(hints) == 3 * HINTS_MAX
    assert sum(map(bool, hints)) == HINTS_MAX


def test_tangles_are_what_can_reach_each_other() -> None:
    follows = {"a": "b", "b": "ca", "c": "d", "d": "ce", "e": "", "f": "f", "g": "ab"}
    found = {frozenset(group) for group in tangles(follows)}
    assert found == {frozenset("ab"), frozenset("cd"), frozenset("f")}
    chain = {n: [n + 1] for n in range(50_000)}
    assert len(list(tangles({**chain, 50_000: [0]}))) == 1


def test_the_cycles_of_many_rules_are_named_apart() -> None:
    pairs = "".join(f"  a{n}: {{on: b{n}}}\n  b{n}: {{on: a{n}}}\n" for n in range(30))
    with pytest.raises(InputError) as caught:
        rules.load(f"rulebook: b\nrules:\n{pairs}")
    messages = [p.message for p in caught.value.problems if p.code == "cycle"]
    assert len(messages) == 30
    assert messages[7].endswith("a7 -> b7 -> a7")


def test_bounds_in_all_contexts_are_those_of_each() -> None:
    text = (
        "rulebook: b\nevents: {e: {signal: {k: int}}, f: {signal: {k: int}}}\n"
        "rules: {r: {on: 'e ; f within 5', per: k, context: CONTEXT}}\n"
    )
    for context in Context:
        book = rules.load(text.replace("CONTEXT", str(context)))
        rule = book.rules["r"]
        bounds = Bounds(book.rules)
        assert bounds.in_contexts(rule, Context)[own_context(rule.pattern)] == bounds.of_rule(rule)


def test_a_node_knows_its_operands_by_their_types() -> None:
    a, b, c = (x.Name(name) for name in "abc")
    node = x.Not(x.Or((a, b)), x.Labelled("l", c), x.Own(x.Duration(0, 5)))
    assert [type(part).__name__ for part in node.walk()] == [
        *("Not", "Or", "Name", "Name", "Labelled", "Name", "Own"),
    ]
    assert x.with_operands(node, list(node.operands())) == node


def test_a_name_in_other_letters_is_found_among_many_and_no_names_give_no_hint() -> None:
    assert did_you_mean("PLACED", ["placed", *(f"EVENT_{n}_ACED" for n in range(60))]) == (
        "did you mean 'placed'?"
    )
    assert did_you_mean("placed", []) == ""
