"""The scripts of a rulebook, ready to run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from tidegate.engine.detect.scripts.inputs import Source
from tidegate.engine.detect.scripts.program import Limits, Script
from tidegate.rules import model
from tidegate.rules.analysis.graph import lateness_micros
from tidegate.rules.errors import EngineError

Functions = Mapping[str, Callable[..., Any]]
"""Python functions by the names under which scripts declare them."""


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


def whole_reasons(book: model.Rulebook) -> dict[str, str]:
    """The scripts that are stepped as a whole, not by partition of their keys; and why."""
    found = {}
    late = lateness_micros(book)
    for name, script in book.scripts.items():
        taken = [each.event for each in script.inputs.values()]
        kinds = {event: book.events.get(event) for event in taken}
        used = next((event for event in taken if event in book.rules), None)
        emitted = [e for e, kind in kinds.items() if isinstance(kind, model.ScriptEvent)]
        if not script.program.key_names:
            found[name] = "it has no `group`"
        elif used:
            found[name] = f"it takes what rule {used} detects"
        elif emitted:
            found[name] = f"it takes {emitted[0]}, which a script emits"
        elif name in late:
            found[name] = "it waits for late rows (`lateness:`)"
        elif script.program.functions:
            found[name] = "it calls functions of Python (`python:`)"
    return found


def sources_of(book: model.Rulebook, script: model.Script) -> dict[str, Source]:
    """How the inputs of a script read their occurrences."""
    found = {}
    for name, each in script.inputs.items():
        event = book.events.get(each.event)
        emitter = event.script if isinstance(event, model.ScriptEvent) else None
        found[name] = Source(each.value, each.order_by, emitter)
    return found


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
