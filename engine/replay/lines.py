"""The lines of a trace, read and checked block by block."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from tidegate.engine.core.event_names import action_edges, beginning, begun, edge_micros
from tidegate.engine.core.text.times import INSTANTS
from tidegate.engine.core.values import Int64
from tidegate.engine.replay import json_reader, times
from tidegate.engine.replay.changes import ChangeLines, is_change
from tidegate.engine.replay.json_reader import LineError, problems_of
from tidegate.engine.replay.json_values import ENCODED, EVENT, LINE, TIME, column
from tidegate.engine.replay.line_counts import LineCounts, kind_of, looks_like
from tidegate.engine.replay.line_types import (
    check_types,
    declared_fields,
    declared_signals,
    has_types,
)
from tidegate.rules.errors import InputError, Place, Problem, did_you_mean, nearest, word_place
from tidegate.rules.model import Change, ClockEvent, Rulebook, ScriptEvent, TableEvent
from tidegate.rules.sql.operations import ROWLESS

PROBLEMS_MAX = 20
FORMS_MAX = 10_000  # of lines, that are remembered
FIELDS_MAX = 100  # that are warned of
BLOCK_BYTES = 1 << 20
LAST = 2**62
_DOUBLES_ONLY = 2.0**63  # integers of this size and more may have been read as doubles


class Lines:
    """One pass over a trace. After the pass `iso`, the `first` and the `last` instant of a line,
    and the lines that are wrong are known. The line of a transaction gives its end, and its
    beginning if some rule looks at that.

    `progress` is called after each block with the number of lines read.
    """

    def __init__(
        self,
        path: Path,
        book: Rulebook,
        until: int | None,
        progress: Callable[[int], None],
        changes: ChangeLines,
    ) -> None:
        self._path = path
        self._changes = changes
        self._book = book
        self._until = until
        self._progress = progress
        names = [n for n, e in book.events.items() if not isinstance(e, ClockEvent | ScriptEvent)]
        names += action_edges(book)
        beginnings = begun(book)
        self.events = (*names, *map(beginning, beginnings))
        self.seen = LineCounts()
        self.first: int | None = None
        self.last: int | None = None
        self._codes = {event: code for code, event in enumerate(names)}
        self._edge = np.array([edge_micros(book, name) for name in names], dtype=np.int64)
        self._edged = bool(beginnings) or bool(self._edge.any())
        self._begins = np.full(len(names), -1, dtype=np.int32)
        self._begins[[names.index(name) for name in beginnings]] = np.arange(
            len(names), len(self.events)
        )
        self._transactions = [
            self._codes[name]
            for name, event in book.events.items()
            if isinstance(event, TableEvent) and event.change is Change.TRANSACTION
        ]
        self._keys = sorted(key_fields(book))
        self._typed, self._declared = declared_signals(book), declared_fields(book)
        self._checked = {self._codes[n]: e for n, e in self._typed.items() if has_types(e)}
        self._looked_up: set[int] = set()
        self._forms: set[tuple[str | int, ...]] = set()  # event and fields of lines that were seen
        self._time_types: tuple[type, ...] = ()
        self._problems: list[Problem] = []

    @property
    def iso(self) -> bool:
        """Are the times ISO 8601 text?"""
        return self._time_types == (str,)

    def blocks(self) -> Iterator[pa.Table]:
        """The lines in their order, a table about every `BLOCK_BYTES` (columns: `trace.Trace`).
        Raises `InputError` at the end, with the first lines wrong."""
        try:
            file = self._path.open("rb")
        except OSError as error:
            place = word_place(str(self._path))
            message = f"the trace cannot be read: {error.strerror}"
            raise InputError([Problem("trace-unreadable", message, place)]) from error
        number = 0
        with file:
            while lines := file.readlines(BLOCK_BYTES):
                if not number:
                    lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)
                texts = [*map(bytes.strip, lines)]
                numbers: Sequence[int] = range(number + 1, number + 1 + len(lines))
                if not all(texts):
                    numbers = [n for n, text in zip(numbers, texts, strict=True) if text]
                    texts = [*filter(None, texts)]
                yield from self._block(self._table, numbers, texts)
                number += len(lines)
                self._progress(number)
        self._stop_if_wrong()
        for numbers, texts in self._changes.kept():
            yield from self._block(self._of_changes, numbers, texts)
        self._stop_if_wrong()

    def _stop_if_wrong(self) -> None:
        if self._problems:
            raise InputError(self._problems[:PROBLEMS_MAX])

    def _block(
        self,
        read: Callable[[Sequence[int], Sequence[bytes]], pa.Table],
        numbers: Sequence[int],
        lines: Sequence[bytes],
    ) -> Iterator[pa.Table]:
        """What is read of lines: one by one, if one of them is wrong."""
        try:
            yield read(numbers, lines)
            return
        except (ValueError, InputError):
            pass
        for number, line in zip(numbers, lines, strict=True):
            try:
                yield read([number], [line])
            except (ValueError, InputError) as error:
                place = Place(str(self._path), number)
                self._problems += problems_of(line, error, place)
                if len(self._problems) >= PROBLEMS_MAX:
                    self._stop_if_wrong()

    def _table(self, numbers: Sequence[int], lines: Sequence[bytes]) -> pa.Table:
        """The occurrences of lines; their changes are kept. Raises `ValueError` where a line is
        wrong: about that line, if there is but one."""
        fields = [orjson.loads(line) for line in lines]
        try:
            code = np.array([self._codes[each["event"]] for each in fields], dtype=np.int32)
        except (LookupError, TypeError):
            changed = [is_change(each) for each in fields]
            if not any(changed):
                raise self._wrong_event(fields[0]) from None
            return self._mixed(numbers, lines, fields, changed)
        json_reader.check(lines, fields)
        if np.isin(code, self._transactions).any():
            self._check_transactions(code, fields)
        time = self._times(fields, lines)
        codes = set(code.tolist())
        self._look_up(codes)
        for number in self._checked.keys() & codes:
            mine = np.flatnonzero(code == number).tolist()
            event = self._checked[number]
            check_types(event, [fields[i] for i in mine], [lines[i] for i in mine], self._keys)
        table = self._rows(code, time, fields, lines)
        self._note_lines(time)
        table = self._in_time(table)
        return self._with_edges(table) if self._edged else table

    def _look_up(self, codes: set[int]) -> None:
        """Have the lines of event types of known tables checked, too."""
        for number in codes - self._looked_up:
            if found := self._changes.types_of(self.events[number]):
                self._checked[number] = found
        self._looked_up |= codes

    def _mixed(
        self,
        numbers: Sequence[int],
        lines: Sequence[bytes],
        fields: Sequence[dict[str, Any]],
        changed: Sequence[bool],
    ) -> pa.Table:
        """As `_table`, of lines among which there are changes."""
        texts, mine = [*compress(lines, changed)], [*compress(fields, changed)]
        json_reader.check(texts, mine, self._changes.checked(mine))
        time = self._times(mine, texts)
        events = [i for i, change in enumerate(changed) if not change]
        table = pa.table({})
        if events:
            table = self._table([numbers[i] for i in events], [lines[i] for i in events])
        self._note_lines(time)
        self._changes.keep([*compress(numbers, changed)], texts, mine)
        return table

    def _of_changes(self, _: Sequence[int], lines: Sequence[bytes]) -> pa.Table:
        """The occurrences of changes that were kept."""
        fields = [orjson.loads(line) for line in lines]
        time = self._times(fields, lines)
        if self._until is not None:
            early = (time <= self._until).tolist()
            lines, fields = [*compress(lines, early)], [*compress(fields, early)]
            time = time[early]
        found = self._changes.occurrences(lines, fields, time)
        if not found.lines:
            return pa.table({})
        every = {event: code for code, event in enumerate(self.events)}
        code = np.array([every[event] for event in found.events], np.int32)
        times = np.array(found.times, np.int64)
        return self._in_time(self._rows(code, times, found.fields, found.lines))

    def _rows(
        self,
        code: npt.NDArray[np.int32],
        time: Int64,
        fields: Sequence[dict[str, Any]],
        lines: Sequence[bytes],
    ) -> pa.Table:
        """Occurrences with their keys, which are counted."""
        keys = {name: [each.get(name) for each in fields] for name in self._keys}
        columns = {name: column(values) for name, values in keys.items()}
        for name, found in columns.items():
            if found.type == ENCODED:  # which a column of integers or strings alone is not
                _check_integers(name, keys[name], lines)
        self._count(code, keys)
        self._note_fields(code, fields)
        self._note_kinds(code, keys, columns)
        return pa.table({EVENT: code, TIME: time, LINE: pa.array(lines, pa.binary())} | columns)

    def _in_time(self, table: pa.Table) -> pa.Table:
        """The occurrences that are not after `until`."""
        if self._until is None:
            return table
        mask = table.column(TIME).to_numpy() <= self._until
        return table if mask.all() else table.filter(pa.array(mask))

    def _note_lines(self, time: Int64) -> None:
        """Counts lines, and notes the first and the last that are not after `until`."""
        self.seen.lines += len(time)
        if self._until is not None:
            early = time[time <= self._until]
            self.seen.later += len(time) - len(early)
            time = early
        if len(time):
            self.first = min(int(time.min()), LAST if self.first is None else self.first)
            self.last = max(int(time.max()), -LAST if self.last is None else self.last)

    def _check_transactions(
        self, code: npt.NDArray[np.int32], fields: Sequence[dict[str, Any]]
    ) -> None:
        """Refuses a commit that changes no row, as it is no transaction (G10)."""
        for number, each in zip(code.tolist(), fields, strict=True):
            if number not in self._transactions:
                continue
            operation = str(each.get("operation"))
            if operation in ROWLESS or each.get("changes_rows") is False:
                name = self.events[number]
                what = operation if operation in ROWLESS else "such a commit"
                message = f"{name} is on: transaction, and {what} changes no row"
                raise LineError("not-an-occurrence", message, "declare it on: commit")

    def _count(self, code: npt.NDArray[np.int32], keys: dict[str, list[Any]]) -> None:
        seen = self.seen
        for event, count in enumerate(np.bincount(code).tolist()):
            seen.of[self.events[event]] += count
        for key, values in keys.items():
            if None in values:
                lacking = code[[value is None for value in values]]
                for event, count in enumerate(np.bincount(lacking).tolist()):
                    seen.lacking[self.events[event], key] += count

    def _note_kinds(
        self,
        code: npt.NDArray[np.int32],
        keys: dict[str, list[Any]],
        columns: dict[str, pa.Array],
    ) -> None:
        """Notes one value of each kind. The values of a typed column are of one kind, so the first
        value of each event is enough."""
        firsts = np.unique(code, return_index=True)[1].tolist()
        for key, values in keys.items():
            alike = columns[key].type != ENCODED and not columns[key].null_count
            for place in firsts if alike else range(len(values)):
                if values[place] is not None:
                    known = self.seen.kinds.setdefault((self.events[code[place]], key), {})
                    known.setdefault(kind_of(values[place]), values[place])

    def _note_fields(self, code: npt.NDArray[np.int32], fields: Sequence[dict[str, Any]]) -> None:
        """Notes undeclared and missing fields. Lines with the same fields are looked at once."""
        forms = {(number, *each) for number, each in zip(code.tolist(), fields, strict=True)}
        for number, *given in sorted(forms - self._forms, key=str):
            names = {*map(str, given)} - {"event", "time"}
            self._note_form(self.events[int(number)], names)
        self._forms = forms if len(self._forms) > FORMS_MAX else self._forms | forms

    def _note_form(self, event: str, given: set[str]) -> None:
        typed, declared = self._typed.get(event), self._declared.get(event, ())
        extra = sorted(given - typed.fields.keys()) if typed is not None else []
        if len(self.seen.undeclared) < FIELDS_MAX:
            self.seen.undeclared.update((event, name) for name in extra)
        for name in declared if len(self.seen.missing) < FIELDS_MAX else ():
            if name not in given:
                meant = nearest(name, sorted(given.difference(declared))) or ""
                self.seen.missing.setdefault((event, name), meant)

    def _with_edges(self, table: pa.Table) -> pa.Table:
        """The occurrences of lines: their ends, and the beginnings that some rule looks at."""
        code, time = table.column(EVENT).to_numpy(), table.column(TIME).to_numpy()
        edge = self._edge[code]
        begin = np.flatnonzero(self._begins[code] >= 0)
        before = table.take(begin).set_column(0, EVENT, pa.array(self._begins[code[begin]]))
        before = before.set_column(1, TIME, pa.array(time[begin] - edge[begin]))
        whole = pa.concat_tables([before, table.set_column(1, TIME, pa.array(time + edge))])
        if self._until is None:
            return whole
        return whole.filter(pa.array(whole.column(TIME).to_numpy() <= self._until))

    def _times(self, fields: Sequence[dict[str, Any]], lines: Sequence[bytes]) -> Int64:
        values: list[Any] = [each.get("time") for each in fields]
        for type_ in dict.fromkeys(map(type, values)):
            if type_ not in (int, float, str):
                hint = 'give "time": seconds, or an ISO 8601 text'
                raise LineError("no-time", "the line has no time", hint)
            self._time_types = self._time_types or ((str,) if type_ is str else (int, float))
            if type_ not in self._time_types:
                message = "a trace has either numbers or ISO 8601 times, not both"
                raise LineError("mixed-times", message)
        try:
            if self.iso:
                return times.of_texts(values, self._book.timezone)
            return times.of_numbers(values, lines)
        except (ValueError, OverflowError) as error:
            if self.iso:
                raise LineError("time", f"{values[0]!r} is no instant", INSTANTS) from error
            unit = looks_like(values[0])
            hint = f"these look like {unit}: a number is seconds since the epoch" if unit else ""
            raise LineError("time", f"{values[0]!r} is no instant: {error}", hint) from error

    def _wrong_event(self, fields: Any) -> ValueError:
        """What is wrong with the event of a line."""
        if not isinstance(fields, dict):
            return LineError("not-an-object", "a line is one JSON object")
        if "event" not in fields:
            hint = f'give "event": {" or ".join(list(self._codes)[:3])}'
            if self._book.tables:
                hint += ', or "table" and "change"'
            return LineError("no-event", "the line has no event", hint)
        event = fields["event"]
        if not isinstance(event, str):
            message = f"the event of the line is {json.dumps(event)}, not a text"
            return LineError("no-event", message)
        if event in self._book.rules:
            why = "is a rule; a trace holds event types only"
        elif isinstance(self._book.events.get(event), ScriptEvent):
            why = "is what a script emits"
        elif event in self._book.events:
            why = "is a clock event; it happens by itself"
        else:
            hint = did_you_mean(event, self._codes)
            return LineError("unknown-event", f"unknown event {event!r}", hint)
        return LineError("not-an-occurrence", f"{event} {why}")


def _check_integers(name: str, values: Sequence[Any], lines: Sequence[bytes]) -> None:
    """Refuses integers past 64 bits. They are read as doubles, so different keys could be equal."""
    for value, line in zip(values, lines, strict=True):
        if not (isinstance(value, float) and abs(value) >= _DOUBLES_ONLY):
            continue
        if isinstance(number := json.loads(line).get(name), int):
            message = f"{name}: {number} has more than 64 bits, too many for a key"
            raise LineError("big-integer", message, "write it as text, in quotes")


def key_fields(book: Rulebook) -> dict[str, frozenset[str]]:
    """The fields in the keys of rules, and those by which rules recognise repetitions (`dedupe`).
    Each has the set of fields that it is compared with, itself included.

    Example: a rule with the keys `a by x` and `b by y` gives x and y, each with {x, y}.
    """
    found: dict[str, frozenset[str]] = {}
    for rule in book.rules.values():
        for fields in zip(*rule.pattern.per.values(), strict=True):
            together = frozenset(fields).union(*(found.get(name, ()) for name in fields))
            found |= dict.fromkeys(together, together)
    for rule in book.rules.values():
        dedupe = rule.damping.dedupe if rule.damping else None
        for name in dedupe.by if dedupe else ():
            found.setdefault(name, frozenset({name}))
    return found
