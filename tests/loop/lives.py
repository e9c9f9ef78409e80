"""Lives of two engines with one history: the driver detects for one, anybody for the other, which
crashes, is edited, moves its files and is copied on the way."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from tests.loop.test_site import Beside
from tests.support.bench import NoConditions
from tests.support.executors import InProcess
from tests.support.make import BEGIN, SECOND
from tests.support.memory import Clock, Commits, Growing, Made, MemoryFeed, MemorySink
from tidegate.engine.core import failpoints
from tidegate.engine.core.failpoints import FailpointError
from tidegate.engine.core.ports import FEED_KINDS, KIND
from tidegate.engine.core.values import Signal
from tidegate.engine.detect.events.state import partitions, parts
from tidegate.engine.detect.events.step import component_task
from tidegate.engine.store import SqlStore, open_store, shelf
from tidegate.engine.store import tables as t
from tidegate.engine.store.outbox import stored_firings
from tidegate.engine.store.state_files import StateFiles
from tidegate.rules.errors import EngineError

DAY = 24 * 3_600 * SECOND
HEAD = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events:
  row: {on: insert, table: t}
  gone: {on: delete, table: t}
  ping: {signal: {id: bigint}}
  bell: {cron: "* * * * *", misfire: fire_all}
settings: {SETTINGS}
"""
SCRIPTS = {
    "counts": [
        """in {long id;} row group(row.id % 3)
      out {long id; long n;} seen, long late
      (row(x) {n = n + 1; !> seen({id: x.id, n: n});} | elapse[2 seconds]() {!> late(n);})*""",
        """in {long id;} row group(row.id % 3)
      out {long id; long n;} seen, long late
      (row(x) {n = n + x.id; !> seen({id: x.id, n: n});} elapse[3 seconds]() {!> late(n);})*""",
        """in {long id;} row group(row.id % 4), {} bell
      out {long id; long n;} seen, long late
      (row(x) {n = n + 1; !> seen({id: x.id, n: n});} | bell() {!> late(100 + n);}
       | elapse[2 seconds]() {!> late(n);})*""",
        """in {long id;} row group(row.id % 3), {long id;} ping group(ping.id % 3)
      out {long id; long n;} seen, long late
      (row(x) {n = 12 / (x.id - 2); !> seen({id: x.id, n: n});} | ping(p) {!> late(p.id);}
       | elapse[1 seconds]() {!> late(n);} elapse[1 seconds]() {!> late(n + 1000);})*""",
        """in {long id;} row group(row.id % 3)
      out {long id; long n;} seen, long late
      (row(x) {n = n + 1; n > RUN ? while (true) {n = n + 1;} !> seen({id: x.id, n: n});}
       | elapse[2 seconds]() {!> late(n);})*""",
    ],
    "totals": [
        """in {long id; long n;} seen
      out long total
      (seen(x) {all = all + x.n; !> total(all);})*""",
        """in {long id; long n;} seen group(seen.id)
      out long total
      (seen(x) {all = all + x.n; !> total(all);} | elapse[2 seconds]() {!> total(0);})*""",
    ],
}
RULES = {
    "open": [
        '{on: "not(gone)[row, [2 s]]", per: id, DO}',
        '{on: "not(gone)[row, [3 s]]", per: id, DO}',
    ],
    "pair": ["{on: row and gone, per: id, DO}", "{on: row ; row, per: id, context: chronicle, DO}"],
    "pinged": ["{on: row ; ping, per: id, DO}", '{on: "ping + [2 s]", per: id}'],
    "plain": ["{on: row, per: id, DO}"],
    "others": ["{on: row ; row}", '{on: "every(3, row)"}'],
    "belled": ['{on: "A*(row, row, [2 s])", per: id}', "{on: row ; bell, per: {row: id}}"],
    "lates": ["{on: late}", "{on: late ; late}"],
    "seens": ["{on: seen ; seen, per: id}", "{on: seen, per: n}"],
    "sums": ["{on: total}"],
}
DO = "do: [{sql: INSERT INTO out SELECT id FROM event}]"
POINTS = [
    "look.after", "list.before", "plan.chosen", "plan.after", "compile.after", "read.before",
    "read.after", "detect.before", "detect.after", "evaluate.after", "take.after", "commit.begun",
    "commit.bucket", "commit.carried", "commit.middle", "commit.firings", "commit.before",
    "commit.after", "queue.added", "action.before", "statement.before", "statement.after",
    "action.after_commit", "settle.begun", "settle.before", "settle.after", "state.middle",
    "state.written", "rows.middle", "rows.written", "state.deleted", "acted.before",
    "recover.loaded",
]  # fmt: skip


