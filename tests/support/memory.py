"""A table and a target in memory, and a clock."""

# ruff: noqa: ARG002, ARG005 - fakes take what the ports give

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from queue import Queue

import pyarrow as pa

from tests.support.make import BEGIN, SECOND
from tidegate.engine.core.entries import Entry, Fate
from tidegate.engine.core.parameters import COMMITS
from tidegate.engine.core.ports import FEED_KINDS, KIND, VERSION, AppIds, ReadRequest, TableHead
from tidegate.engine.core.values import Commit, Cursor, Firings, TableRange, Writer
from tidegate.rules.model import Change, Table


def schema(*columns: str) -> str:
    """A table of BIGINT columns."""
    fields = [{"name": c, "type": "long", "nullable": True, "metadata": {}} for c in columns]
    return json.dumps({"type": "struct", "fields": fields})


SCHEMA = schema("id")
WIDER = schema("id", "more")


class MemoryFeed:
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

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        self.meanwhile()
        cursor = after or Cursor(table.name, "t-1", -1, 0, SCHEMA)
        versions = range(cursor.version + 1, self.commits)
        commits = tuple(
            Commit(
                v,
                self.instants.get(v, BEGIN + v * SECOND),
                rows_estimate=1,
                schema=self.schemas.get(v),
                depth=self.depths.get(v, 0),
                writer=self.writers.get(v),
                skip=not self.changes_rows(v),
            )
            for v in versions
        )
        return TableHead(cursor, self.commits - 1, commits)

    def changes_rows(self, version: int) -> bool:
        return not (self.quiet(version) or self.seals(version))

    def version(self, table: Table) -> int:
        return self.commits - 1 if table.name == "t" else 0

    def version_at(self, table: Table, instant: int) -> int | None:
        return min((instant - BEGIN) // SECOND, self.commits - 1)

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        self.read_spans.append((span.first, span.last))
        if self.fails(span.first, span.last):
            raise OSError("no space left on device")
        known = (v for v in range(span.first, span.last + 1) if v not in span.skipped)
        versions = pa.array(known, pa.int64())
        columns = {KIND: pa.array([FEED_KINDS["insert"]] * len(versions)), VERSION: versions}
        return pa.table({**columns, **dict.fromkeys(request.columns, versions)})

    def history(self, table: Table, span: TableRange) -> pa.Table:
        commits = [
            {
                "operation": "OPTIMIZE" if self.quiet(version) else "WRITE",
                "version": version,
                "changes_rows": self.changes_rows(version),
            }
            for version in range(span.first, span.last + 1)
            if not self.seals(version)
        ]
        return pa.Table.from_pylist(commits, COMMITS[Change.COMMIT])

    def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:
        raise AssertionError


def numbers(relation: pa.Table) -> list[int]:
    """The ids of rows, or the versions of commits."""
    found: list[int] = relation["id" if "id" in relation.column_names else "version"].to_pylist()
    return found


class MemorySink:
    """A target with Delta's rule for markers: a statement at or below its marker is skipped in
    silence, and so is one whose marker another history has moved. `app_ids`: those of the store's
    entries, as in its port. `fails` is asked before each statement, `lost` after it has landed:
    what it gives is raised though the effect stands."""

    def __init__(self) -> None:
        self.effects: Counter[tuple[str, int]] = Counter()
        self.entries: list[tuple[str, int]] = []
        self.commits: list[tuple[str, int, list[str] | None]] = []  # app id, number, firing ids
        self.fails: Callable[[Entry], Exception | None] = lambda entry: None
        self.lost: Callable[[Entry], Exception | None] = lambda entry: None
        self.readied: Queue[set[str]] = Queue()
        self.actions: dict[tuple[str, int], int] = {}  # by app id and number
        self.cleaned = False  # the log before the last commit
        self.app_ids: AppIds = lambda numbers: {}

    def ready(self, targets: Collection[str]) -> None:
        self.readied.put(set(targets))

    def run(self, entry: Entry, firings: Firings) -> None:
        if error := self.fails(entry):
            raise error
        if entry.number > self.marker(entry) and not self.is_moved(entry):
            self.entries.append((entry.rule, entry.number))
            self.effects.update((entry.rule, n) for n in numbers(firings.relation))
            self.commits.append((entry.app_id, entry.number, firings.hex_ids().to_pylist()))
            self.actions[entry.app_id, entry.number] = entry.statement.action
        if error := self.lost(entry):
            raise error

    def seal(self, entry: Entry) -> None:
        if error := self.fails(entry):
            raise error
        if entry.number > self.marker(entry):
            self.commits.append((entry.app_id, entry.number, None))

    def fate(self, entry: Entry, firings: Firings) -> Fate:
        found = {c[1]: c[2] for c in self.commits if c[0] == entry.app_id}
        action = self.actions.get((entry.app_id, entry.number), entry.statement.action)
        own = (None, firings.hex_ids().to_pylist())
        if (
            entry.number not in found
            or found[entry.number] not in own
            or action != entry.statement.action
        ):
            if entry.number > self.marker(entry):
                return Fate.PASSED if self.is_moved(entry) else Fate.ABSENT
            return Fate.UNKNOWN if self.cleaned else Fate.PASSED
        return Fate.SEALED if found[entry.number] is None else Fate.EFFECT

    def is_moved(self, entry: Entry) -> bool:
        """Whether the marker is at an entry that the store has under another app id."""
        marker = self.marker(entry)
        known = self.app_ids([marker]).get(marker, entry.app_id)
        return marker < entry.number and known != entry.app_id

    def marker(self, entry: Entry) -> int:
        return max((c[1] for c in self.commits if c[0] == entry.app_id), default=0)

    def fields(self, entry: Entry, firings: Firings) -> pa.Table:
        raise AssertionError


class Clock:
    """A second later at each look; `later` sets it on."""

    def __init__(self) -> None:
        self.at = BEGIN + 3_600 * SECOND

    def __call__(self) -> int:
        self.at += 1_000
        return self.at

    def later(self, seconds: float) -> None:
        self.at += int(seconds * SECOND)
