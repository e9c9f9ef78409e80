"""Large parts of what is carried, and the rows of many firings, as files beside the store (G26).

A bucket writes the parts that it changed to one Parquet file, a row group each, before its
transaction. The transaction lists the file and points to its row groups; that is the only commit.
Rows of firings, which executors have written, are listed and pointed to in the same way. A file is
never changed, and is deleted some time after nothing points to it any more. What was written for a
bucket that is given up is deleted before that is taken again.

    STATE_PATH/HOME/RULEBOOK/000000000042-3-1b9f0c2d-9f1c7e0a5b2d4c68.parquet
                             bucket, epoch, try, random

HOME names the store's id in the place of this very database. A copy of a store lies elsewhere, and
one that was cloned with its machine is adopted, so it has another home: it deletes nothing in the
home that it came from, and its next bucket writes what it needs of that to its own.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from urllib.parse import quote

import sqlalchemy as sa

from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.state_parts import COMPACTED_BYTES_MAX, FilePart
from tidegate.engine.core.values import Firings, Plan
from tidegate.engine.store import folder as disk
from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import upsert
from tidegate.engine.store.hours import HOUR_MICROS
from tidegate.engine.store.shelf import FileShelf
from tidegate.rules.model import IN_STORE, Settings

KEPT_MICROS_MIN = 60_000_000
"""So long a file is kept in any case: who reads the store's pointers reads the files after that."""
REMOVED_AT_ONCE = 1_000
"""So many files are deleted in one go. Of more there are half, for `REMOVING_SECONDS`: hundreds of
executors leave more than a thousand files between two goes."""
REMOVING_SECONDS = 5.0
COMPACTED_PARTS_MAX = 4_000
"""So many parts are put together in one go, or those of two files: each takes its time."""
SMALL_BYTES = 1 << 22
SMALL_FILES_MIN = 32
"""So many files below `SMALL_BYTES` are put together in a quiet time. Fewer stay as they are."""
UNREAD = frozenset({"state-file", "state-unreadable"})
"""The codes with which a file is not read."""
_BESIDE = ".state"


