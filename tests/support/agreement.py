"""The detector and the reference find the same, however a history is cut."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from hypothesis import strategies as st

from tests.reference.cuts import cuts
from tests.reference.evaluate import Line
from tests.reference.hits import saw
from tests.reference.planted import untils
from tests.reference.strategies import expected, of_last
from tests.support.history import run
from tidegate.rules.model import Context, Rulebook, in_context


class Agreed(NamedTuple):
    """What was compared: up to `until` both have found `answer`."""

    rulebook: Rulebook
    history: list[Line]
    until: int | None
    answer: list[str]


def agreed(context: Context, case: tuple[Rulebook, list[Line]], data: st.DataObject) -> Agreed:
    """Compares a rulebook, its last rule in one context, over one history: in one piece, cut
    anywhere."""
    rulebook, history = case
    *others, last = rulebook.rules.values()
    rules = {rule.name: rule for rule in [*others, in_context(last, context)]}
    rulebook = replace(rulebook, rules=rules)
    until, cut = data.draw(untils(history)), data.draw(cuts(rulebook, history))
    answer = expected(rulebook, history, until=until)
    saw(of_last(rulebook, answer))
    assert run(rulebook, history, until=until) == answer
    assert run(rulebook, history, cut, until) == answer
    return Agreed(rulebook, history, until, answer)


def check(context: Context, case: tuple[Rulebook, list[Line]], data: st.DataObject) -> None:
    """The same, where nothing else is to be looked at."""
    agreed(context, case, data)
