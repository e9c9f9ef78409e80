"""Detections as JSON lines (`language.md` 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import IO

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.values import Batch, Detections, Int64
from tidegate.engine.replay import times
from tidegate.engine.replay.json_values import ENCODED, LINE, decode
from tidegate.rules.model import Rulebook, SignalEvent

_AT_ONCE = 20_000
"""Detections whose text is made at once."""
_NONE: Mapping[str, pa.StringArray] = {}
_UNASKED = b',"condition":"unasked"'
_BYTES, _TEXT = pa.large_binary(), pa.large_string()
_HEAD = r'^\{"event": ?"[^"]*", ?"time": ?(?:"[^"]*"|[-+.\deE]+)'
_VALUE = r'(?:"(?:[^"\\: ]|[^"\\:][^"\\]*[^"\\ ])?"|[-+.\deE]+|null|true|false)'
_PLAIN = _HEAD + r'(?:, ?"[^"\\:,]+": ?' + _VALUE + r")*\}$"
"""A line that begins with its event and time, where `": ` and `, "` are never inside a string."""
_numbers_as_written = json.JSONDecoder(parse_float=orjson.Fragment, parse_int=orjson.Fragment)


class Printer:
    """Writes the detections of one step after another. `iso`: times as ISO 8601. Those of rules
    whose `if` or hysteresis a simulation does not ask are marked."""

    def __init__(self, book: Rulebook, iso: bool) -> None:
        self._iso = iso
        self._unasked = {
            name
            for name, rule in book.rules.items()
            if rule.condition is not None or (rule.damping and rule.damping.hysteresis)
        }
        self._declared = {
            name: tuple(event.fields) if isinstance(event, SignalEvent) else ()
            for name, event in book.events.items()
        }

    def write(
        self,
        found: Sequence[Detections],
        out: IO[bytes],
        damped: Mapping[str, pa.StringArray] = _NONE,
        emitted: Sequence[tuple[Int64, pa.Array]] = (),
        outcomes: Mapping[str, pa.StringArray] = _NONE,
    ) -> None:
        """One step's detections in order of end, rule, key, start, constituents; each rule's are
        in that order already. `damped`: by rule, what drops each of its detections, or null.
        `outcomes`: by rule, those of its `if`, where it was asked.
        `emitted`: instants and lines of what scripts emit, before detections of the instant."""
        rules = sorted(found, key=lambda detections: detections.rule)
        ends = [*(time for time, _ in emitted), *(each.end for each in rules)]
        if not ends:
            return
        order = np.argsort(np.concatenate(ends), kind="stable")
        owner = np.repeat(np.arange(len(ends)), [len(each) for each in ends])[order]
        first = [0] * len(ends)
        for begin in range(0, len(order), _AT_ONCE):
            mine = owner[begin : begin + _AT_ONCE]
            parts = []
            for number, count in zip(*np.unique(mine, return_counts=True), strict=True):
                begun, first[number] = first[number], first[number] + int(count)
                if number < len(emitted):
                    parts.append(emitted[number][1].slice(begun, int(count)))
                else:
                    detections = rules[number - len(emitted)]
                    rule = detections.rule
                    marks = [_mark("damped", damped.get(rule), begun, first[number])]
                    marks.append(_mark("condition", outcomes.get(rule), begun, first[number]))
                    if rule in self._unasked and rule not in outcomes:
                        marks.append(_UNASKED)
                    parts.append(self._lines(detections, begun, first[number], marks))
            place = np.empty(len(mine), dtype=np.int64)
            place[np.argsort(mine, kind="stable")] = np.arange(len(mine))
            texts = pa.concat_arrays(parts)
            texts = texts if len(parts) == 1 else texts.take(pa.array(place))
            out.write(b"".join(texts.to_pylist()))

    def _lines(
        self, found: Detections, first: int, last: int, marks: Sequence[pa.Array | bytes]
    ) -> pa.Array:
        """The texts of the detections first .. last. `marks`: what damping and conditions say."""
        offsets = found.offsets[first : last + 1]
        code = found.event_code[offsets[0] : offsets[-1]]
        row = found.event_row[offsets[0] : offsets[-1]]
        texts, place, made = [], np.empty(len(row), dtype=np.int64), 0
        for number, event in enumerate(found.events):
            mine = np.flatnonzero(code == number)
            if len(mine):  # each occurrence is written once
                used, at = np.unique(row[mine], return_inverse=True)
                texts.append(self._texts(found.batches[event], used))
                place[mine] = made + at
                made += len(used)
        entries = pa.concat_arrays(texts) if texts else pa.array([], _BYTES)
        lists = pa.LargeListArray.from_arrays(
            pa.array(offsets - offsets[0]), entries.take(pa.array(place))
        )
        return _joined(
            b'{"rule":' + json.dumps(found.rule, ensure_ascii=False).encode() + b',"key":',
            key_texts(found.keys.slice(first, last - first), last - first),
            b',"start":',
            times.printed(found.start[first:last], iso=self._iso),
            b',"end":',
            times.printed(found.end[first:last], iso=self._iso),
            b',"constituents":[',
            pc.binary_join(lists, pa.scalar(b",", _BYTES)),
            b"]",
            *marks,
            b"}\n",
        )

    def _texts(self, batch: Batch, index: Int64) -> pa.Array:
        """The JSON texts of some occurrences."""
        fields: pa.Array | bytes = b"}"  # clock occurrences
        if LINE in batch.table.column_names:
            lines = batch.table.column(LINE).take(pa.array(batch.row[index])).cast(_TEXT)
            fields = _fields(lines.combine_chunks(), self._declared.get(batch.event, ()))
        return _joined(
            b'{"event":' + json.dumps(batch.event, ensure_ascii=False).encode() + b',"time":',
            times.printed(batch.time[index], iso=self._iso),
            fields,
        )


def _fields(lines: pa.Array, declared: Sequence[str]) -> pa.Array:
    """`,"name":value` for each field of a line but event and time, in order, numbers as they are
    written (50.00 stays so); then the declared ones that it lacks; and the closing brace."""
    plain = pc.match_substring_regex(lines, _PLAIN)
    texts = pc.replace_substring(pc.replace_substring(lines, '": ', '":'), ', "', ',"')
    texts = pc.replace_substring_regex(texts, _HEAD, "", max_replacements=1)
    plain = pc.and_not(plain, pc.match_substring_regex(texts, '"(?:event|time)":'))
    for name in declared:
        plain = pc.and_(plain, pc.match_substring(texts, f'"{name}":'))
    odd = pc.invert(plain)
    others = [_fields_of(line, declared) for line in lines.filter(odd).to_pylist()]
    return pc.replace_with_mask(texts, odd, pa.array(others, _TEXT)) if others else texts


def _fields_of(line: str, declared: Sequence[str]) -> str:
    """`_fields` of any line."""
    fields = _numbers_as_written.decode(line)
    del fields["event"], fields["time"]
    fields |= {name: None for name in declared if name not in fields}
    return "," + orjson.dumps(fields).decode()[1:] if fields else "}"


def _mark(name: str, said: pa.StringArray | None, first: int, last: int) -> pa.Array | bytes:
    """`,"name":"word"` for the detections first .. last; nothing where there is no word."""
    if said is None:
        return b""
    words = said.slice(first, last - first)
    return pc.fill_null(pc.binary_join_element_wise(f',"{name}":"', words, '"', ""), "")


def key_texts(keys: pa.Table, count: int) -> pa.Array:
    """The JSON text of each of `count` rows of keys."""
    if not keys.num_columns:
        return pa.repeat(pa.scalar(b"{}", _BYTES), count)
    parts: list[pa.Array | bytes] = []
    for name, column in zip(keys.column_names, keys.columns, strict=True):
        parts += [b"," if parts else b"{", json.dumps(name).encode() + b":"]
        parts.append(_values(column.combine_chunks()))
    return _joined(*parts, b"}")


def _values(column: pa.Array) -> pa.Array:
    if pa.types.is_integer(column.type):
        return pc.fill_null(column.cast(pa.string()), "null")
    coded = column.dictionary_encode(null_encoding="encode")
    values = coded.dictionary.to_pylist()
    values = [decode(value) for value in values] if column.type == ENCODED else values
    texts = [json.dumps(v, ensure_ascii=False, separators=(",", ":")) for v in values]
    return pa.array(texts, pa.string()).take(coded.indices)


def _joined(*parts: pa.Array | bytes) -> pa.Array:
    """The texts of some columns side by side."""
    columns = [pa.scalar(p, _BYTES) if isinstance(p, bytes) else p.cast(_BYTES) for p in parts]
    return pc.binary_join_element_wise(*columns, pa.scalar(b"", _BYTES))
