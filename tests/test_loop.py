"""The loop over a feed, a sink and a clock of the test's own: what it does when something fails."""

# ruff: noqa: ARG001, ARG002, ARG005 - fakes take what the ports give

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from queue import Queue

import pyarrow as pa
import pytest

import rules
from engine.act.run import Runner
from engine.capture.instants import Instants
from engine.evaluate.prepare import prepare
from engine.loop import Loop
from engine.ports import FEED_KINDS, KIND, VERSION, ReadRequest, SinkError, TableHead
from engine.store import SqlStore, open_store
from engine.values import Commit, Cursor, Entry, Firings, Outcome, Question, Reading, TableRange
from rules.errors import EngineError
from rules.model import Rule, Rulebook, Sql, Table

BOOK = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}}
rules:
  a: {on: row, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  b: {on: row, do: [{sql: INSERT INTO out SELECT id FROM event}]}
"""
SECOND = 1_000_000
BEGIN = 1_772_442_000 * SECOND
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}],
    }
)


class MemoryFeed:
    """A table of commits a second apart, one row each, whose id is the version. `fails` says
    which spans cannot be read; `read_spans` are those that were asked for."""

    def __init__(self, commits: int) -> None:
        self.commits = commits
        self.fails: Callable[[int, int], bool] = lambda first, last: False
        self.read_spans: list[tuple[int, int]] = []

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        cursor = after or Cursor(table.name, "t-1", -1, 0, SCHEMA)
        versions = range(cursor.version + 1, self.commits)
        commits = tuple(Commit(v, BEGIN + v * SECOND, rows_estimate=1) for v in versions)
        return TableHead(cursor, self.commits - 1, commits)

    def version(self, table: Table) -> int:
        return self.commits - 1 if table.name == "t" else 0

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        self.read_spans.append((span.first, span.last))
        if self.fails(span.first, span.last):
            raise OSError("no space left on device")
        versions = pa.array(range(span.first, span.last + 1), pa.int64())
        columns = {KIND: pa.array([FEED_KINDS["insert"]] * len(versions)), VERSION: versions}
        return pa.table({**columns, **dict.fromkeys(request.columns, versions)})

    def decide(self, rows: pa.Table, where: Mapping[str, str]) -> pa.Table:
        raise AssertionError


class MemorySink:
    """Keeps what landed, once for each marker. `fails` is asked before each statement."""

    def __init__(self) -> None:
        self.effects: Counter[tuple[str, int]] = Counter()
        self.entries: list[tuple[str, int]] = []
        self.fails: Callable[[Entry], Exception | None] = lambda entry: None
        self.readied: Queue[set[str]] = Queue()

    def ready(self, targets: Collection[str]) -> None:
        self.readied.put(set(targets))

    def run(self, entry: Entry, firings: Firings) -> None:
        if error := self.fails(entry):
            raise error
        self.entries.append((entry.rule, entry.number))
        self.effects.update((entry.rule, n) for n in firings.relation["id"].to_pylist())

    def landed(self, entry: Entry) -> bool:
        return (entry.rule, entry.number) in self.entries

    def fields(self, entry: Entry, firings: Firings) -> pa.Table:
        raise AssertionError


class EveryIdAnalyst:
    """Each statement reads `id` and writes `out`."""

    def action(
        self, rule: Rule, action: Sql, event: pa.Schema, parameters: Sequence[str]
    ) -> Reading:
        return Reading(frozenset({"id"}), "out")

    def condition(self, *given: object) -> Reading:
        raise AssertionError

    def fields(self, *given: object) -> Reading:
        raise AssertionError


class NoConditions:
    def hold(self, questions: Sequence[Question], pinned: Mapping[str, int]) -> frozenset[str]:
        raise AssertionError


class Bench:
    """A loop over memory and a store on disk; `restart` makes another one on the same."""

    def __init__(
        self,
        store: SqlStore,
        commits: int,
        book: str = BOOK,
        clock: Iterator[int] | None = None,
    ) -> None:
        self.store, self.feed, self.sink = store, MemoryFeed(commits), MemorySink()
        self.book: Rulebook = rules.load(book)
        self.clock = clock or count(BEGIN + 3_600 * SECOND, SECOND)
        self.restart()

    def restart(self) -> None:
        book, store = self.book, self.store
        schema = pa.schema({"id": pa.int64()})
        prepared = prepare(book, {"t": schema, "out": schema}, EveryIdAnalyst())
        epoch = store.acquire(book.name, "one", 600)
        self.settle: Callable[[Outcome], None] = partial(store.settle, book.name, epoch)
        self.pauses: list[float] = []
        self.loop = Loop(
            rulebook=book,
            digests=dict.fromkeys(book.rules, "same"),
            store=store,
            epoch=epoch,
            check_lease=lambda: None,
            feed=self.feed,
            prepare=lambda: prepared,
            conditions=NoConditions(),
            runner=Runner(
                book,
                self.sink,
                lambda outcome: self.settle(outcome),
                lambda: None,
                self.clock.__next__,
                self.pauses.append,
            ),
            now=self.clock.__next__,
            instants=Instants(10 * SECOND),
            state=store.load(book.name),
        )
        self.loop.resume()

    def drain(self) -> list[int]:
        """Buckets until there is nothing left; the firings of each."""
        found = []
        while (report := self.loop.bucket()) is not None:
            found.append(report.firings)
        return found

    def expected(self) -> Counter[tuple[str, int]]:
        return Counter((rule, n) for rule in "ab" for n in range(self.feed.commits))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with open_store(f"sqlite:///{tmp_path}/loop.db", create=True) as store:
        store.register("loop", BOOK, None)
        yield store


def test_g08_a_span_that_fails_three_times_is_halved_and_nothing_is_dropped(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=8)
    bench.feed.fails = lambda first, last: last - first >= 2
    bench.drain()
    assert bench.feed.read_spans[:4] == [(0, 7)] * 3 + [(0, 3)]
    assert (0, 1) in bench.feed.read_spans
    assert bench.sink.effects == bench.expected()


def test_g08_a_failure_that_passes_does_not_cut_the_bucket(store: SqlStore) -> None:
    bench = Bench(store, commits=4)
    bench.feed.fails = lambda first, last: len(bench.feed.read_spans) < 3
    assert bench.drain() == [8]
    assert bench.feed.read_spans == [(0, 3)] * 3


def test_g08_what_cannot_be_read_at_once_is_read_in_parts_what_is_gone_stops(
    store: SqlStore,
) -> None:
    def refused(code: str) -> None:
        raise EngineError(code, "table `t`: versions cannot be read")

    bench = Bench(store, commits=4)
    bench.feed.fails = lambda first, last: last > first and bool(refused("table-unreadable"))
    bench.drain()
    assert bench.sink.effects == bench.expected()
    bench.feed.commits = 6
    bench.feed.read_spans.clear()
    bench.feed.fails = lambda first, last: bool(refused("version-gone"))
    with pytest.raises(EngineError, match="versions cannot be read"):
        bench.drain()
    assert bench.feed.read_spans == [(4, 5)]


def test_g08_one_instant_that_cannot_be_taken_stops_the_rulebook_by_name(store: SqlStore) -> None:
    bench = Bench(store, commits=4)
    bench.feed.fails = lambda first, last: first <= 2 <= last
    with pytest.raises(EngineError, match=r"t version 2 to 2.* OSError: no space left") as stop:
        bench.drain()
    assert stop.value.code == "bucket-failed"
    assert store.load("loop").cursors["t"].version == 1  # what comes before it is done
    assert bench.sink.effects == Counter((rule, n) for rule in "ab" for n in (0, 1))
    bench.feed.fails = lambda first, last: False
    bench.restart()
    bench.drain()
    assert bench.sink.effects == bench.expected()


def test_g17_a_failing_entry_holds_its_rule_only_and_is_tried_again_with_pauses(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=3)
    bench.sink.fails = lambda entry: SinkError("[LOCKED] not now") if entry.rule == "a" else None
    with pytest.raises(EngineError, match=r"rule a: entry 1 of bucket 1 failed after 3.*LOCKED"):
        bench.drain()
    assert bench.pauses == [1, 2]
    assert bench.sink.entries == [("b", 2)]
    with pytest.raises(EngineError, match="entry 1 of bucket 1 failed after 6"):
        bench.restart()
    bench.sink.fails = lambda entry: None
    bench.restart()
    bench.drain()
    assert bench.sink.effects == bench.expected()


def test_an_error_that_nobody_expects_fails_the_entry_too(store: SqlStore) -> None:
    bench = Bench(store, commits=3)
    bench.sink.fails = lambda entry: RuntimeError("the gateway is gone")
    with pytest.raises(EngineError, match=r"entry 1 .* RuntimeError: the gateway is gone"):
        bench.drain()
    assert [entry.attempts for entry in store.pending_entries("loop")] == [3, 3]


def test_an_error_after_the_transaction_never_lets_the_next_bucket_pass_an_entry(
    store: SqlStore,
) -> None:
    """A later entry of the rule would raise its marker above the one that is left behind."""
    bench = Bench(store, commits=3)

    def lost(outcome: Outcome) -> None:
        raise RuntimeError("the driver has a bug")

    bench.settle = lost
    with pytest.raises(RuntimeError, match="the driver has a bug"):
        bench.drain()
    assert store.load("loop").bucket == 1
    assert [entry.number for entry in store.pending_entries("loop")] == [1, 2]
    bench.feed.commits = 4
    bench.restart()
    bench.drain()
    assert bench.sink.entries == [("a", 1), ("b", 2), ("a", 3), ("b", 4)]
    assert bench.sink.effects == bench.expected()


def test_an_entry_that_landed_before_it_was_marked_done_is_not_run_again(store: SqlStore) -> None:
    bench = Bench(store, commits=2)

    def lost(outcome: Outcome) -> None:
        raise EngineError("store-unreachable", "the store is gone")

    bench.settle = lost
    with pytest.raises(EngineError, match="the store is gone"):
        bench.drain()
    bench.restart()
    bench.drain()
    assert bench.sink.effects == bench.expected()


def test_targets_are_made_ready_at_the_start_and_after_each_write(store: SqlStore) -> None:
    bench = Bench(store, commits=4)
    assert bench.sink.readied.get(timeout=10) == {"out"}
    bench.drain()
    assert bench.sink.readied.get(timeout=10) == {"out"}


def test_a_target_that_nothing_wrote_to_stays_ready(store: SqlStore) -> None:
    bench = Bench(store, commits=0)
    assert bench.sink.readied.get(timeout=10) == {"out"}
    bench.drain()
    assert bench.sink.readied.empty()


def test_g24_a_reset_of_a_table_that_raises_no_events_keeps_nothing_waiting(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=2)
    bench.drain()
    store.add_reset("loop", "out", None)
    seen = bench.loop.visible()
    assert bench.drain() == []
    assert bench.loop.done(seen)
