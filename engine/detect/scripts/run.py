"""One step of a script over one bucket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.core.instants import ceil_watermark
from tidegate.engine.core.state_parts import Shelf, loaded
from tidegate.engine.core.values import FOREVER, Batch, Carried, UInt64
from tidegate.engine.detect.events.occurrences import order
from tidegate.engine.detect.events.occurrences.keys import NO_KEYS, Keys, encode
from tidegate.engine.detect.events.occurrences.occurrences import Ranking
from tidegate.engine.detect.events.state.group import Group
from tidegate.engine.detect.events.state.partitions import alike, earliest, partitions
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.scripts.compiled.automaton import FullError, Table
from tidegate.engine.detect.scripts.compiled.bucket import Bucket, Given
from tidegate.engine.detect.scripts.compiled.layout import UncompiledError
from tidegate.engine.detect.scripts.compiled.words import InterpretedError
from tidegate.engine.detect.scripts.context import ERROR
from tidegate.engine.detect.scripts.emissions import ERROR_NAME, ERROR_TYPE, Emissions
from tidegate.engine.detect.scripts.inputs import Arrivals, Inputs, Source
from tidegate.engine.detect.scripts.instances import (
    ELAPSE,
    EVERY,
    NAMED,
    Cause,
    Emitted,
    Instance,
    ParkedError,
    Row,
    Stepper,
    StoppedError,
)
from tidegate.engine.detect.scripts.program import Compiled, Script, reads_key
from tidegate.engine.detect.scripts.state import Store
from tidegate.engine.detect.scripts.value_types import output_column, values_of

Stepped = tuple[Emissions, dict[str, pa.Table]]
"""What is emitted, and the tables that are carried on, by name."""
COMPILED_MIN = 100
"""A smaller bucket is interpreted: to set the kernel up would take longer."""
COMPILED_AFTER = 50
"""A script is interpreted until it has met so many times `COMPILED_MIN` events: to compile it takes
about as long."""


class ScriptStepped(NamedTuple):
    """What a step gives: emissions, what to carry on, and the watermark that it has reached.

    `parked`: a transition has run away at `reached`, and later arrivals are passed over. If it is
    not parked and `reached` is below the watermark asked for, too many timers were due: later
    arrivals are to be given again.
    """

    emissions: Emissions
    carried: Carried
    reached: int
    parked: bool


class ScriptRunner:
    """A script that runs. Its instances start at `activation`, microseconds, or later by key."""

    def __init__(
        self,
        script: Script,
        activation: int,
        sources: Mapping[str, Source] | None = None,
        ranking: Ranking = order,
        partitions_max: int = 256,
    ) -> None:
        self.script = script
        self.compiled = Compiled(script)
        self._activation = activation
        self.inputs = Inputs(script.program, self.compiled.context, sources or {}, ranking)
        self.store = Store(self.compiled, partitions_max)
        self._table: Table | None = None
        self._compilable, self._met = True, 0
        self._grouped = bool(script.program.key_names)
        self._reads_key = reads_key(script.program)

    def step(
        self,
        carried: Carried,
        batches: Mapping[str, Batch],
        watermark: int,
        limit: int | None = None,
        shelf: Shelf | None = None,
        count: int | None = None,
    ) -> ScriptStepped:
        """What the script emits in one bucket. `batches`: by input name, all occurrences after the
        last step's watermark and up to this one's. Not more than `limit` timers fire, but for those
        of one millisecond. `shelf`: of parts that lie in files; those that are touched are read.
        `count`: into so many partitions the instances are cut; None: as many as their number says.

        Pure: where a history is cut into buckets makes no difference. Raises `InputError` where an
        occurrence does not fit its input, `EngineError` where `machine: dfa` is impossible, and as
        `Shelf.read`.
        """
        parked = False
        while True:
            given = {name: self._until(batch, watermark) for name, batch in batches.items()}
            try:
                return self._step(carried, given, watermark, limit, parked, shelf, count)
            except StoppedError as stop:
                if stop.runaway:
                    watermark, parked = stop.reached, True
                elif ceil_watermark(stop.reached) < watermark:
                    watermark = ceil_watermark(stop.reached)
                    parked = False
                else:
                    limit = None

    def finish(self, carried: Carried) -> Emissions:
        """What the script emits once its history has ended: time goes on, for each instance, up to
        the first `elapse` that it waits for."""
        last = None
        while True:
            try:
                return self._finish(carried, last)
            except StoppedError as stop:
                last = stop.reached

    def _finish(self, carried: Carried, last: int | None) -> Emissions:
        """`last`: the instant at which a transition runs away."""
        own, nothing = self.store.own(carried.tables), self.inputs.read({})
        tables = [own[partition] for partition in own.partitions.tolist()]
        stored = [*map(self.store.keys, tables)]
        codes, keys = _together(nothing.key, stored, self._grouped)
        tuples = self._tuples(keys)
        stepper = Stepper(self.compiled, tuples, nothing, last=last)
        read = zip(tables, codes[1:], strict=True)
        found = {each.key: each for t, c in read for each in self.store.read(t, c.tolist())}
        instances = self._by_key(found, keys)
        pauses = [min((t.at for t in each.timers if t.phase == ELAPSE), default=-FOREVER)
                  for each in instances]  # fmt: skip
        with suppress(ParkedError):
            for instance, pause in zip(instances, pauses, strict=True):
                stepper.fire(instance, pause if last is None else min(pause, last - 1))
            for phase in (NAMED, ELAPSE + 1) if last is not None else ():
                for instance, pause in zip(instances, pauses, strict=True):
                    if last is not None and pause >= last:
                        stepper.fire(instance, last, phase)
        return self._emissions(stepper.emissions, keys, nothing)

    def next_due(self, carried: Carried) -> int | None:
        """The watermark at which something happens though nothing arrives."""
        return earliest([self.store.own(carried.tables).due])

    @property
    def without_table(self) -> bool:
        """Whether the script has more states than are kept, and goes on more slowly."""
        return self.compiled.machine.full

    def _until(self, batch: Batch, watermark: int) -> Batch:
        """What is not before the activation, up to a watermark."""
        first = int(np.searchsorted(batch.time, self._activation))
        end = int(np.searchsorted(batch.time, watermark, side="right"))
        return batch if end - first == len(batch) else batch.take(np.arange(first, end))

    def _step(
        self,
        carried: Carried,
        batches: Mapping[str, Batch],
        watermark: int,
        limit: int | None,
        parked: bool,
        shelf: Shelf | None,
        count: int | None,
    ) -> ScriptStepped:
        """A step that goes so far; `parked`: up to a transition that runs away at the watermark."""
        arrivals = self.inputs.read(batches)
        own = self.store.own(carried.tables)
        wanted = self.store.wanted(own) if count is None else count
        touched = self._touched(own, arrivals, watermark, wanted)
        there = {self.store.name(partition): own[partition] for partition in touched}
        read = loaded(there, shelf)
        stored = [*map(self.store.keys, read.values())]
        codes, keys = _together(arrivals.key, stored, self._grouped)
        arriving = np.zeros(len(arrivals), np.int32)
        if self._grouped:
            arriving = codes[0]
            if arrivals.every.any():
                arriving = np.where(arrivals.every, EVERY, arriving)
        tuples = self._tuples(keys)
        given = Given(arrivals, arriving, [*read.values()], codes[1:], keys, self.store)
        done = None
        table = self._table_for(len(arrivals))
        if table is not None and not parked:
            stepper = Stepper(self.compiled, tuples, arrivals, limit)
            done = self._run_compiled(table, given, stepper, watermark, wanted)
        if done is None:
            last = watermark if parked else None
            stepper = Stepper(self.compiled, tuples, arrivals, limit, last=last)
            done = self._interpret(given, stepper, watermark, wanted, parked)
        found, written = done
        new = {name: t for name, t in written.items() if not alike(read.get(name), t)}
        gone = frozenset(read.keys() - written.keys())
        left = Parts.of(carried.tables).with_(new, gone)
        return ScriptStepped(found, Carried(left, gone.union(new)), watermark, parked)

    def _touched(self, own: Group, arrivals: Arrivals, watermark: int, wanted: int) -> list[int]:
        """The partitions of carried instances to which something happens."""
        some = own.partitions
        if wanted == own.count > 1 and not arrivals.every.any():
            arriving = partitions(arrivals.key, own.count)
            some = np.intersect1d(some, np.union1d(arriving, own.waiting(watermark)))
        found: list[int] = some.tolist()
        return found

    def _table_for(self, count: int) -> Table | None:
        """The table of moves, where a bucket of so many events is not interpreted."""
        self._met += count
        if not self._compilable or count < COMPILED_MIN:
            return None
        if self._table is None and self._met >= COMPILED_AFTER * COMPILED_MIN:
            try:
                self._table = Table(self.compiled, self.inputs.symbols)
            except (UncompiledError, FullError):
                self._compilable = False
        return self._table

    def _run_compiled(
        self, table: Table, given: Given, stepper: Stepper, watermark: int, wanted: int
    ) -> Stepped | None:
        """The bucket on the kernel; None where it has to be interpreted."""
        try:
            bucket = Bucket(self.compiled, table, given, stepper)
            done = bucket.run(self._activation, watermark)
        except InterpretedError:
            return None
        except FullError:
            self._table, self._compilable = None, False
            return None
        columns = given.keys.values(done.key)
        written = self.store.parts(
            columns, done.columns, done.previous, done.due, done.timers, wanted
        )
        return done.emissions, written

    def _interpret(
        self, given: Given, stepper: Stepper, watermark: int, wanted: int, parked: bool
    ) -> Stepped:
        """The bucket event by event; `parked`: up to a transition that runs away at the
        watermark."""
        arrivals, keys = given.arrivals, given.keys
        instances: dict[int, Instance] = {}
        for table, code in zip(given.tables, given.codes, strict=True):
            instances |= {each.key: each for each in self.store.read(table, code.tolist())}
        numbered = [*enumerate(self._rows(given))]
        try:
            if not self._grouped and not instances and self._activation <= watermark:
                instances[0] = stepper.start(0, self._activation)
            if parked:
                first = int(np.searchsorted(arrivals.time, watermark))
                stepper.take(instances, numbered[:first])
                self._last_instant(stepper, instances, numbered[first:], keys, watermark)
            else:
                stepper.take(instances, numbered)
                stepper.fire_all(instances.values(), watermark)
        except ParkedError:
            pass
        left = instances
        if self._grouped:
            left = {k: i for k, i in instances.items() if not stepper.expired(i, watermark)}
        written = self._written([left[key] for key in sorted(left)], keys, arrivals, wanted)
        return self._emissions(stepper.emissions, keys, arrivals), written

    def _rows(self, given: Given) -> Iterator[Row]:
        names = [*(name for _, name in self.inputs.symbols), None]
        arrivals = given.arrivals
        named = [names[symbol] for symbol in arrivals.symbol.tolist()]
        return zip(
            given.key.tolist(), arrivals.time.tolist(), named, arrivals.values(), strict=True
        )

    def _last_instant(
        self,
        stepper: Stepper,
        instances: dict[int, Instance],
        rows: Iterable[tuple[int, Row]],
        keys: Keys,
        now: int,
    ) -> None:
        """The instant at which a transition runs away. Nothing happens after it."""
        stepper.fire_all(instances.values(), now - 1)
        ordered = self._by_key(instances, keys)
        for instance in ordered:
            stepper.fire(instance, now, NAMED)
        stepper.take(instances, rows, lambda: self._by_key(instances, keys))
        for instance in ordered:
            stepper.fire(instance, now)

    def _by_key(self, instances: Mapping[int, Instance], keys: Keys) -> list[Instance]:
        """Instances in the order of their keys."""
        if len(instances) < 2:
            return [*instances.values()]
        code = np.array([*instances], np.int32)
        return [instances[each] for each in code[np.argsort(keys.ranks(code))].tolist()]

    def _tuples(self, keys: Keys) -> list[tuple[Any, ...]]:
        """The values of each key by code, if the script reads them."""
        if not self._reads_key:
            return [()] * (keys.count + 1)
        kinds = self.script.program.key_types
        columns = [values_of(c, kind) for c, kind in zip(keys.columns, kinds, strict=True)]
        return [(), *zip(*columns, strict=True)]

    # columns -----------------------------------------------------------------------------------

    def _written(
        self, instances: Sequence[Instance], keys: Keys, arrivals: Arrivals, count: int
    ) -> dict[str, pa.Table]:
        cause, depth = _identities(
            [each.cause for each in instances], [each.depth for each in instances], arrivals
        )
        columns = keys.values(np.array([each.key for each in instances], np.int32))
        return self.store.write(instances, columns, cause, depth, count)

    def _emissions(self, found: Emitted, keys: Keys, arrivals: Arrivals) -> Emissions:
        """By time, at one instant by key; those of one key in their order."""
        outputs = self.script.program.outputs
        time, key = np.array(found.time, np.int64), np.array(found.key, np.int32)
        code, number = np.array(found.output, np.int16), np.array(found.number, np.int32)
        cause, depth = _identities(found.cause, found.depth, arrivals)
        value = found.value
        if self._grouped:
            order = np.lexsort((keys.ranks(key), time))
            time, key, code, number = time[order], key[order], code[order], number[order]
            cause, depth = cause[order], depth[order]
            value = [value[place] for place in order.tolist()]
        code[code == ERROR] = len(outputs)
        row = np.zeros(len(found), np.int64)
        values = {}
        for n, (name, kind) in enumerate([*outputs.items(), (ERROR_NAME, ERROR_TYPE)]):
            mine = np.flatnonzero(code == n)
            if len(mine):
                row[mine] = np.arange(len(mine))
                own = value if len(mine) == len(value) else [value[i] for i in mine.tolist()]
                values[name] = output_column(own, kind)
        return Emissions(
            self.script.name,
            pa.table(dict(zip(self.script.program.key_names, keys.values(key), strict=True))),
            time,
            code,
            row,
            (*outputs, ERROR_NAME),
            values,
            cause,
            depth,
            number,
        )


def _together(
    arriving: Sequence[pa.Array], stored: Sequence[Sequence[pa.ChunkedArray]], grouped: bool
) -> tuple[list[npt.NDArray[np.int32]], Keys]:
    """The key codes of what arrives and of each carried table. Without a group there is one key,
    0."""
    if not grouped:
        return [np.zeros(1, np.int32) for _ in (arriving, *stored)], NO_KEYS
    return encode([[pa.chunked_array([column]) for column in arriving], *stored])


def _identities(
    causes: Sequence[Cause], depths: Sequence[int], arrivals: Arrivals
) -> tuple[UInt64, npt.NDArray[np.int32]]:
    """Causes as ids uint64[n, 2], and their depths."""
    number = np.array([c if isinstance(c, int) else -1 for c in causes], np.int64)
    ids, depth = np.empty((len(number), 2), np.uint64), np.array(depths, np.int32)
    arrived = number >= 0
    ids[arrived] = arrivals.ids[number[arrived]]
    depth[arrived] = arrivals.depth[number[arrived]]
    for place in np.flatnonzero(~arrived).tolist():
        ids[place] = causes[place]
    return ids, depth
