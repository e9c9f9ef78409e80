"""How long before its span a backtest begins to look: as long as its rules remember.

Example: `a ; b within 1 h` with a cooldown of a day remembers 25 hours. `a ; b` alone remembers an
`a` until its `b` comes: that has no bound.
"""

from __future__ import annotations

from tidegate.rules.algebra.bound import Bounds
from tidegate.rules.analysis.graph import lateness_micros, uses_of
from tidegate.rules.model import Damping, Rulebook


class Memories:
    """How long the rules of a rulebook remember, each with all that it uses."""

    def __init__(self, book: Rulebook) -> None:
        self._book, self._bounds = book, Bounds(book.rules)
        self._late = lateness_micros(book)
        self._known: dict[str, int | None] = {}

    def of(self, name: str) -> int | None:
        """How long a rule remembers, microseconds; None where there is no bound."""
        if name not in self._known:
            self._known[name] = None  # also where rules use each other
            self._known[name] = self._of(name)
        return self._known[name]

    def _of(self, name: str) -> int | None:
        rule = self._book.rules.get(name)
        if rule is None:
            return 0 if self._is_plain(name) else None
        own = self._bounds.of_rule(rule).forgets_micros
        damped = _damped(rule.damping)
        used = [self.of(each) for each in uses_of(rule, self._book.rules)]
        parts = [own, damped, max((each or 0 for each in used), default=0)]
        if None in (*used, own, damped):
            return None
        return sum(part or 0 for part in parts) + self._late.get(name, 0)

    def _is_plain(self, name: str) -> bool:
        """Whether an event type is not of a script: what a script remembers is not known."""
        return name not in _of_scripts(self._book)


def _of_scripts(book: Rulebook) -> frozenset[str]:
    return frozenset(event for script in book.scripts.values() for event in script.outputs.values())


def _damped(damping: Damping | None) -> int | None:
    """How long damping remembers; a hysteresis does until it re-arms."""
    if damping is None:
        return 0
    if damping.hysteresis is not None:
        return None
    spans = [damping.cooldown_micros or 0]
    if damping.dedupe is not None:
        spans.append(damping.dedupe.within_micros)
    if damping.throttle is not None:
        spans.append(damping.throttle.within_micros)
    return max(spans)


def memory(book: Rulebook) -> tuple[int, tuple[str, ...]]:
    """How long the rules of a rulebook remember, microseconds, and those of them that remember
    without a bound."""
    memories = Memories(book)
    spans = {rule.name: memories.of(rule.name) for rule in book.rules.values() if rule.enabled}
    known = [span for span in spans.values() if span is not None]
    return max(known, default=0), tuple(name for name, span in spans.items() if span is None)
