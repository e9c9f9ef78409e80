"""What a store has of actions that the rulebook which is tried does not have is left out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.replay.backtest.live import Live, outcomes, tried_again
from tests.replay.backtest.test_switches import TEXT, insert
from tests.support.make import BEGIN
from tidegate import rules
from tidegate.engine.core.entries import Control
from tidegate.engine.core.values import CLIENT, ENGINE, Namespace, Signal
from tidegate.engine.replay.backtest.against import compared
from tidegate.engine.replay.backtest.edited import Kept, LeftOut, left_out_text
from tidegate.engine.replay.backtest.model import Backtest
from tidegate.engine.store import open_store
from tidegate.engine.store.placed import PlacedSignal, PlacedSwitch

ACTIONS = "do: [{signal: {hot: {k: k}}}, {disable: one}]"
LIVE = TEXT.replace("do: [{signal: {hot: {k: k}}}]", ACTIONS)
HEARD, OFF = "heard", "one"
SIGNALS, SWITCH = "2 signals", "1 switch of a rule"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """`warn` fired twice: `heard` heard both signals, and `one` was off when it fired again."""
    with open_store(f"sqlite:///{tmp_path_factory.mktemp('s') / 'past.db'}", create=True) as store:
        ran = Live(LIVE, store)
        for _ in range(2):
            insert(ran, 1)
            insert(ran, 2)
        ran.settle()
        assert {name: len(fired) for name, fired in ran.fired().items()} == {
            OFF: 1, "two": 1, "warn": 2, HEARD: 2
        }  # fmt: skip
        yield ran


def edited(live: Live, actions: str) -> Backtest:
    """A backtest of the rulebook in which `warn` has other actions."""
    found = tried_again(live, BEGIN, live.clock.at, LIVE.replace(ACTIONS, actions)).against
    assert found is not None
    return found


def left_out(found: Backtest) -> list[str]:
    return [note for note in found.notes if "left out: no action" in note]


def test_the_same_rulebook_leaves_nothing_out(live: Live) -> None:
    found = tried_again(live, BEGIN, live.clock.at, LIVE)
    assert outcomes(found) == live.fired()
    assert left_out(found) == []


@pytest.mark.parametrize(
    ("actions", "heard", "one", "said"),
    [
        ("do: [{disable: one}]", 0, 1, f"{SIGNALS} of the store are left out: no action "),
        ("do: [{signal: {hot: {k: k}}}]", 2, 2, f"{SWITCH} of the store is left out: no action "),
        ("do: [{signal: {hot: {k: k}}}, {enable: one}]", 2, 2, f"{SWITCH} of"),
        ("do: [{signal: {hot: {k: k}}}, {disable: two}]", 2, 2, f"{SWITCH} of"),
        (f"mode: dry, {ACTIONS}", 0, 2, f"{SIGNALS} and {SWITCH} of the store are left out"),
        (f"enabled: false, {ACTIONS}", 0, 2, f"{SIGNALS} and {SWITCH} of"),
        ("severity: info", 0, 2, f"{SIGNALS} and {SWITCH} of"),
        ("do: [{disable: one}, {signal: {hot: {k: k}}}]", 2, 1, None),
    ],
)
def test_what_an_edit_has_dropped_is_not_repeated(
    live: Live, actions: str, heard: int, one: int, said: str | None
) -> None:
    found = edited(live, actions)
    fired = outcomes(found)
    assert (len(fired.get(HEARD, ())), len(fired[OFF])) == (heard, one)
    assert bool(left_out(found)) == (said is not None)
    assert said is None or left_out(found)[0].startswith(said)


def test_a_comparison_finds_what_an_edit_changes(live: Live) -> None:
    found = tried_again(live, BEGIN, live.clock.at, LIVE.replace(ACTIONS, "do: [{enable: one}]"))
    assert found.against is not None
    difference = compared(found, found.against)
    assert difference.count == 3, "two firings of `heard`, one of `one`"


def test_of_one_rule_nothing_is_left_out_that_it_would_not_notice(live: Live) -> None:
    found = tried_again(live, BEGIN, live.clock.at, rule="two")
    assert left_out(found) == []


WATCHED = """\
rulebook: past
events: {s: {signal: {k: bigint}}, hot: {signal: {k: bigint}}, cold: {signal: {k: bigint}}}
rules:
  acts:
    on: s
    do: [{signal: {hot: {k: max(k)}}}]
    within: 5 min
    otherwise: [{signal: {cold: {k: max(k)}}}]
  quiet: {on: s, mode: dry, do: [{signal: {hot: {k: max(k)}}}]}
  sees: {on: end_of acts or end_of quiet or hot or cold}
"""


@pytest.mark.parametrize(
    ("id_", "event", "namespace", "rule", "kept"),
    [
        ("f-0", "hot", ENGINE, "acts", True),
        ("f-1", "cold", ENGINE, "acts", True),  # of `otherwise`, which counts on
        ("f-1", "hot", ENGINE, "acts", False),
        ("f-0", "hot", ENGINE, "gone", False),
        ("f-0", "hot", ENGINE, None, True),  # its entry is forgotten
        ("f-0", "cold", ENGINE, None, False),
        ("f-end_of", "end_of acts", ENGINE, None, True),
        ("f-end_of", "end_of quiet", ENGINE, None, False),  # it is dry
        ("f-0", "cold", CLIENT, None, True),
        ("alarm", "hot", CLIENT, None, True),
    ],
)
def test_a_signal_is_kept_if_the_action_raises_it_here(
    id_: str, event: str, namespace: Namespace, rule: str | None, kept: bool
) -> None:
    signal = Signal(id_, event, {"k": 1}, BEGIN, namespace=namespace)
    found = Kept(rules.load(WATCHED)).signals([PlacedSignal(signal, rule)])
    assert found == [signal] * kept


def test_what_operators_switched_is_kept() -> None:
    by_operator = PlacedSwitch(1, Control(1, "disable", "sees"))
    by_action = PlacedSwitch(1, Control(2, "disable", "sees"), "acts")
    gone = PlacedSwitch(1, Control(3, "disable", "none"), "acts")
    kept = Kept(rules.load(WATCHED))
    assert kept.switches([by_operator, by_action, gone]) == [by_operator]
    assert kept.left_out == LeftOut(0, 1), "`none` is no rule here"


def test_nothing_left_out_is_not_said() -> None:
    assert [*left_out_text(LeftOut())] == []
    (said,) = left_out_text(LeftOut(1, 0))
    assert said == "1 signal of the store is left out: no action of this rulebook causes it."
