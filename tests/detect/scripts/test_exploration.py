"""What validate says of an automaton: two paths that one event lets go on, and machines that are
too large (`eventscript.md` 5, the table of 6)."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tidegate import rules
from tidegate.engine.detect.scripts.doubts import check_machines, looked_through
from tidegate.engine.detect.scripts.exploration import explore
from tidegate.engine.detect.scripts.machine import Machine
from tidegate.engine.detect.scripts.places import Places
from tidegate.rules.checks.gaps import all_features
from tidegate.rules.errors import InputError, Problem
from tidegate.rules.eventscript import reader
from tidegate.rules.eventscript.reader import followers
from tidegate.rules.eventscript.tree import Program

PROGRAMS = Path(__file__).parents[2] / "rules" / "eventscript" / "programs"
WARNED = {
    "ambiguous_1": True,
    "ambiguous_2": False,
    "violation_any": False,
    "unlock_any": False,
    "alarm": False,
    "difference": False,
    "prefix_twice": True,
    "early": False,
    "states_15": False,
    "states_16": False,
}
"""The programs of the paper that are warned of: whether both paths reach actions."""
REFUSED = {"cyclic"}
STEPS = 3_000_000
LOOPS = (2, 3, 5, 7, 11, 13, 17, 19, 23)
"""Of which the common multiple is 223,092,870: a machine of so many states."""


def warned(text: str, **script: str) -> list[Problem]:
    """The warnings of a script alone in a rulebook."""
    keys = "".join(f"    {key}: {value}\n" for key, value in script.items())
    indented = "".join(f"      {line}\n" for line in text.splitlines())
    book = rules.load(
        f"rulebook: b\nscripts:\n  s:\n{keys}    text: |\n{indented}", features=all_features()
    )
    return [*looked_through(book).warnings]


def said(text: str) -> list[str]:
    """`line:column message` of what is ambiguous. The first line of the text is line 5."""
    found = (w for w in warned(text) if w.code == "ambiguous")
    return [f"{w.place.line}:{w.place.column} {w.message}" for w in found]


def program(name: str) -> Program:
    return reader.read((PROGRAMS / f"{name}.es").read_text())[0]


@pytest.mark.parametrize("name", sorted(f.stem for f in PROGRAMS.glob("*.es")))
def test_which_programs_of_the_paper_are_ambiguous(name: str) -> None:
    if name in REFUSED:
        with pytest.raises(InputError):
            program(name)
        return
    found = explore(program(name), 1_000, 10_000, STEPS).ambiguous
    assert bool(found) == (name in WARNED)
    assert any(each.actions for each in found) == WARNED.get(name, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in {} A, {} B A() | B()", []),
        ("in {} A, {} B (A() B()*)*", []),
        ("in {} A A() A()?", []),
        (
            "in {} A\nA() | A()",
            ["6:13 A lets two paths go on, from 6:7 and from 6:13"],
        ),
        (
            "in double A, {} B\n(A(x) | A(y)) B()",
            ["6:15 A lets two paths go on, from 6:8 and from 6:15, and both reach actions"],
        ),
        (
            "in {} A, {} B\n((A() B())?){2}",
            [
                "6:9 A lets two paths go on, both from 6:9, which is repeated",
                "6:13 B lets two paths go on, both from 6:13, which is repeated",
            ],
        ),
        (
            "in {} A\n(A()?)* A()",
            ["6:15 A lets two paths go on, from 6:8 and from 6:15"],
        ),
        (
            "in {} A\nA()* & (A() | A() A())",
            ["6:21 A lets two paths go on, from 6:15 and from 6:21"],
        ),
        (
            "in {} A, {} B\n. - (B() | B())",
            ["6:18 B lets two paths go on, from 6:12 and from 6:18"],
        ),
        ("in {} A\nelapse[2 seconds]() | elapse[3 seconds]()", []),
        ("in {} A\narrive[.:10]() | arrive[.:20]()", []),
        ("in {} A\narrive[10::00]() | elapse[3 seconds]()", []),
        (
            "in {} A\nelapse[60 seconds]() | elapse[1 minute]()",
            ["6:30 one instant lets two paths go on, from 6:7 and from 6:30"],
        ),
        (  # after an A they may be due at one instant
            "in {} A\n(A() | within[3 seconds]() | elapse[2 seconds]())*",
            ["6:36 one instant lets two paths go on, from 6:14 and from 6:36"],
        ),
        (
            "in {} A\narrive[.:10]() | arrive[12:.]()",
            ["6:24 one instant lets two paths go on, from 6:7 and from 6:24"],
        ),
    ],
)
def test_where_two_paths_go_on(text: str, expected: list[str]) -> None:
    assert said(text) == expected


def test_of_many_ambiguities_the_first_are_said_and_the_others_counted() -> None:
    found = said("in {} A\n" + " | ".join(["A()"] * 30))
    assert len(found) == 21
    assert found[0].endswith("9 more markers of 's' go on beside another")


@pytest.mark.long
def test_a_machine_that_is_too_large() -> None:
    large = (PROGRAMS / "states_16.es").read_text()
    (size,) = (w for w in warned(large) if w.code == "script-size")
    assert "more than 40,000 states" in size.message
    assert "hierarchical" in size.message
    with pytest.raises(InputError) as caught:
        warned(large, machine="dfa")
    (problem,) = caught.value.problems
    assert problem.code == "script-states"
    assert "fewer counted wildcards" in problem.hint
    assert "split the script" in problem.hint
    assert not [w for w in warned((PROGRAMS / "states_15.es").read_text(), machine="dfa")
                if w.code == "script-size"]  # fmt: skip
    (size,) = (w for w in warned(large, machine="hierarchical") if w.code == "script-size")
    assert "too large to be looked at as a whole" in size.message


@pytest.mark.parametrize("joined", [" & ".join, " - ".join, " | ".join])
@pytest.mark.parametrize(
    "loop",
    ["(A(){{{0}}})+", "(A(){{{0}}} | B())*", "(.* A() .{{{0}}})+", "(elapse[x days](){{{0}}})*"],
)
def test_what_looking_takes_is_counted(joined: Callable[[list[str]], str], loop: str) -> None:
    """However the text is nested: no more than a few calls for each step that is counted."""
    text = joined([loop.format(count) for count in LOOPS])
    read = reader.read(f"in {{}} A, {{}} B {{ x = 1; }} ({text})")[0]
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        found = explore(read, 40_000, 10_000, 50_000)
    finally:
        sys.setprofile(before)
    assert found.too_large in ("", "script_exploring_steps_max")
    assert found.steps < 60_000
    assert calls < 6 * found.steps + 20_000


def test_each_path_that_is_led_to_is_a_step() -> None:
    """50 paths that lead to 50 each, the same ones."""
    many = " | ".join(["A()"] * 50)
    found = explore(reader.read(f"in {{}} A (({many}) ({many}))")[0], 100, 10_000, STEPS)
    assert len(found.states) <= 4
    assert found.steps > 50 * 50


def test_so_many_steps_as_may_be_are_enough() -> None:
    for each in programs(30):
        steps = explore(each, 2_000, 10_000, STEPS).steps
        assert not explore(each, 2_000, 10_000, steps).too_large
        assert explore(each, 2_000, 10_000, steps - 1).too_large == "script_exploring_steps_max"


def test_what_was_not_looked_at_is_said_with_the_limit() -> None:
    nine = " & ".join(f"(A(){{{count}}})+" for count in LOOPS)
    text = "rulebook: b\nsettings: {script_exploring_steps_max: 10000}\nscripts:\n"
    for name in ("one", "two"):
        text += f'  {name}: {{text: "in {{}} A {nine}"}}\n'
    text += '  plain: {text: "in {} A (A() | A())"}\n'
    first, *others = looked_through(rules.load(text, features=all_features())).warnings
    assert first.message.startswith("'one' is too large to be looked at as a whole (setting")
    assert "script_exploring_steps_max" in first.message
    for found, name in zip(others, ("two", "plain"), strict=True):
        assert found.message == (
            f"'{name}' is too large to be looked at as a whole (setting script_exploring_steps_max)"
            ": what is ambiguous was sought in the first 0 states"
        )


def test_a_machine_that_is_too_large_is_refused_behind_another_script_too() -> None:
    nine = " & ".join(f"(A(){{{count}}})+" for count in LOOPS)
    text = "rulebook: b\nsettings: {script_exploring_steps_max: 600, script_states_max: 20}\n"
    text += f'scripts:\n  steps: {{text: "in {{}} A {nine}"}}\n'
    text += '  large: {machine: dfa, text: "in {} A, {} B (.* A() .{9})+"}\n'
    book = rules.load(text, features=all_features())
    for refuse in (looked_through, check_machines):
        with pytest.raises(InputError, match="'large' has more than 20 states"):
            refuse(book)


def test_what_lies_beyond_the_limit_of_states_is_said_not_to_be_looked_at() -> None:
    nine = " & ".join(f"(A(){{{count}}})+" for count in LOOPS)
    text = "rulebook: b\nsettings: {script_states_max: 200}\nscripts:\n"
    text += f'  nine: {{text: "in {{}} A {nine}"}}\n'
    (found,) = looked_through(rules.load(text, features=all_features())).warnings
    assert "has more than 200 states (setting script_states_max)" in found.message
    assert "what is ambiguous was sought in the first" in found.message


def _part(chosen: random.Random, depth: int) -> str:
    """A random regular expression."""
    kind = chosen.randrange(7) if depth else 0
    one, other = (_part(chosen, depth - 1) if kind > 1 else "" for _ in range(2))
    match kind:
        case 0 | 1:
            return chosen.choice(["A()", "B()", ".", "A() { x = 1; }", "elapse[2 days]()"])
        case 2:
            return f"({one} {other})"
        case 3:
            return f"({one} {chosen.choice('|&-')} {other})"
        case 4:
            return f"({one}){chosen.choice(['*', '+', '?'])}"
        case 5:
            return f"({one}){chosen.choice(['{2}', '{0}', '{0,3}', '{2,4}', '{3,}'])}"
    return f"(({one})?){{3}}"


def programs(count: int) -> list[Program]:
    chosen = random.Random(4)
    found = []
    while len(found) < count:
        text = f"in {{}} A, {{}} B, {{}} C {_part(chosen, 3)}"
        try:
            found.append(reader.read(text)[0])
        except InputError:  # a part without an event, as `.{0} & A()`
            continue
    return found


def test_the_states_found_are_those_that_a_run_makes() -> None:
    large = 0
    for each in programs(120):
        explored = explore(each, 2_000, 10_000, STEPS)
        assert not explored.too_large
        machine = Machine(Places(each.regex), "auto", 2_000, 10_000)
        ahead, seen = [machine.start().state], set()
        while ahead:
            state = ahead.pop()
            if state.number not in seen:
                seen.add(state.number)
                symbols = [*"ABC", *([frozenset(state.timed)] if state.timed else [])]
                moves = (machine.move(state, symbol) for symbol in symbols)
                ahead += [move.state for move in moves if move]
        assert len(machine.states) == len(explored.states)
        large += len(machine.states) > 5
    assert large > 15


def test_followers_are_at_least_what_the_text_leads_to() -> None:
    exact = 0
    for each in programs(100):
        places = Places(each.regex)
        after = [places.after(part, apart=True) for part in places.places]
        ways = sum(len(a.paths) + len(a.places) for a in after)
        assert followers(each.regex) >= ways
        exact += followers(each.regex) == ways
    assert exact > 50
