"""Runs scripts over short histories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.engine.script.emissions import ERROR_NAME, Emissions
from tidegate.engine.script.inputs import Source
from tidegate.engine.script.program import Limits, Script
from tidegate.engine.script.run import Runner
from tidegate.engine.values import Batch, Carried
from tidegate.rules import eventscript
from tidegate.rules.eventscript.types import Structure

SECOND = 1_000_000
Event = tuple[float, str, Any]
"""Second, input and value. A structure is a dict."""


@dataclass(frozen=True)
class Out:
    """An emission: second, output, value and key."""

    at: float
    name: str
    value: Any = None
    key: tuple[Any, ...] = ()


def script_of(text: str, **options: Any) -> Script:
    program, _ = eventscript.read(text)
    return Script("it", program, **options)


def run(
    text: str,
    events: Sequence[Event],
    *,
    cuts: Sequence[float] = (),
    until: float | None = None,
    activation: float = 0,
    sources: Mapping[str, Source] | None = None,
    finish: bool = False,
    through_bytes: bool = True,
    **options: Any,
) -> list[Out]:
    """What a script emits over a history that is cut behind some seconds."""
    script = script_of(text, **options)
    last = max([activation, *(e[0] for e in events)]) if until is None else until
    ends = [*(c for c in sorted(cuts) if c < last), last]
    carried, found = Carried(), []
    begin = activation
    runner = Runner(script, micros(activation), sources)
    for end in ends:
        part = (
            [e for e in events if begin <= e[0] <= end]
            if begin == activation
            else [e for e in events if begin < e[0] <= end]
        )
        step = runner.step(carried, batches(script, part), micros(end))
        found += outs(step.emissions)
        carried, begin = step.carried, end
        if step.parked:
            return found
        if through_bytes:
            carried = Carried({n: reread(t) for n, t in carried.tables.items()})
            runner = Runner(script, micros(activation), sources)
    return found + (outs(runner.finish(carried)) if finish else [])


def micros(second: float) -> int:
    return round(second * SECOND)


def batches(script: Script, events: Sequence[Event]) -> dict[str, Batch]:
    """Events as batches by input."""
    found = {}
    for each in script.program.inputs:
        own = sorted((e for e in events if e[1] == each.name), key=lambda e: e[0])
        if not own:
            continue
        values = [value for _, _, value in own]
        if isinstance(each.type, Structure):
            table = pa.Table.from_pylist(values) if values[0] else pa.table({"x": [0] * len(own)})
        else:
            table = pa.table({"value": values})
        time = np.array([micros(at) for at, _, _ in own], np.int64)
        ids = {"": np.array([[micros(e[0]), n] for n, e in enumerate(own)], np.uint64)}
        found[each.name] = Batch(each.name, time, np.arange(len(own)), table, ids)
    return found


def outs(emissions: Emissions) -> list[Out]:
    values = {name: column.to_pylist() for name, column in emissions.values.items()}
    keys = emissions.keys.to_pylist()
    found = []
    for n in range(len(emissions)):
        name = emissions.outputs[emissions.output[n]]
        value = values[name][emissions.row[n]]
        if name == ERROR_NAME:
            value = value["kind"]
        key = tuple(keys[n].values()) if keys else ()
        found.append(Out(float(emissions.time[n] / SECOND), name, value, key))
    return found


def reread(table: pa.Table) -> pa.Table:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def said(found: Sequence[Out]) -> str:
    """Emissions as the page writes them: `V3 $error2`."""
    return " ".join(f"{out.name}{out.at:g}" for out in found)


def letters(text: str) -> list[Event]:
    """`AAB`: A at 1, A at 2, B at 3, without values."""
    return [(n, letter, {}) for n, letter in enumerate(text, 1)]


__all__ = ["Callable", "Limits", "Out", "letters", "run", "said", "script_of"]
