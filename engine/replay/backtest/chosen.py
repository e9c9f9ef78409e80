"""The part of a rulebook that a backtest is asked for: one rule and what it needs, another context.

Example: `--rule alarm`, and `alarm` listens to the signal `hot`, which `warn` raises. Both run, the
others are switched off, and only the firings of `alarm` are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidegate.rules.analysis.graph import uses_of
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import (
    Context,
    Rule,
    Rulebook,
    Script,
    ScriptEvent,
    SignalAction,
    Switch,
    in_context,
)


def chosen(book: Rulebook, rule: str | None, context: str | None) -> Rulebook:
    """The rulebook with `rule` alone, which is switched on, and what that needs; None: with all.
    `context`: of that rule, or of all. Raises InputError."""
    found = None if context is None else _context(context)
    if rule is not None:
        book = _only(book, rule)
    if found is None:
        return book
    rules = {
        name: in_context(each, found) if rule in (None, name) else each
        for name, each in book.rules.items()
    }
    return replace(book, rules=rules)


def _context(name: str) -> Context:
    try:
        return Context(name)
    except ValueError:
        message, hint = f"unknown context {name!r}", did_you_mean(name, Context)
        problem = Problem("unknown-context", message, word_place("--context"), hint)
        raise InputError([problem]) from None


def _only(book: Rulebook, rule: str) -> Rulebook:
    if rule not in book.rules:
        message = f"the rulebook has no rule `{rule}`"
        hint = did_you_mean(rule, book.rules)
        raise InputError([Problem("unknown-rule", message, word_place("--rule"), hint)])
    on = {**book.rules, rule: replace(book.rules[rule], enabled=True)}
    needed = _needed(replace(book, rules=on), rule)
    rules = {n: replace(each, enabled=each.enabled and n in needed) for n, each in on.items()}
    scripts = {
        name: replace(script, enabled=script.enabled and name in needed)
        for name, script in book.scripts.items()
    }
    return replace(book, rules=rules, scripts=scripts)


def _needed(book: Rulebook, rule: str) -> set[str]:
    """The rules and scripts on which the detections of a rule depend, itself included."""
    found, left = {rule}, [rule]
    while left:
        for name in _before(book, left.pop()):
            if name not in found:
                found.add(name)
                left.append(name)
    return found


def _before(book: Rulebook, name: str) -> Iterator[str]:
    """The rules and scripts that a rule or script depends on directly. It uses them, it hears a
    signal that they raise, or they switch it."""
    one: Rule | Script = book.rules.get(name) or book.scripts[name]
    used = {*uses_of(one, book.rules)}
    if isinstance(one, Rule):
        used |= {n.name for n in one.pattern.on.walk() if isinstance(n, x.Name | x.Edge)}
    for event in used:
        kind = book.events.get(event)
        if event in book.rules:
            yield event
        elif isinstance(kind, ScriptEvent):
            yield kind.script
    for rule in book.rules.values():
        for action in rule.reaction.every:
            raises = isinstance(action, SignalAction) and action.event in used
            switches = isinstance(action, Switch) and action.rule == name
            if raises or switches:
                yield rule.name
