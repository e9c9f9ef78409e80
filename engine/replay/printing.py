"""Detections as JSON lines (`language.md` 4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
import orjson

from engine.replay import times
from engine.replay.json_values import LINE, decode
from engine.values import Batch, Detections, Int64
from rules.model import Rulebook, SignalEvent


class Printer:
    """Writes the detections of one step after another. `iso`: times as ISO 8601."""

    def __init__(self, book: Rulebook, iso: bool) -> None:
        self._iso = iso
        self._declared = {
            name: tuple(event.fields) if isinstance(event, SignalEvent) else ()
            for name, event in book.events.items()
        }

    def write(self, found: Sequence[Detections], out: IO[bytes]) -> None:
        """One step's detections in order of end, rule, key, start, constituents; each rule's are
        in that order already."""
        rules = sorted(found, key=lambda detections: detections.rule)
        if not rules:
            return
        end = np.concatenate([detections.end for detections in rules])
        lines = [line for detections in rules for line in self._lines(detections)]
        out.write("".join(lines[i] for i in np.argsort(end, kind="stable")).encode())

    def _lines(self, found: Detections) -> list[str]:
        constituents = np.empty(len(found.event_row), dtype=object)
        for code, event in enumerate(found.events):
            mine = found.event_code == code
            if mine.any():
                constituents[mine] = self._texts(found.batches[event], found.event_row[mine])
        entries: list[str] = constituents.tolist()
        offsets = found.offsets.tolist()
        rule = json.dumps(found.rule, ensure_ascii=False)
        lines = []
        for i, key in enumerate(_keys(found)):
            start = times.printed(int(found.start[i]), self._iso)
            end = times.printed(int(found.end[i]), self._iso)
            inside = ",".join(entries[offsets[i] : offsets[i + 1]])
            lines.append(
                f'{{"rule":{rule},"key":{key},"start":{start},"end":{end},'
                f'"constituents":[{inside}]}}\n'
            )
        return lines

    def _texts(self, batch: Batch, index: Int64) -> list[str]:
        """The JSON text of some occurrences; each is made once."""
        used, place = np.unique(index, return_inverse=True)
        if LINE not in batch.table.column_names:  # clock occurrences
            lines = [b""] * len(used)
        else:
            lines = batch.table.column(LINE).take(batch.row[used]).to_pylist()
        declared = self._declared.get(batch.event, ())
        event = json.dumps(batch.event)
        made = []
        for line, time in zip(lines, batch.time[used].tolist(), strict=True):
            head = f'{{"event":{event},"time":{times.printed(time, self._iso)}'
            fields = _fields(line)
            fields |= {name: None for name in declared if name not in fields}
            rest = orjson.dumps(fields).decode()
            made.append(f"{head},{rest[1:]}" if fields else head + "}")
        return np.array(made, dtype=object)[place].tolist()  # type: ignore[no-any-return]


def _fields(line: bytes) -> dict[str, Any]:
    """The parameters of a line, numbers with a point as they are written (50.00 stays so)."""
    if not line:
        return {}
    fields = orjson.loads(line)
    if any(isinstance(value, float) for value in fields.values()):
        fields = json.loads(line, parse_float=lambda text: orjson.Fragment(text.encode()))
    del fields["event"], fields["time"]
    return fields  # type: ignore[no-any-return]


def _keys(found: Detections) -> list[str]:
    """The JSON text of each detection's key."""
    if not found.keys.num_columns:
        return ["{}"] * len(found)
    columns = []
    for name in found.keys.column_names:
        coded = found.keys.column(name).combine_chunks().dictionary_encode()
        prefix = json.dumps(name) + ":"
        texts = [
            prefix + orjson.dumps(decode(code)).decode() for code in coded.dictionary.to_pylist()
        ]
        columns.append([texts[i] for i in coded.indices.to_pylist()])
    return ["{" + ",".join(parts) + "}" for parts in zip(*columns, strict=True)]
