"""The Python functions that scripts declare, as far as the operator allows them (G27).

Example: the policy has `python: [math.hypot]`, a script `function double hypot(double, double)`.
What it calls `hypot` is the function of that name in the module `math`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from tidegate.rules.errors import EngineError

Functions = Mapping[str, Callable[..., Any]]
"""Python functions by the names under which scripts declare them."""


def functions_of(script: str, declared: Collection[str], allowed: Collection[str]) -> Functions:
    """The functions that a script declares. `allowed`: dotted names. Raises
    `EngineError('script-function')` where one is not allowed, or is not there."""
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
