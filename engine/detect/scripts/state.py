"""The instances of a script as Arrow tables, one for each partition of the keys' hash (G26).

`script:<digest>/3` has a row for each instance whose key is of partition 3:

    k0, k1, ..                key
    paths                     the path set, by places (`paths.text_of`)
    previous                  instant of the last expected event
    cause0, cause1, depth     what caused it (`instances.Instance`)
    timer_at, timer_place     lists: timed markers and when they are due
    v0, v1, ..                variables, in the order of the script's

Its metadata has the number of partitions, and `values.DUE`: when its first timer is due; `old`:
from when on some instance may be dropped for its age. Nothing in it depends on numbers of states.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.engine.core.text.times import python_values
from tidegate.engine.core.values import DUE, FOREVER, TIMERS, Int64
from tidegate.engine.detect.events.state.partitions import due_of, partitions
from tidegate.engine.detect.scripts.instances import ARRIVE, ELAPSE, Instance, Timer, set_due
from tidegate.engine.detect.scripts.paths import of_text
from tidegate.engine.detect.scripts.program import Compiled, Script
from tidegate.engine.detect.scripts.value_types import column_of, values_of
from tidegate.rules.errors import EngineError

PREFIX = "script:"
"""What the names of all that scripts carry begin with."""
VERSION = b"1"
ROWS_MAX = 4_000
"""The most rows of a part: one with more is cut into `GROWTH`."""
GROWTH = 4
_LATE = 8
"""An instance is dropped an eighth of its time later than it may be: otherwise a part with many
would be touched in every step."""
_SCHEMA, _COUNT, _OLD = b"tidegate.script", b"partitions", b"old"
_READ = ("previous", "cause0", "cause1", "depth", "timer_at", "timer_place")
Tables = Mapping[str, pa.Table]


class Store:
    """Reads and writes the instances of one script. `count_max`: into how many partitions they are
    cut at most."""

    def __init__(self, compiled: Compiled, count_max: int) -> None:
        self._compiled = compiled
        self._count_max = count_max
        self._expires = compiled.expire_micros
        self.prefix = f"{PREFIX}{compiled.script.digest}/"

    def own(self, tables: Tables) -> dict[int, pa.Table]:
        """The script's tables by partition. Raises `EngineError('carried-schema')`."""
        found = {}
        for name, table in tables.items():
            if name.startswith(self.prefix):
                found[int(name.removeprefix(self.prefix))] = table
                if table.schema.metadata.get(_SCHEMA) != VERSION:
                    raise EngineError(
                        "carried-schema",
                        f"carried table {name} is of another version than this engine reads",
                        "run the engine version that wrote the store, or start with a new store",
                    )
        return found

    def wanted(self, parts: Mapping[int, pa.Table]) -> tuple[int, int]:
        """Into how many partitions the instances are cut, and into how many they shall be."""
        count = next((int(t.schema.metadata[_COUNT]) for t in parts.values()), 1)
        wanted, largest = count, max(map(len, parts.values()), default=0)
        most = self._count_max if self._compiled.script.program.key_types else 1
        while wanted < most and largest > ROWS_MAX:
            wanted, largest = min(wanted * GROWTH, self._count_max), largest // GROWTH
        return count, wanted

    def waiting(self, parts: Mapping[int, pa.Table], watermark: int) -> set[int]:
        """The partitions in which a timer is due, or something is too old."""
        return {
            partition
            for partition, table in parts.items()
            if min(due_of(table), int(table.schema.metadata[_OLD])) <= watermark
        }

    def keys(self, table: pa.Table) -> list[pa.ChunkedArray]:
        """The key columns of a table."""
        return [table.column(f"k{n}") for n in range(len(self._compiled.script.program.key_types))]

    def read(self, table: pa.Table, codes: Sequence[int]) -> list[Instance]:
        """The instances of a table; codes[n] numbers the key of each."""
        compiled, state = self._compiled, self._compiled.machine.state
        paths = table.column("paths").to_pylist()
        states = {text: state(of_text(text)) for text in dict.fromkeys(paths)}
        variables = [
            values_of(table.column(f"v{n}"), kind) for n, (_, kind) in enumerate(compiled.variables)
        ]
        rows = zip(*variables, strict=True) if variables else [()] * len(table)
        columns = [table.column(name).to_pylist() for name in _READ]
        found = []
        for code, text, row, *rest in zip(codes, paths, rows, *columns, strict=True):
            previous, high, low, depth, at, places = rest
            instance = Instance(
                code, states[text], compiled.with_loops([*row]), previous, (high, low), depth
            )
            if at:
                instance.timers = [
                    Timer(a, ARRIVE if p in compiled.arrivals else ELAPSE, p)
                    for a, p in zip(at, places, strict=True)
                ]
                set_due(instance)
            found.append(instance)
        return found

    def write(
        self,
        instances: Sequence[Instance],
        keys: Sequence[pa.Array],
        causes: np.ndarray,
        depths: np.ndarray,
        count: int,
    ) -> dict[str, pa.Table]:
        """The tables of some instances by name. keys: the key columns, a row for each;
        causes: uint64[n, 2]."""
        previous = np.array([each.previous for each in instances], np.int64)
        lists = pa.list_(pa.int64())
        columns = {
            "paths": pa.array([each.state.text for each in instances], pa.string()),
            "previous": pa.array(previous),
            "cause0": pa.array(causes[:, 0]),
            "cause1": pa.array(causes[:, 1]),
            "depth": pa.array(depths),
            "timer_at": pa.array([[t.at for t in i.timers] for i in instances], lists),
            "timer_place": pa.array([[t.place for t in i.timers] for i in instances], lists),
        }
        for number, (_, kind) in enumerate(self._compiled.variables):
            values = [each.variables[number] for each in instances]
            columns[f"v{number}"] = column_of(values, kind)
        due = np.array([each.due for each in instances], np.int64)
        timers = np.array([len(each.timers) for each in instances], np.int64)
        return self.parts(keys, columns, previous, due, timers, count)

    def parts(
        self,
        keys: Sequence[pa.Array],
        columns: Mapping[str, pa.Array],
        previous: Int64,
        due: Int64,
        timers: Int64,
        count: int,
    ) -> dict[str, pa.Table]:
        """Instances by the column as tables by name. `timers`: how many each has."""
        if not len(previous):
            return {}
        table = pa.table({**{f"k{n}": column for n, column in enumerate(keys)}, **columns})
        if count == 1:
            return {self.name(0): self._marked(table, previous, due, timers, count)}
        of = partitions([pa.chunked_array([column]) for column in keys], count)
        order = np.argsort(of, kind="stable")
        present, first = np.unique(of[order], return_index=True)
        sorted_table = table.take(pa.array(order))
        found = {}
        bounds = pairwise([*first.tolist(), len(of)])
        for partition, (begin, end) in zip(present.tolist(), bounds, strict=True):
            rows, part = order[begin:end], sorted_table.slice(begin, end - begin)
            marked = self._marked(part, previous[rows], due[rows], timers[rows], count)
            found[self.name(partition)] = marked
        return found

    def name(self, partition: int) -> str:
        return f"{self.prefix}{partition}"

    def _marked(
        self, table: pa.Table, previous: Int64, due: Int64, timers: Int64, count: int
    ) -> pa.Table:
        old = FOREVER
        if self._expires is not None and len(previous):
            old = min(int(previous.min()) + self._expires + self._expires // _LATE, FOREVER)
        said = {
            _COUNT: count,
            _OLD: old,
            DUE: int(due.min(initial=FOREVER)),
            TIMERS: int(timers.sum()),
        }
        metadata = {_SCHEMA: VERSION, **{k: str(v).encode() for k, v in said.items()}}
        return table.replace_schema_metadata(metadata)


def waiting_timers(script: Script, tables: Tables, most: int) -> list[tuple[int, tuple[Any, ...]]]:
    """The first timers of a script in some carried tables: when each is due, and its key."""
    found, own = [], f"{PREFIX}{script.digest}/"
    for name, table in tables.items():
        if name.startswith(own):
            names = [f"k{n}" for n in range(len(script.program.key_types))]
            keys = [python_values(table.column(name)) for name in names]
            for row, times in enumerate(table.column("timer_at").to_pylist()):
                key = tuple(values[row] for values in keys)
                found += [(at, key) for at in times]
    return sorted(found, key=lambda timer: (timer[0], str(timer[1])))[:most]


def replaced(
    tables: Tables, read: Collection[str], written: Mapping[str, pa.Table]
) -> tuple[dict[str, pa.Table], frozenset[str]]:
    """The tables with `written` in place of those that were read, and the names of all that differ
    from before."""
    kept = {name: table for name, table in tables.items() if name not in read}
    changed = {name for name in read if name not in written}
    for name, table in written.items():
        before = tables.get(name)
        if before is not None and before.equals(table, check_metadata=True):
            kept[name] = before
        else:
            kept[name] = table
            changed.add(name)
    return kept, frozenset(changed)
