"""The scripts of a rulebook in simulated time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import orjson
import pyarrow as pa

from tidegate.engine.core.parameters import DETECTED, STARTED
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.times import micros_text, python_rows
from tidegate.engine.core.values import Batch, Detections, Int64
from tidegate.engine.detect.events.step.stratified_detector import Detect
from tidegate.engine.detect.inputs import Taking
from tidegate.engine.detect.pipeline import Flow, Pipeline
from tidegate.engine.detect.scripts.doubts import check_machines
from tidegate.engine.replay import json_values, script_values
from tidegate.engine.replay.detection_lines import key_texts
from tidegate.engine.replay.json_values import ENCODED, LINE
from tidegate.rules import model
from tidegate.rules.eventscript import tree

Through = Callable[[pa.Table], pa.Table]


class Scripts:
    """Runs the scripts of a rulebook from `activation` on. `keys`: the types of the key fields of
    rules. Raises `InputError` where a `machine: dfa` is too large."""

    def __init__(
        self, book: model.Rulebook, activation: int, keys: Mapping[str, pa.DataType]
    ) -> None:
        check_machines(book)
        self._book = book
        starts = dict.fromkeys([*book.scripts, *book.rules], activation)
        self._pipeline = Pipeline(book, starts, _LineTaking(book, keys))
        self._tables: Mapping[str, pa.Table] = {}
        self._parked: set[str] = set()

    def step(self, arrived: Mapping[str, Batch], watermark: int, detect: Detect) -> Flow:
        """What all scripts do in one bucket, of occurrences by event type. `detect` steps the
        rules between them."""
        found = self._pipeline.step_whole(self._tables, arrived, watermark, detect, self._parked)
        self._tables = found.tables
        self._parked |= found.parked.keys()
        return found

    def finish(self, detect: Detect) -> Flow:
        """What they do after the last line."""
        return self._pipeline.finish(self._tables, self._parked, detect)

    def through(self, through: Through) -> None:
        """Put what is carried through a function."""
        self._tables = {name: through(table) for name, table in self._tables.items()}

    def warnings(self) -> Iterator[str]:
        """What is doubtful about how the scripts have run."""
        for name in self._pipeline.without_table:
            yield (
                f"script {name} has more than {self._book.settings.script_states_max:,} states"
                " (setting script_states_max): it goes on without a table of them, more slowly"
            )


def texts(found: Flow, book: model.Rulebook, *, iso: bool) -> list[tuple[Int64, pa.Array]]:
    """The instants and lines of each script's emissions, by the script's name."""
    return [
        (each.time, script_values.lines_of(each, book.scripts[each.script], iso=iso))
        for each in sorted(found.emissions, key=lambda each: each.script)
    ]


class _LineTaking(Taking):
    """Of the lines of a trace."""

    ranking = json_values

    def __init__(self, book: model.Rulebook, keys: Mapping[str, pa.DataType]) -> None:
        super().__init__(book)
        self._keys = keys
        self._zone = book.timezone

    def take(self, script: model.Script, read: tree.Input, batch: Batch) -> Batch:
        """What a script has emitted, and a clock's occurrences, are no lines."""
        if LINE not in batch.table.column_names:
            return batch
        lines = batch.table.column(LINE).take(pa.array(batch.row)).to_pylist()
        values = script_values.table_of(read, script.inputs[read.name], lines, self._zone)
        return Batch(batch.event, batch.time, np.arange(len(batch)), values, batch.ids, batch.depth)

    def detected(self, found: Detections) -> Batch:
        """As lines: the key, `started_at` and `detected_at`."""
        texts = key_texts(found.keys, len(found)).to_pylist()
        lines = [
            orjson.dumps(
                {**orjson.loads(key), STARTED: micros_text(a) + "Z", DETECTED: micros_text(b) + "Z"}
            )
            for key, a, b in zip(texts, found.start.tolist(), found.end.tolist(), strict=True)
        ]
        table = pa.table({LINE: pa.array(lines, pa.binary())})
        return Batch(found.rule, found.end, np.arange(len(found)), table)

    def shown(self, emitted: Batch) -> Batch:
        """As lines, with the keys of rules as columns."""
        rows = [json_text.value(row, stored=True) for row in python_rows(emitted.table)]
        lines = [
            orjson.dumps({"event": emitted.event, "time": t / 1_000_000, **row})
            for t, row in zip(emitted.time.tolist(), rows, strict=True)
        ]
        columns: dict[str, pa.Array] = {LINE: pa.array(lines, pa.binary())}
        for name, kind in self._keys.items():
            make = json_values.encoded if kind == ENCODED else json_values.column
            columns[name] = make([row.get(name) for row in rows])
        table = pa.table(columns)
        return Batch(emitted.event, emitted.time, emitted.row, table, emitted.ids, emitted.depth)
