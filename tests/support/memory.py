"""A table and a target in memory, and a clock."""

# ruff: noqa: ARG002, ARG005 - fakes take what the ports give

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from queue import Queue
from typing import Any

import pyarrow as pa

from tests.support.make import BEGIN, SECOND
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.ports import FEED_KINDS, KIND, ReadRequest, TableHead
from tidegate.engine.core.values import Cursor, Firings, TableRange, Writer
from tidegate.engine.replay.memory import feed as memory_feed
from tidegate.engine.replay.memory import sink as memory_sink
from tidegate.engine.replay.memory.tables import MemoryCommit, MemoryTable
from tidegate.rules.model import Table

EMPTY = pa.array([], pa.int64())


def schema(*columns: str) -> str:
    """A table of BIGINT columns."""
    fields = [{"name": c, "type": "long", "nullable": True, "metadata": {}} for c in columns]
    return json.dumps({"type": "struct", "fields": fields})


SCHEMA = schema("id")
WIDER = schema("id", "more")


@dataclass(frozen=True, slots=True)
class Made(MemoryCommit):
    """A commit that may change the table's `schema`."""

    schema: str | None = None


class Commits(Sequence[Made]):
    """The commits of a feed's table, made as they are looked at."""

    def __init__(self, feed: MemoryFeed) -> None:
        self.feed = feed

    def __len__(self) -> int:
        return self.feed.commits

    def __iter__(self) -> Iterator[Made]:
        return (self[version] for version in range(len(self)))

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[version] for version in range(*at.indices(len(self)))]
        feed, rows = self.feed, pa.array([at] if self.feed.changes_rows(at) else [], pa.int64())
        kinds = pa.array([FEED_KINDS["insert"]] * len(rows), pa.int64())
        return Made(
            feed.instants.get(at, BEGIN + at * SECOND),
            pa.table({"id": rows, "more": rows, KIND: kinds}),
            "OPTIMIZE" if feed.quiet(at) else "WRITE",
            writer=feed.writers.get(at),
            depth=feed.depths.get(at, 0),
            schema=feed.schemas.get(at),
        )


class Growing(MemoryTable):
    """The table of a feed."""

    def __init__(self, name: str, commits: Sequence[Made]) -> None:
        self.name, self.rows, self.json = name, pa.table({"id": EMPTY, "more": EMPTY}), SCHEMA
        self.commits = commits  # type: ignore[assignment]  # made as they are looked at


class MemoryFeed(memory_feed.MemoryFeed):
    """A table of commits a second apart, but for those of other `instants`, one row each, whose id
    is the version; those that are `quiet` change no row, and so do an engine's `seals`.
    `meanwhile` happens while it is listed. `fails` says which spans cannot be read; `read_spans`
    are those that were asked for."""

    def __init__(self, commits: int) -> None:
        self.commits = commits
        self.schemas: dict[int, str] = {}  # of the commits that change it
        self.instants: dict[int, int] = {}  # by version, as the log says
        self.meanwhile: Callable[[], None] = lambda: None
        self.writers: dict[int, Writer] = {}  # of the commits that an action wrote
        self.depths: dict[int, int] = {}  # the same
        self.quiet: Callable[[int], bool] = lambda version: False
        self.seals: Callable[[int], bool] = lambda version: False
        self.fails: Callable[[int, int], bool] = lambda first, last: False
        self.read_spans: list[tuple[int, int]] = []
        made = Commits(self)
        super().__init__(defaultdict(lambda: Growing("t", made)))

    def cursor(self, table: MemoryTable) -> Cursor:
        return Cursor(table.name, "t-1", -1, 0, SCHEMA)

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        self.meanwhile()
        found = super().head(table, after)
        changed = (replace(c, schema=self.schemas.get(c.version)) for c in found.commits)
        return replace(found, commits=tuple(changed))

    def version(self, table: Table) -> int:
        return super().version(table) if table.name == "t" else 0

    def changes_rows(self, version: int) -> bool:
        return not (self.quiet(version) or self.seals(version))

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        self.read_spans.append((span.first, span.last))
        if self.fails(span.first, span.last):
            raise OSError("no space left on device")
        return super().read(table, span, request)

    def history(self, table: Table, span: TableRange) -> pa.Table:
        whole = super().history(table, span)
        kept = [not self.seals(version) for version in whole["version"].to_pylist()]
        return whole.filter(pa.array(kept, pa.bool_()))

    def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:
        raise AssertionError


def numbers(relation: pa.Table) -> list[int]:
    """The ids of rows, or the versions of commits."""
    found: list[int] = relation["id" if "id" in relation.column_names else "version"].to_pylist()
    return found


class MemorySink(memory_sink.MemorySink):
    """A target whose `effects` are counted, by rule and id; `entries` are the statements that
    landed, in order. `fails` is asked before each statement, `lost` after it has landed: what it
    gives is raised though the effect stands."""

    def __init__(self) -> None:
        super().__init__()
        self.effects: Counter[tuple[str, int]] = Counter()
        self.entries: list[tuple[str, int]] = []
        self.fails: Callable[[Entry], Exception | None] = lambda entry: None
        self.lost: Callable[[Entry], Exception | None] = lambda entry: None
        self.readied: Queue[set[str]] = Queue()

    def ready(self, targets: Collection[str]) -> None:
        self.readied.put(set(targets))

    def run(self, entry: Entry, firings: Firings) -> None:
        if error := self.fails(entry):
            raise error
        super().run(entry, firings)
        if error := self.lost(entry):
            raise error

    def run_together(self, entries: Sequence[tuple[Entry, Firings]]) -> None:
        if error := next(filter(None, (self.fails(entry) for entry, _ in entries)), None):
            raise error
        super().run_together(entries)
        if error := next(filter(None, (self.lost(entry) for entry, _ in entries)), None):
            raise error

    def take_effect(self, entry: Entry, firings: Firings) -> None:
        super().take_effect(entry, firings)
        self.entries.append((entry.rule, entry.number))
        self.effects.update((entry.rule, n) for n in numbers(firings.rows))

    def seal(self, entry: Entry) -> None:
        if error := self.fails(entry):
            raise error
        super().seal(entry)


class Clock:
    """A second later at each look; `later` sets it on."""

    def __init__(self) -> None:
        self.at = BEGIN + 3_600 * SECOND

    def __call__(self) -> int:
        self.at += 1_000
        return self.at

    def later(self, seconds: float) -> None:
        self.at += int(seconds * SECOND)
