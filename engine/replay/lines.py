"""The lines of a trace, read and checked one by one."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from engine.replay import times
from engine.replay.json_values import LINE, encode
from rules.errors import InputError, Place, Problem
from rules.model import Change, ClockEvent, Rulebook, TableEvent

PROBLEMS_MAX = 20
_KEYS_REMEMBERED = 100_000


class Lines:
    """One pass over a trace. `iso` and what is wrong are known once it has been read."""

    def __init__(self, path: Path, book: Rulebook, until: int | None) -> None:
        self._path = path
        self._book = book
        self._until = until
        self.events = tuple(n for n, e in book.events.items() if not isinstance(e, ClockEvent))
        self._codes = {event: code for code, event in enumerate(self.events)}
        self._keys = {event: _key_fields(book, event) for event in self.events}
        self._shift = {
            n: 1
            for n, e in book.events.items()
            if isinstance(e, TableEvent) and e.change is Change.TRANSACTION
        }
        self._problems: list[Problem] = []
        self._number_times: bool | None = None

    @property
    def iso(self) -> bool:
        """Are the times ISO 8601 text?"""
        return self._number_times is False

    def chunks(self, size: int) -> Iterator[pa.Table]:
        """The lines in their order, `size` a table (the columns: `trace.Trace`); the last is
        smaller, or there is none. Raises `InputError` at the end, with the first lines wrong."""
        keys = sorted({field for fields in self._keys.values() for field in fields})
        columns: dict[str, list[Any]] = {n: [] for n in ("event", "time", LINE, *keys)}
        try:
            file = self._path.open("rb")
        except OSError as error:
            place = Place(str(self._path))
            message = f"the trace cannot be read: {error.strerror}"
            raise InputError([Problem("trace-unreadable", message, place)]) from error
        with file:
            for number, line in enumerate(file, 1):
                try:
                    self._read(line.strip(), columns)
                except ValueError as error:
                    self._wrong(number, error)
                if len(columns["time"]) == size:
                    yield _table(columns)
                    columns = {name: [] for name in columns}
        if self._problems:
            raise InputError(self._problems)
        if columns["time"]:
            yield _table(columns)

    def _read(self, line: bytes, columns: dict[str, list[Any]]) -> None:
        if not line:
            return
        fields = orjson.loads(line)
        if not isinstance(fields, dict):
            raise _Wrong("not-an-object", "a line is one JSON object")
        event = fields.get("event")
        code = self._codes.get(event) if isinstance(event, str) else None
        if code is None or not isinstance(event, str):
            raise self._wrong_event(event, fields)
        time = self._time(fields, line) + self._shift.get(event, 0)
        if self._until is not None and time > self._until:
            return
        columns["event"].append(code)
        columns["time"].append(time)
        columns[LINE].append(line)
        for name in self._keys[event]:
            columns[name].append(encode(fields.get(name)))
        for name in columns.keys() - {"event", "time", LINE, *self._keys[event]}:
            columns[name].append(None)

    def _time(self, fields: dict[str, Any], line: bytes) -> int:
        value = fields.get("time")
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number and not isinstance(value, str):
            hint = 'give "time": seconds, or an ISO 8601 text'
            raise _Wrong("no-time", "the line has no time", hint)
        if self._number_times is None:
            self._number_times = number
        if number is not self._number_times:
            raise _Wrong("mixed-times", "a trace has either numbers or ISO 8601 times, not both")
        try:
            return times.of_number(value, line) if number else times.of_text(value)  # type: ignore[arg-type]
        except (ValueError, OverflowError) as error:
            raise _Wrong("time", f"{value!r} is no instant: {error}") from error

    def _wrong_event(self, event: Any, fields: dict[str, Any]) -> _Wrong:
        if "event" not in fields:
            return _Wrong("no-event", "the line has no event")
        if event in self._book.rules:
            return _Wrong("not-an-occurrence", f"{event} is a rule; a trace holds event types only")
        if event in self._book.events:
            return _Wrong("not-an-occurrence", f"{event} is a clock event; it happens by itself")
        near = get_close_matches(str(event), self.events, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(self.events)}"
        return _Wrong("unknown-event", f"unknown event {event!r}", hint)

    def _wrong(self, number: int, error: ValueError) -> None:
        place = Place(str(self._path), number)
        if isinstance(error, _Wrong):
            self._problems.append(Problem(error.code, str(error), place, error.hint))
        else:
            self._problems.append(Problem("bad-json", f"no JSON: {error}", place))
        if len(self._problems) == PROBLEMS_MAX:
            raise InputError(self._problems)


class _Wrong(ValueError):
    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


def _key_fields(book: Rulebook, event: str) -> tuple[str, ...]:
    """The fields of an event type that are in some rule's key."""
    columns = (rule.per.get(event, ()) for rule in book.rules.values())
    return tuple(dict.fromkeys(field for fields in columns for field in fields))


def _table(columns: dict[str, list[Any]]) -> pa.Table:
    types = {"event": pa.int32(), "time": pa.int64()}
    return pa.table({n: pa.array(v, types.get(n, pa.binary())) for n, v in columns.items()})
