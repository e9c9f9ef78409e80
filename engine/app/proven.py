"""What has run before: rules whose texts are unchanged since, and tables that they only write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidegate.engine.capture.sources import sources
from tidegate.engine.store import KeptRulebook
from tidegate.rules.errors import InputError, Place
from tidegate.rules.model import Rule, Rulebook

_NOWHERE = Place()


def ran_before(kept: KeptRulebook | None) -> Mapping[str, Rule]:
    """The rules of the rulebook that ran last on the store (None: none has)."""
    try:
        return kept.load().rules if kept is not None else {}
    except InputError:  # it was of another version of the language
        return {}


def proven_rules(book: Rulebook, before: Mapping[str, Rule]) -> frozenset[str]:
    """The rules whose condition and actions are, word for word, those that ran before."""
    same = (r.name for r in book.rules.values() if _texts(r) == _texts(before.get(r.name)))
    return frozenset(same)


def only_written(book: Rulebook) -> frozenset[str]:
    """The tables that raise no events."""
    return frozenset(book.tables) - set(sources(book).tables)


def _texts(rule: Rule | None) -> object:
    if rule is None:
        return None
    condition = rule.condition
    levels = rule.damping.hysteresis if rule.damping else None
    return (
        (condition.text, condition.query) if condition is not None else (),
        (levels.fire.text, levels.rearm.text) if levels is not None else (),
        [replace(action, place=_NOWHERE) for action in rule.actions],
    )