class KilledError(BaseException):
    """The process ends."""


class Fixed(Clock):
    """It stands still until it is set."""

    def __call__(self) -> int:
        return self.at


class Rows(Commits):
    """Of several rows each."""

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[version] for version in range(*at.indices(len(self)))]
        assert isinstance(self.feed, RowsFeed)
        instant, some = self.feed.history_of[at]
        ids = pa.array([n for n, _ in some], pa.int64())
        kinds = pa.array([FEED_KINDS[kind] for _, kind in some], pa.int64())
        return Made(instant, pa.table({"id": ids, "more": ids, KIND: kinds}), "WRITE")


class RowsFeed(MemoryFeed):
    """Commits of several rows each: `history_of`."""

    def __init__(self, history: list[tuple[int, list[tuple[int, str]]]]) -> None:
        super().__init__(0)
        self.history_of = history
        made = Rows(self)
        self.tables.default_factory = lambda: Growing("t", made)  # type: ignore[attr-defined]


class Twice:
    """A call whose first answer is lost."""

    def __init__(self, call: Any) -> None:
        self.call = call

    def __call__(self, *given: Any) -> Any:
        self.call(*given)
        return self.call(*given)


class Chancy(InProcess):
    """Lost, or run twice, by chance."""

    def __init__(self, chance: random.Random, sights: Counter[str]) -> None:
        super().__init__(chance.choice((1, 2, 3)), chance.choice((1, 2, 5)))
        self.chance, self.sights = chance, sights
        self.fails = self.repeats = 0.0

    def map(self, call: Any, given: Any) -> Any:
        self.sights["map"] += 1
        return self.lost(super().map(Twice(call) if self.repeated() else call, given))

    def map_rows(self, rows: Any, cut: Any, call: Any, given: Any) -> Any:
        self.sights["map_rows"] += 1
        if self.repeated():
            cut, call = Twice(cut), Twice(call)
        return self.lost(super().map_rows(rows, cut, call, given))

    def repeated(self) -> bool:
        return self.chance.random() < self.repeats

    def lost(self, made: Any) -> Any:
        if self.chance.random() < self.fails:
            self.sights["executors lost"] += 1
            raise OSError("executors were lost")
        return made


class One(Beside):
    """An engine of a life."""

    def __init__(self, store: SqlStore, feed: MemoryFeed, text: str, beside: InProcess) -> None:
        self.executors_beside = beside
        self.reports = []
        self.clock = Fixed()
        self.store, self.feed, self.sink = store, feed, MemorySink()
        self.clock.at = BEGIN
        self.conditions = NoConditions()
        self.unfit = ""
        self.write(text)
        self.restart()


def book_of(chance: random.Random, on_error: str) -> dict[str, Any]:
    """What a book has: by script and rule a text, or None."""
    found: dict[str, Any] = {"on_error": on_error, "run": chance.choice((3, 8, 20))}
    for name, texts in SCRIPTS.items():
        found[name] = chance.choice(texts)
    for name, texts in RULES.items():
        often = 0.15 if name in ("others", "belled") else 0.5
        found[name] = chance.choice(texts) if chance.random() < often else None
    return found


