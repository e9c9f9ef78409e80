"""The worlds of test cases over real Delta tables: what needs Spark is shown by Spark.

The engine's parts are those that `run` has, from feed to sink. The clock, the store, and whoever
takes webhooks are those of the worlds in memory: so a case has the same outcome in both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.connectors.delta.watchdog import DeltaHealth
from tidegate.engine.app.case_tables import INTERPRETED, CaseTables
from tidegate.engine.app.parts import lake_feed, lake_ports, lake_sink, open_lake
from tidegate.engine.app.placed_feed import PlacedFeed
from tidegate.engine.app.sessions import Sessions
from tidegate.engine.app.warm_up import warm_up, warm_up_file
from tidegate.engine.app.whole_analyst import WholeAnalyst
from tidegate.engine.core.instants import MILLISECOND, floor_millisecond, floor_watermark
from tidegate.engine.core.policy import UNMARKED, load_policy
from tidegate.engine.core.scratch_folder import scratch_folder
from tidegate.engine.quarantine.quarantine import Quarantine
from tidegate.engine.quarantine.sink import WatchedSink
from tidegate.engine.quarantine.turns import GATE
from tidegate.engine.replay.cases.model import CaseFile, Row, TableChange
from tidegate.engine.replay.cases.world import Observation
from tidegate.engine.replay.memory.clock import VirtualClock, drain
from tidegate.engine.replay.memory.opening import Opening
from tidegate.engine.replay.memory.store import MemoryLedger
from tidegate.engine.replay.memory.worlds import MemoryWorld, MemoryWorlds
from tidegate.rules.model import Rulebook, Start


@contextmanager
def spark_worlds(spark: SparkSession | None = None) -> Iterator[Callable[[CaseFile], SparkWorlds]]:
    """From a test file to its worlds. Those of one file are open at a time: the next file closes
    them. One session serves all files; it is started for the first.

    `spark`: by default the active session, or a new one, which ends with the context."""
    sessions = Sessions(spark, INTERPRETED)
    with ExitStack() as stack:
        stack.callback(sessions.close)
        opened = stack.enter_context(ExitStack())

        warm = False

        def made(file: CaseFile) -> SparkWorlds:
            nonlocal warm
            session = sessions.get()
            if sessions.own and not warm:
                warm = True
                warm_up(made(warm_up_file()).world())
            opened.close()
            return SparkWorlds(file.book, file.schemas, file.defaults, session, opened)

        yield made


class SparkWorlds(MemoryWorlds):
    """Makes the worlds of one test file. Its tables, in a temporary folder, serve all of them: one
    world lives at a time. `stack` closes them.

    `schemas`: of all tables that there are to be. `defaults`: by table, of the columns that an
    inserted row leaves out. Raises InputError with what is wrong with the rulebook over these
    tables.
    """

    def __init__(
        self,
        book: Rulebook,
        schemas: Mapping[str, pa.Schema],
        defaults: Mapping[str, Row],
        spark: SparkSession,
        stack: ExitStack,
    ) -> None:
        folder = stack.enter_context(scratch_folder())
        self.tables = CaseTables(folder, schemas)
        # A test may run every kind of statement: there is nothing to lose.
        policy = replace(load_policy(None), at_least_once=frozenset(UNMARKED))
        book = _over(book, folder, schemas)
        self.lake = open_lake(book, None, spark, ("test", None), policy, stack)
        opening = Opening(book, schemas, WholeAnalyst(self.lake.analyst))
        super().__init__(book, schemas, defaults, opening)

    def world(self) -> SparkWorld:
        """A world in which nothing has happened."""
        return SparkWorld(self)


def _over(book: Rulebook, folder: Path, schemas: Collection[str]) -> Rulebook:
    """The rulebook over the tables in a folder. What stands in them at first is no event."""
    tables = {
        name: replace(table, path=str(folder / name), catalog=None, start=Start())
        for name, table in book.tables.items()
        if name in schemas
    }
    return replace(book, tables=tables)


@dataclass(slots=True)
class PlacingClock(VirtualClock):
    """A virtual clock. `place` is called before time goes on: what was committed stands before."""

    place: Callable[[], None] = lambda: None

    def later(self, instant: int) -> None:
        if instant > self.at:
            self.place()
        VirtualClock.later(self, instant)

    def tick(self) -> None:
        self.place()
        VirtualClock.tick(self)


class SparkWorld(MemoryWorld):
    """Implements `engine.replay.cases.world.World` over real Delta tables."""

    _worlds: SparkWorlds
    _clock: PlacingClock
    _feed: PlacedFeed

    def __init__(self, worlds: SparkWorlds) -> None:
        super().__init__(worlds)
        self._clock = self._store.clock = PlacingClock(0)
        self._lake = worlds.lake

    def begin(self, instant: int, tables: Mapping[str, Sequence[Row]]) -> None:
        """See `World`. The tables are made anew."""
        lake, store, clock = self._lake, self._store, self._clock
        first = {name: self._rows(name, tables.get(name, ())) for name in self._worlds.schemas}
        self._worlds.tables.renew(lake.catalog, first)
        clock.at = before = floor_millisecond(instant) - MILLISECOND
        self._feed = PlacedFeed(lake_feed(lake, {store.id}), lake.book.tables, clock)
        clock.place = self._feed.place
        clock.later(floor_watermark(instant - 1))
        ledger = MemoryLedger(store)
        health = DeltaHealth(lake.catalog.spark, lake.catalog.jobs.slots, own=False)
        quarantine = Quarantine(ledger, GATE, health, lake.book.settings.strikes_max)
        ports = lake_ports(lake, ledger, store.id, self._feed, quarantine, clock, ledger.check)
        opening = self._worlds.opening
        self._loop = opening.over(
            instant,
            replace(ports, prepare=opening.prepare),
            WatchedSink(lake_sink(lake, store.app_ids), quarantine),
            self._worlds.tables.cursors(before),
            store,
            clock,
            self._actions,
            self._buckets,
        )
        drain(self._loop, clock)
        clock.at = self._instant = instant

    def commit(self, tables: Mapping[str, TableChange]) -> None:
        """See `World`."""
        self._present()
        for name, given in self._typed(tables).items():
            version = self._feed.version(self._lake.book.tables[name]) + 1
            self._worlds.tables.commit(self._lake.catalog, name, given, version)
        self._feed.place()

    def observe(self) -> Observation:
        """See `World`. Tables are read when they are looked at."""
        known = self._lake.book.tables
        versions = {name: self._feed.version(table) for name, table in known.items()}
        rows = self._worlds.tables.reading(versions)
        return replace(super().observe(), tables=rows)
