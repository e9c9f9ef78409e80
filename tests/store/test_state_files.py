"""Large parts of what is carried, in files beside the store (G26)."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy as sa

from tests.support import make
from tidegate.engine.core import failpoints
from tidegate.engine.core.failpoints import FailpointError
from tidegate.engine.core.ports import OutageError
from tidegate.engine.core.state_parts import FilePart, metadata_of
from tidegate.engine.core.values import TIMERS, Carried, Firings
from tidegate.engine.store import SqlStore, open_store, shelf, state_files
from tidegate.engine.store import folder as disk
from tidegate.engine.store import tables as t
from tidegate.engine.store.shelf import BYTES_MIN
from tidegate.engine.store.state_files import KEPT_MICROS_MIN, SMALL_BYTES
from tidegate.rules.errors import EngineError
from tidegate.rules.model import IN_STORE, Settings

DAY = 24 * make.HOUR
SMALL_FILES = 6


@pytest.fixture
def epoch(store: SqlStore) -> int:
    return store.of("bank").lease.acquire("one", 60)


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "SMALL_FILES_MIN", SMALL_FILES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def disarm() -> Iterator[None]:
    yield
    failpoints.arm("")


def large(seed: int) -> pa.Table:
    """A part that does not compress below `BYTES_MIN`."""
    drawn = np.random.default_rng(seed).integers(0, 2**62, BYTES_MIN // 4)
    return pa.table({"n": drawn}).replace_schema_metadata({TIMERS: b"3", b"due": b"7"})


def larger(seed: int) -> pa.Table:
    """A part whose file is not small."""
    return pa.table({"n": np.random.default_rng(seed).integers(0, 2**62, SMALL_BYTES // 6)})


def small(value: int) -> pa.Table:
    return pa.table({"n": [value]})


def commit(
    store: SqlStore, epoch: int, bucket: int, folder: Path | None, **parts: pa.Table | None
) -> Any:
    """A bucket after which these parts are as given; None: gone. The others are as they were."""
    known = {n: table for n, table in carried(store).items() if n not in parts}
    tables = known | {name: table for name, table in parts.items() if table is not None}
    left = Carried(tables, frozenset(parts))
    path = None if folder is None else str(folder)
    return make.commit(store, epoch, make.plan(bucket), carried=left, state_path=path)


def carried(store: SqlStore) -> dict[str, pa.Table]:
    return dict(store.of("bank").buckets.load().carried.tables)


def apart(store: SqlStore) -> dict[str, Any]:
    """What is carried, as the driver of executors has it."""
    return dict(store.of("bank").buckets.load(apart=True).carried.tables)


def files(folder: Path) -> list[str]:
    return sorted(path.name[:12].lstrip("0") for path in folder.rglob("*.parquet"))


def removed(store: SqlStore, epoch: int, folder: Path | None, now: int, **limits: int) -> int:
    settings = Settings(state_path=None if folder is None else str(folder), **limits)
    retention = store.of("bank", epoch).retention
    return retention.remove_files(settings, now) + retention.remove_lost_files(settings, now)


def test_g26_large_parts_are_files_and_come_back(
    url: str, store: SqlStore, epoch: int, folder: Path
) -> None:
    parts = {"node:a/0": large(1), "node:a/1": large(2), "occ:b/0": small(3)}
    commit(store, epoch, 1, folder, **parts)
    assert files(folder) == ["1"]
    with store.database.read() as connection:
        rows = connection.execute(sa.select(t.carried).order_by(t.carried.c.name)).all()
    assert [(row.arrow is None, row.file_row) for row in rows] == [
        (True, 0), (True, 1), (False, None),
    ]  # fmt: skip
    with open_store(url, create=False) as again:
        found = carried(again)
        assert {name: table.equals(parts[name]) for name, table in found.items()} == dict.fromkeys(
            parts, True
        )
        assert found["node:a/1"].schema.metadata == parts["node:a/1"].schema.metadata
        _, first = again.of("bank").timers.first_parts(9)
        assert [name for name, _ in first] == ["node:a/0", "node:a/1"]
        assert first[1][1].equals(parts["node:a/1"])
        shown = again.of("bank").status.shown()
    (file,) = folder.rglob("*.parquet")
    assert (shown["state_files"], shown["state_bytes"]) == (1, file.stat().st_size)
    assert file.stat().st_mode & 0o777 == 0o600


def test_g26_only_what_changed_is_written(store: SqlStore, epoch: int, folder: Path) -> None:
    commit(store, epoch, 1, folder, one=large(1), other=large(2))
    commit(store, epoch, 2, folder, other=small(3))
    commit(store, epoch, 3, folder, third=small(4))
    assert files(folder) == ["1"]
    assert carried(store)["one"].equals(large(1))
    assert carried(store)["other"].equals(small(3))


def test_g26_a_file_is_deleted_a_day_after_nothing_points_to_it(
    store: SqlStore, epoch: int, folder: Path
) -> None:
    commit(store, epoch, 1, folder, one=large(1), other=large(2))
    commit(store, epoch, 2, folder, one=large(3))
    assert removed(store, epoch, folder, make.plan(2).now + 9 * DAY) == 0
    assert files(folder) == ["1", "2"]  # the first still has the other part
    commit(store, epoch, 3, folder, other=None)
    left = make.plan(3).now  # from now on nothing points to it
    assert removed(store, epoch, folder, left + DAY) == 0
    assert files(folder) == ["1", "2"]
    assert removed(store, epoch, folder, left + DAY + 1) == 1
    assert files(folder) == ["2"]
    assert removed(store, epoch, folder, left + 9 * DAY) == 0
    assert carried(store)["one"].equals(large(3))
    assert store.of("bank").status.shown()["state_files"] == 1


def many_small(store: SqlStore, epoch: int, folder: Path) -> dict[str, pa.Table]:
    """As many small files as are put together, with two parts each."""
    parts = dict[str, pa.Table]()
    for bucket in range(1, SMALL_FILES + 1):
        own = {f"node:a/{2 * bucket + n}": large(2 * bucket + n) for n in (0, 1)}
        commit(store, epoch, bucket, folder, **own)
        parts |= own
    return parts


def test_g26_many_small_files_are_put_together(store: SqlStore, epoch: int, folder: Path) -> None:
    parts = many_small(store, epoch, folder)
    commit(store, epoch, SMALL_FILES + 1, folder, big=larger(7))
    timers = store.of("bank").timers.first_parts(3)
    before, now = apart(store), make.plan(SMALL_FILES + 1).now + 5
    buckets = store.of("bank", epoch).buckets
    moved = buckets.compact(str(folder), now)
    assert moved.keys() == parts.keys()
    assert len({part.file for part in moved.values()}) == 1
    after = apart(store)
    assert {n: p.file for n, p in after.items() if n in parts} == {
        name: part.file for name, part in moved.items()
    }
    for name, part in moved.items():
        assert metadata_of(part) == metadata_of(before[name]) == metadata_of(after[name])
        assert (part.rows, part.bytes) == (before[name].rows, before[name].bytes)
    assert {n: table.equals(carried(store)[n]) for n, table in parts.items()} == dict.fromkeys(
        parts, True
    )
    assert store.of("bank").timers.first_parts(3) == timers
    assert buckets.compact(str(folder), now) == {}  # one small file, and a large one
    assert removed(store, epoch, folder, now + DAY) == 0
    assert removed(store, epoch, folder, now + DAY + 1) == SMALL_FILES
    assert carried(store)["node:a/2"].equals(parts["node:a/2"])
    assert store.of("bank").status.shown()["state_files"] == 2


def test_g26_few_small_files_stay_as_they_are(store: SqlStore, epoch: int, folder: Path) -> None:
    many_small(store, epoch, folder)
    commit(store, epoch, SMALL_FILES + 1, folder, **{"node:a/2": small(1), "node:a/3": small(2)})
    commit(store, epoch, SMALL_FILES + 2, folder, big=larger(7))
    there = files(folder)
    assert store.of("bank", epoch).buckets.compact(str(folder), make.plan(99).now) == {}
    assert files(folder) == there


def test_g26_only_so_much_is_put_together_in_one_go(
    store: SqlStore, epoch: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = many_small(store, epoch, folder)
    size = next(iter(apart(store).values())).file_size
    monkeypatch.setattr(state_files, "COMPACTED_BYTES_MAX", 4 * size + size // 2)
    buckets = store.of("bank", epoch).buckets
    assert len(buckets.compact(str(folder), make.plan(99).now)) == 2 * 4
    assert len({part.file for part in apart(store).values()}) == SMALL_FILES - 4 + 1
    assert {n: table.equals(carried(store)[n]) for n, table in parts.items()} == dict.fromkeys(
        parts, True
    )


def test_g26_only_so_many_parts_are_put_together_in_one_go(
    store: SqlStore, epoch: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files have two each; with a third there are more than these five."""
    many_small(store, epoch, folder)
    monkeypatch.setattr(state_files, "COMPACTED_PARTS_MAX", 5)
    buckets, now = store.of("bank", epoch).buckets, make.plan(99).now
    assert len(buckets.compact(str(folder), now)) == 2 * 2
    monkeypatch.setattr(state_files, "COMPACTED_PARTS_MAX", 0)
    monkeypatch.setattr(state_files, "SMALL_FILES_MIN", 2)
    assert len(buckets.compact(str(folder), now)) == 2 * 2


