"""The scripts of a rulebook in simulated time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from tidegate.engine.detector.detector import Detector
from tidegate.engine.moments import micros_text
from tidegate.engine.replay import json_values, script_values
from tidegate.engine.replay.json_values import ENCODED, LINE
from tidegate.engine.replay.printing import key_texts
from tidegate.engine.script.book import in_order, script_of, sources_of, taken_rules
from tidegate.engine.script.doubts import check_machines
from tidegate.engine.script.emissions import Emissions
from tidegate.engine.script.run import Runner
from tidegate.engine.scriptinputs import DETECTED, STARTED
from tidegate.engine.values import FOREVER, Batch, Carried, Detections
from tidegate.rules import model

Through = Callable[[pa.Table], pa.Table]


@dataclass(slots=True)
class _Running:
    script: model.Script
    runner: Runner
    carried: Carried
    rules: Detector | None  # detects the rules that it takes
    carried_by_rules: Carried
    parked: bool = False


class Scripts:
    """Runs the scripts of a rulebook from `activation` on, each after those whose outputs it takes.

    `keys`: the types of the key fields of rules. A rule that a script takes is detected here once
    more, ahead of all others. Raises `InputError` where a `machine: dfa` is too large.
    """

    def __init__(
        self, book: model.Rulebook, activation: int, keys: Mapping[str, pa.DataType]
    ) -> None:
        check_machines(book)
        self._book = book
        self._keys = keys
        self._running = [
            _Running(
                script,
                Runner(script_of(book, script), activation, sources_of(book, script), json_values),
                Carried(),
                Detector(own, dict.fromkeys(own.rules, activation), json_values) if own else None,
                Carried(),
            )
            for script in in_order(book)
            for own in [taken_rules(book, script)]
        ]

    def step(self, arrived: Mapping[str, Batch], watermark: int) -> Found:
        """What all scripts emit in one bucket, of occurrences by event type."""
        found = Found({}, {})
        for each in self._running:
            detected = self._detected(each, arrived, found, watermark)
            if not each.parked:
                given = self._inputs(each.script, {**arrived, **detected}, found.raw)
                step = each.runner.step(each.carried, given, watermark)
                each.carried, each.parked = step.carried, step.parked
                self._add(found, each.script, step.emissions)
        return found

    def finish(self) -> Found:
        """What they emit after the last line, once what an instance waits for has run out."""
        found = Found({}, {})
        for each in self._running:
            detected = self._detected(each, {}, found, FOREVER)
            given = self._inputs(each.script, detected, found.raw)
            if each.parked:
                continue
            if given:
                last = max(int(batch.time[-1]) for batch in given.values())
                step = each.runner.step(each.carried, given, last)
                each.carried = step.carried
                self._add(found, each.script, step.emissions)
            self._add(found, each.script, each.runner.finish(each.carried))
        return found

    def through(self, through: Through) -> None:
        """Put what is carried through a function."""
        for each in self._running:
            each.carried = Carried({n: through(t) for n, t in each.carried.tables.items()})
            rules = {n: through(t) for n, t in each.carried_by_rules.tables.items()}
            each.carried_by_rules = Carried(rules)

    def warnings(self) -> Iterator[str]:
        """What is doubtful about how the scripts have run."""
        for each in self._running:
            if each.runner.without_table:
                most = self._book.settings.script_states_max
                yield (
                    f"script {each.script.name} has more than {most:,} states"
                    " (setting script_states_max): it goes on without a table of them, more slowly"
                )

    def _detected(
        self, each: _Running, arrived: Mapping[str, Batch], found: Found, watermark: int
    ) -> dict[str, Batch]:
        """What the rules detect that a script takes, as lines of a trace."""
        if each.rules is None:
            return {}
        given = {**arrived, **self.shown(found)}
        last = max((int(batch.time[-1]) for batch in given.values()), default=0)
        detections, each.carried_by_rules, _ = each.rules.step(
            each.carried_by_rules, given, watermark, last if watermark == FOREVER else None
        )
        return {d.rule: _lines_of(d) for d in detections}

    def _inputs(
        self, script: model.Script, arrived: Mapping[str, Batch], emitted: Mapping[str, Batch]
    ) -> dict[str, Batch]:
        """The batches of a script's inputs, by the input's name."""
        found = {}
        for each in script.program.inputs:
            taken = script.inputs[each.name]
            if taken.event in emitted:
                found[each.name] = emitted[taken.event]
            elif taken.event in arrived and isinstance(
                self._book.events.get(taken.event), model.ClockEvent
            ):
                found[each.name] = arrived[taken.event]
            elif taken.event in arrived:
                batch = arrived[taken.event]
                table = batch.table.take(pa.array(batch.row))
                lines = table.column(LINE).to_pylist()
                values = script_values.table_of(each, taken, lines)
                found[each.name] = _rows(batch, values)
        return found

    def _add(self, found: Found, script: model.Script, emissions: Emissions) -> None:
        """Add what a script emits, also as occurrences of event types."""
        if not len(emissions):
            return
        found.emissions.setdefault(script.name, []).append(emissions)
        for output, event in script.outputs.items():
            batch = emissions.batch(output, event)
            if batch is not None:
                before = found.raw.get(event)
                found.raw[event] = batch if before is None else _joined(before, batch)

    def shown(self, found: Found) -> dict[str, Batch]:
        """What scripts emit as lines of a trace, for rules."""
        return {event: self._as_lines(event, batch) for event, batch in found.raw.items()}

    def _as_lines(self, event: str, batch: Batch) -> Batch:
        rows = script_values.rows_of(_taken(batch))
        lines = [
            orjson.dumps({"event": event, "time": t / 1_000_000, **row})
            for t, row in zip(batch.time.tolist(), rows, strict=True)
        ]
        columns: dict[str, pa.Array] = {LINE: pa.array(lines, pa.binary())}
        for name, kind in self._keys.items():
            column = json_values.column([row.get(name) for row in rows])
            table = pa.table({name: column})
            columns[name] = (
                json_values.typed(table, {name: kind}).column(name).combine_chunks()
                if kind == ENCODED
                else column
            )
        return Batch(event, batch.time, batch.row, pa.table(columns), batch.ids, batch.depth)


@dataclass(slots=True)
class Found:
    """What scripts emit in one bucket: by script, and as occurrences by event type."""

    emissions: dict[str, list[Emissions]]
    raw: dict[str, Batch]

    def __len__(self) -> int:
        return sum(len(each) for parts in self.emissions.values() for each in parts)

    def texts(self, book: model.Rulebook, *, iso: bool) -> Iterator[tuple[Any, pa.Array]]:
        """The instants and lines of each script's emissions, by the script's name."""
        for name in sorted(self.emissions):
            for each in self.emissions[name]:
                yield each.time, script_values.lines_of(each, book.scripts[name], iso=iso)


def _rows(batch: Batch, table: pa.Table) -> Batch:
    """The occurrences of a batch, whose rows in turn are those of `table`."""
    return Batch(batch.event, batch.time, np.arange(len(batch)), table, batch.ids, batch.depth)


def _taken(batch: Batch) -> pa.Table:
    """The rows of a batch, in its order. A table without columns has rows, too, which Arrow's
    `take` drops."""
    if batch.table.num_columns:
        return batch.table.take(pa.array(batch.row))
    return pa.table({"": pa.nulls(len(batch))}).select([])


def _lines_of(found: Detections) -> Batch:
    """A rule's detections as lines: their key, `started_at` and `detected_at`."""
    keys = key_texts(found.keys)
    texts = [b"{}"] * len(found) if isinstance(keys, bytes) else keys.to_pylist()
    lines = [
        orjson.dumps(
            {**orjson.loads(key), STARTED: micros_text(a) + "Z", DETECTED: micros_text(b) + "Z"}
        )
        for key, a, b in zip(texts, found.start.tolist(), found.end.tolist(), strict=True)
    ]
    table = pa.table({LINE: pa.array(lines, pa.binary())})
    return Batch(found.rule, found.end, np.arange(len(found)), table)


def _joined(one: Batch, two: Batch) -> Batch:
    """One batch after the other, of a script that emits in two steps."""
    time = np.concatenate([one.time, two.time])
    table = pa.concat_tables([_taken(one), _taken(two)])
    return Batch(one.event, time, np.arange(len(time)), table)
