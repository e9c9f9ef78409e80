"""The loop over a feed, a sink and a clock of the test's own: what it does when something fails."""

# ruff: noqa: ARG001, ARG002, ARG005 - fakes take what the ports give

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from queue import Queue

import pyarrow as pa
import pytest

from tidegate import rules
from tidegate.engine.act.run import Runner
from tidegate.engine.basis import make_basis
from tidegate.engine.capture.instants import Instants
from tidegate.engine.entries import Entry, Fate, Outcome
from tidegate.engine.evaluate.prepare import Prepared, prepare
from tidegate.engine.loop import Loop
from tidegate.engine.obstacles import sentence
from tidegate.engine.ports import (
    FEED_KINDS,
    KIND,
    VERSION,
    Conditions,
    OutageError,
    ReadRequest,
    SinkError,
    TableHead,
)
from tidegate.engine.sparktypes import arrow_schema
from tidegate.engine.state import Parked
from tidegate.engine.store import Ledger, SqlStore, open_store
from tidegate.engine.values import (
    Answers,
    Commit,
    Cursor,
    Failure,
    Firings,
    Question,
    Reading,
    TableRange,
)
from tidegate.rules.errors import EngineError, InputError, Problem
from tidegate.rules.model import Rule, Rulebook, Sql, Table

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
        self.schemas: dict[int, str] = {}  # of the commits that change it
        self.fails: Callable[[int, int], bool] = lambda first, last: False
        self.read_spans: list[tuple[int, int]] = []

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        cursor = after or Cursor(table.name, "t-1", -1, 0, SCHEMA)
        versions = range(cursor.version + 1, self.commits)
        commits = tuple(
            Commit(v, BEGIN + v * SECOND, rows_estimate=1, schema=self.schemas.get(v))
            for v in versions
        )
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
    """A target with Delta's rule for markers: a statement at or below its marker is skipped in
    silence. `fails` is asked before each statement, `lost` after it has landed: what it gives is
    raised though the effect stands."""

    def __init__(self) -> None:
        self.effects: Counter[tuple[str, int]] = Counter()
        self.entries: list[tuple[str, int]] = []
        self.commits: list[tuple[str, int, list[str] | None]] = []  # app id, number, firing ids
        self.fails: Callable[[Entry], Exception | None] = lambda entry: None
        self.lost: Callable[[Entry], Exception | None] = lambda entry: None
        self.readied: Queue[set[str]] = Queue()
        self.cleaned = False  # the log before the last commit

    def ready(self, targets: Collection[str]) -> None:
        self.readied.put(set(targets))

    def run(self, entry: Entry, firings: Firings) -> None:
        if error := self.fails(entry):
            raise error
        if entry.number > self.marker(entry):
            self.entries.append((entry.rule, entry.number))
            self.effects.update((entry.rule, n) for n in firings.relation["id"].to_pylist())
            self.commits.append((entry.app_id, entry.number, firings.hex_ids().to_pylist()))
        if error := self.lost(entry):
            raise error

    def seal(self, entry: Entry) -> None:
        if error := self.fails(entry):
            raise error
        if entry.number > self.marker(entry):
            self.commits.append((entry.app_id, entry.number, None))

    def fate(self, entry: Entry, firings: Firings) -> Fate:
        found = {c[1]: c[2] for c in self.commits if c[0] == entry.app_id}
        if entry.number not in found or found[entry.number] not in (
            None,
            firings.hex_ids().to_pylist(),
        ):
            if entry.number > self.marker(entry):
                return Fate.ABSENT
            return Fate.UNKNOWN if self.cleaned else Fate.PASSED
        return Fate.SEALED if found[entry.number] is None else Fate.EFFECT

    def marker(self, entry: Entry) -> int:
        return max((c[1] for c in self.commits if c[0] == entry.app_id), default=0)

    def fields(self, entry: Entry, firings: Firings) -> pa.Table:
        raise AssertionError


