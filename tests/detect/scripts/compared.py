"""A script on the engine, over the histories of the reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tests.reference.eventscript.evaluate import Event
from tests.reference.hits import stepped
from tidegate.engine.core.values import Batch, Carried, Int64
from tidegate.engine.detect.scripts.builtins import to_python
from tidegate.engine.detect.scripts.emissions import ERROR_NAME, ERROR_TYPE, Emissions
from tidegate.engine.detect.scripts.inputs import Source
from tidegate.engine.detect.scripts.program import Script
from tidegate.engine.detect.scripts.run import ScriptRunner
from tidegate.engine.detect.scripts.value_types import values_of
from tidegate.rules.eventscript import reader, tree
from tidegate.rules.eventscript.types import Array, Basic, Structure, Type

SECOND = 1_000_000


class Out(NamedTuple):
    """An emission: instant, key, output, value, number within its transition, and its cause."""

    time: int
    key: tuple[Any, ...]
    output: str
    value: Any
    number: int
    cause: Any = ()


def script_of(text: str, **options: Any) -> Script:
    return Script("it", reader.read(text)[0], **options)


def emissions(
    text: str,
    events: Sequence[Event],
    *,
    cuts: Iterable[int] = (),
    start: int | None = None,
    until: int | None = None,
    sources: Mapping[str, Source] | None = None,
    carrying: list[Mapping[str, pa.Table]] | None = None,
    **options: Any,
) -> list[Out]:
    """What a script emits over a history that is cut at some watermarks; between two buckets only
    bytes are kept, and added to `carrying`. Without `until` a pending `elapse` runs out."""
    script = script_of(text, **options)
    times = [event.time for event in events]
    start = min(times, default=None) if start is None else start
    if start is None or (until is not None and until < start):
        return []
    last = max(start, *times) if until is None else until
    ends = [start - 1, *sorted({cut for cut in cuts if start <= cut < last}), last]
    carried, found = Carried(), []
    for after, end in pairwise(ends):
        runner = ScriptRunner(script, start, sources)
        part = [event for event in events if after < event.time <= end]
        step = runner.step(carried, batches(script.program, part), end)
        if part or len(step.emissions):
            stepped(carried.tables.values())
        found += outs(script.program, step.emissions)
        if step.parked:
            return found
        assert step.reached == end
        carried = Carried({n: through_bytes(t) for n, t in step.carried.tables.items()})
        if carrying is not None:
            carrying.append(carried.tables)
    runner = ScriptRunner(script, start, sources)
    return found if until is not None else found + outs(script.program, runner.finish(carried))


def batches(program: tree.Program, events: Sequence[Event]) -> dict[str, Batch]:
    """Events in order of time as batches by input; where they are of another script, simultaneous
    ones in the order of their emission."""
    found = {}
    for number, each in enumerate(program.inputs):
        place = [n for n, event in enumerate(events) if event.input == each.name]
        own = [events[n] for n in place]
        if own:
            time: Int64 = np.array([event.time for event in own], np.int64)
            first = np.arange(len(own)) * len(program.inputs) + number
            ids = {"": np.column_stack([first, time]).astype(np.uint64)}
            table = table_of([event.value for event in own], each.type)
            found[each.name] = Batch(
                each.name, time, np.arange(len(own)), table, ids, place=np.array(place)
            )
    return found


def table_of(values: list[Any], kind: Type) -> pa.Table:
    if isinstance(kind, Structure):
        columns = {n: pa.array([v[n] for v in values], _arrow(k)) for n, k in kind.fields}
        return pa.table(columns or {"": pa.nulls(len(values))})
    return pa.table({"value": pa.array(values, _arrow(kind))})


def _arrow(kind: Type) -> pa.DataType | None:
    if isinstance(kind, Array):
        return pa.list_(_arrow(kind.of))
    if isinstance(kind, Structure):
        return pa.struct([(name, _arrow(each)) for name, each in kind.fields])
    return {
        Basic.BOOLEAN: pa.bool_(),
        Basic.LONG: pa.int64(),
        Basic.DOUBLE: pa.float64(),
        Basic.STRING: pa.string(),
        Basic.TIME: pa.timestamp("us", "UTC"),
        Basic.OBJECT: None,
    }[kind]


def outs(program: tree.Program, found: Emissions) -> list[Out]:
    types = {**program.outputs, ERROR_NAME: ERROR_TYPE}
    values = {n: [plain(v, types[n]) for v in values_of(column, types[n])]
              for n, column in found.values.items()}  # fmt: skip
    keys = [values_of(column, kind) for column, kind in
            zip(found.keys.columns, program.key_types, strict=True)]  # fmt: skip
    result = []
    for n in range(len(found)):
        name = found.outputs[found.output[n]]
        value = values[name][found.row[n]]
        if name == ERROR_NAME:
            del value["message"]
        key = tuple(column[n] for column in keys)
        cause = (*found.cause[n].tolist(),)
        result.append(Out(int(found.time[n]), key, name, value, int(found.number[n]), cause))
    return result


def plain(value: Any, kind: Type) -> Any:
    """A value as the reference has it: arrays as tuples."""
    value = to_python(value, kind)
    return _tuples(value)


def _tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_tuples, value))
    if isinstance(value, dict):
        return {name: _tuples(each) for name, each in value.items()}
    return value


def simple(found: Sequence[Out]) -> list[tuple[Any, ...]]:
    """(second, output, value) of each."""
    return [(out.time // SECOND, out.output, out.value) for out in found]


def through_bytes(table: pa.Table) -> pa.Table:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()
