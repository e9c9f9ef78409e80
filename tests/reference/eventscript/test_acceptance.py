"""Without actions and time a script is a regular expression: what it accepts is what the automata
of automata-lib, built from the tree by their own operations, accept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product

import pytest
from automata.fa.dfa import DFA
from automata.fa.nfa import NFA
from hypothesis import given

from tests.reference.eventscript.expand import Marker, Part, expand
from tests.reference.eventscript.paths import enter, step
from tests.reference.eventscript.reading import program
from tests.reference.eventscript.rows import PROGRAMS
from tests.reference.eventscript.scripts import scripts
from tests.reference.eventscript.texts import Stream
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tidegate.rules.eventscript import tree

LENGTH = 4


def automaton(regex: tree.Regex, events: frozenset[str]) -> NFA:
    """The automaton of a part of the tree, over names of events of one letter each."""

    def of(item: tree.Regex) -> NFA:
        return automaton(item, events)

    match regex:
        case tree.Named(name):
            taken = events if name is None else {name}
            letters = {letter: {1} for letter in taken}
            return NFA(
                states={0, 1},
                input_symbols=events,
                transitions={0: letters},
                initial_state=0,
                final_states={1},
            )
        case tree.Sequence(items):
            return reduce(NFA.concatenate, map(of, items))
        case tree.Either(items):
            return reduce(NFA.union, map(of, items))
        case tree.Both(left, right):
            return of(left).intersection(of(right))
        case tree.Without(left, right):
            return NFA.from_dfa(DFA.from_nfa(of(left)) - DFA.from_nfa(of(right)))
        case tree.Repeat(item, low, high):
            one = of(item)
            rest = [one.kleene_star()] if high is None else [one.option()] * (high - low)
            return reduce(NFA.concatenate, [one] * low + rest)
    raise TypeError(regex)


def accepts(root: Part, word: Sequence[str]) -> bool:
    """Whether the reference has matched the program once the word is taken."""
    reach = enter(root)
    for letter in word:

        def fits(marker: Marker, letter: str = letter) -> bool:
            assert isinstance(marker.source, tree.Named)
            return marker.source.event in (None, letter)

        reach = step(root, reach.paths, fits)
    return reach.matched


def words(events: frozenset[str]) -> list[tuple[str, ...]]:
    return [word for n in range(LENGTH + 1) for word in product(sorted(events), repeat=n)]


def compared(text: str) -> list[tuple[str, ...]]:
    """Asserts that both accept the same words up to LENGTH, and gives these."""
    script = program(text)
    events = frozenset(name for each in script.inputs for name in each.events)
    other, root = automaton(script.regex, events), expand(script.regex)
    accepted = [word for word in words(events) if accepts(root, word)]
    assert accepted == [word for word in words(events) if other.accepts_input("".join(word))]
    return accepted


@detecting
@example_count(150)
@given(scripts(acting=False, timed=False))
def test_accepts_the_words_of_its_automaton(script: tuple[str, list[Stream]]) -> None:
    saw([word for word in compared(script[0]) if word])


def test_states_of_a_counted_wildcard() -> None:
    """`.* A .{k}` has 2^k path sets (page, 6): each of the last k events was an A or not. Its least
    automaton has twice as many states, for a state says too whether it accepts."""
    text = (PROGRAMS / "states_15.es").read_text().replace("15", "3")
    script = program(text)
    least = DFA.from_nfa(automaton(script.regex, frozenset("AB")), minify=True)
    assert len(least.states) == 2**4
    assert len(reached(text)) == 2**3


def reached(text: str) -> set[frozenset[object]]:
    """All path sets that some history reaches."""
    script = program(text)
    root = expand(script.regex)
    names = [name for each in script.inputs for name in each.events]
    found, waiting = set(), [enter(root).paths]
    while waiting:
        paths = waiting.pop()
        if paths in found:
            continue
        found.add(paths)
        for name in names:

            def fits(marker: Marker, name: str = name) -> bool:
                assert isinstance(marker.source, tree.Named)
                return marker.source.event in (None, name)

            waiting.append(step(root, paths, fits).paths)
    return found


@pytest.mark.parametrize("text", ["A() A()* & .* - B()", "A() | B() & A()"])
def test_mixed_operators_are_refused(text: str) -> None:
    with pytest.raises(Exception, match="parenthes"):
        program(f"in {{}} A, {{}} B {text}")
