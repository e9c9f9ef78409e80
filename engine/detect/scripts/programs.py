"""The scripts of a rulebook, ready to run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import Any

from tidegate.engine.detect.scripts.inputs import Source
from tidegate.engine.detect.scripts.program import Limits, Script
from tidegate.rules import model
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions import nodes as x

Functions = Mapping[str, Callable[..., Any]]
"""Python functions by the names under which scripts declare them."""


def in_order(book: model.Rulebook) -> Iterator[model.Script]:
    """The enabled scripts, each after those whose outputs it takes, also through rules."""
    uses = {name: {*_makers(book, names_used(rule))} for name, rule in book.rules.items()}
    uses |= {name: {*_makers(book, names_used(one))} for name, one in book.scripts.items()}
    for name in TopologicalSorter(uses).static_order():
        if name in book.scripts and book.scripts[name].enabled:
            yield book.scripts[name]


def names_used(of: model.Rule | model.Script) -> set[str]:
    """The event types and rules that a rule or script uses."""
    if isinstance(of, model.Script):
        return {each.event for each in of.inputs.values()}
    return {node.name for node in of.on.walk() if isinstance(node, x.Name)}


def taken_rules(book: model.Rulebook, script: model.Script) -> model.Rulebook | None:
    """The rulebook with only the rules that a script takes, and the rules which those use. None if
    the script takes no enabled rule."""
    rules: dict[str, model.Rule] = {}
    left = [event for event in names_used(script) if event in book.rules]
    while left:
        rule = book.rules[left.pop()]
        if rule.enabled and rule.name not in rules:
            rules[rule.name] = rule
            left += [name for name in names_used(rule) if name in book.rules]
    return replace(book, rules=rules) if rules else None


def _makers(book: model.Rulebook, events: Collection[str]) -> Iterator[str]:
    """The scripts and rules of which event types are."""
    for event in events:
        kind = book.events.get(event)
        if isinstance(kind, model.ScriptEvent) and kind.script in book.scripts:
            yield kind.script
        elif event in book.rules:
            yield event


def script_of(
    book: model.Rulebook, script: model.Script, functions: Functions | None = None
) -> Script:
    """A script of a rulebook, by default with the functions that the operator allows. Raises
    `EngineError('script-function')` where it declares another."""
    declared = script.program.functions.keys()
    if functions is None:
        functions = functions_of(script.name, declared, book.python)
    settings = book.settings
    return Script(
        script.name,
        script.program,
        script.machine,
        script.expire_key_after_micros,
        book.timezone,
        functions,
        Limits(
            settings.script_steps_max,
            settings.script_state_bytes_max,
            settings.script_paths_max,
            settings.script_states_max,
        ),
    )


def sources_of(book: model.Rulebook, script: model.Script) -> dict[str, Source]:
    """How the inputs of a script read their occurrences."""
    return {
        name: Source(each.value, each.order_by, _emitter(book, each.event))
        for name, each in script.inputs.items()
    }


def _emitter(book: model.Rulebook, event: str) -> str | None:
    """The script that emits an event type, if one does."""
    kind = book.events.get(event)
    return kind.script if isinstance(kind, model.ScriptEvent) else None


def functions_of(script: str, declared: Collection[str], allowed: Collection[str]) -> Functions:
    """The functions that a script declares, as far as the operator allows them (G27). `allowed`:
    dotted names. Raises `EngineError('script-function')` where one is not allowed, or is not there.

    Example: the policy has `python: [math.hypot]`, a script `function double hypot(double,
    double)`. What it calls `hypot` is the function of that name in the module `math`.
    """
    return {name: _imported(script, name, allowed) for name in declared}


def _imported(script: str, name: str, allowed: Collection[str]) -> Callable[..., Any]:
    found = sorted(one for one in allowed if one.rpartition(".")[2] == name and "." in one)
    if len(found) != 1:
        others = f": it allows {' and '.join(found)}" if found else ""
        raise EngineError(
            "script-function",
            f"the script {script} calls {name}, which the operator's policy does not allow{others}",
            f"name one function in the policy's file, python: [module.{name}]; or write it as "
            "statements",
        )
    module = found[0].rpartition(".")[0]
    try:
        function = getattr(importlib.import_module(module), name)
    except Exception as error:
        raise EngineError(
            "script-function",
            f"the script {script} calls {found[0]}, which cannot be imported: "
            f"{type(error).__name__}: {error}",
            "install it where the engine runs, or set PYTHONPATH",
        ) from error
    if not callable(function):
        message = f"the script {script} calls {found[0]}, which is no function"
        raise EngineError("script-function", message, "name a function in the policy's file")
    return function  # type: ignore[no-any-return]
