"""Functions as machine code, made by LLVM through llvmlite, which numba brings.

A function makes one transition of one instance:

    records = function(row, context, now, place, key, cause, records)

row: the instance's words; context: addresses (`context`); place: where the event's values stand in
their columns; records: how many emissions there are before it, and after it. FAILED: Python shall
make the transition; FULL: there is no room for an emission. Neither has changed anything.
The text of a script is never part of what is compiled: only operations and numbers are.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from functools import lru_cache
from typing import Any

from llvmlite import binding as llvm

from tidegate.engine.detect.scripts.compiled.function import NAME, Function

_OPTIMISED = 2
_KEPT = 500
"""So many functions stay compiled for scripts that are made again, as after a reload."""


class Native:
    """The functions of one script; an address holds as long as this does."""

    def __init__(self) -> None:
        self._made: list[Any] = []

    def address(self, function: Function) -> int:
        """Where the machine code of a function is."""
        engine = _compiled(function.ended())
        self._made.append(engine)
        return int(engine.get_function_address(NAME))


@lru_cache(_KEPT)
def _compiled(text: str) -> Any:
    """An engine for a module, by its text: a function knows nothing but numbers."""
    machine = _machine()
    built = llvm.parse_assembly(text)
    passes = llvm.create_pass_builder(
        machine, llvm.create_pipeline_tuning_options(speed_level=_OPTIMISED)
    )
    passes.getModulePassManager().run(built, passes)
    engine = llvm.create_mcjit_compiler(built, machine)
    engine.finalize_object()
    return engine


def _machine() -> Any:
    """This processor, with all it can do."""
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # not known for this processor
        features = ""
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=_OPTIMISED
    )