def text_of(book: Mapping[str, Any], settings: str) -> str:
    text = HEAD.replace("SETTINGS", settings) + "scripts:\n"
    for name in SCRIPTS:
        on_error = book["on_error"]
        own = {"ignore": "    on_error: ignore\n", "log": "", "stop": "    on_error: stop\n"}[
            on_error
        ]
        body = book[name].replace("RUN", str(book["run"]))
        text += f"  {name}:\n    text: |\n      {body}\n{own}"
        if book.get("expire") and "group" in body:
            text += "    expire_key_after: 5 seconds\n"
    text += "rules:\n  always: {on: row, per: id}\n"
    for name in RULES:
        if book[name] is not None:
            text += f"  {name}: {book[name].replace('DO', DO)}\n"
    return text


def all_of(store: SqlStore, sink: Any) -> dict[str, Any]:
    ledger = store.of("loop")
    shown = ledger.status.shown()
    rows = [
        (
            one["rule"],
            one["firing_id"],
            one["start"],
            one["end"],
            str(one["key"]),
            str(one["constituents"]),
            one["condition"],
        )
        for one in ledger.firings.listed()
    ]
    return {
        "firings": sorted(rows),
        "parked": sorted(
            (one["rule"], one["reason"], one["passed_over"]) for one in shown["parked_rules"]
        ),
        "rejected": shown["rejected_rows"],
        "effects": sorted(sink.effects.items()),
    }


def order_of(store: SqlStore) -> dict[str, list[str]]:
    """By rule the ids in order of bucket and place."""
    found: dict[str, list[str]] = {}
    for one in store.of("loop").firings.listed():
        found.setdefault(one["rule"], []).append(one["firing_id"])
    return found


def needed(store: SqlStore) -> set[str]:
    """The files that something points to, full paths."""
    ledger = store.of("loop")
    reader = StateFiles(store.database, "loop").reader
    with store.database.read() as connection:
        found = {f for f in connection.execute(sa.select(t.carried.c.file)).scalars() if f}
        pairs = connection.execute(sa.select(t.firings.c.bucket, t.firings.c.rule)).all()
        for bucket, rule in pairs:
            for fired in stored_firings(connection, ledger.firings, bucket, [rule]):
                found |= {file.name for file in fired.files}
    return {str(Path(reader.full(one).removeprefix("file://"))) for one in found}


