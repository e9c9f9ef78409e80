"""What a store has of actions that the rulebook which is tried does not have: it is left out.

Example: live, `warn` raised `hot` and disabled `pay`. In the rulebook that is tried, `warn` has
neither action any more. The past of its backtest has no `hot`, and `pay` stays on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tidegate.engine.core.entries import Control
from tidegate.engine.core.event_names import Edge, EventKey
from tidegate.engine.core.text.layout import counted
from tidegate.engine.core.values import ENGINE, Signal
from tidegate.engine.replay.backtest.dry import heard_events
from tidegate.engine.store.placed import PlacedSignal, PlacedSwitch
from tidegate.rules.model import Action, Rulebook, SignalAction, Switch

_EDGES = frozenset({Edge.BEGIN_OF, Edge.END_OF, Edge.FAILED})


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many signals, and switches of rules, no action causes any more, of those that some rule
    or script would have noticed."""

    signals: int = 0
    switches: int = 0


NOTHING = LeftOut()


class Kept:
    """What a rulebook keeps of a store's past. `left_out` counts the rest."""

    def __init__(self, book: Rulebook) -> None:
        rules = [rule for rule in book.rules.values() if rule.enabled]
        self._actions: Mapping[str, tuple[Action, ...]] = {
            rule.name: () if rule.reaction.dry else rule.reaction.every for rule in rules
        }
        self._heard = heard_events(book)
        self._active = {*self._actions, *(s.name for s in book.scripts.values() if s.enabled)}
        self._signals = self._switches = 0

    @property
    def left_out(self) -> LeftOut:
        return LeftOut(self._signals, self._switches)

    def signals(self, placed: Iterable[PlacedSignal]) -> list[Signal]:
        """The signals of clients, and those that actions raise in this rulebook, too, under the
        same ids: an action whose number has changed raises others."""
        found = []
        for signal, rule in placed:
            if signal.namespace != ENGINE:
                found.append(signal)
                continue
            numbers = self._raise(signal, rule)
            if signal.id.rpartition("-")[2] in numbers:
                found.append(signal)
            elif not numbers:
                self._signals += EventKey.of(signal.event).event in self._heard
        return found

    def switches(self, placed: Iterable[PlacedSwitch]) -> list[PlacedSwitch]:
        """The switches of operators, and those that actions ask for in this rulebook, too."""
        found = []
        for one in placed:
            if one.rule is None or self._asks(one.rule, one.control):
                found.append(one)
            else:
                self._switches += one.control.subject in self._active
        return found

    def _raise(self, signal: Signal, rule: str | None) -> set[str]:
        """What the ids of such signals end with here: the numbers of the actions of a rule that
        raise that event, or an edge of its actions. None: of any rule."""
        key = EventKey.of(signal.event)
        if key.edge in _EDGES:
            return {str(key.edge)} if self._actions.get(key.event) else set()
        some = self._actions.values() if rule is None else [self._actions.get(rule, ())]
        return {
            str(number)
            for actions in some
            for number, action in enumerate(actions)
            if isinstance(action, SignalAction) and action.event == signal.event
        }

    def _asks(self, rule: str, control: Control) -> bool:
        """Whether an action of a rule asks for the same of the same rule here."""
        return any(
            isinstance(action, Switch)
            and action.rule == control.subject
            and action.enabled == (control.kind == "enable")
            for action in self._actions.get(rule, ())
        )


def left_out_text(left_out: LeftOut) -> Iterator[str]:
    """A sentence on what was left out, for a report; none if nothing was."""
    some = (
        (left_out.signals, "signal", ""),
        (left_out.switches, "switch of a rule", "switches of rules"),
    )
    said = " and ".join(counted(*one) for one in some if one[0])
    if said:
        alone = left_out.signals + left_out.switches == 1
        verb, them = ("is", "it") if alone else ("are", "them")
        yield f"{said} of the store {verb} left out: no action of this rulebook causes {them}."