class EveryIdAnalyst:
    """Each statement reads `id` and writes `out`; that of the rule `unfit` fits the first schema
    only."""

    def __init__(self, unfit: str = "") -> None:
        self.unfit = unfit

    def action(
        self,
        rule: Rule,
        action: Sql,
        event: pa.Schema,
        parameters: Sequence[str],
        *,
        resolve: bool = True,
    ) -> Reading:
        if not resolve:
            return Reading(frozenset(event.names), "out")
        if rule.name == self.unfit and "more" in event.names:
            raise InputError([Problem("sql-analysis", "too many columns", action.place)])
        return Reading(frozenset({"id"}), "out")

    def condition(self, *given: object, **more: object) -> Reading:
        return Reading(frozenset({"id"}))

    def fields(self, *given: object) -> Reading:
        raise AssertionError


class NoConditions:
    def hold(self, questions: Sequence[Question], pinned: Mapping[str, int]) -> Answers:
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


class Bench:
    """A loop over memory and a store on disk; `restart` makes another one on the same."""

    def __init__(self, store: SqlStore, commits: int, text: str = BOOK) -> None:
        self.store, self.feed, self.sink = store, MemoryFeed(commits), MemorySink()
        self.clock = Clock()
        self.conditions: Conditions = NoConditions()
        self.unfit = ""
        self.write(text)
        self.restart()

    def write(self, text: str) -> None:
        """Another rulebook, from the next start on."""
        self.book: Rulebook = rules.load(text)

    def restart(self) -> None:
        book, store = self.book, self.store
        epoch = store.acquire(book.name, "one", 600)
        self.ledger = Ledger(store, book.name, epoch)
        self.prepared: list[Mapping[str, str]] = []
        state = store.load(book.name)
        digests = {name: "same" for name, rule in book.rules.items() if rule.enabled}
        schemas = {"t": SCHEMA, "out": SCHEMA}
        self.loop = Loop(
            basis=make_basis(book, digests, schemas, state.activations, self.prepare),
            prepare=self.prepare,
            store=store,
            epoch=epoch,
            check_lease=lambda: store.check_lease(book.name, epoch),
            feed=self.feed,
            conditions=self.conditions,
            runner=Runner(book, self.sink, self.ledger, lambda: None, self.clock),
            now=self.clock,
            instants=Instants(10 * SECOND),
            state=state,
        )

    def prepare(self, schemas: Mapping[str, str], proven: Collection[str]) -> Prepared:
        self.prepared.append(schemas)
        arrow = {name: arrow_schema(schema) for name, schema in schemas.items()}
        return prepare(self.book, arrow, EveryIdAnalyst(self.unfit), proven)

    def drain(self) -> list[int]:
        """Buckets until there is nothing left; the firings of each."""
        found = []
        while (report := self.loop.bucket()) is not None:
            found.append(report.firings)
        return found

    def expected(self) -> Counter[tuple[str, int]]:
        return Counter((rule, n) for rule in "ab" for n in range(self.feed.commits))

    def states(self) -> list[tuple[int, str]]:
        """The entries that are not finished."""
        return [(e.number, e.state) for e in self.store.obstacles("loop") if isinstance(e, Entry)]


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


def test_g17_a_failing_entry_holds_its_rule_while_detection_goes_on(store: SqlStore) -> None:
    bench = Bench(store, commits=3)
    bench.sink.fails = lambda entry: SinkError("[LOCKED] not now") if entry.rule == "a" else None
    assert bench.drain() == [6]
    assert bench.states() == [(1, "pending")]
    bench.clock.later(1)
    bench.feed.commits = 4
    assert bench.drain() == [2]  # detection, and the other rule, go on
    bench.clock.later(2)
    bench.drain()
    assert bench.states() == [(1, "held"), (3, "pending")]
    assert bench.sink.entries == [("b", 2), ("b", 4)]
    bench.sink.fails = lambda entry: None
    bench.drain()
    assert bench.sink.entries == [("b", 2), ("b", 4)]  # the pause is not over
    bench.clock.later(60)
    bench.drain()
    assert bench.sink.entries == [("b", 2), ("b", 4), ("a", 1), ("a", 3)]
    assert bench.sink.effects == bench.expected()


