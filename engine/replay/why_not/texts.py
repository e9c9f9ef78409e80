"""What the text of a rulebook says of a rule: what it is made of, and how long it remembers.

Example: `quick` is `large ; paid within 5 min`, and `paid` is a rule over `row`. It is made of two
rules and the event types `large` and `row`; it remembers 5 min, and `paid` nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from tidegate.engine.loop.compiled_rulebook import detects
from tidegate.rules.algebra.bound import Bounds
from tidegate.rules.analysis.graph import made_of
from tidegate.rules.model import Rule, Rulebook, ScriptEvent


@dataclass(frozen=True, slots=True)
class Used:
    """What a rule is made of. `makers`: rules and scripts, itself included. `events`: event types,
    by their names in a bucket."""

    makers: frozenset[str]
    events: frozenset[str]

    def only(self, book: Rulebook) -> Rulebook:
        """The rulebook with these rules, scripts and event types; and what the scripts emit."""
        emitted = {
            name
            for name, event in book.events.items()
            if isinstance(event, ScriptEvent) and event.script in self.makers
        }
        return replace(
            book,
            events={n: e for n, e in book.events.items() if n in self.events | emitted},
            rules={n: r for n, r in book.rules.items() if n in self.makers},
            scripts={n: s for n, s in book.scripts.items() if n in self.makers},
        )


def used_by(book: Rulebook, rule: str) -> Used:
    """What a rule is made of. `book`: with edges as event types."""

    names = {*made_of([rule], book)}
    made = names & (book.rules.keys() | book.scripts.keys())
    return Used(frozenset(made), frozenset(names & book.events.keys()))


def remembered_micros(book: Rulebook, used: Used) -> int | None:
    """How long a rule remembers, with the rules that it uses; None: there is no bound, or a script
    keeps what it wants."""
    bounds, total = Bounds(book.rules), 0
    if used.makers & book.scripts.keys():
        return None
    for name in used.makers:
        forgets = bounds.of_rule(book.rules[name]).forgets_micros
        if forgets is None:
            return None
        total += forgets
    return total


def damped_micros(rule: Rule) -> int:
    """How long a firing damps later ones."""
    damping = rule.damping
    if damping is None:
        return 0
    lengths = [damping.cooldown_micros or 0]
    lengths += [each.within_micros for each in (damping.throttle, damping.dedupe) if each]
    return max(lengths)


def detected_by(book: Rulebook, names: Collection[str]) -> list[str]:
    """Digests of what these rules detect."""
    return [detects(book.rules[name].pattern) for name in sorted(names) if name in book.rules]


def says(rule: Rule) -> Any:
    """What decides whether a rule fires, wherever it stands."""
    condition, levels, damping = rule.condition, rule.levels, rule.damping
    return (
        rule.pattern.text,
        rule.pattern.key_names,
        rule.pattern.per,
        rule.pattern.context,
        rule.pattern.selection,
        condition and condition.text,
        levels and (levels.fire.text, levels.rearm.text),
        damping and replace(damping, hysteresis=None),
        rule.enabled,
        rule.disabled_for,
    )
