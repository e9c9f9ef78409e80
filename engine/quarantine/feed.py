"""A feed whose `where`s cannot stop the engine: rows that Spark cannot decide are rejected."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.core.columns.hashing import row_hash
from tidegate.engine.core.ports import (
    KIND,
    SAME_1,
    SAME_2,
    VERSION,
    WHY,
    Feed,
    OutageError,
    ReadRequest,
    TableHead,
    check_going_on,
)
from tidegate.engine.core.suspect import STRIKES_MAX, Suspect, text_digest
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.core.types.spark import arrow_schema
from tidegate.engine.core.values import Cursor, Int64, TableRange
from tidegate.engine.quarantine.quarantine import Quarantine
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook, Table

FANOUT = 64
"""A slice of rows that Spark cannot decide is split into so many smaller slices."""
FAILURES_MAX = 1_000
"""After so many failed slices of one text in one version, its other rows are rejected."""
OVERRUN = "read-overrun"
_FAILED = (OVERRUN, "table-unreadable")
_VERSION = "version "
_ANSWER = "_tidegate_answer"


@dataclass(slots=True)
class WatchedFeed:
    """Implements `engine.core.ports.Feed` by another one.

    A read whose `where`s fail, overrun or end Java is made again without them. Each `where` is then
    asked alone, of one version at a time. The rows of a slice that fails are asked in smaller
    slices, down to one row; its answer is null then, and a column `WHY` says the reason. Rows are
    ordered by their hash, so that a slice is the same after Spark was started again.

    Where the engine was asked to stop, nothing more is looked at or read: StoppedError.

    Example: one row of 10,000 ends Java. The read dies (1), its one `where` dies over all rows of
    the version (2), then over 157 rows (3), over 3 rows (4), and over the row (5).
    """

    feed: Feed
    quarantine: Quarantine
    book: Rulebook
    stopped: Callable[[], bool] = lambda: False
    _events: dict[tuple[str, str], list[str]] = field(init=False)  # by `where` and source

    def __post_init__(self) -> None:
        self._events = {}
        for event in self.book.events.values():
            source = getattr(event, "table", f"signal {event.name}")
            key = (getattr(event, "where", None) or "", source)
            self._events.setdefault(key, []).append(event.name)

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        check_going_on(self.stopped)
        return self.feed.head(table, after)

    def version(self, table: Table) -> int:
        return self.feed.version(table)

    def earliest(self, table: Table, cursor: Cursor, column: str) -> int | None:
        return self.feed.earliest(table, cursor, column)

    def version_at(self, table: Table, instant: int) -> int | None:
        return self.feed.version_at(table, instant)

    def history(self, table: Table, span: TableRange) -> pa.Table:
        return self.feed.history(table, span)

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        """See `engine.core.ports.Feed.read`. Raises EngineError as that does, but for a `where`."""
        texts = tuple(dict.fromkeys((*request.where.values(), *request.only)))
        item = f"{span.first}-{span.last}"
        if not texts:
            return self._plain(table, span, request)
        suspects = [self._where(text, table.name, item) for text in texts]
        found = self._together(suspects, lambda: self.feed.read(table, span, request))
        return self._carefully(table, span, request, texts) if found is None else found

    def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:
        suspects = [self._where(text, source, "") for text in dict.fromkeys(where.values())]
        found = self._together(suspects, lambda: self.feed.decide(rows, where, source))
        if found is not None:
            return found
        item = text_digest(",".join(map(str, np.sort(row_hash(rows)[:, 0]).tolist())))
        asked = {
            name: _Asking(self, rows, text, source, item).asked() for name, text in where.items()
        }
        self._forgive(where.values(), source, {item})
        return pa.table({k: v for name, one in asked.items() for k, v in one.columns(name).items()})

    def _together(
        self, suspects: Sequence[Suspect], read: Callable[[], pa.Table]
    ) -> pa.Table | None:
        """The result of a read with all texts at once; None if one of them is suspected, or
        fails."""
        check_going_on(self.stopped)
        if any(self.quarantine.of(one).suspected for one in suspects):
            return None
        found = self.tried(suspects, read)
        return None if isinstance(found, EngineError) else found

    def tried(
        self, suspects: Sequence[Suspect], read: Callable[[], pa.Table]
    ) -> pa.Table | EngineError:
        """The result of a read, or why it failed. The texts that it ran get a strike if it overran
        its deadline. Raises EngineError for what no text is to blame for."""
        try:
            with self.quarantine.run(*suspects):
                return read()
        except EngineError as error:
            if error.code not in _FAILED:
                raise
            if error.code == OVERRUN and suspects:
                self.quarantine.overran(suspects, error.message)
            return error

    def _plain(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        """Read without any text of the rulebook. Its strikes count against the versions that it
        reads. After too many the table is unreadable, and stops the rulebook (G7, G8). If all of
        them are overruns, it is an outage of the storage or the machine, and is waited for."""
        item = f"{span.first}-{span.last}"
        check_going_on(self.stopped)
        told = f"reading versions {span.first} to {span.last} of table `{table.name}`"
        suspect = Suspect("read", table.name, "", item, part=item, told=told)
        while (why := self.quarantine.refuses(suspect)) is None:
            found = self.tried([suspect], lambda: self.feed.read(table, span, request))
            if not isinstance(found, EngineError):
                self.quarantine.forgive(suspect)
                return found
            if found.code != OVERRUN:
                raise found
        hint = (
            "give Spark's Java more memory (spark.driver.memory), raise statement_seconds_max, or "
            "lower bucket_rows_max; start again"
        )
        if not self.quarantine.of(suspect).deaths:
            self.quarantine.forgive(suspect)
            raise OutageError(OVERRUN, why, hint)
        raise EngineError("table-unreadable", why, hint)

    def _carefully(
        self, table: Table, span: TableRange, request: ReadRequest, texts: tuple[str, ...]
    ) -> pa.Table:
        """Read the rows, and ask each `where` alone, version by version."""
        names = arrow_schema(span.cursor.schema).names
        plain = replace(request, columns=names, where={}, only=())

        def read(one: TableRange, text: str) -> pa.Table:
            found = self.feed.read(table, one, replace(plain, where={_ANSWER: text}))
            return found.select([*names, _ANSWER])

        found = []
        for version in range(span.first, span.last + 1):
            if version in span.skipped:
                continue
            one = span if span.snapshot else replace(span, first=version, last=version)
            rows = self._plain(table, one, plain)
            images, item = rows.select(names), _of_version(version)
            asked: dict[str, _Asking] = {}
            for text in texts:
                asking = _Asking(self, images, text, table.name, item, partial(read, one, text))
                asked[text] = asking.asked()
            found.append(_chosen(rows, request, asked))
        self._forgive(texts, table.name, {*map(_of_version, range(span.first, span.last + 1))})
        return pa.concat_tables(found, promote_options="default")

    def _forgive(self, texts: Iterable[str], source: str, items: Collection[str]) -> None:
        """Texts that decided every row of these items are suspects no more."""
        for text in texts:
            suspect = self._where(text, source, "")
            struck = {part.suspect.item for part in self.quarantine.parts(suspect)}
            if self.quarantine.given_up(suspect) is None and struck.isdisjoint(items):
                self.quarantine.forgive(suspect)

    def _where(self, text: str, source: str, item: str, part: str = "") -> Suspect:
        """A `where` as a suspect. `source`: a table, or `signal` and the name of one."""
        named = self._events.get((text, source), ())
        of = " of " + ", ".join(f"`{name}`" for name in named) if named else ""
        at = f", {item}" if item.startswith(_VERSION) else ""
        place = source if source.startswith("signal ") else f"table `{source}`"
        told = f"`where: {shortened(text, 100)}`{of} ({place}{at})"
        return Suspect("where", source, text_digest(text), item, part, told)


def _of_version(version: int) -> str:
    return f"{_VERSION}{version}"


@dataclass(slots=True)
class _Asking:
    """One `where`, asked of the rows of one version. `read` gives these rows, in any order, with
    what the `where` says in the table: it may read columns that no row at hand has (variant).

    holds[n]: 1, 0, or -1 if row n could not be decided. why[n]: the reason why it could not, None
    if the predicate just raised."""

    watched: WatchedFeed
    rows: pa.Table
    text: str
    source: str
    item: str
    read: Callable[[], pa.Table] | None = None
    holds: npt.NDArray[np.int8] = field(init=False)
    why: list[str | None] = field(init=False)
    _order: Int64 = field(init=False)
    _failures: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        count = self.rows.num_rows
        self._order = _by_hash(self.rows)
        self.holds, self.why = np.zeros(count, np.int8), [None] * count

    def asked(self) -> Self:
        """Ask about all rows."""
        if self.rows.num_rows:
            self.ask(0, self.rows.num_rows)
        return self

    def columns(self, name: str) -> dict[str, pa.Array]:
        """The columns that a feed gives for the verdicts."""
        found = {name: pa.array(self.holds == 1, mask=self.holds < 0)}
        if any(self.why):
            found[name + WHY] = pa.array(self.why, pa.string())
        return found

    def ask(self, first: int, last: int) -> None:
        """Ask about the rows first to last - 1, in order of their hashes."""
        check_going_on(self.watched.stopped)
        quarantine = self.watched.quarantine
        part = f"{self.item}:{first}-{last}"
        suspect = self.watched._where(self.text, self.source, self.item, part)
        known = quarantine.of(suspect)
        refused = quarantine.given_up(suspect)
        if refused is not None or self._failures >= FAILURES_MAX:
            return self._reject(first, last, refused or f"{suspect.told} fails too often")
        if known.deaths or known.overruns or known.count >= STRIKES_MAX:
            return self._parted(first, last, f"it {known.told}")
        index = self._order[first:last]
        said = self._decided([suspect], self.rows.take(index))
        if not isinstance(said, EngineError):
            return self._take(index, said.column(_ANSWER))
        self._failures += 1
        if said.code != OVERRUN and self._failures == 1 and self._fails_of_no_row():
            self._failures = FAILURES_MAX
            if len(index) == self.rows.num_rows and self._answered_in_table(suspect):
                return None
            return self._reject(first, last, said.message)
        return self._parted(first, last, said.message)

    def _decided(self, suspects: Sequence[Suspect], rows: pa.Table) -> pa.Table | EngineError:
        decide = self.watched.feed.decide
        asked = {_ANSWER: self.text}
        return self.watched.tried(suspects, lambda: decide(rows, asked, self.source))

    def _answered_in_table(self, suspect: Suspect) -> bool:
        """Ask with a read of the table instead of the rows at hand. Returns whether that worked.
        Answers go to rows by their hashes; equal rows may swap theirs."""
        found = self.watched.tried([suspect], self.read) if self.read else None
        if found is None or isinstance(found, EngineError):
            return False
        self._take(self._order, found.column(_ANSWER).take(_by_hash(found.drop_columns(_ANSWER))))
        return True

    def _take(self, index: Int64, answer: pa.ChunkedArray) -> None:
        self.holds[index] = answer.cast(pa.int8()).fill_null(-1).to_numpy()

    def _fails_of_no_row(self) -> bool:
        """Whether the text fails even without rows, such as a bad constant pattern that Spark
        evaluates while it plans. Smaller slices are of no use then."""
        return isinstance(self._decided([], self.rows.slice(0, 0)), EngineError)

    def _parted(self, first: int, last: int, why: str) -> None:
        """Ask about smaller slices. A single row is rejected."""
        if last - first == 1:
            return self._reject(first, last, why)
        step = -(-(last - first) // FANOUT)
        for begin in range(first, last, step):
            self.ask(begin, min(begin + step, last))
        return None

    def _reject(self, first: int, last: int, why: str) -> None:
        index = self._order[first:last]
        self.holds[index] = -1
        for at in index.tolist():
            self.why[at] = why


def _by_hash(rows: pa.Table) -> Int64:
    """Row numbers in order of the rows' hashes, which does not depend on the order of the rows.
    -0.0 and 0.0 are different here, because a `where` can tell them apart."""
    kinds = [_bits(kind) for kind in rows.schema.types]
    columns = [
        pa.chunked_array([chunk.view(kind) for chunk in column.chunks], kind)
        for column, kind in zip(rows.columns, kinds, strict=True)
    ]
    hashes = row_hash(pa.table(columns, rows.column_names))
    return np.lexsort((hashes[:, 1], hashes[:, 0]))


def _bits(kind: pa.DataType) -> pa.DataType:
    """The type with integers of the same size in place of doubles and floats."""
    if pa.types.is_floating(kind):
        return pa.int64() if pa.types.is_float64(kind) else pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_bits(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_bits(kind.key_type), _bits(kind.item_type))
    return pa.list_(_bits(kind.value_type)) if pa.types.is_list(kind) else kind


def _chosen(rows: pa.Table, request: ReadRequest, asked: Mapping[str, _Asking]) -> pa.Table:
    """The rows that a request wants, with a column for each of its predicates."""
    marks = (KIND, VERSION, *((SAME_1, SAME_2) if request.same else ()))
    found = rows.select([*marks, *request.columns])
    for name, text in request.where.items():
        for column, values in asked[text].columns(name).items():
            found = found.append_column(column, values)
    if request.only:
        wanted = reduce(np.logical_or, (asked[text].holds != 0 for text in request.only))
        found = found.filter(pa.array(wanted))
    return found
