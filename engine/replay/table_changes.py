"""Makes occurrences of the changes of one table: by kind, `of`, `where` and `time`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from tidegate.engine.capture.event_time import timed
from tidegate.engine.core.evaluator.nodes import UndecidedError
from tidegate.engine.core.event_names import beginning
from tidegate.engine.core.parameters import CHANGE_TYPE, OLD
from tidegate.engine.core.values import Int64
from tidegate.engine.replay.change_types import Asked, ColumnTypes
from tidegate.engine.replay.json_reader import LineError
from tidegate.engine.replay.line_types import OF_THE_LINE, TAKEN
from tidegate.rules.model import Change, Table, TableEvent

_OTHERWISE = re.compile(rb"\.\d+0(?!\d)|\d[eE]|\d{16}|\.0000")  # numbers that Python writes so
_as_written = json.JSONDecoder(parse_float=orjson.Fragment, parse_int=orjson.Fragment)

Row = dict[str, Any]


@dataclass(slots=True)
class Occurrences:
    """Occurrences of changes, an entry of each list for one: its event type, instant, fields, and
    the text of its line."""

    events: list[str] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    fields: list[Row] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)

    def append(self, event: str, time: int, shown: Row, said: Row) -> None:
        """Add one. `said`: its fields, with numbers as they are written."""
        self.events.append(event)
        self.times.append(time)
        self.fields.append(shown)
        self.lines.append(orjson.dumps(said))


class _Change(NamedTuple):
    """A change of the line number `at`: the row stands under `part` of the line. `paired`: the row
    before it under `old`."""

    at: int
    kind: str
    part: str
    paired: bool = False


def _images(change: _Change, line: Row) -> tuple[Row, Row | None]:
    """The row, and the row before it, if there is one."""
    return line[change.part], line["old"] if change.paired else None


class TableChanges:
    """The event types of one table. `begun`: the event types whose beginning some rule names.
    `rejected`: counts rows by event type and reason."""

    def __init__(
        self,
        table: Table,
        types: ColumnTypes,
        begun: Collection[str],
        rejected: Counter[tuple[str, str]],
    ) -> None:
        self._table = table
        self._types = types
        self._begun = begun
        self._rejected = rejected

    def add(
        self,
        found: Occurrences,
        places: Sequence[int],
        lines: Sequence[bytes],
        fields: Sequence[Row],
        commits: Int64,
    ) -> None:
        """Add the occurrences of the lines at `places`. Raises LineError or InputError for the
        first that is wrong."""
        mine = [fields[at] for at in places]
        texts = [lines[at] for at in places]
        changes = list(self._changes(mine))
        exact: Sequence[Row] = self._types.exact(texts) or mine
        images = [_images(one, exact[one.at]) for one in changes]
        olds = [{} if old is None else old for _, old in images]
        columns = self._types.columns([row for row, _ in images], olds)
        kinds = np.array([one.kind for one in changes])
        instants = commits[places][[one.at for one in changes]]
        for asked in self._types.asked:
            rows = np.flatnonzero(np.isin(kinds, [*TAKEN[asked.event.change]]))
            if asked.event.of:
                rows = rows[[_changed(*images[i], asked.event.of) for i in rows.tolist()]]
            rows, time = self._occurring(asked, rows, instants, columns)
            for i, instant in zip(rows.tolist(), time.tolist(), strict=True):
                self._show(found, asked.event, instant, changes[i], mine, texts)

    def _changes(self, lines: Sequence[Row]) -> Iterator[_Change]:
        """The changes of lines, images paired as in `engine.capture.images`."""
        key = self._table.key
        for at, line in enumerate(lines):
            kind = line["change"]
            if kind != "update" or not self._types.paired:
                yield _Change(at, kind, "row")
                continue
            row, old = line["row"], line["old"]
            if all(_same(row.get(name), old.get(name)) for name in key):
                if _changed(row, old, row.keys() | old.keys()):
                    yield _Change(at, kind, "row", paired=True)
            elif self._table.on_unpaired == "stop":
                message = f"the update changes the key of {self._table.name} ({', '.join(key)})"
                hint = "declare a key that is never updated, or say `on_unpaired: delete_insert`"
                raise LineError("unpaired-update", message, hint)
            else:
                yield _Change(at, "delete", "old")
                yield _Change(at, "insert", "row")

    def _occurring(
        self,
        asked: Asked,
        rows: Int64,
        instants: Int64,
        columns: Mapping[str, pa.Array],
    ) -> tuple[Int64, Int64]:
        """Those of the `rows` that are occurrences, and their instants. The others are counted, if
        they are rejected."""
        event = asked.event
        if asked.where is not None:
            names = {name: columns[name].take(pa.array(rows)) for name in asked.where.columns}
            try:
                held = asked.where.decide({n: pa.chunked_array([c]) for n, c in names.items()})
            except UndecidedError:
                message = f"only Spark can tell the `where` of {event.name} of this row"
                raise LineError("needs-spark", message, "tidegate test --spark") from None
            self._reject(event, held.null_count, f"`where: {event.where}` fails")
            rows = rows[held.fill_null(False).to_numpy()]
        time = instants[rows]
        if event.time is not None:
            column = pa.chunked_array([columns[event.time]])
            rows, time, refused = timed(event, column, rows, time)
            for these, why in refused:
                self._reject(event, len(these), why)
        return rows, time

    def _reject(self, event: TableEvent, count: int, reason: str) -> None:
        if count:
            self._rejected[event.name, reason] += count

    def _show(
        self,
        found: Occurrences,
        event: TableEvent,
        instant: int,
        change: _Change,
        fields: Sequence[Row],
        lines: Sequence[bytes],
    ) -> None:
        """Add an occurrence, and its beginning if some rule names that."""
        line = lines[change.at]
        exact = _as_written.decode(line.decode()) if _OTHERWISE.search(line) else None
        head = {"event": event.name, "time": fields[change.at]["time"]}
        row, old = _images(change, fields[change.at])
        shown = head | _parameters(event, change.kind, row, old)
        said = shown
        if exact is not None:
            written = _images(change, exact)
            said = head | _parameters(event, change.kind, *written)
        found.append(event.name, instant, shown, said)
        if event.name in self._begun:  # it has the values from before
            first = _parameters(event, change.kind, row if old is None else old, None)
            found.append(beginning(event.name), instant, head | first, head | first)


def _changed(row: Row, old: Row | None, columns: Collection[str]) -> bool:
    before = old or {}
    return not all(_same(row.get(name), before.get(name)) for name in columns)


def _same(a: Any, b: Any) -> bool:
    """Whether two values are equal; 7 and 7.0 are, true and 1 are not."""
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _parameters(event: TableEvent, kind: str, row: Row, old: Row | None) -> dict[str, Any]:
    """The parameters of an occurrence, as far as the line has them."""
    taken = event.parameters(name for name in row if name not in OF_THE_LINE)
    found = {name: row[column] for name, column in taken.items() if column in row}
    if event.change is Change.CHANGE:
        found[CHANGE_TYPE] = kind
    if old is not None:
        found[OLD] = old
    return found
