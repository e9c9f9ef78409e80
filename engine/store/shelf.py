"""Files of a bucket: parts of what is carried, and rows of what was detected (G26).

A file is Parquet. One of parts has a row group for each part, which is one value: the table as
bytes. What is known of a part without reading it stands in the file's metadata. Parquet has
checksums of pages, but none of metadata: the file has a digest of these, and of its own name.

    node:1f/3, 4,000 rows    row group 0
    node:1f/7, 3,120 rows    row group 1

One of rows has the columns of a parameter relation, so that Spark reads it, too. Some rows of it
are read by the row groups that they are in.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.ports import OutageError
from tidegate.engine.core.relation_files import RowsFile
from tidegate.engine.core.state_parts import FilePart, metadata_of, not_shared
from tidegate.engine.store import folder as disk
from tidegate.engine.store.blobs import table_from_bytes, table_to_bytes
from tidegate.rules.errors import EngineError

BYTES_MIN = 65_536
"""Less than this stays in the store: a file for it would cost more."""
ROWS_BYTES_MIN = 1 << 20
"""Rows that take less memory stay with their firings."""
ROWS_A_GROUP = 1 << 15
_SAID, _DIGEST = b"tidegate.parts", b"tidegate.digest"
_SCHEMA = pa.schema([pa.field("arrow", pa.large_binary(), nullable=False)])
_LATIN = "latin-1"  # metadata are bytes
_DAMAGED = (OSError, pa.ArrowException, IndexError, KeyError, ValueError)
"""What is raised where a file is not what was written, or is not there."""


Made = TypeVar("Made")


class Packed(NamedTuple):
    """A part as bytes, its rows, and the metadata of its schema."""

    data: bytes
    rows: int
    metadata: Mapping[bytes, bytes]

    @classmethod
    def of(cls, table: pa.Table) -> Packed:
        return cls(table_to_bytes(table, fast=True), len(table), _interned(metadata_of(table)))


@dataclass(frozen=True, slots=True)
class FileShelf:
    """The state files of a bucket of a rulebook, in one try to take it. Implements
    `engine.core.state_parts.Shelf`.

    root    the folder of files that are named without one; "" if there is none
    folder  where new files are written; None: nowhere, what is carried stays in the store
    stem    the first part of the names of new files, which no other try has
    """

    root: str
    folder: str | None
    stem: str

    def read(self, parts: Mapping[str, FilePart]) -> dict[str, pa.Table]:
        at = {name: (part.file, part.group) for name, part in parts.items()}
        found = {name: table_from_bytes(data) for name, data in self.read_bytes(at).items()}
        for name, part in parts.items():
            if len(found[name]) != part.rows:
                raise _unread(self.full(part.file), ValueError(f"{name} has other rows"))
        return found

    def read_bytes(self, at: Mapping[str, tuple[str, int]]) -> dict[str, pa.Buffer]:
        """Parts by name, each given by its file and row group. Raises as `read`."""
        return self._read_parts(at)[0]

    def _read_parts(
        self, at: Mapping[str, tuple[str, int]]
    ) -> tuple[dict[str, pa.Buffer], dict[str, bytes]]:
        """`read_bytes`; and by file what it says of its parts."""
        of_file: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for name, (file, group) in at.items():
            of_file[file].append((group, name))
        found, said = dict[str, pa.Buffer](), dict[str, bytes]()
        for file, some in of_file.items():

            def read(source: Any, file: str = file, some: Any = some) -> None:
                parquet = _checked(source)
                said[file] = _check_said(file, parquet.metadata.metadata)
                for group, name in sorted(some):
                    column = parquet.read_row_group(group, use_threads=False).column(0)
                    found[name] = column[0].as_buffer()

            _read(self.full(file), read)
        return found, said

    def described(self, files: Iterable[str]) -> dict[tuple[str, int], FilePart]:
        """What is known of the parts of some files, by file and row group. Raises as `read`."""
        found = {}
        for file in files:

            def read(source: Any, file: str = file) -> tuple[int, bytes]:
                return source.size(), _check_said(file, pq.read_metadata(source).metadata)

            size, said = _read(self.full(file), read)
            for group, (rows, length, metadata) in enumerate(_told(said)):
                found[file, group] = FilePart(file, group, rows, metadata, length, size)
        return found

    def write(self, tables: Mapping[str, pa.Table]) -> dict[str, FilePart]:
        packed = {name: Packed.of(table) for name, table in tables.items()}
        few = sum(len(part.data) for part in packed.values()) < BYTES_MIN
        return {} if few else self._write(packed)

    def write_large(self, parts: Mapping[str, Packed]) -> dict[str, FilePart]:
        """Write those parts to a file that are large each. Raises as `write` does."""
        return self._write({n: part for n, part in parts.items() if len(part.data) >= BYTES_MIN})

    def copied(self, at: Mapping[str, tuple[str, int]]) -> dict[str, FilePart]:
        """Copy parts, each given by its file and row group, to one new file. Raises as `read` and
        `write` do."""
        found, said = self._read_parts(at)
        known = {file: _told(text) for file, text in said.items()}
        parts = {}
        for name, (file, group) in at.items():
            rows, _, metadata = known[file][group]
            parts[name] = Packed(found[name].to_pybytes(), rows, metadata)
        return self._write(parts)

    def _write(self, parts: Mapping[str, Packed]) -> dict[str, FilePart]:
        """Write parts to a file, unless there are none, or they stay in the store. Raises as
        `_created`."""
        if self.folder is None or not parts:
            return {}

        said = _said(parts.values())

        def write(sink: Any, file: str) -> None:
            with pq.ParquetWriter(
                sink,
                _SCHEMA.with_metadata({_SAID: said, _DIGEST: _digest(file, said)}),
                compression="none",  # they are compressed
                use_dictionary=False,
                write_statistics=False,
                write_page_checksum=True,
            ) as writer:
                for part in parts.values():
                    writer.write_table(pa.table([[part.data]], schema=_SCHEMA))
                    failpoint("state.middle")

        file, size = self._created(self.folder, write)
        failpoint("state.written")
        return {
            name: FilePart(file, group, part.rows, part.metadata, len(part.data), size)
            for group, (name, part) in enumerate(parts.items())
        }

    def write_rows(self, rows: pa.Table, *, always: bool = False) -> RowsFile | None:
        """See `engine.core.relation_files.RowsShelf`."""
        if self.folder is None or not (always or rows.nbytes >= ROWS_BYTES_MIN):
            return None

        def write(sink: Any, file: str) -> None:
            marked = {**(rows.schema.metadata or {}), _DIGEST: _digest(file, b"")}
            pq.write_table(
                rows.replace_schema_metadata(marked),
                sink,
                row_group_size=ROWS_A_GROUP,
                compression="zstd",
                write_statistics=False,
                write_page_checksum=True,
            )
            failpoint("rows.middle")

        file = RowsFile(*self._created(self.folder, write))
        failpoint("rows.written")
        return file

    def read_rows(self, file: str, schema: pa.Schema, at: npt.NDArray[np.int64]) -> pa.Table:
        """See `engine.core.relation_files.RowsShelf`."""

        def read(source: Any) -> pa.Table:
            parquet = _checked(source)
            metadata = parquet.metadata
            _check_digest(file, metadata.metadata, b"")
            sizes = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
            end = np.cumsum(sizes)
            group = np.searchsorted(end, at, side="right")  # of each row
            groups, index = np.unique(group, return_inverse=True)
            rows = parquet.read_row_groups(groups.tolist(), schema.names).select(schema.names)
            if len(at) < len(rows):
                before = np.cumsum([0, *(sizes[n] for n in groups)])[index]
                rows = rows.take(pa.array(at - (end - sizes)[group] + before))
            return rows.cast(schema)

        return _read(self.full(file), read)

    def _created(self, folder: str, write: Callable[[Any, str], None]) -> tuple[str, int]:
        """A new file, as the store names it, and its size in bytes. Raises OutageError
        `state-unwritable`; nothing of it is left then, as far as it can be deleted."""
        file = f"{folder}/{self.stem}-{secrets.token_hex(8)}.parquet"
        full = self.full(file)
        try:
            with disk.created(full) as sink:
                write(sink, file)
                return file, int(sink.tell())
        except (OSError, pa.ArrowException) as error:
            disk.deleted(full)
            raise OutageError(
                "state-unwritable",
                f"state file {full} cannot be written: {error}",
                "make room, or see to the storage of the setting state_path; nothing of the bucket "
                "is stored",
            ) from error

    def remove_written(self) -> None:
        if self.folder is not None:
            for name in disk.files_named(self.full(self.folder), f"{self.stem}-"):
                disk.deleted(self.full(f"{self.folder}/{name}"))

    def check(self, files: Collection[str]) -> None:
        for full in map(self.full, files):
            if not disk.exists(full):
                how = f"an executor wrote state file {full}, and the engine does not see it"
                raise not_shared(how)

    def full(self, file: str) -> str:
        """The path or URI of a file."""
        whole = file.startswith("/") or "://" in file or not self.root
        return file if whole else f"{self.root}/{file}"


def _checked(source: Any) -> pq.ParquetFile:
    """A Parquet file. Each page that is read is compared with its checksum."""
    return pq.ParquetFile(source, page_checksum_verification=True)


def _interned(metadata: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """The same, with equal bytes as one object: pickle names what it has seen."""
    return {_one(key): _one(value) for key, value in metadata.items()}


@lru_cache(maxsize=1 << 12)
def _one(text: bytes) -> bytes:
    return text


def _said(parts: Iterable[Packed]) -> bytes:
    said = [
        (
            part.rows,
            len(part.data),
            {k.decode(_LATIN): v.decode(_LATIN) for k, v in part.metadata.items()},
        )
        for part in parts
    ]
    return json.dumps(said).encode()


def _told(said: bytes) -> list[tuple[int, int, dict[bytes, bytes]]]:
    """What a file says of its parts, by row group: rows, bytes, metadata of the schema."""
    return [
        (rows, length, _interned({k.encode(_LATIN): v.encode(_LATIN) for k, v in told.items()}))
        for rows, length, told in json.loads(said)
    ]


def _digest(file: str, said: bytes) -> bytes:
    """Of the name of a file, wherever it lies, and of what is said of its parts."""
    name = file.rpartition("/")[2].encode()
    return hashlib.blake2b(name + b"\n" + said, digest_size=16).hexdigest().encode()


def _check_said(file: str, metadata: Mapping[bytes, bytes] | None) -> bytes:
    """What a file says of its parts. Raises KeyError, and ValueError unless this file said so."""
    said = (metadata or {})[_SAID]
    _check_digest(file, metadata, said)
    return said


def _check_digest(file: str, metadata: Mapping[bytes, bytes] | None, said: bytes) -> None:
    """Raises ValueError."""
    if (metadata or {}).get(_DIGEST) != _digest(file, said):
        raise ValueError("it is another file, or what it says has changed")


def _read(file: str, read: Callable[[Any], Made], *, again: bool = True) -> Made:
    """What `read` makes of an open file. Once more where it fails and all bytes are there: the
    storage may have been away for a moment. Raises as `_unread` says."""
    try:
        with disk.opened(file) as source:
            return read(source)
    except _DAMAGED as error:
        said = _unread(file, error)
        if not again or isinstance(error, FileNotFoundError) or isinstance(said, OutageError):
            raise said from error
    return _read(file, read, again=False)


def _unread(file: str, error: Exception) -> EngineError:
    """Why a file is not read: it is gone, its bytes are damaged, or its storage is away."""
    if isinstance(error, FileNotFoundError):
        how = "is gone"
    else:
        try:
            disk.read_through(file)
        except OSError as away:
            return OutageError(
                "state-unreadable",
                f"state file {file} cannot be read: {away}",
                "see to the storage of the setting state_path, run again",
            )
        how = "is damaged"
    return EngineError(
        "state-file",
        f"state file {file} {how}: what rules carry, or the rows of firings, are in it",
        "put it back as it was, or restore the store and state_path from one backup; or let rules "
        "begin anew in a new store: `--store`, then `tidegate adopt`",
    )