class StateFiles(Bound):
    """The state files of one rulebook."""

    @cached_property
    def home(self) -> str:
        """The name of this very store: no copy of it, wherever it is, has the same."""
        with self.database.read() as connection:
            made = connection.execute(sa.select(t.meta.c.store_id)).scalar_one()
            text = f"{made} {self.database.identity(connection)}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def elsewhere(self) -> frozenset[str]:
        """The parts that lie in files of other homes."""
        c, s = t.carried.c, t.state_files.c
        pointed = sa.select(s.file).where(s.rulebook == self.rulebook, s.unused_since.is_(None))
        moving = c.file.in_(pointed.where(s.home != self.home))
        query = sa.select(c.name).where(c.rulebook == self.rulebook, moving)
        with self.database.read() as connection:
            return frozenset(connection.execute(query).scalars())

    def small(self) -> dict[str, tuple[str, int]]:
        """The parts in the smallest files of this home, each by its file and row group, as many as
        are put together in one go. None unless there are `SMALL_FILES_MIN` small files."""
        s, c = t.state_files.c, t.carried.c
        small = (s.rulebook == self.rulebook) & (s.home == self.home) & (s.bytes < SMALL_BYTES)
        used = s.unused_since.is_(None) & s.bucket.is_(None)
        listed = sa.select(s.file, s.bytes).where(small, used).order_by(s.bytes, s.file)
        with self.database.read() as connection:
            found = connection.execute(listed).all()
            if len(found) < SMALL_FILES_MIN:
                return {}
            total = accumulate(size for _, size in found)
            files = [
                row.file
                for row, end in zip(found, total, strict=True)
                if end <= COMPACTED_BYTES_MAX
            ]
            parts = sa.select(c.name, c.file, c.file_row).where(
                c.rulebook == self.rulebook, c.file.in_(files)
            )
            of_file = defaultdict[str, list[tuple[str, int]]](list)
            for name, file, row in connection.execute(parts):
                of_file[file].append((name, row))
        some = dict[str, tuple[str, int]]()
        for number, file in enumerate(files):
            if number > 1 and len(some) + len(of_file[file]) > COMPACTED_PARTS_MAX:
                break
            some |= {name: (file, row) for name, row in of_file[file]}
        return some

    @property
    def reader(self) -> FileShelf:
        """All files, for who writes none."""
        file = self.database.file
        return FileShelf("" if file is None else f"{file.absolute()}{_BESIDE}", None, "")

    def shelf(self, state_path: str | None, bucket: int) -> FileShelf:
        """Where the files of a bucket are written, as the setting `state_path` says, this time."""
        folder = self._folder(state_path)
        own = None if folder is None else self._own(folder)
        stem = f"{bucket:012d}-{self.epoch}-{secrets.token_hex(4)}"
        return replace(self.reader, folder=own, stem=stem)

    def remove_unused(self, settings: Settings, now: int) -> int:
        """Delete files to which nothing points, those first that are unused longest, as
        `state_unused_hours` and `state_unused_bytes_max` say. Returns how many."""
        c = t.state_files.c
        unused = (c.rulebook == self.rulebook) & c.unused_since.is_not(None)
        unused &= c.home == self.home
        with self.database.read() as connection:
            total = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(c.bytes), 0))
            count, size = connection.execute(total.where(unused)).one()
            query = sa.select(c.file, c.bytes, c.unused_since).where(unused)
            first = query.order_by(c.unused_since, c.file)
            rows = connection.execute(first.limit(_at_once(count))).all()
            left = int(size)
        old = list[str]()
        for row in rows:
            over = left > settings.state_unused_bytes_max
            if row.unused_since < now - (KEPT_MICROS_MIN if over else _kept(settings)):
                old.append(row.file)
                left -= row.bytes
        gone = self._deleted(old)
        failpoint("state.deleted")
        if gone:
            with self.leased() as connection:
                one = (c.rulebook == self.rulebook) & (c.file == sa.bindparam("gone"))
                statement = sa.delete(t.state_files).where(one)
                connection.execute(statement, [{"gone": file} for file in gone])
        return len(gone)

    def remove_lost(self, settings: Settings, now: int) -> int:
        """Delete files that no transaction has ever listed, as a crash leaves them, after
        `state_unused_hours`: in the present folder, and where the store lists files of its own.
        Returns how many. Files of other homes to which nothing points are forgotten: whether
        somebody else needs them is not known."""
        folder, home, c = self._folder(settings.state_path), self.home, t.state_files.c
        with self.leased() as connection:
            unused = (c.rulebook == self.rulebook) & c.unused_since.is_not(None)
            connection.execute(sa.delete(t.state_files).where(unused, c.home != home))
        of_rulebook = c.rulebook == self.rulebook
        with self.database.read() as connection:
            listed = connection.execute(sa.select(c.file).where(of_rulebook, c.home == home))
            folders = {file.rpartition("/")[0] for file in listed.scalars()}
        if folder is not None:
            folders.add(self._own(folder))
        # by their names, which are unique: one folder may be written in several ways
        found: dict[str, str] = {}
        for own in sorted(folders):
            names = disk.files_older_than(self.reader.full(own), now - _kept(settings))
            found |= {name: f"{own}/{name}" for name in names}
        with self.database.read() as connection:
            listing = sa.select(c.file).where(of_rulebook)
            known = {_name(file) for file in connection.execute(listing).scalars()}
        lost = [file for name, file in found.items() if name not in known]
        return len(self._deleted(lost[: _at_once(len(lost))]))

    def _deleted(self, files: Sequence[str]) -> list[str]:
        """Delete files; returns those that are gone then."""
        if files:
            with self.leased():  # else they are another engine's to delete
                pass
        gone, ends = list[str](), time.monotonic() + REMOVING_SECONDS
        for number, file in enumerate(files):
            if number >= REMOVED_AT_ONCE and time.monotonic() >= ends:
                break
            if disk.deleted(self.reader.full(file)):
                gone.append(file)
        return gone

    def _folder(self, state_path: str | None) -> str | None:
        """The folder of a setting: a path or a URI; "" beside the database's file; None: what is
        carried stays in the store."""
        if state_path is None:
            return None if self.database.file is None else ""
        return None if state_path == IN_STORE else state_path

    def _own(self, folder: str) -> str:
        """Where this rulebook's files are in a folder."""
        own = f"{self.home}/{quote(self.rulebook, safe='')}"
        return own if not folder else f"{folder.rstrip('/')}/{own}"


