"""A short life of an engine over memory, each call of which may fail, and how it ends."""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from tests.simulate.judge import AllHold, Analyst, every_entry, fields_of, ids_of, out_of_order
from tests.support import make
from tests.support.bench import Bench
from tests.support.make import BEGIN, SECOND
from tests.support.memory import WIDER, Clock, MemoryFeed, MemorySink
from tidegate.engine.app.adopt import check_store
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.markers import Marked, Noted, Notes, parse_marker
from tidegate.engine.core.ports import OutageError, SinkError, TableHead
from tidegate.engine.core.values import Cursor, Firings, Signal
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store.tables import controls
from tidegate.rules.model import Table

BOOK = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events:
  row: {on: insert, table: t}
  load: {on: transaction, table: t}
  told: {signal: {id: bigint}}
scripts:
  counting:
    text: |
      in {long id;} row out {long id; long n;} counted
      (row(x) {n = n + 1; !> counted({id: x.id, n: n});} elapse[1 day]()?)*
rules:
  counts: {on: counted, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  asked:
    on: row
    if: id >= 0
    on_dead: hold
    do: [{sql: INSERT INTO out SELECT id FROM event}, {sql: INSERT INTO out SELECT id FROM event}]
  single:
    on: row
    per: id
    for_each: firing
    do: [{sql: INSERT INTO out SELECT id FROM event}]
    within: 30 min
    otherwise: [{sql: INSERT INTO out SELECT id FROM event}]
  begun:
    on: begin_of single
    per: id
    for_each: firing
    do: [{sql: INSERT INTO out SELECT id FROM event}]
  tells: {on: row, per: id, do: [{signal: {told: {id: id + 0 * hash(id)}}}]}
  heard: {on: told, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  pair: {on: row ; row, context: chronicle}
  rare:
    on: row
    cooldown: 2 s
    dedupe: {by: [id], within: 1 d}
    do: [{sql: INSERT INTO out SELECT id FROM event}]
  later:
    on: row
    if: id >= 0
    coupling: detached
    throttle: 1 per 2 s
    do: [{sql: INSERT INTO out SELECT id FROM event}]
  sampled:
    on: "P*(load, [1 h]: 'SELECT max(id) FROM t', load)"
    context: continuous
    if: max(sample) > 0
"""
EFFECTS = {
    **{("counts", n): 1 for n in (0, 1, 2)},
    **{("asked", n): 2 for n in (0, 1, 2)},
    **{("single", n): 1 for n in (0, 1, 2)},  # the first is skipped, its alternative done
    **{("begun", n): 1 for n in (0, 1, 2)},
    **{("heard", n): 1 for n in (0, 1, 2, 100)},
    **{(rule, n): 1 for rule in ("rare", "later") for n in (0, 2)},  # the second is damped
}
LATE = ("heard", "begun")  # by signals of the engine's own: at instants that depend on the calls
LATER = BEGIN + 7_200 * SECOND
BESIDE_PORTS = {  # what is asked of a store, too
    *("Store.last_entry", "Store.app_ids", "Signals.raise_signal"),
    *("Lease.acquire", "Lease.check", "Lease.release"),
}
NOT_COUNTED = {
    "Buckets.give_up": "only of a bucket that fails: tests/loop/test_given_up.py",
    "Feed.decide": "asked only of predicates over old and new rows: tests/capture/test_filters.py",
    "Feed.earliest": "of a snapshot with times: tests/connectors/delta/test_event_time.py",
    "Sink.ready": "in a thread of its own, whose failure nobody notices",
}
FAULTS = tuple(
    f"{when} {what}" for when in ("before", "after") for what in ("killed", "outage", "bug")
)


class Killed(BaseException):
    """The process ends here: nothing of it catches this."""


@dataclass(frozen=True)
class Fault:
    """The first call of a method from a number on fails: before it is made, or after it, so that
    only its answer is lost."""

    method: str
    kind: str
    number: int


@dataclass
class Calls:
    """Every call of a port, by number; some fail, one after the other."""

    faults: list[Fault] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    failed: list[Fault] = field(default_factory=list)

    def through(self, port: str, real: Any) -> Any:
        return Counted(self, port, real)

    def call(self, name: str, real: Callable[..., Any], given: Sequence[Any]) -> Any:
        number = len(self.made)
        self.made.append(name)
        kind = ""
        if self.faults and (next_ := self.faults[0]).number <= number and next_.method == name:
            self.failed.append(self.faults.pop(0))
            kind = next_.kind
        if kind.startswith("before"):
            self.fail(name, kind)
        found = real(*given)
        if kind:
            self.fail(name, kind)
        return found

    def fail(self, name: str, kind: str) -> None:
        if kind.endswith("killed"):
            raise Killed
        if kind.endswith("bug"):
            raise RuntimeError("a bug")
        tables = name.startswith(("Feed.", "Sink.", "Conditions."))
        away = "table-unreadable" if tables else "store-unreachable"
        raise OutageError(away, "away")


class Counted:
    """A port whose calls are counted; those of a ledger by its parts."""

    def __init__(self, calls: Calls, port: str, real: Any) -> None:
        self._calls, self._port, self._real = calls, port, real

    def __getattr__(self, name: str) -> Any:
        real, full = getattr(self._real, name), f"{self._port}.{name}"
        if full == "Store.of":
            return lambda *given: Counted(self._calls, "Ledger", real(*given))
        if self._port == "Ledger":
            return Counted(self._calls, name.title(), real)
        if not callable(real) or full in NOT_COUNTED:
            return real
        return lambda *given, **named: self._calls.call(full, partial(real, **named), given)


class LaterFeed(MemoryFeed):
    """The third commit adds a column, and is of a time after the first bucket."""

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        head = super().head(table, after)
        later = (replace(c, instant=LATER - SECOND) if c.version == 2 else c for c in head.commits)
        return replace(head, commits=tuple(later))

    def version_at(self, table: Table, instant: int) -> int | None:
        found = super().version_at(table, instant)
        return found if found != 2 or instant >= LATER - SECOND else 1


class RefusingSink(MemorySink):
    """The first statements of two rules fail, whatever their attempt, until they are passed over;
    these are sealed all the same. The first of another outlasts its deadline once."""

    def __init__(self) -> None:
        super().__init__()
        self.overrun = False

    def run(self, entry: Entry, firings: Firings) -> None:
        if entry.rule == "counts" and not self.overrun:
            self.overrun = True
            raise SinkError("[OVERRUN] late", overrun=True)
        self.refuse(entry, firings)
        super().run(entry, firings)

    def run_together(self, entries: Sequence[tuple[Entry, Firings]]) -> None:
        for entry, firings in entries:
            self.refuse(entry, firings)
        super().run_together(entries)

    def refuse(self, entry: Entry, firings: Firings) -> None:
        if (
            entry.rule in ("asked", "single")
            and entry.turn.place == entry.number
            and entry.bucket == 1
        ):
            first = firings.rows["id"].to_pylist()[0] == 0
            if first and entry.statement.action == 0:
                raise SinkError("[NO] never")

    def fields(self, entry: Entry, firings: Firings) -> pa.Table:
        return fields_of(firings)


@dataclass
class SinkMarkers:
    """The markers that stand in the target of a sink."""

    sink: MemorySink

    def latest(self, tables: Sequence[str]) -> tuple[Marked, ...]:
        numbers: dict[str, int] = {}
        for app_id, number, _ in self.sink.commits:
            numbers[app_id] = max(number, numbers.get(app_id, 0))
        found = (parse_marker(app_id, number, BEGIN) for app_id, number in numbers.items())
        return tuple(Marked(t, f"/{t}", tuple(m for m in found if m)) for t in tables)

    def noted(self, table: str, after: int) -> Notes:
        commits = [
            Noted(version, marker, len(ids or ()), sealed=ids is None)
            for version, (app_id, number, ids) in enumerate(self.sink.commits, 1)
            if (marker := parse_marker(app_id, number, BEGIN)) and version > after
        ]
        return Notes(tuple(commits), 0)


class Scenario(Bench):
    """An engine's life in short: commits, a signal of a client, entries that fail, of which one is
    skipped and one redriven, and forgetting; gone on with after each fault as an engine does."""

    def __init__(self, store: SqlStore, calls: Calls) -> None:
        self.real = store
        self.store = calls.through("Store", store)
        self.memory_feed, self.landed = LaterFeed(2), RefusingSink()
        self.memory_feed.schemas = {2: WIDER}
        self.feed: Any = calls.through("Feed", self.memory_feed)
        self.sink: Any = calls.through("Sink", self.landed)
        self.conditions = calls.through("Conditions", AllHold())
        self.clock = Clock()
        self.write(BOOK)

    def analyst(self) -> Analyst:
        return Analyst()

    def restart(self) -> None:
        super().restart()
        self.loop.ports.check_lease = lambda: None
        self.loop.runner.check = self.ledger.lease.check
        self.share()
        check_store(self.book, self.store, SinkMarkers(self.landed), {"out"})
        self.store.of("loop").versions.register(BOOK, None)

    def begin(self) -> None:
        """A process, and where it fails to start, another one."""
        while True:
            with suppress(Killed, OutageError, RuntimeError):
                return self.restart()

    def through(self, do: Callable[[], object]) -> None:
        """What an engine does: again where something was away, by a new process where it ended."""
        while True:
            try:
                do()
            except OutageError:
                with suppress(OutageError):
                    self.loop.recover()
            except (Killed, RuntimeError):
                self.begin()
            else:
                return

    def live(self) -> dict[str, Any]:
        """The whole of it; how the store ends."""
        self.begin()
        self.rest(seconds=5)
        told = Signal("one", "told", {"id": 100}, self.clock())
        self.through(lambda: self.store.of("loop").signals.raise_signal(told))
        self.rest(seconds=5)
        half_way, self.clock.at = self.clock.at, LATER
        self.memory_feed.commits = 3
        self.through(self.drain)
        stuck = [e for e in self.real.of("loop").rule_states.obstacles() if isinstance(e, Entry)]
        first = {e.rule: e for e in reversed(stuck)}
        assert {"asked", "single"} <= first.keys()
        assert ids_of(self.real, first["single"]) == [0]
        self.real.of("loop").controls.ask("skip", str(first["single"].number))
        self.real.of("loop").controls.ask("redrive", str(first["asked"].number))
        self.real.of("loop").controls.ask("enable", "pair")
        self.rest(seconds=100)
        self.through(lambda: self.loop.compact())
        before = self.kept()
        self.through(lambda: self.purge(half_way))
        after = [(e.rule, e.state) for e in every_entry(self.real)]
        self.through(lambda: self.ledger.lease.release())
        return {
            **before,
            "after the purge": Counter(after),
            "held by": self.real.of("loop").lease.holder(),
        }

    def rest(self, seconds: int) -> None:
        """All there is to do, what failed on the way included, which waits for its next attempt."""
        for _ in range(3):
            self.through(self.drain)
            self.clock.later(seconds)

    def purge(self, before: int) -> None:
        retention, settings = self.loop.ports.ledger.retention, self.loop.compiled.rulebook.settings
        while retention.purge(before, before, 10) == 10:
            pass
        retention.remove_files(settings, self.clock())
        retention.remove_lost_files(settings, self.clock())

    def kept(self) -> dict[str, Any]:
        """What the store has, without what an attempt more, or a bucket more, changes."""
        state, entries = self.real.of("loop").buckets.load(), every_entry(self.real)
        firings = list(self.real.of("loop").firings.listed())
        asked = sa.select(controls.c.kind, controls.c.answer)
        with self.real.database.read() as connection:
            answers = sorted(tuple(row) for row in connection.execute(asked))
        return {
            "entries": Counter(
                (e.rule, e.kind, e.statement.action, e.state, *ids_of(self.real, e))
                for e in entries
            ),
            "cursors": {name: cursor.version for name, cursor in state.cursors.items()},
            "carried": {name: table.to_pydict() for name, table in state.carried.tables.items()},
            "firings": Counter(f["firing_id"] for f in firings if f["rule"] not in LATE),
            "late": Counter(f["rule"] for f in firings if f["rule"] in LATE),
            "damped": Counter((f["rule"], f["damped"]) for f in firings if "damped" in f),
            "counted": {
                r["rule"]: r["damped_by"] for r in self.real.of("loop").status.shown()["rules"]
            },
            "samples": sampled(firings),
            "answers": answers,
            "unplaced": make.unplaced_by_event(self.real, "loop"),
            "parked": state.parked,
            "effects": self.landed.effects,
            "out of order": out_of_order(self.landed, entries),
            "stuck": sum(entry.state in ("pending", "held") for entry in entries),
        }


def sampled(firings: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """What the ticks of each firing saw."""
    ticks = ([one["sample"] for one in f["constituents"] if "sample" in one] for f in firings)
    return [some for some in ticks if some]


class Stores:
    """One store, empty again for each run: a new one would compile its statements anew. It opens
    its file by itself whenever that was closed."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "store.db"
        self.store = open_store(f"sqlite:///{self.file}", create=True)
        self.empty = self.backup()

    def scenario(self, calls: Calls) -> Scenario:
        self.restore(self.empty)
        return Scenario(self.store, calls)

    def backup(self) -> bytes:
        self.store.close()
        return self.file.read_bytes()

    def restore(self, backup: bytes) -> None:
        self.store.close()
        for file in self.file.parent.iterdir():
            file.unlink()
        self.file.write_bytes(backup)


def assert_complete(found: Mapping[str, Any]) -> None:
    """Everything was done, once and in order."""
    assert found["effects"] == EFFECTS
    assert (found["stuck"], found["out of order"], found["unplaced"]) == (0, 0, {})
    assert found["samples"] == [[1]]
    assert found["damped"] == {("rare", "cooldown"): 1, ("later", "throttle"): 1}
    counted = {rule: damped for rule, damped in found["counted"].items() if damped}
    assert counted == {"rare": {"cooldown": 1}, "later": {"throttle": 1}}
