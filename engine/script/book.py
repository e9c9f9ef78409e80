"""The scripts of a rulebook, ready to run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from graphlib import TopologicalSorter
from typing import Any

from tidegate.engine.script.inputs import Source
from tidegate.engine.script.program import Limits, Script
from tidegate.rules import model
from tidegate.rules.errors import EngineError

Functions = Mapping[str, Callable[..., Any]]
"""Python functions that scripts may call."""
NO_FUNCTIONS: Functions = {}


def in_order(book: model.Rulebook) -> Iterator[model.Script]:
    """The enabled scripts, each after those whose outputs it takes; rules are not followed."""
    enabled = {name: script for name, script in book.scripts.items() if script.enabled}
    before = {
        name: {
            found.script
            for each in script.inputs.values()
            if isinstance(found := book.events.get(each.event), model.ScriptEvent)
        }
        & enabled.keys()
        for name, script in enabled.items()
    }
    for name in TopologicalSorter(before).static_order():
        yield enabled[name]


def script_of(book: model.Rulebook, script: model.Script, functions: Functions) -> Script:
    """A script of a rulebook. Raises `EngineError('script-function')` where it declares a function
    that there is not."""
    lacking = sorted(script.program.functions.keys() - functions.keys())
    if lacking:
        raise EngineError(
            "script-function",
            f"the script {script.name} calls {lacking[0]}, which the operator does not allow",
            "have the operator allow it, or write it as statements",
        )
    settings = book.settings
    return Script(
        script.name,
        script.program,
        script.machine,
        script.expire_key_after_micros,
        book.timezone,
        {name: functions[name] for name in script.program.functions},
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
        name: Source(
            each.value, each.order_by, isinstance(book.events.get(each.event), model.ScriptEvent)
        )
        for name, each in script.inputs.items()
    }
