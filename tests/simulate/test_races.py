"""Two engines of one rulebook on one store: the second takes the lease over while the first stands
at one of five places, and both go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from tests.simulate.judge import BOOK, EFFECTS, AllHold, Analyst, every_entry, judge
from tests.support import postgres
from tests.support.bench import Bench
from tests.support.memory import Clock, MemoryFeed, MemorySink
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store.tables import metadata
from tidegate.rules.errors import EngineError

SECONDS_MAX = 30  # for what takes some milliseconds
PLACES = {
    "listing": ("feed", "head"),
    "commit": ("store", "commit"),
    "statement": ("sink", "run"),
    "shared": ("sink", "run_together"),
    "settle": ("store", "settle"),
}
STOPS = [(place, nth) for place in PLACES for nth in (1, 2) if place != "shared" or nth == 1]
RACES = [  # where the first engine stands, where the second; before which call there the first does
    pytest.param(
        first,
        second,
        nth,
        marks=[pytest.mark.long] if (i + j) % 3 else [],
        id=f"{first}-{second}-{nth}",
    )
    for i, (first, nth) in enumerate(STOPS)
    for j, second in enumerate(PLACES)
    if {first, second} != {"statement", "shared"}  # statements run alone, or share commits
]
COMMITS = 3  # of a row each: two when the first engine begins, one more before the second does


class Stop:
    """A place at which one engine stands, once, until it may go on: before its `nth` call there."""

    def __init__(self, place: str | None, nth: int = 1) -> None:
        self.port, self.method = PLACES[place] if place else ("", "")
        self.left = nth
        self.reached, self.free = threading.Event(), threading.Event()

    def through(self, port: str, real: Any) -> Any:
        return Watched(self, real) if port == self.port else real

    def passed(self, method: str) -> None:
        if method == self.method:
            self.left -= 1
            if self.left == 0:
                self.reached.set()
                assert self.free.wait(SECONDS_MAX), "nobody let it go on"


class Watched:
    """A port each of whose calls passes by a stop."""

    def __init__(self, stop: Stop, real: Any) -> None:
        self._stop, self._real = stop, real

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        if name == "of":
            return lambda *given: Ledger(self._stop, real(*given))
        if not callable(real):
            return real

        def call(*given: Any, **named: Any) -> Any:
            self._stop.passed(name)
            return real(*given, **named)

        return call


class Ledger:
    """All parts of a ledger, watched."""

    def __init__(self, stop: Stop, real: Any) -> None:
        self._stop, self._real = stop, real

    def __getattr__(self, name: str) -> Any:
        return Watched(self._stop, getattr(self._real, name))


class Racer(Bench):
    """An engine in a thread of its own, on tables and a store that it shares with others. It learns
    that its lease is lost only from the store."""

    def __init__(self, store: SqlStore, shared: Shared, stop: Stop) -> None:
        self.stop = stop
        self.store = stop.through("store", store)
        self.feed = stop.through("feed", shared.feed)
        self.sink = stop.through("sink", shared.sink)
        self.clock, self.conditions = shared.clock, AllHold()
        self.write(BOOK.replace("rulebook: loop", f"rulebook: {shared.name}"))
        self.restart()
        self.loop.ports.check_lease = lambda: None
        self.loop.runner.check = store.of(shared.name, self.epoch).lease.check
        if shared.commits:
            self.share()
        self.ended: str | None = None
        self.thread = threading.Thread(target=self.live, daemon=True)

    def analyst(self) -> Analyst:
        return Analyst()

    def live(self) -> None:
        try:
            self.drain()
            self.ended = "idle"
        except EngineError as error:
            self.ended = error.code
        finally:
            self.stop.reached.set()

    def to_its_place(self) -> None:
        self.thread.start()
        assert self.stop.reached.wait(SECONDS_MAX)
        assert self.ended is None, "it never came there"

    def to_its_end(self) -> str | None:
        if not self.thread.ident:
            self.thread.start()
        self.stop.free.set()
        self.thread.join(SECONDS_MAX)
        assert not self.thread.is_alive()
        return self.ended


class Shared:
    """What the engines of a race have in common. `commits`: whether their entries share some."""

    def __init__(self, name: str) -> None:
        self.name, self.commits = name, "shared" in name
        self.feed, self.sink, self.clock = MemoryFeed(COMMITS - 1), MemorySink(), Clock()


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)]
)
def stores(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SqlStore, SqlStore]]:
    """One store, opened by each of two processes."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('races') / 'store.db'}"
    else:
        running: postgres.Server = request.getfixturevalue("server")
        url = running.new_url()
    with open_store(url, create=True) as first, open_store(url, create=False) as second:
        yield first, second


def contents(store: SqlStore, rulebook: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row that a store has of a rulebook, and the rows that belong to none."""
    found = {}
    with store.database.read() as connection:
        for name, table in metadata.tables.items():
            key = table.c.get("rulebook", table.c.get("name"))
            query = sa.select(table)
            rows = connection.execute(query if key is None else query.where(key == rulebook))
            found[name] = sorted((tuple(row) for row in rows), key=repr)
    return found


def assert_right(store: SqlStore, shared: Shared) -> None:
    """After a third engine has done what is left: all of it, once, in order."""
    last = Racer(store, shared, Stop(None))
    assert last.to_its_end() == "idle"
    verdict = judge(store, shared.sink, COMMITS, shared.name)
    assert not any(verdict.values()), verdict
    assert shared.sink.effects.total() == COMMITS * sum(EFFECTS.values())
    assert {e.state for e in every_entry(store, shared.name)} == {"done"}
    assert store.of(shared.name).buckets.load().cursors["t"].version == COMMITS - 1


@pytest.mark.parametrize(("first_place", "second_place", "nth"), RACES)
def test_g21_an_engine_that_was_taken_over_writes_nothing_while_the_other_is_under_way(
    stores: tuple[SqlStore, SqlStore], first_place: str, second_place: str, nth: int
) -> None:
    shared = Shared(f"{first_place}_{second_place}_{nth}")
    first = Racer(stores[0], shared, Stop(first_place, nth))
    first.to_its_place()
    shared.feed.commits = COMMITS
    second = Racer(stores[1], shared, Stop(second_place))
    second.to_its_place()
    before = contents(stores[1], shared.name)
    assert first.to_its_end() == "lease-lost"
    assert contents(stores[1], shared.name) == before
    assert second.to_its_end() == "idle"
    assert_right(stores[0], shared)


@pytest.mark.parametrize(("first_place", "nth"), STOPS)
def test_g21_an_engine_that_was_taken_over_changes_nothing_of_what_the_other_has_done(
    stores: tuple[SqlStore, SqlStore], first_place: str, nth: int
) -> None:
    shared = Shared(f"{first_place}_{nth}")
    first = Racer(stores[0], shared, Stop(first_place, nth))
    first.to_its_place()
    shared.feed.commits = COMMITS
    second = Racer(stores[1], shared, Stop(None))
    assert second.to_its_end() == "idle"
    before, effects = contents(stores[1], shared.name), shared.sink.effects.copy()
    assert first.to_its_end() == "lease-lost"
    assert (contents(stores[1], shared.name), shared.sink.effects) == (before, effects)
    assert_right(stores[0], shared)
