"""Outages: waited out, then said; a database server that is restarted in mid-run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import postgres
from tests.support.bench import BOOK, Bench
from tidegate.engine.core.outage import Outages
from tidegate.engine.core.ports import OutageError
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store.buckets import Buckets
from tidegate.engine.store.outbox import Outbox
from tidegate.rules.errors import EngineError


class Away:
    """Fails with an outage as often as it is told; keeps the pauses that were made."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.pauses: list[float] = []
        self.recovered = 0
        self.now = 0.0

    def __call__(self) -> str:
        if self.times > 0:
            self.times -= 1
            raise OutageError("store-unreachable", "the store is away", "start it")
        return "answer"

    def wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def recover(self) -> None:
        self.recovered += 1

    def through(self, seconds_max: int, *, stopped: bool = False) -> str:
        outages = Outages(seconds_max, self.wait, self.recover, lambda: stopped, lambda: self.now)
        return outages.through(self)


def test_g07_an_outage_is_waited_out_with_doubling_pauses() -> None:
    away = Away(8)
    assert away.through(300) == "answer"
    assert away.pauses == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert away.recovered == 8


def test_g07_an_outage_that_lasts_too_long_is_raised() -> None:
    away = Away(99)
    with pytest.raises(OutageError, match="the store is away"):
        away.through(10)
    assert sum(away.pauses) <= 10
    assert away.pauses == [0.5, 1, 2, 4]


def test_one_who_is_told_to_stop_does_not_wait() -> None:
    away = Away(99)
    with pytest.raises(OutageError):
        away.through(300, stopped=True)
    assert away.pauses == []


@pytest.fixture(scope="module")
def machine() -> Iterator[postgres.Server]:
    """A server of these tests' own, which they kill."""
    yield from postgres.running()


@pytest.fixture
def server(machine: postgres.Server) -> postgres.Server:
    if not machine.processes:  # a test that failed has not begun it again
        machine.begin()
    return machine


@pytest.mark.parametrize("where", ["read", "commit", "run", "settle"])
def test_g07_a_database_server_restarted_in_mid_run_loses_and_doubles_nothing(
    server: postgres.Server, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """It is killed before or after a transaction, or while a statement runs, and comes back a
    little later."""
    with open_store(server.new_url(), create=True) as store:
        store.of("loop").versions.register(BOOK, None)
        bench = Bench(store, commits=4)
        killed: list[str] = []

        def ends(name: str, real: object, *, after: bool) -> object:
            def call(*given: object) -> object:
                now = not killed and name == where
                if now and not after:
                    server.kill()
                    killed.append(name)
                found = real(*given)  # type: ignore[operator]
                if now and after:
                    server.kill()
                    killed.append(name)
                return found

            return call

        monkeypatch.setattr(bench.feed, "read", ends("read", bench.feed.read, after=True))
        monkeypatch.setattr(bench.sink, "run", ends("run", bench.sink.run, after=True))
        monkeypatch.setattr(Buckets, "commit", ends("commit", Buckets.commit, after=True))
        monkeypatch.setattr(Outbox, "settle", ends("settle", Outbox.settle, after=False))

        def wait(_: float) -> None:
            if not server.processes:
                server.begin()

        through = Outages(300, wait, bench.loop.recover, lambda: False).through
        while through(bench.loop.bucket) is not None:
            pass
        assert killed == [where]
        assert bench.sink.effects == bench.expected()
        assert bench.states() == []


FAILS = """
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'as told' USING ERRCODE = '{code}'; END $$;
CREATE TRIGGER fails BEFORE INSERT ON buckets FOR EACH ROW EXECUTE FUNCTION fail()
"""


def test_g07_a_database_server_without_room_or_rest_is_waited_for(server: postgres.Server) -> None:
    """A deadlock, a full disk, too many connections, a statement or lock past its time, a shutdown,
    an I/O error, a replica: each passes. A CHECK that fails, or a right that lacks, does not."""
    passing = ("40P01", "53100", "53300", "57014", "55P03", "57P01", "58030", "25006")
    with open_store(server.new_url(), create=True) as store:
        store.of("loop").versions.register(BOOK, None)
        bench = Bench(store, commits=1)
        for code in (*passing, "23514", "42501"):
            bench.feed.commits += 1
            run(store, FAILS.format(code=code))
            waited: list[float] = []

            def wait(seconds: float, so_far: list[float] = waited) -> None:
                so_far.append(seconds)
                run(store, "DROP FUNCTION fail CASCADE")

            through = Outages(300, wait, bench.loop.recover, lambda: False).through
            if code in passing:
                while through(bench.loop.bucket) is not None:
                    pass
                assert len(waited) == 1
            else:
                with pytest.raises(EngineError, match="as told") as stopped:
                    through(bench.loop.bucket)
                assert (stopped.value.code, waited) == ("store-failed", [])
                wait(0)
        bench.drain()
        assert bench.sink.effects == bench.expected()
        assert bench.states() == []


def run(store: SqlStore, statements: str) -> None:
    with store.database._writing.begin() as connection:
        connection.exec_driver_sql(statements)