def test_g26_small_files_stay_where_a_setting_names_no_folder(
    store: SqlStore, epoch: int, folder: Path
) -> None:
    many_small(store, epoch, folder)
    assert store.of("bank", epoch).buckets.compact(IN_STORE, make.plan(99).now) == {}


@pytest.mark.usefixtures("disarm")
@pytest.mark.parametrize("point", ["state.middle", "state.written", "compact.before"])
def test_g26_files_are_put_together_whole_or_not_at_all(
    store: SqlStore, epoch: int, folder: Path, point: str
) -> None:
    parts = many_small(store, epoch, folder)
    before = {name: (part.file, part.group) for name, part in apart(store).items()}
    failpoints.arm(f"{point}=raise")
    buckets = store.of("bank", epoch).buckets
    with pytest.raises(FailpointError):
        buckets.compact(str(folder), make.plan(99).now)
    assert {name: (part.file, part.group) for name, part in apart(store).items()} == before
    failpoints.arm("")
    assert len(buckets.compact(str(folder), make.plan(99).now)) == len(parts)


def test_g26_each_rulebook_of_a_store_deletes_its_own_files(
    store: SqlStore, epoch: int, folder: Path
) -> None:
    """It may keep them longer."""
    other = store.of("other").lease.acquire("one", 60)
    for bucket, tables in enumerate(({"one": large(1)}, {}), 1):
        left = Carried(tables, frozenset({"one"}))
        given = make.plan(bucket, rulebook="other")
        make.commit(store, other, given, carried=left, state_path=str(folder))
    later = make.plan(2).now + 9 * DAY
    assert removed(store, epoch, folder, later) == 0
    assert files(folder) == ["1"]
    settings = Settings(state_path=str(folder))
    assert store.of("other", other).retention.remove_files(settings, later) == 1
    assert files(folder) == []