def test_g17_a_held_entry_is_tried_again_by_the_next_run(store: SqlStore) -> None:
    bench = Bench(store, commits=3)
    bench.sink.fails = lambda entry: RuntimeError("the gateway is gone")
    for _ in range(3):
        bench.drain()
        bench.clock.later(60)
    assert bench.states() == [(1, "held"), (2, "held")]
    (first, _) = store.obstacles("loop")
    assert isinstance(first, Entry)
    assert (first.attempts, first.error) == (3, "RuntimeError: the gateway is gone")
    bench.sink.fails = lambda entry: None
    bench.restart()
    bench.drain()
    assert bench.sink.effects == bench.expected()


def test_g16b_an_error_after_the_transaction_never_lets_the_next_bucket_pass_an_entry(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later entry of the rule would raise its marker above the one that is left behind."""
    bench = Bench(store, commits=3)

    def lost(self: Ledger, outcome: Outcome) -> tuple[Entry, ...]:
        raise RuntimeError("the driver has a bug")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "settle", lost)
        with pytest.raises(RuntimeError, match="the driver has a bug"):
            bench.drain()
    assert store.load("loop").bucket == 1
    assert bench.states() == [(1, "pending"), (2, "pending")]
    bench.feed.commits = 4
    bench.restart()
    bench.drain()
    assert bench.sink.entries == [("a", 1), ("b", 2), ("a", 3), ("b", 4)]
    assert bench.sink.effects == bench.expected()


@pytest.mark.parametrize("where", ["commit", "acted", "settle"])
@pytest.mark.parametrize("committed", [True, False])
def test_g16b_an_outage_of_the_store_loses_and_doubles_nothing(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, where: str, committed: bool
) -> None:
    """The answer of a transaction is lost, whether it was committed or not."""
    bench = Bench(store, commits=3)
    real = getattr(SqlStore, where)
    outages: list[int] = []

    def away(self: SqlStore, *given: object) -> object:
        if len(outages) == 2:
            return real(self, *given)
        outages.append(1)
        if committed:
            real(self, *given)
        raise OutageError("store-unreachable", "the store is away")

    monkeypatch.setattr(SqlStore, where, away)
    for _ in range(2):
        with pytest.raises(OutageError):
            bench.drain()
        bench.loop.recover()
        bench.feed.commits += 1
    bench.drain()
    assert len(outages) == 2
    assert bench.sink.effects == bench.expected()
    assert bench.states() == []


def test_g16b_basis_and_state_change_with_the_transaction_only(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(store, commits=1)
    before = bench.loop.basis, bench.loop.state

    def away(*given: object) -> None:
        raise OutageError("store-unreachable", "the store is away", "wait")

    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", away)
        with pytest.raises(OutageError):
            bench.drain()
    assert (bench.loop.basis, bench.loop.state) == before
    bench.drain()  # without `recover`
    assert bench.sink.effects == bench.expected()


def test_g16b_a_response_of_delta_that_was_lost_is_found_in_the_log(store: SqlStore) -> None:
    bench = Bench(store, commits=2)
    bench.sink.lost = lambda entry: SinkError("[IO] no answer")
    bench.drain()
    assert bench.states() == [(1, "pending"), (2, "pending")]
    bench.clock.later(1)
    bench.drain()
    assert bench.states() == []
    assert bench.sink.effects == bench.expected()


def test_g16b_a_marker_that_another_history_passed_is_no_proof(store: SqlStore) -> None:
    """Two stores with one id, as a copy of a store's file makes: only one of their entries lands,
    and the other is not called done."""
    bench = Bench(store, commits=2)
    app_id = f"tidegate/{store.id}/loop/a"
    bench.sink.commits.append((app_id, 1, ["of another firing"]))
    bench.drain()
    assert bench.sink.entries == [("b", 2)]
    assert bench.states() == [(1, "held")]
    (held,) = store.obstacles("loop")
    assert isinstance(held, Entry)
    assert held.fate == "passed"
    bench.restart()
    bench.drain()
    assert bench.states() == [(1, "held")]
    store.ask("loop", "redrive", "1")
    bench.feed.commits = 3
    bench.drain()
    assert bench.states() == []
    assert bench.sink.effects == bench.expected()


def test_g18_skip_seals_an_entry_and_the_queue_goes_on(store: SqlStore) -> None:
    bench = Bench(store, commits=1)
    bench.sink.fails = lambda entry: SinkError("[NO] never") if entry.number == 1 else None
    bench.drain()
    bench.feed.commits = 2
    bench.drain()
    store.ask("loop", "skip", "1")
    bench.clock.later(1)
    bench.drain()
    assert bench.states() == [(1, "pending"), (3, "pending")]  # it could not be sealed
    assert not store.pending_controls("loop")
    store.ask("loop", "skip", "1", option="unsealed")
    bench.drain()
    assert bench.states() == []
    assert bench.sink.entries == [("b", 2), ("b", 4), ("a", 3)]


def test_g18_a_sealed_entry_cannot_land_any_more(store: SqlStore) -> None:
    bench = Bench(store, commits=1)
    bench.sink.fails = lambda entry: SinkError("[NO] not yet") if entry.rule == "a" else None
    bench.drain()
    (late,) = (e for e in store.open_entries("loop"))
    bench.sink.fails = lambda entry: None
    store.ask("loop", "skip", "1")
    bench.drain()
    bench.sink.run(late, store.entry_firings("loop", 1, "a"))  # it was still under way somewhere
    assert bench.sink.entries == [("b", 2)]


def test_g18_what_landed_is_not_skipped_but_done(store: SqlStore) -> None:
    bench = Bench(store, commits=1)
    bench.sink.lost = lambda entry: SinkError("[IO] no answer")
    bench.drain()
    store.ask("loop", "redrive", "2")  # entry 1 is ahead of it, but of another rule
    store.ask("loop", "skip", "1")
    bench.drain()
    assert bench.sink.effects == bench.expected()
    assert bench.states() == []
    assert [getattr(store.one_entry("loop", n), "state", None) for n in (1, 2)] == ["done", "done"]


def test_g18_an_entry_that_is_passed_over_leaves_those_ahead_of_it_their_turn(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=1)
    bench.sink.fails = lambda entry: SinkError("[NO] not yet") if entry.number == 1 else None
    bench.drain()
    bench.feed.commits = 2
    bench.drain()
    store.ask("loop", "skip", "3")  # a seal would pass the marker that entry 1 needs
    bench.drain()
    assert bench.states() == [(1, "pending")]
    bench.sink.fails = lambda entry: None
    bench.clock.later(60)
    bench.drain()
    assert bench.states() == []
    assert bench.sink.entries == [("b", 2), ("b", 4), ("a", 1)]


def test_g18_a_redriven_entry_has_the_present_text_and_the_place_of_the_old_one(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=1)
    bench.sink.fails = lambda entry: SinkError("[NO] x") if "SELECT id" in entry.text else None
    bench.drain()
    bench.feed.commits = 2
    bench.drain()
    bench.write(BOOK.replace("SELECT id", "SELECT 1 + id"))
    bench.restart()
    bench.drain()
    assert bench.states() == [(1, "pending"), (2, "pending"), (3, "pending"), (4, "pending")]
    store.ask("loop", "redrive", "3")
    store.ask("loop", "redrive", "1")
    store.ask("loop", "redrive", "2")
    store.ask("loop", "skip", "4")
    bench.clock.later(60)
    bench.sink.fails = lambda entry: None
    bench.drain()
    assert bench.states() == []
    # Entry 3 was redriven first, and still runs after the one that stands for entry 1.
    assert bench.sink.entries == [("a", 6), ("b", 7), ("a", 5)]
    assert bench.sink.effects == Counter({("a", 0): 1, ("a", 1): 1, ("b", 0): 1})


def test_g18_an_entry_of_a_rule_that_is_gone_still_runs_and_cannot_be_redriven(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=1)
    bench.sink.fails = lambda entry: SinkError("[NO] x") if entry.rule == "b" else None
    bench.drain()
    bench.write("\n".join(line for line in BOOK.splitlines() if "  b:" not in line))
    bench.restart()
    store.ask("loop", "redrive", "2")
    bench.drain()
    assert bench.states() == [(2, "pending")]
    bench.sink.fails = lambda entry: None
    bench.clock.later(60)
    bench.drain()
    assert bench.sink.effects == bench.expected()


def test_g13_a_full_outbox_pauses_planning(store: SqlStore) -> None:
    text = BOOK + "settings: {outbox_entries_max: 2}\n"
    bench = Bench(store, commits=1, text=text)
    bench.sink.fails = lambda entry: SinkError("[NO] x")
    bench.drain()
    bench.feed.commits = 2
    assert bench.drain() == []
    assert bench.loop.full
    assert store.load("loop").bucket == 1
    bench.sink.fails = lambda entry: None
    bench.clock.later(60)
    bench.drain()
    assert bench.sink.effects == bench.expected()


def test_g21_stop_is_looked_at_between_entries(store: SqlStore) -> None:
    bench = Bench(store, commits=1)
    bench.loop.stopped = lambda: bool(bench.sink.entries)
    bench.drain()
    assert bench.sink.entries == [("a", 1)]
    bench.loop.stopped = lambda: False
    bench.drain()
    assert bench.sink.effects == bench.expected()


def test_g21_a_lease_that_is_lost_ends_the_run_before_anything_is_listed(store: SqlStore) -> None:
    bench = Bench(store, commits=1)

    def lost() -> None:
        raise EngineError("lease-lost", "another engine runs it")

    bench.loop.check_lease = lost
    with pytest.raises(EngineError, match="another engine runs it"):
        bench.loop.bucket()
    assert (bench.loop.state.bucket, bench.feed.read_spans) == (0, [])


def test_g02_the_clock_is_read_before_anything_is_listed(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes while the store answers, for a minute, is of a later bucket."""
    bench = Bench(store, commits=1)
    begun, arrivals = bench.clock.at, store.arrivals

    def slowly(*asked: object) -> object:
        found = arrivals(*asked)
        bench.clock.later(60)
        return found

    monkeypatch.setattr(store, "arrivals", slowly)
    assert bench.loop.bucket() is not None
    assert bench.loop.state.watermark is not None
    assert bench.loop.state.watermark < begun + SECOND


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
    store.ask("loop", "reset", "out")
    seen = bench.loop.visible()
    assert bench.drain() == []
    assert bench.loop.done(seen)


LIMITED = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}, gone: {on: delete, table: t}}
settings: {carried_per_key_max: 3, bucket_rows_max: 2}
rules:
  a: {on: row ; gone, context: chronicle}
  b: {on: row, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  c: {on: a or gone, do: [{sql: INSERT INTO out SELECT id FROM event}]}
"""


def parked(store: SqlStore) -> list[tuple[str, str]]:
    found = [o for o in store.obstacles("loop") if isinstance(o, Parked)]
    return [(one.rule, one.reason) for one in found]


def test_g13_a_limit_parks_its_rule_and_those_that_use_it_and_the_rest_goes_on(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=8, text=LIMITED)
    assert bench.drain() == [2, 2, 2, 2]
    (a, reason), c = parked(store)
    assert a == "a"
    assert "at most 3 are carried (setting carried_per_key_max)" in reason
    assert c == ("c", "it uses a")
    kept = {n: t for n, t in store.load("loop").carried.tables.items() if n.startswith("node:")}
    assert sum(table.num_rows for table in kept.values()) == 2  # as before the bucket that parked
    assert bench.sink.effects == Counter({("b", n): 1 for n in range(8)})
    bench.restart()
    bench.feed.commits = 10
    bench.drain()
    assert len(parked(store)) == 2  # a new run changes nothing
    assert store.status("loop")["parked_rules"][0]["passed_over"] == 8  # versions 2 to 9


def test_g13_an_enabled_rule_goes_on_with_what_it_had(store: SqlStore) -> None:
    bench = Bench(store, commits=4, text=LIMITED)
    bench.drain()
    assert [rule for rule, _ in parked(store)] == ["a", "c"]
    store.ask("loop", "enable", "a")
    store.ask("loop", "enable", "c")
    bench.drain()
    assert parked(store) == []
    assert not store.pending_controls("loop")
    bench.feed.commits = 5
    bench.drain()
    assert parked(store) == []  # it carries two and one more: three is not past the limit
    bench.feed.commits = 6
    bench.drain()
    assert [rule for rule, _ in parked(store)] == ["a", "c"]


CONDITIONAL = BOOK.replace("a: {on: row,", "a: {on: row, if: id > 0,")


class FailingConditions:
    """Conditions that hold, or fail as `why` says."""

    def __init__(self) -> None:
        self.why: Failure | None = Failure("[DIVIDE_BY_ZERO] division", "1 / 0 of account 7")
        self.asked = 0

    def hold(self, questions: Sequence[Question], pinned: Mapping[str, int]) -> Answers:
        self.asked += 1
        if self.why is not None:
            return Answers(failed={q.rule: self.why for q in questions})
        ids = (one for q in questions for one in q.relation["firing_id"].to_pylist())
        return Answers(held=frozenset(ids))


def test_g25_a_condition_that_fails_for_good_makes_its_firings_dead_and_can_be_redriven(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=2, text=CONDITIONAL)
    conditions = FailingConditions()
    bench.conditions = conditions
    bench.restart()
    bench.drain()
    assert conditions.asked == 3
    assert bench.sink.effects == Counter({("b", 0): 1, ("b", 1): 1})
    assert bench.states() == [(1, "dead")]
    (dead,) = store.obstacles("loop")
    assert isinstance(dead, Entry)
    assert (dead.kind, dead.error) == ("condition", "[DIVIDE_BY_ZERO] division")
    assert dead.attempts == 3
    assert "tried again" not in sentence(dead, bench.loop.basis.rulebook.rules)
    assert "redrive" not in sentence(dead, {})  # nothing would say what to run
    assert {f["condition"] for f in store.firings("loop", rule="a")} == {"none"}
    bench.feed.commits = 3
    conditions.why = None
    bench.drain()
    assert bench.states() == [(1, "dead")]  # the later firings of the rule go on
    store.ask("loop", "redrive", "1")
    bench.drain()
    assert bench.states() == []
    assert bench.sink.effects == bench.expected()
    assert {f["condition"] for f in store.firings("loop", rule="a")} == {"held"}


def test_g18_what_takes_the_place_of_an_entry_is_marked_as_a_new_one(store: SqlStore) -> None:
    bench = Bench(store, commits=2, text=CONDITIONAL)
    bench.conditions = conditions = FailingConditions()
    bench.restart()
    bench.drain()
    present, firings = bench.loop._present(), store.entry_firings("loop", 1, "a")
    dead, done = (store.one_entry("loop", number) for number in (1, 2))
    assert dead
    assert done
    with pytest.raises(SinkError, match="DIVIDE_BY_ZERO"):
        present.entries(dead, firings)
    conditions.why = None
    (asked,), _ = present.entries(dead, firings)
    assert asked.firing_ids == tuple(firings.hex_ids().to_pylist())
    spent = {"state": "held", "attempts": 9, "error": "x", "details": "x", "fate": "passed"}
    renewed = present.renewed(replace(done, text="old", target="gone", **spent))  # type: ignore[arg-type]
    assert isinstance(renewed, Entry)
    for made, rule, place in ((asked, "a", 1), (renewed, "b", 2)):
        assert (made.number, made.place, made.target) == (0, place, "out")
        assert made.app_id == f"tidegate/{store.id}/loop/{rule}/redrive/{place}"
        assert made.target_version == 0
        assert made.text == "INSERT INTO out SELECT id FROM event"
        assert (made.state, made.attempts, made.error, made.fate) == ("pending", 0, None, None)
    assert renewed.details is None


def test_g07_an_outage_is_no_attempt_and_answers_no_operator(store: SqlStore) -> None:
    bench = Bench(store, commits=1)
    away = OutageError("table-unreadable", "the storage is away", "wait")
    bench.sink.fails = lambda entry: away
    for control in ("", "skip"):
        if control:
            store.ask("loop", control, "1")
        with pytest.raises(OutageError):
            bench.drain()
        bench.loop.recover()
    assert [control.subject for control in store.pending_controls("loop")] == ["1"]
    entries = store.open_entries("loop")
    assert [(e.state, e.attempts, e.error) for e in entries] == [("pending", 0, None)] * 2


WIDER = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": "long", "nullable": True, "metadata": {}}
            for name in ("id", "more")
        ],
    }
)


def test_g16b_a_new_column_is_prepared_for_before_anything_is_stored(store: SqlStore) -> None:
    bench = Bench(store, commits=4)
    bench.feed.schemas = {2: WIDER}
    failing = [OSError("disk")] * 2
    prepare = bench.loop.prepare

    def failing_at_first(schemas: Mapping[str, str], proven: Collection[str]) -> Prepared:
        if failing:
            raise failing.pop()
        return prepare(schemas, proven)

    bench.loop.prepare = failing_at_first
    bench.drain()
    assert not failing
    assert [schemas["t"] for schemas in bench.prepared] == [SCHEMA, WIDER]
    assert bench.sink.effects == bench.expected()


def test_g16b_a_text_that_no_longer_fits_stops_nobody_and_is_kept(store: SqlStore) -> None:
    """The target has no room for the new column: the statement fails when it runs, as it must."""
    bench = Bench(store, commits=4)
    bench.feed.schemas = {2: WIDER}
    bench.unfit = "a"
    bench.sink.fails = lambda entry: SinkError("[WIDTH]") if entry.number == 3 else None
    bench.drain()
    assert bench.states() == [(3, "pending")]
    bench.sink.fails = lambda entry: None
    bench.clock.later(60)
    bench.drain()
    assert bench.sink.effects == bench.expected()
    assert bench.loop.basis.capture.used("t", WIDER) == {"id", "more"}  # it reads all there is


def test_g13_an_enable_of_a_rule_that_is_not_parked_is_answered(store: SqlStore) -> None:
    bench = Bench(store, commits=1, text=LIMITED)
    bench.drain()
    store.ask("loop", "enable", "a")
    seen = bench.loop.visible()
    assert bench.drain() == []
    assert not store.pending_controls("loop")
    assert bench.loop.done(seen)


def test_g13_a_parked_rule_that_is_deleted_is_forgotten(store: SqlStore) -> None:
    bench = Bench(store, commits=4, text=LIMITED)
    bench.drain()
    lines = LIMITED.splitlines()
    bench.write("\n".join(line for line in lines if line[:4] not in ("  a:", "  c:")))
    bench.restart()
    bench.feed.commits = 5
    bench.drain()
    assert parked(store) == []