class Life:
    """What happens to the two by chance. `plain`: the driver detects; `other`: anybody does."""

    def __init__(self, folder: Path, seed: int, patched: Any) -> None:
        self.chance = chance = random.Random(seed)
        self.seed, self.folder, self.sights = seed, folder, Counter[str]()
        self.patched = patched
        self.history: list[tuple[int, list[tuple[int, str]]]] = []
        self.stops = chance.random() < 0.25
        self.small = not self.stops and chance.random() < 0.4
        self.timers = 100_000 if self.stops or chance.random() < 0.6 else chance.choice((1, 2, 5))
        self.faults = not self.stops
        self.book = book_of(chance, "stop" if self.stops else chance.choice(("log", "ignore")))
        self.book["expire"] = chance.random() < 0.3
        self.places = [
            None,
            str(folder / "one"),
            f"file://{folder}/two",
            "store",
            str(folder / "a [b] {c} 100%41 *?\\#,x=y"),
            str(folder / "_one"),
        ]
        self.path, self.detect = (
            chance.choice(self.places),
            chance.choice(("spark", "spark", "driver")),
        )
        self.parts = chance.choice((1, 4, 16))
        self.copies = 0
        self.signals = 0
        self.now = BEGIN + SECOND
        plain = self.opened(f"{folder}/plain.db")
        other = self.opened(f"{folder}/s.db")
        self.plain = One(plain, RowsFeed(self.history), self.text(plain=True), InProcess())
        self.beside = Chancy(chance, self.sights)
        self.other = One(other, RowsFeed(self.history), self.text(), self.beside)
        self.others: list[One] = []

    def opened(self, path: str) -> SqlStore:
        store = open_store(f"sqlite:///{path}", create=not Path(path).exists())
        store.of("loop").versions.register("", None)
        return store

    def text(self, *, plain: bool = False) -> str:
        own = f"commit_slack_ms: 0, script_steps_max: 60, state_partitions: {self.parts}"
        own += f", timers_per_bucket_max: {self.timers}"
        if self.small:
            own += ", bucket_rows_max: 2, spark_rows_max: 3, driver_rows_max: 4"
        if plain:
            return text_of(self.book, own + ", detect: driver")
        where = "" if self.path is None else f", state_path: {self.path!r}"
        where = where.replace("\\\\", "\\") if self.path and "\\" in self.path else where
        return text_of(self.book, own + f", detect: {self.detect}{where}, state_unused_hours: 1")

    # what happens ------------------------------------------------------------------------------

    def live(self, steps: int) -> None:
        for _ in range(steps):
            self.arrive()
            self.now += self.chance.choice(
                (0, 1, 500, 1_000, SECOND, 2 * SECOND, 3 * SECOND, 70 * SECOND)
            )
            self.now += self.chance.choice((0, 1, 998, 999, 500))
            self.knobs()
            self.drain()
            self.compare()
            what = self.chance.choice(
                ["edit", "switch", "change", "copy", "remove", "rest", "rest"]
            )
            getattr(self, what)()
        self.now += 100 * SECOND
        self.drain()
        self.compare()
        self.remove()

    def arrive(self) -> None:
        chance = self.chance
        for _ in range(chance.choice((0, 1, 1, 2, 5))):
            some = [
                (chance.randrange(6), chance.choice(("insert", "insert", "delete")))
                for _ in range(chance.choice((1, 1, 3, 8)))
            ]
            last = self.history[-1][0] if self.history else BEGIN
            last = max(
                last,
                *(
                    (one.loop.state.watermark or 0) // 1000 * 1000
                    for one in (self.plain, self.other)
                ),
            )
            at = max(last + 1_000, self.now // 1000 * 1000 - chance.choice((0, 1_000, SECOND // 2)))
            self.history.append((at, some))
            self.now = max(self.now, at + chance.choice((0, 998, 1_000, 5_000)))
        for one in (self.plain, self.other):
            one.feed.commits = len(self.history)
        for _ in range(chance.choice((0, 0, 1, 3))):
            self.signals += 1
            grid = chance.choice((0, 1, 997, 998, 999))
            at = min(self.now, self.now // 1000 * 1000 - 1000 * chance.randrange(3) + grid)
            at = max(at, *(1 + (one.loop.state.watermark or 0) for one in (self.plain, self.other)))
            signal = Signal(f"s{self.signals}", "ping", {"id": chance.randrange(6)}, at)
            for one in (self.plain, self.other):
                one.store.of("loop").signals.raise_signal(signal)

    def knobs(self) -> None:
        chance = self.chance
        self.patched.setattr(shelf, "BYTES_MIN", chance.choice((1, 1, 900, 10**9)))
        self.patched.setattr(shelf, "ROWS_BYTES_MIN", chance.choice((1, 1, 10**9)))
        self.patched.setattr(partitions, "ROWS_MAX", chance.choice((0, 2, 4_000)))
        self.patched.setattr(component_task, "WORKER_ROWS", chance.choice((2, 1_000_000)))
        self.patched.setattr(parts, "FILES_MAX", chance.choice((1, 3, 1_000)))
        self.beside.slots = chance.choice((1, 2, 3, 16))
        self.beside.fails = chance.choice((0, 0, 0.3)) if self.faults else 0
        self.beside.repeats = chance.choice((0, 0.5))

    def drain(self) -> None:
        chance = self.chance
        self.plain.clock.at = self.other.clock.at = self.now
        failpoints.arm("")
        stopped = self.end(self.plain)
        if self.faults and chance.random() < 0.5:
            points, kinds = chance.sample(POINTS, 2), ("exit", "raise", "raise", "late")
            armed = (f"{p}={chance.choice(kinds)}:{chance.choice((1, 1, 2, 3))}" for p in points)
            failpoints.arm(",".join(armed))
        tries = 0
        while True:
            tries += 1
            assert tries < 40
            try:
                told = self.end(self.other)
                break
            except KilledError:
                self.sights["killed"] += 1
                if chance.random() < 0.3:
                    self.detect = chance.choice(("spark", "driver"))
                    self.path = chance.choice(self.places)
                    self.other.write(self.text())
                self.again()
            except EngineError as error:
                if error.code != "bucket-failed" or tries > 35:
                    raise
                self.sights["bucket-failed"] += 1
                self.again()
            except (FailpointError, OSError):
                self.sights["raised"] += 1
                self.again()
        failpoints.arm("")
        assert told == stopped, (self.seed, told, stopped)
        if told:
            self.sights["script stopped"] += 1
            assert self.plain.loop.state.watermark == self.other.loop.state.watermark
            self.edit()
            self.drain()

    def again(self) -> None:
        while True:
            try:
                if self.chance.random() < 0.5:
                    self.other.loop.recover()
                else:
                    self.other.restart()
                return
            except (FailpointError, KilledError):
                self.sights["recover failed"] += 1

    def end(self, one: One) -> str:
        """Buckets until there are no more; what stops it."""
        while True:
            try:
                report = one.loop.bucket()
            except EngineError as error:
                if error.code != "script-fault":
                    raise
                return error.message
            if report is None:
                at = one.clock.at
                for n in range(1, 30):
                    if not one.ledger.outbox.open_entries():
                        break
                    one.clock.at = at + n * 3_600 * SECOND
                    try:
                        one.loop.work()
                    finally:
                        one.clock.at = at
                left = one.ledger.outbox.open_entries()
                assert not left, (self.seed, [(e.rule, e.state, e.progress) for e in left][:3])
                return ""
            if one is self.other:
                self.sights[f"by {report.detected_by}"] += 1
                if "they read" in report.because:
                    self.sights["they read"] += 1

    # what an operator does ---------------------------------------------------------------------

    def level(self) -> None:
        """Both have the same watermark: what is asked of them has the same instant."""
        self.signals += 1
        self.now += 5_000
        signal = Signal(f"s{self.signals}", "ping", {"id": 77}, self.now - 2_000)
        for one in (self.plain, self.other):
            one.store.of("loop").signals.raise_signal(signal)
        self.drain()
        assert self.plain.loop.state.watermark == self.other.loop.state.watermark

    def edit(self) -> None:
        if not self.stops:
            self.level()
        chance, new = self.chance, book_of(self.chance, self.book["on_error"])
        kept = {"run": self.book["run"]}
        for name in (*SCRIPTS, *RULES):
            if chance.random() < 0.6:
                kept[name] = self.book[name]
        self.book = {**new, **kept, "expire": self.book["expire"]}
        if self.stops and chance.random() < 0.5:
            self.book["counts"] = SCRIPTS["counts"][chance.choice((0, 1, 2))]
        self.sights["edited"] += 1
        self.begin()

    def begin(self) -> None:
        self.plain.write(self.text(plain=True))
        self.other.write(self.text())
        self.plain.restart()
        self.other.restart()

    def switch(self) -> None:
        self.level()
        name = self.chance.choice([n for n in (*SCRIPTS, *RULES) if self.book[n] is not None])
        word = self.chance.choice(("disable", "enable"))
        if word == "enable" and name not in self.plain.loop.state.stopped:
            parked = sorted(self.plain.loop.state.stopped)
            if not parked:
                return
            name = self.chance.choice(parked)
        if name in SCRIPTS or name in RULES:
            for one in (self.plain, self.other):
                one.store.of("loop").controls.ask(word, name)
            self.sights[word] += 1

    def change(self) -> None:
        self.detect, self.path = (
            self.chance.choice(("spark", "spark", "driver", "auto")),
            self.chance.choice(self.places),
        )
        self.other.write(self.text())
        self.other.restart()
        self.sights["changed"] += 1

    def rest(self) -> None:
        pass

    def copy(self) -> None:
        """The life goes on on a copy; the original lives a little, too, and removes files."""
        self.copies += 1
        old = self.other
        file = old.store.database.file
        assert file is not None
        new = self.folder / f"c{self.copies}.db"
        with closing(sqlite3.connect(file)) as one, closing(sqlite3.connect(new)) as two:
            one.backup(two)
        if Path(f"{file}.state").exists():
            shutil.copytree(f"{file}.state", f"{new}.state")
        store = self.opened(str(new))
        sink = old.sink
        self.other = One(store, RowsFeed(self.history), self.text(), self.beside)
        self.other.sink = sink
        self.other.feed.commits = len(self.history)
        self.other.clock.at = self.now

        old.sink = type(sink)()
        self.others.append(old)
        self.other.restart()
        self.sights["copied"] += 1
        self.sights["copied with files"] += bool(needed(store))
        self.arrive()  # the copy's first bucket takes the files over, the original's removes them
        self.now += SECOND
        self.drain()
        for _ in range(2):
            retention = old.ledger.retention
            with suppress(EngineError):
                old.feed.commits = len(self.history)
                old.clock.at = self.now
                while old.loop.bucket() is not None:
                    pass
            settings = old.book.settings
            retention.remove_files(settings, self.now + DAY)
            self.sights["original removed"] += retention.remove_lost_files(
                settings, int(time.time() * 1e6) + DAY
            )
        self.compare()

    def remove(self) -> None:
        before = needed(self.other.store)
        missing = [f for f in before if not Path(f).exists()]
        assert not missing, (self.seed, missing)
        retention, settings = self.other.ledger.retention, self.other.book.settings
        if self.chance.random() < 0.3:
            for one in (self.plain, self.other):
                one.ledger.retention.purge(self.now - 3 * SECOND, self.now - 3 * SECOND, 100_000)
            self.sights["purged"] += 1
        for _ in range(5):
            retention.remove_files(settings, self.now + DAY)
        found = self.here()
        retention.remove_lost_files(settings, int(time.time() * 1e6) + DAY)
        left = self.here()
        self.sights["lost removed"] += len(found - left)
        need = needed(self.other.store)
        missing = [f for f in need if not Path(f).exists()]
        assert not missing, (self.seed, missing)
        with self.other.store.database.read() as connection:
            told = {
                self.full(f) for f in connection.execute(sa.select(t.state_files.c.file)).scalars()
            }
        assert need <= told, (self.seed, need - told)
        folders = {file.rpartition("/")[0] for file in told}  # others are not looked at
        extra = {f for f in left - need if self.home() in f and f.rpartition("/")[0] in folders}
        assert not extra, (self.seed, extra)
        self.sights["removed"] += 1
        self.sights["files needed"] += len(need)

    def home(self) -> str:
        return StateFiles(self.other.store.database, "loop").home

    def full(self, file: str) -> str:
        return (
            StateFiles(self.other.store.database, "loop").reader.full(file).removeprefix("file://")
        )

    def here(self) -> set[str]:
        return {str(p) for p in self.folder.rglob("*.parquet")}

    # what must be ------------------------------------------------------------------------------

    def compare(self) -> None:
        found, wanted = (
            all_of(self.other.store, self.other.sink),
            all_of(self.plain.store, self.plain.sink),
        )
        for name, some in wanted.items():
            assert found[name] == some, (self.seed, name)
        assert order_of(self.other.store) == order_of(self.plain.store), (self.seed, "order")
        self.sights["compared"] += 1
        self.sights["fired"] = len(wanted["firings"])
        self.sights["parked"] += bool(wanted["parked"])
        self.sights["faults"] += wanted["rejected"] > 0

    def close(self) -> None:
        failpoints.arm("")
        for one in (self.plain, self.other, *self.others):
            one.store.close()


def lived(folder: Path, seed: int, patched: Any, steps: int = 8) -> Counter[str]:
    """What was seen in the life of a seed."""

    def killed(code: int) -> None:
        raise KilledError(code)

    patched.setattr(failpoints, "_end_process", killed)
    found = Life(folder, seed, patched)
    try:
        found.live(steps)
    finally:
        found.close()
    return found.sights