def files_of(firings: Iterable[Firings]) -> dict[str, tuple[str, int]]:
    """The files of the rows of firings: by name, the rule and the size in bytes."""
    return {file.name: (fired.rule, file.bytes) for fired in firings for file in fired.files}


def list_parts(
    connection: sa.Connection, rulebook: str, now: int, home: str, written: Iterable[FilePart]
) -> None:
    """List the files of parts that are saved, and note to which ones nothing points any more.
    `written`: the parts in files of this `home` that are new."""
    c, carried = t.state_files.c, t.carried.c
    new = {"rulebook": rulebook, "home": home}
    sizes = {part.file: part.file_size for part in written}
    rows = [{**new, "file": file, "bytes": size} for file, size in sizes.items()]
    upsert(connection, t.state_files, rows)
    pointed = sa.select(carried.file).where(carried.rulebook == rulebook, carried.file.is_not(None))
    unused = sa.update(t.state_files).where(c.rulebook == rulebook, c.unused_since.is_(None))
    unused = unused.where(c.file.not_in(pointed), c.bucket.is_(None))
    connection.execute(unused.values(unused_since=now))


def list_rows(
    connection: sa.Connection, plan: Plan, home: str, files: Mapping[str, tuple[str, int]]
) -> None:
    """List the files of the rows of a bucket's firings. `files`: see `files_of`."""
    new = {"rulebook": plan.rulebook, "home": home, "bucket": plan.bucket}
    rows = [{**new, "file": f, "rule": rule, "bytes": n} for f, (rule, n) in files.items()]
    upsert(connection, t.state_files, rows)


def unpointed(
    connection: sa.Connection, rulebook: str, gone: Sequence[Mapping[str, object]]
) -> None:
    """Note that nothing points to the files of firings that were deleted: of the rule `r` in the
    bucket `b` each. They are unused from the last bucket on, by the engine's clock."""
    c, b = t.state_files.c, t.buckets.c
    last = sa.select(sa.func.max(b.now)).where(b.rulebook == rulebook).scalar_subquery()
    one = (c.bucket == sa.bindparam("b")) & (c.rule == sa.bindparam("r"))
    unused = sa.update(t.state_files).where(c.rulebook == rulebook, c.unused_since.is_(None), one)
    connection.execute(unused.values(unused_since=last), gone)


def counts(connection: sa.Connection, rulebook: str) -> dict[str, int]:
    """How many files a rulebook has, unused ones included, and how many bytes they take."""
    c = t.state_files.c
    query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(c.bytes), 0))
    files, size = connection.execute(query.where(c.rulebook == rulebook)).one()
    return {"state_files": int(files), "state_bytes": int(size)}


def _at_once(count: int) -> int:
    """How many of so many files are deleted in one go, at most."""
    return max(REMOVED_AT_ONCE, count // 2)


def _kept(settings: Settings) -> int:
    """For how many microseconds files are kept."""
    return settings.state_unused_hours * HOUR_MICROS


def _name(file: str) -> str:
    return file.rpartition("/")[2]