def test_g26_many_unused_bytes_go_earlier_but_not_within_a_minute(
    store: SqlStore, epoch: int, folder: Path
) -> None:
    for bucket in (1, 2, 3):
        commit(store, epoch, bucket, folder, one=large(bucket))
    size = max(file.stat().st_size for file in folder.rglob("*.parquet"))
    last = make.plan(3).now + KEPT_MICROS_MIN
    assert removed(store, epoch, folder, last + 1, state_unused_bytes_max=2 * size) == 0
    assert removed(store, epoch, folder, last, state_unused_bytes_max=1) == 1
    assert files(folder) == ["2", "3"]
    assert removed(store, epoch, folder, last + 1, state_unused_bytes_max=1) == 1
    assert files(folder) == ["3"]


@pytest.mark.parametrize(("seconds", "left"), [(60.0, [6, 3, 1]), (0.0, [10, 8, 6])])
@pytest.mark.parametrize("lost", [False, True])
def test_g26_however_many_files_are_unused_they_go_in_time(
    store: SqlStore, epoch: int, folder: Path, monkeypatch: pytest.MonkeyPatch,
    seconds: float, left: list[int], *, lost: bool,
) -> None:  # fmt: skip
    """More come between two goes where there are more executors. A slow storage takes as many as
    it can."""
    monkeypatch.setattr(state_files, "REMOVED_AT_ONCE", 2)
    monkeypatch.setattr(state_files, "REMOVING_SECONDS", seconds)
    for bucket in range(1, 14):
        commit(store, epoch, bucket, folder, one=large(bucket))
    if lost:
        with store.database.write() as connection:
            connection.execute(sa.delete(t.state_files).where(t.state_files.c.unused_since > 0))
    late = time.time_ns() // 1_000 + 9 * DAY
    found = []
    for _ in left:
        removed(store, epoch, folder, late)
        found.append(len(files(folder)) - 1)
    assert found == left
    assert carried(store)["one"].equals(large(13))


@pytest.mark.parametrize("point", ["state.middle", "state.written", "commit.carried"])
@pytest.mark.usefixtures("disarm")
def test_g26_a_crash_before_the_transaction_leaves_a_file_that_nobody_points_to(
    store: SqlStore, epoch: int, folder: Path, point: str
) -> None:
    commit(store, epoch, 1, folder, one=large(1))
    failpoints.arm(f"{point}=raise")
    with pytest.raises(FailpointError):
        commit(store, epoch, 2, folder, one=large(2))
    assert files(folder) == ["1", "2"]
    assert carried(store)["one"].equals(large(1))
    commit(store, epoch, 2, folder, one=large(3))
    assert files(folder) == ["1", "2", "2"]
    written = max(file.stat().st_mtime_ns for file in folder.rglob("*.parquet")) // 1_000
    assert removed(store, epoch, folder, written + DAY - make.HOUR) == 1  # that of bucket 1
    assert removed(store, epoch, folder, written + DAY + 1) == 1
    assert carried(store)["one"].equals(large(3))


