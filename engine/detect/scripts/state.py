"""The instances of a script as Arrow tables, one for each partition of the keys' hash (G26).

`script:<digest>/3` has a row for each instance whose key is of partition 3:

    k0, k1, ..                key
    paths                     the path set, by places (`paths.text_of`)
    previous                  instant of the last expected event
    cause0, cause1, depth     what caused it (`instances.Instance`)
    timer_at, timer_place     lists: timed markers and when they are due
    v0, v1, ..                variables, in the order of the script's

Its parts say what those of rules do (`events.state.partitions`). Nothing in it depends on numbers
of states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.engine.core.text.times import python_values
from tidegate.engine.core.values import FOREVER, Int64
from tidegate.engine.detect.events.state.group import Group
from tidegate.engine.detect.events.state.partitions import (
    SCRIPT,
    Tables,
    by_partition,
    dropped_at,
    marked,
    part_name,
    partitions,
    sliced,
    wanted,
)
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.scripts.instances import ARRIVE, ELAPSE, Instance, Timer, set_due
from tidegate.engine.detect.scripts.paths import of_text
from tidegate.engine.detect.scripts.program import Compiled, Script
from tidegate.engine.detect.scripts.value_types import column_of, values_of
from tidegate.rules.errors import EngineError

VERSION = b"1"
_SCHEMA = b"tidegate.script"
_READ = ("previous", "cause0", "cause1", "depth", "timer_at", "timer_place")


class Store:
    """Reads and writes the instances of one script. `count_max`: into how many partitions they are
    cut at most."""

    def __init__(self, compiled: Compiled, count_max: int) -> None:
        self._compiled = compiled
        self._count_max = count_max
        self._expires = compiled.expire_micros
        self.whole = table_name(compiled.script)

    def own(self, tables: Tables) -> Group:
        """The script's parts. Raises `EngineError('carried-schema')`."""
        own = Parts.of(tables).groups.get(self.whole, Group())
        if any(kind.get(_SCHEMA) != VERSION for kind in own.kinds):
            raise EngineError(
                "carried-schema",
                f"carried table {self.whole} is of another version than this engine reads",
                "run the engine version that wrote the store, or start with a new store",
            )
        return own

    def wanted(self, own: Group) -> int:
        """Into how many partitions the instances shall be cut."""
        most = self._count_max if self._compiled.script.program.key_types else 1
        return wanted(own.count, own.largest, most)

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
        """The tables of some instances, by name. keys: the key columns, a row for each;
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
        """Instances by the column as tables, by name. `timers`: how many each has."""
        if not len(previous):
            return {}
        table = pa.table({**{f"k{n}": column for n, column in enumerate(keys)}, **columns})
        of = partitions(keys, count) if count > 1 else np.zeros(len(table), np.int64)
        order, spans = by_partition(of, count)
        if len(spans) > 1:
            table = table.take(pa.array(order))
        table = table.replace_schema_metadata({_SCHEMA: VERSION})
        return {
            self.name(partition): marked(
                part,
                count,
                int(due[order[spans[partition]]].min()),
                int(timers[order[spans[partition]]].sum()),
                dropped_at(previous[order[spans[partition]]], self._expires),
            )
            for partition, part in sliced(table, spans).items()
        }

    def cut_anew(self, parts: Sequence[pa.Table], count: int) -> dict[str, pa.Table]:
        """The tables of all instances in so many partitions, by name."""
        table = pa.concat_tables(parts)
        keys = self.keys(table)
        columns = {name: table.column(name) for name in table.column_names[len(keys) :]}
        timers = table.column("timer_at").combine_chunks()
        number = timers.value_lengths().to_numpy()
        due, timed = np.full(len(table), FOREVER), number > 0
        if timed.any():
            first = (np.cumsum(number) - number)[timed]
            due[timed] = np.minimum.reduceat(timers.flatten().to_numpy(), first)
        return self.parts(keys, columns, table.column("previous").to_numpy(), due, number, count)

    def name(self, partition: int) -> str:
        return part_name(self.whole, partition)


def table_name(script: Script) -> str:
    """What the tables of a script are called, before they are cut."""
    return SCRIPT + script.digest


def waiting_timers(script: Script, tables: Tables, most: int) -> list[tuple[int, tuple[Any, ...]]]:
    """The first timers of a script in some carried tables: when each is due, and its key."""
    found, own = [], table_name(script) + "/"
    for name, table in tables.items():
        if name.startswith(own):
            names = [f"k{n}" for n in range(len(script.program.key_types))]
            keys = [python_values(table.column(name)) for name in names]
            for row, times in enumerate(table.column("timer_at").to_pylist()):
                key = tuple(values[row] for values in keys)
                found += [(at, key) for at in times]
    return sorted(found, key=lambda timer: (timer[0], str(timer[1])))[:most]
