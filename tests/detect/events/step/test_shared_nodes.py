"""A node that is stepped in several shares, in one of which something happens: what is too old goes
there, and is not what the other one is given back (G26)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pytest

from tests.detect.events.step.test_apart import identified
from tests.detect.events.step.test_component_detector import told
from tests.detect.events.step.test_stratified_detector import asked, when_shares_meet
from tests.support.executors import InProcess
from tests.support.history import batches
from tests.support.rulebooks import loaded
from tidegate.engine.core.values import Carried
from tidegate.engine.detect.events.state import partitions
from tidegate.engine.detect.events.step import stratified_detector
from tidegate.engine.detect.events.step.component_step import ComponentStep
from tidegate.engine.detect.events.step.component_task import Plan
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.engine.detect.events.step.stratified_detector import StratifiedDetector
from tidegate.rules.analysis.graph import Stratum

MOST = 16  # partitions; keys 1 and 2 are of two
STRATA = (Stratum((), ("r",), ("r",)), Stratum((), ("s",), ("r", "s")))

History = Sequence[tuple[str, int, int]]
"""Event type, milliseconds, key."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is carried is cut as far as may be."""
    monkeypatch.setattr(partitions, "ROWS_MAX", 0)


@pytest.fixture
def two_strata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stratified_detector, "strata", lambda _: STRATA)


@pytest.fixture
def meetings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One for each time that what was kept apart meets."""
    found = list[str]()
    when_shares_meet(monkeypatch, lambda: found.append("met"))
    return found


def detected(
    way: str, rules: Mapping[str, str], history: History, *, later: int = 0, **added: str
) -> list[str]:
    """The rules that detect something, each time as in one share. A step for each line; from line
    `later` on with rules that are `added`."""
    expected, carried, found = Carried(), Carried(), list[str]()
    for number, (event, millis, key) in enumerate(history):
        at = 1_000 * millis
        if number in (0, later):
            running = {**rules, **added} if number >= later else rules
            book = loaded("ab", "tuwx", **running)
            plan = Plan(book, dict.fromkeys(running, 0), {})
            whole, strata = Partitioned(plan.detector(None), 1), StratifiedDetector(plan, MOST)
            apart = ComponentStep(book, plan.activations, {}, InProcess(1), MOST)
        arriving = identified(batches(book, [(event, at, {"k": key, "v": key})]), number)
        of_whole = whole.step(expected, arriving, at)
        if way == "strata":
            made = strata.step(
                carried, at, None, (), None, None, partial(asked, len(STRATA), arriving)
            )
        else:
            made = apart.step(carried, arriving, at)
        assert told(made.detections) == told(of_whole.detections)
        expected, carried = of_whole.carried, made.carried
        found += [one.rule for one in of_whole.detections]
    return found


@pytest.mark.usefixtures("two_strata")
def test_g26_what_one_stratum_drops_of_broadcasts() -> None:
    """The w is too old when the u arrives, of which the first stratum knows nothing."""
    rules = {"r": "on: '(any(2, t, w, x) ; a) within 3 s', per: k", "s": "on: 'r ; u', per: k"}
    history = [("w", 1_000, 0), ("t", 3_500, 0), ("x", 3_600, 0), ("u", 5_000, 0)]
    assert detected("strata", rules, [*history, ("a", 5_100, 1), ("u", 5_200, 0)]) == ["r", "s"]


@pytest.mark.usefixtures("two_strata")
def test_g26_what_one_stratum_drops_of_a_key() -> None:
    rules = {"r": "on: '(b ; a) within 3 s', per: k", "s": "on: 'r ; u', per: k"}
    history = [("b", 1_000, 1), ("b", 3_500, 2), ("u", 5_000, 0), ("a", 5_100, 1)]
    more = [("a", 5_200, 2), ("u", 5_300, 0)]
    assert detected("strata", rules, [*history, *more]) == ["r", "s"]


def test_g26_what_one_component_drops_of_broadcasts() -> None:
    """The w is too old when an a arrives, which is of no use to rule `r`."""
    rules = {
        "r": "on: '(any(2, t, w, x) ; b) within 3 s', per: v",
        "s": "on: '(any(2, t, w, x) ; a) within 3 s', per: k",
    }
    history = [("w", 1_000, 0), ("t", 3_500, 0), ("x", 3_600, 0), ("a", 5_000, 1), ("a", 5_100, 2)]
    assert detected("executors", rules, [*history, ("b", 5_200, 1)]) == ["s", "s", "r"]


@pytest.mark.usefixtures("two_strata")
def test_g26_strata_do_not_meet_where_one_drops_all_of_a_node(meetings: list[str]) -> None:
    """The t is too old when the first u arrives. If they met, each bucket would read all files."""
    rules = {"r": "on: '((t ; w) ; b) within 3 s', per: k", "s": "on: 'r ; u', per: k"}
    late = [("u", 5_000 + n, 0) for n in range(4)]
    assert not detected("strata", rules, [("t", 1_000, 0), *late])
    assert not meetings


def test_g26_components_do_not_meet_where_one_drops_all_of_a_node(meetings: list[str]) -> None:
    rules = {
        "r": "on: '((t ; w) ; b) within 3 s', per: v",
        "s": "on: '((t ; w) ; a) within 3 s', per: k",
    }
    late = [("a", 5_000 + n, n) for n in range(4)]
    assert not detected("executors", rules, [("t", 1_000, 0), *late])
    assert not meetings


def test_g26_what_the_drivers_rules_alone_carry_does_not_make_shares_meet(
    meetings: list[str],
) -> None:
    """Rule `r` looks at t's, but keeps none. If they met, each bucket would read all files."""
    rules = {"r": "on: a ; t, per: k", "s": "on: t ; u"}
    later = [("a", 3_000 + n, n) for n in range(4)]
    history = [("a", 1_000, 9), ("t", 2_000, 0), *later, ("u", 4_000, 0), ("t", 5_000, 0)]
    assert detected("executors", rules, history) == ["r", "s", "r"]
    assert not meetings


def test_g26_a_rule_comes_that_looks_at_what_a_component_alone_carried(
    meetings: list[str],
) -> None:
    """The t's were of two shares before the rule came, the u's of one."""
    rules = {"r": "on: '(t and u) ; a', per: k", "s": "on: t ; x"}
    history = [("t", 1_000, 0), ("u", 2_000, 0), ("w", 3_000, 0), ("a", 4_000, 1), ("x", 5_000, 0)]
    more = [("u", 6_000, 0), ("x", 7_000, 0), ("a", 8_000, 2)]
    found = detected("executors", rules, [*history, *more], later=3, q="on: u ; x")
    assert found == ["r", "s", "s", "q", "r"]
    assert not meetings


@pytest.mark.parametrize("added", ["on: 't ; b', per: k", "on: a ; b", "on: '(t ; x) ; a', per: v"])
def test_g26_shares_do_not_meet_where_a_rule_comes(meetings: list[str], added: str) -> None:
    """It looks at one more event type in a component, or at what one alone looked at."""
    rules = {"r": "on: '(t and a) ; a', per: k", "s": "on: u ; x"}
    history = [("t", 1_000, 0), ("a", 2_000, 1), ("a", 3_000, 2), ("u", 4_000, 0)]
    more = [("b", 5_000, 1), ("a", 6_000, 1), ("t", 7_000, 0), ("b", 8_000, 1), ("a", 9_000, 2)]
    assert "r" in detected("executors", rules, [*history, *more], later=4, q=added)
    assert not meetings