@pytest.mark.usefixtures("disarm")
def test_g26_after_the_transaction_a_crash_loses_nothing(
    store: SqlStore, epoch: int, folder: Path
) -> None:
    failpoints.arm("commit.after=raise")
    with pytest.raises(FailpointError):
        commit(store, epoch, 1, folder, one=large(1))
    assert carried(store)["one"].equals(large(1))
    assert removed(store, epoch, folder, time.time_ns() // 1_000 + 9 * DAY) == 0


@pytest.mark.usefixtures("disarm")
def test_g26_a_removal_that_ends_between_file_and_store_goes_on(
    store: SqlStore, epoch: int, folder: Path
) -> None:
    commit(store, epoch, 1, folder, one=large(1))
    commit(store, epoch, 2, folder, one=large(2))
    failpoints.arm("state.deleted=raise")
    with pytest.raises(FailpointError):
        removed(store, epoch, folder, make.plan(2).now + 2 * DAY)
    assert (files(folder), store.of("bank").status.shown()["state_files"]) == (["2"], 2)
    assert removed(store, epoch, folder, make.plan(2).now + 2 * DAY) == 1
    assert store.of("bank").status.shown()["state_files"] == 1


def loaded(store: SqlStore, *, apart: bool) -> None:
    """All that is carried; `apart`: as executors' driver knows it, and then as they read it."""
    buckets = store.of("bank").buckets
    tables = buckets.load(apart=apart).carried.tables
    parts = {name: part for name, part in tables.items() if isinstance(part, FilePart)}
    assert bool(parts) == apart
    buckets.shelf(None, 0).read(parts)


def _torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: BYTES_MIN // 2])


def _flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[BYTES_MIN // 2] ^= 1
    file.write_bytes(data)


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _said(file: Path) -> None:
    """What is said of its part: no checksum of Parquet's covers that."""
    data = file.read_bytes()
    assert data.count(b'"due": "7"') == 1
    file.write_bytes(data.replace(b'"due": "7"', b'"due": "9"'))


def _unreadable(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b'"due": "7"', b'"due": "7}'))


def _swapped(file: Path) -> None:
    (other,) = {*file.parent.iterdir()} - {file}
    file.write_bytes(other.read_bytes())


HARMS: dict[str, tuple[Callable[[Path], None], str]] = {
    "gone": (Path.unlink, "is gone"),
    "torn": (_torn, "is damaged"),
    "flipped": (_flipped, "is damaged"),
    "empty": (_empty, "is damaged"),
    "said": (_said, "is damaged"),
    "unreadable": (_unreadable, "is damaged"),
    "swapped": (_swapped, "is damaged"),
}


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("harm", HARMS)
def test_g26_a_file_that_is_gone_or_damaged_is_named(
    store: SqlStore, epoch: int, folder: Path, harm: str, *, apart: bool
) -> None:
    commit(store, epoch, 1, folder, **{"node:a/0": large(1)})
    (file,) = folder.rglob("*.parquet")
    commit(store, epoch, 2, folder, **{"node:a/1": large(1)})
    act, said = HARMS[harm]
    act(file)
    with pytest.raises(EngineError, match=f"state file {file} {said}") as error:
        loaded(store, apart=apart)
    assert (error.value.code, "adopt" in error.value.hint) == ("state-file", True)


def test_g26_a_file_without_a_digest_is_damaged(store: SqlStore, epoch: int, folder: Path) -> None:
    commit(store, epoch, 1, folder, one=large(1))
    (file,) = folder.rglob("*.parquet")
    file.write_bytes(file.read_bytes().replace(b"tidegate.digest", b"tidegate.unknown"[:15]))
    with pytest.raises(EngineError, match=file.name) as error:
        carried(store)
    assert error.value.code == "state-file"


def test_g07_storage_that_is_away_is_waited_for(
    store: SqlStore, epoch: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(store, epoch, 1, folder, one=large(1))

    def away(file: str) -> Any:
        raise OSError(errno.EIO, "Input/output error", file)

    monkeypatch.setattr(disk, "opened", away)
    with pytest.raises(OutageError, match="cannot be read") as error:
        store.of("bank").buckets.load()
    assert error.value.code == "state-unreadable"


def test_g07_storage_that_is_away_for_a_moment_is_no_damage(
    store: SqlStore, epoch: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Away when a part is read, and back when it is asked which of the two it was."""
    commit(store, epoch, 1, folder, one=large(1))
    opened, failing = disk.opened, [True]

    def away(file: str) -> Any:
        if failing:
            raise OSError(errno.ETIMEDOUT, f"Connection timed out {failing.pop()}", file)
        return opened(file)

    monkeypatch.setattr(disk, "opened", away)
    assert carried(store)["one"].equals(large(1))
    assert not failing


def test_g07_a_folder_that_cannot_be_written_is_waited_for(
    store: SqlStore, epoch: int, folder: Path
) -> None:
    folder.write_text("no folder")
    with pytest.raises(OutageError, match="cannot be written") as error:
        commit(store, epoch, 1, folder, one=large(1))
    assert error.value.code == "state-unwritable"
    assert store.of("bank").buckets.load().bucket == 0
    folder.unlink()
    commit(store, epoch, 1, folder, one=large(1))
    assert carried(store)["one"].equals(large(1))


def test_g07_a_full_disk_is_waited_for_and_nothing_is_left_on_it(
    store: SqlStore, epoch: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(name: str) -> None:
        if name == "state.middle":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shelf, "failpoint", full)
    with pytest.raises(OutageError, match="No space left") as error:
        commit(store, epoch, 1, folder, one=large(1))
    assert error.value.code == "state-unwritable"
    assert (store.of("bank").buckets.load().bucket, files(folder)) == (0, [])
    monkeypatch.undo()
    commit(store, epoch, 1, folder, one=large(1))
    assert carried(store)["one"].equals(large(1))


def test_g26_another_place_is_taken_for_what_changes_from_then_on(
    store: SqlStore, epoch: int, folder: Path, tmp_path: Path
) -> None:
    commit(store, epoch, 1, folder, one=large(1), other=large(2))
    commit(store, epoch, 2, tmp_path / "new", one=large(3))
    left = Carried({**carried(store), "other": large(4)}, frozenset({"other"}))
    make.commit(store, epoch, make.plan(3), carried=left, state_path=IN_STORE)
    assert (files(folder), files(tmp_path / "new")) == (["1"], ["2"])
    assert carried(store)["one"].equals(large(3))
    assert carried(store)["other"].equals(large(4))
    assert removed(store, epoch, tmp_path / "new", make.plan(3).now + 2 * DAY) == 1
    assert (files(folder), files(tmp_path / "new")) == ([], ["2"])


def test_g26_what_a_crash_left_in_another_place_is_deleted_too(
    store: SqlStore, epoch: int, folder: Path
) -> None:
    """As long as the store has files there."""
    commit(store, epoch, 1, folder, one=large(1))
    (file,) = folder.rglob("*.parquet")
    lost = file.with_name("000000000002-1-1b9f0c2d-9f1c7e0a5b2d4c68.parquet")
    lost.write_bytes(b"")
    late = time.time_ns() // 1_000 + 9 * DAY
    settings = [Settings(state_path=IN_STORE), Settings(state_path=f"file://{folder}")]
    retention = store.of("bank", epoch).retention
    for other in settings:
        lost.write_bytes(b"")
        assert retention.remove_lost_files(other, late - 10 * DAY) == 0
        assert retention.remove_lost_files(other, late) == 1
        assert [*folder.rglob("*.parquet")] == [file]


def test_g26_one_folder_may_be_written_in_several_ways(
    store: SqlStore, epoch: int, folder: Path
) -> None:
    commit(store, epoch, 1, folder, one=large(1))
    left = Carried({**carried(store), "two": large(2)}, frozenset({"two"}))
    make.commit(store, epoch, make.plan(2), carried=left, state_path=f"file://{folder}")
    settings = Settings(state_path=f"file://{folder}/")
    late = time.time_ns() // 1_000 + 9 * DAY
    assert store.of("bank", epoch).retention.remove_lost_files(settings, late) == 0
    assert files(folder) == ["1", "2"]
    found = carried(store)
    assert found["one"].equals(large(1))
    assert found["two"].equals(large(2))


def test_g26_without_the_setting_sqlite_has_its_folder_and_postgresql_has_none(
    store: SqlStore, epoch: int, tmp_path: Path
) -> None:
    commit(store, epoch, 1, None, one=large(1))
    assert carried(store)["one"].equals(large(1))
    beside = store.database.file
    if beside is None:
        assert files(tmp_path) == []
        return
    assert [*tmp_path.rglob("*.parquet")] == [*Path(f"{beside}.state").rglob("*.parquet")] != []
    with copy_of(store, tmp_path) as copied:
        with pytest.raises(EngineError, match=r"state file .*/b\.db\.state/.* is gone"):
            carried(copied)
        shutil.copytree(f"{beside}.state", f"{copied.database.file}.state")
        assert carried(copied)["one"].equals(large(1))  # one backup has both


def copy_of(store: SqlStore, folder: Path) -> SqlStore:
    """Another store with the same rows, as a backup that was restored elsewhere."""
    file = store.database.file
    assert file is not None
    with closing(sqlite3.connect(file)) as one, closing(sqlite3.connect(folder / "b.db")) as two:
        one.backup(two)
    return open_store(f"sqlite:///{folder}/b.db", create=False)


def test_g26_two_copies_of_a_store_delete_nothing_of_each_other(
    sqlite_url: str, tmp_path: Path, folder: Path
) -> None:
    with open_store(sqlite_url, create=True) as first:
        epoch = first.of("bank").lease.acquire("one", 60)
        late = time.time_ns() // 1_000 + 9 * DAY
        commit(first, epoch, 1, folder, gone=large(0))
        commit(first, epoch, 2, folder, gone=None, one=large(1), other=large(2))
        with copy_of(first, tmp_path) as second:
            assert removed(second, epoch, folder, late) == 0  # not even what nothing points to
            commit(second, epoch, 3, folder, one=large(3))
            commit(first, epoch, 3, folder, other=large(4))
            for bucket, part in ((4, 5), (5, 6)):
                for store in (first, second):
                    commit(store, epoch, bucket, folder, one=large(part))
            assert removed(first, epoch, folder, late) == 3
            assert removed(second, epoch, folder, late) == 1
            for store, other in ((first, 4), (second, 2)):
                assert carried(store)["one"].equals(large(6))
                assert carried(store)["other"].equals(large(other))


def test_g26_a_copy_puts_no_files_of_the_original_together(
    sqlite_url: str, tmp_path: Path, folder: Path
) -> None:
    with open_store(sqlite_url, create=True) as first:
        epoch = first.of("bank").lease.acquire("one", 60)
        many_small(first, epoch, folder)
        with copy_of(first, tmp_path) as second:
            assert second.of("bank", epoch).buckets.compact(str(folder), make.plan(99).now) == {}


def test_g26_a_copy_takes_what_it_needs_to_its_own_place(
    sqlite_url: str, tmp_path: Path, folder: Path
) -> None:
    with open_store(sqlite_url, create=True) as first:
        epoch = first.of("bank").lease.acquire("one", 60)
        commit(first, epoch, 1, folder, one=large(1), other=large(2))
        with copy_of(first, tmp_path) as second:
            commit(second, epoch, 2, folder, third=small(3))
            commit(first, epoch, 2, folder, one=None, other=None)
            assert removed(first, epoch, folder, make.plan(2).now + 2 * DAY) == 1
            assert carried(second)["one"].equals(large(1))
            assert carried(second)["other"].equals(large(2))
            assert len({file.parent for file in folder.rglob("*.parquet")}) == 1


def test_g26_what_a_copy_has_taken_it_reads_nowhere_else(
    sqlite_url: str, tmp_path: Path, folder: Path
) -> None:
    """The engine goes on with the state that it has loaded. The original deletes its files."""
    with open_store(sqlite_url, create=True) as first:
        epoch = first.of("bank").lease.acquire("one", 60)
        commit(first, epoch, 1, folder, **{"node:a/0": large(1)})
        assert isinstance(apart(first)["node:a/0"], FilePart)
        with copy_of(first, tmp_path) as second:
            found = apart(second)["node:a/0"]
            commit(second, epoch, 2, folder, third=small(3))
            assert found.equals(large(1))
            assert isinstance(apart(second)["node:a/0"], FilePart)


def test_g26_what_executors_write_for_a_copy_stays_where_it_is(
    sqlite_url: str, tmp_path: Path, folder: Path
) -> None:
    """The engine goes on with what they have written. What nothing points to is deleted."""
    with open_store(sqlite_url, create=True) as first:
        epoch = first.of("bank").lease.acquire("one", 60)
        commit(first, epoch, 1, folder, **{"node:a/0": large(1)})
        with copy_of(first, tmp_path) as second:
            there = second.of("bank", epoch).buckets.shelf(str(folder), 2)
            assert there is not None
            written = there.write({"node:a/0": large(2)})
            commit(second, epoch, 2, folder, **written)
            assert removed(second, epoch, folder, time.time_ns() // 1_000 + 9 * DAY) == 0
            assert there.read(written)["node:a/0"].equals(large(2))
            assert apart(second)["node:a/0"].written == written["node:a/0"].written


def test_g20_an_adopted_store_deletes_nothing_that_it_wrote_before(
    store: SqlStore, epoch: int, folder: Path
) -> None:
    """It may be the clone of a whole machine: the original has the same place."""
    commit(store, epoch, 1, folder, one=large(1), other=large(2))
    store.adopt("bank", epoch, ())
    commit(store, epoch, 2, folder, one=large(3))
    assert removed(store, epoch, folder, time.time_ns() // 1_000 + 9 * DAY) == 0
    assert files(folder) == ["1", "2"]
    assert carried(store)["other"].equals(large(2))
    assert len({file.parent for file in folder.rglob("*.parquet")}) == 2
    commit(store, epoch, 3, folder, one=None, other=None)
    assert removed(store, epoch, folder, time.time_ns() // 1_000 + 9 * DAY) == 1
    assert files(folder) == ["1"]


def test_g21_who_has_no_lease_puts_no_files_together(
    store: SqlStore, epoch: int, folder: Path
) -> None:
    many_small(store, epoch, folder)
    before = {part.file for part in apart(store).values()}
    with pytest.raises(EngineError, match="is run by one now"):
        store.of("bank", epoch + 1).buckets.compact(str(folder), make.plan(99).now)
    assert {part.file for part in apart(store).values()} == before


def test_g21_who_has_no_lease_stores_and_removes_nothing(
    store: SqlStore, epoch: int, folder: Path
) -> None:
    commit(store, epoch, 1, folder, one=large(1))
    commit(store, epoch, 2, folder, one=large(2))
    with pytest.raises(EngineError, match="is run by one now"):
        commit(store, epoch + 1, 3, folder, one=large(3))
    with pytest.raises(EngineError, match="is run by one now"):
        removed(store, epoch + 1, folder, make.plan(2).now + 2 * DAY)
    assert carried(store)["one"].equals(large(2))
    assert files(folder)[:2] == ["1", "2"]


def test_g26_a_file_that_only_an_executor_sees_is_refused(store: SqlStore, folder: Path) -> None:
    own = store.of("bank").buckets.shelf(str(folder), 1)
    assert own is not None
    (part,) = own.write({"node:a/0": large(1)}).values()
    own.check([part.file])
    (file,) = folder.rglob("*.parquet")
    file.unlink()  # it is on a disk of the executor's own
    with pytest.raises(EngineError, match=f"wrote state file {file}, and the engine") as error:
        own.check([part.file])
    assert (error.value.code, "state_path: store" in error.value.hint) == ("state-apart", True)


def test_g26_executors_write_nothing_where_all_is_small_or_in_the_store(
    store: SqlStore, folder: Path
) -> None:
    buckets = store.of("bank").buckets
    for path, part in ((IN_STORE, large(1)), (str(folder), small(1))):
        own = buckets.shelf(path, 1)
        assert own is not None
        assert own.write({"node:a/0": part}) == {}
    assert not folder.exists()


def test_g26_executors_write_small_parts_that_are_large_together(
    store: SqlStore, folder: Path
) -> None:
    """They have more of them, and finer ones, than the driver."""
    own = store.of("bank").buckets.shelf(str(folder), 1)
    assert own is not None
    few = {f"node:a/{n}": large(n).slice(0, BYTES_MIN // 16) for n in range(3)}
    assert own.write({"node:a/0": few["node:a/0"]}) == {}
    parts = own.write(few)
    assert {name: own.read({name: parts[name]})[name] for name in few} == few
    wrong = replace(parts["node:a/1"], rows=1)
    with pytest.raises(EngineError, match="is damaged"):
        own.read({"node:a/1": wrong})


def test_g26_a_part_that_stays_in_its_file_is_known_without_reading_it(
    store: SqlStore, epoch: int, folder: Path
) -> None:
    own = store.of("bank", epoch).buckets.shelf(str(folder), 1)
    assert own is not None
    written = own.write({"node:a/0": large(1), "node:a/1": small(2)})
    left = Carried({**written, "held:x": small(3)}, frozenset({*written, "held:x"}))
    make.commit(store, epoch, make.plan(1), carried=left, state_path=str(folder))
    found = store.of("bank").buckets.load(apart=True).carried.tables
    assert {name: isinstance(part, FilePart) for name, part in found.items()} == {
        "node:a/0": True, "node:a/1": True, "held:x": False,
    }  # fmt: skip
    assert len(found["node:a/0"]) == len(large(1))
    assert metadata_of(found["node:a/0"]) == large(1).schema.metadata
    assert own.read({"one": found["node:a/0"]})["one"].equals(large(1))
    assert carried(store)["node:a/1"].equals(small(2))
    (file,) = folder.rglob("*.parquet")
    file.unlink()
    with pytest.raises(EngineError, match="is gone"):
        store.of("bank").buckets.load(apart=True)


def filed(store: SqlStore, folder: Path, bucket: int, rule: str = "blocked") -> Firings:
    """Firings of a bucket whose rows executors have left in a file."""
    own = store.of("bank", 1).buckets.shelf(str(folder), bucket)
    assert own is not None
    fired = make.firings(rule, bucket=bucket)
    count = fired.rows.num_rows
    sources = pa.table(
        {"version": pa.array(range(count), pa.int64()), "signal": pa.nulls(count, pa.string())}
    )
    return replace(fired, sources=sources).on(own, always=True)


def test_g26_rows_in_files_are_read_for_who_asks(store: SqlStore, epoch: int, folder: Path) -> None:
    """Whoever lists a firing, or asks why it fired, is told the same as of rows in the store."""
    for bucket, fired in ((1, filed(store, folder, 1)), (2, make.firings(bucket=2))):
        entry = make.entry()
        make.commit(store, epoch, make.plan(bucket), fired=[fired], entries=[entry])
    bank = store.of("bank")
    first, second = (
        [{**one, "firing_id": 0, "start": 0, "end": 0, "bucket": 0} for one in found]
        for found in (
            [one for one in bank.firings.listed() if one["bucket"] == bucket] for bucket in (1, 2)
        )
    )
    names = [[one["event"] for one in f["constituents"]] for f in first]
    assert names == [["withdrawal", "transfer"]] * 2
    assert [f["key"] for f in first] == [f["key"] for f in second]
    amounts = [[one.get("amount") for one in f["constituents"]] for f in first]
    assert amounts == [[one.get("amount") for one in f["constituents"]] for f in second]
    stored = bank.outbox.firings(1, "blocked")
    assert stored.files
    assert stored.rows == make.firings(bucket=1).rows
    last = make.hex_ids(stored)[1]
    recorded = bank.recorded.firing(last)
    assert recorded is not None
    assert [one["version"] for one in recorded["constituents"]] == [2, 3]
    one = bank.traces.trace(bank.traces.place(last)).one
    assert one.rows["amount"].to_pylist() == [51.5, None]
    assert one.sources is not None
    (file,) = folder.rglob("*.parquet")
    file.unlink()
    with pytest.raises(EngineError, match=f"state file {file} is gone"):
        [*bank.firings.listed()]
    assert len([*bank.firings.listed(since=make.BEGIN + make.HOUR)]) == 2


def test_g26_files_of_rows_go_when_their_firings_are_gone(
    store: SqlStore, epoch: int, folder: Path
) -> None:
    """Not before, whatever becomes of what is carried."""
    fired = [filed(store, folder, 1), filed(store, folder, 1, "other")]
    path = str(folder)
    open_one = make.entry("other")
    make.commit(store, epoch, make.plan(1), fired=fired, entries=[open_one], state_path=path)
    commit(store, epoch, 2, folder, one=large(2))
    commit(store, epoch, 3, folder, one=None)
    last = make.plan(3).now
    assert removed(store, epoch, folder, last + 9 * DAY) == 1  # what was carried
    assert files(folder) == ["1", "1"]
    purge = partial(store.of("bank", epoch).retention.purge, last, last, 1_000)
    assert purge() > 0
    assert removed(store, epoch, folder, last + DAY) == 0
    assert removed(store, epoch, folder, last + DAY + 1) == 1
    assert [one["rule"] for one in store.of("bank").firings.listed()] == ["other"] * 2
    assert files(folder) == ["1"]
    assert store.of("bank").status.shown()["state_files"] == 1


@pytest.mark.parametrize("point", ["rows.middle", "rows.written"])
@pytest.mark.usefixtures("disarm")
def test_g26_rows_of_a_bucket_that_is_given_up_are_nobodys(
    store: SqlStore, epoch: int, folder: Path, point: str
) -> None:
    failpoints.arm(f"{point}=raise")
    with pytest.raises(FailpointError):
        filed(store, folder, 1)
    make.commit(store, epoch, make.plan(1), fired=[filed(store, folder, 1)])
    assert files(folder) == ["1", "1"]
    late = time.time_ns() // 1_000 + 9 * DAY
    assert removed(store, epoch, folder, late) == 1
    assert len([*store.of("bank").firings.listed()]) == 2


def test_g26_a_try_that_is_given_up_deletes_its_own_files(
    store: SqlStore, epoch: int, folder: Path
) -> None:
    """Nobody else has them: neither another try of the bucket, nor another engine."""
    own, path = store.of("bank", epoch).buckets, str(folder)
    shelves = (store.of("bank", n).buckets.shelf(path, 1) for n in (epoch, epoch, epoch + 1))
    first, again, other = (one for one in shelves if one is not None)
    for one in (first, again, other):
        one.write({"node:a/0": large(1)})
    assert len(files(folder)) == 3
    with pytest.raises(EngineError, match="is run by one now"):
        store.of("bank", epoch + 1).buckets.give_up(1, other)
    own.give_up(1, first)
    assert len(files(folder)) == 2
    made = make.firings("blocked", bucket=1).on(again, always=True)
    make.commit(store, epoch, make.plan(1), fired=[made], state_path=path)
    own.give_up(1, again)  # the answer to its transaction was lost
    assert len(files(folder)) == 3
    assert len([*store.of("bank").firings.listed()]) == 2


def test_g26_a_try_that_wrote_nothing_is_given_up(store: SqlStore, epoch: int) -> None:
    own = store.of("bank", epoch).buckets
    for path in (IN_STORE, "/nowhere"):
        shelf_of_try = own.shelf(path, 1)
        assert shelf_of_try
        own.give_up(1, shelf_of_try)


def test_g07_rows_that_a_full_disk_does_not_take_are_waited_for(
    store: SqlStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shelf.pq, "write_table", full)
    with pytest.raises(OutageError, match="No space left on device"):
        filed(store, folder, 1)
    assert files(folder) == []
