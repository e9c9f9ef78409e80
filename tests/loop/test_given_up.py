"""Files that were written for a bucket that is given up are deleted, and no others (G26)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.loop.test_apart import KEYED
from tests.loop.test_executor_faults import Failing
from tests.loop.test_site import Beside, drained, fired
from tests.support.executors import InProcess
from tests.support.make import BEGIN, SECOND
from tidegate.engine.core import failpoints
from tidegate.engine.core.failpoints import FailpointError
from tidegate.engine.core.ports import OutageError, StoppedError
from tidegate.engine.store import SqlStore, open_store, shelf
from tidegate.engine.store import tables as t
from tidegate.engine.store.buckets import Buckets
from tidegate.engine.store.shelf import FileShelf
from tidegate.rules.errors import EngineError

COMMITS = 6
FLOOD = "timers_per_bucket_max: 1"


class Ending(InProcess):
    """Once, all tasks have run when this is raised."""

    error: Exception | None = None

    def map_rows(self, *given: Any) -> Any:
        made = super().map_rows(*given)
        if (error := self.error) is not None:
            self.error = None
            raise error
        return made


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All goes to files, however little it is."""
    monkeypatch.setattr(shelf, "BYTES_MIN", 1)
    monkeypatch.setattr(shelf, "ROWS_BYTES_MIN", 1)
    yield
    failpoints.arm("")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def deleted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were deleted with what was given up."""
    found = list[str]()
    removed = FileShelf.remove_written

    def noted(self: FileShelf) -> None:
        before = on_disk(folder)
        removed(self)
        found.extend(before - on_disk(folder))

    monkeypatch.setattr(FileShelf, "remove_written", noted)
    return found


def on_disk(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.parquet")}


def listed(store: SqlStore) -> set[str]:
    """The files that the store lists, those included to which nothing points any more."""
    with store.database.read() as connection:
        found = connection.execute(sa.select(t.state_files.c.file)).scalars()
        return {file.rpartition("/")[2] for file in found}


def beside(
    store: SqlStore, folder: Path, executors: InProcess, settings: str = "", text: str = KEYED
) -> Beside:
    own = f"detect: spark, state_path: {folder}, {settings}".removesuffix(", ")
    bench = Beside(store, 0, own, text)
    bench.executors_beside = executors
    bench.restart()
    bench.feed.commits = COMMITS
    bench.clock.at = BEGIN + COMMITS * SECOND
    return bench


def wanted(folder: Path) -> list[tuple[str, str, Any]]:
    with open_store(f"sqlite:///{folder.parent / 'plain.db'}", create=True) as other:
        other.of("loop").versions.register(KEYED, None)
        drained(bench := Beside(other, 0, "detect: driver", KEYED))
        bench.feed.commits = COMMITS
        bench.clock.at = BEGIN + COMMITS * SECOND
        drained(bench)
        return fired(other)


@pytest.mark.parametrize("settings", ["", "driver_rows_max: 1", FLOOD, "spark_rows_max: 2"])
def test_g26_what_is_left_of_a_bucket_that_is_planned_anew_is_deleted(
    store: SqlStore, folder: Path, deleted: list[str], settings: str
) -> None:
    """As its executors were lost, found too much, or too many of its timers were due."""
    executors = Failing()
    executors.failures = 0 if settings in ("driver_rows_max: 1", FLOOD) else 3
    text = KEYED.replace("on: row and row, per: id", "on: row ; row")  # the driver reads
    bench = beside(store, folder, executors, settings, text if executors.failures else KEYED)
    drained(bench)
    assert executors.failures == 0
    assert deleted
    assert on_disk(folder) == listed(store)
    assert not listed(store) & {*deleted}


@pytest.mark.parametrize("error", [
    OutageError("state-unwritable", "no room", ""), StoppedError("in mid-bucket"),
    EngineError("spark-lost", "Java is gone", ""),
])  # fmt: skip
def test_g26_what_is_left_of_a_bucket_that_ends_is_deleted(
    store: SqlStore, folder: Path, deleted: list[str], error: EngineError
) -> None:
    executors = Ending()
    bench = beside(store, folder, executors)
    executors.error = error
    if isinstance(error, StoppedError):
        assert bench.loop.bucket() is None
    else:
        with pytest.raises(type(error)):
            bench.loop.bucket()
    assert deleted
    assert on_disk(folder) == listed(store)
    bench.loop.recover()
    drained(bench)
    assert on_disk(folder) == listed(store)
    assert fired(store) == wanted(folder)


@pytest.mark.parametrize("point", ["commit.carried", "commit.after"])
def test_g26_only_a_bucket_that_the_store_has_not_is_given_up(
    store: SqlStore, folder: Path, deleted: list[str], point: str
) -> None:
    """The answer to a transaction may be lost."""
    bench = beside(store, folder, InProcess())
    failpoints.arm(f"{point}=raise")
    with pytest.raises(FailpointError):
        bench.loop.bucket()
    assert bool(deleted) == (point != "commit.after")
    bench.loop.recover()
    drained(bench)
    assert on_disk(folder) == listed(store)
    assert fired(store) == wanted(folder)


@pytest.mark.parametrize("point", ["commit.carried", "commit.after"])
def test_g26_what_a_failed_transaction_wrote_for_the_driver_is_deleted(
    store: SqlStore, folder: Path, deleted: list[str], point: str
) -> None:
    """A store whose disk is full is asked again and again: each try would leave a file."""
    bench = Beside(store, 0, f"detect: driver, state_path: {folder}", KEYED)
    bench.feed.commits = COMMITS
    bench.clock.at = BEGIN + COMMITS * SECOND
    for _ in range(2):
        failpoints.arm(f"{point}=raise")
        with pytest.raises(FailpointError):
            bench.loop.bucket()
        assert on_disk(folder) == listed(store)
        bench.loop.recover()
    assert bool(deleted) == (point != "commit.after")
    drained(bench)
    assert on_disk(folder) == listed(store)
    assert fired(store) == wanted(folder)


def test_g26_what_a_store_that_is_away_kept_is_deleted_by_the_next_bucket(
    store: SqlStore, folder: Path, deleted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    executors = Ending()
    bench = beside(store, folder, executors)
    executors.error = OutageError("store-unreachable", "it is away", "")

    def away(*_: object) -> None:
        raise OutageError("store-unreachable", "it is still away", "")

    with monkeypatch.context() as patched:
        patched.setattr(Buckets, "give_up", away)
        with pytest.raises(OutageError, match="it is away"):  # why the bucket ended
            bench.loop.bucket()
    left = on_disk(folder)
    assert left
    assert not deleted
    bench.loop.recover()
    drained(bench)
    assert {*deleted} == left
    assert on_disk(folder) == listed(store)
