"""Parts of what is carried that lie in state files, and are read where they are needed (G26).

Example: `node:1f/3` is a row group of a file that an executor wrote. The driver knows how many rows
it has and when its first timer is due, and never reads it. The next executor that has an occurrence
of partition 3 does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from tidegate.engine.core.relation_files import RowsShelf
from tidegate.rules.errors import EngineError

FILES_MAX = 1_000
"""More files than these are not pointed to for long: who reads a bucket's parts opens each."""
MOVED_BYTES_MAX = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class FilePart:
    """A carried table in a row group of a state file. Its length is asked for as a table's is; for
    the metadata of its schema, see `metadata_of`.

    file       as the store names it
    group      the row group
    rows       of the table
    metadata   of the table's schema
    bytes      of this part
    file_size  of the whole file, bytes
    first      the file and row group in which it was, if it has been moved since
    """

    file: str
    group: int
    rows: int
    metadata: Mapping[bytes, bytes]
    bytes: int
    file_size: int
    first: tuple[str, int] | None = None

    def __len__(self) -> int:
        return self.rows

    def is_copy_of(self, other: object) -> bool:
        """Whether the two have been written once."""
        return isinstance(other, FilePart) and self.written == other.written

    @property
    def written(self) -> tuple[str, int]:
        """The file and row group in which it was first."""
        return self.first or (self.file, self.group)

    def __reduce__(self) -> tuple[object, ...]:
        """Written out: a task may be sent thousands."""
        own = (self.file, self.group, self.rows, self.metadata, self.bytes, self.file_size)
        return FilePart, (*own, self.first)


def metadata_of(part: pa.Table) -> Mapping[bytes, bytes]:
    """The metadata of a carried table, wherever it lies."""
    if isinstance(part, FilePart):
        return part.metadata
    return part.schema.metadata or {}


class Shelf(RowsShelf, Protocol):
    """Where a bucket's files are: of what is carried, and of the rows of firings. It goes through
    pickle: an executor writes and reads the same files as the driver."""

    def read(self, parts: Mapping[str, FilePart]) -> dict[str, pa.Table]:
        """The tables, by name. Raises EngineError `state-file` where a file is gone or damaged, and
        OutageError where its storage does not answer."""
        ...

    def write(self, tables: Mapping[str, pa.Table]) -> dict[str, FilePart]:
        """Write tables to one file, to which nothing points before the bucket is committed. Gives
        no parts, and writes nothing, where they are too small for a file. Raises OutageError."""
        ...

    def check(self, files: Collection[str]) -> None:
        """Raises EngineError `state-apart` where a file that an executor wrote is not seen here."""
        ...


def not_shared(how: str) -> EngineError:
    """That executors and the engine do not see the same files."""
    return EngineError(
        "state-apart",
        how,
        "let `state_path` name a folder that the engine and all executors share, or say "
        "`state_path: store`",
    )


def loaded(tables: Mapping[str, pa.Table], shelf: Shelf | None) -> Mapping[str, pa.Table]:
    """The same, with those in memory that lay in files. Raises as `Shelf.read`."""
    there = {name: part for name, part in tables.items() if isinstance(part, FilePart)}
    if not there:
        return tables
    if shelf is None:
        raise ValueError("parts lie in files, and nobody reads these")
    return {**tables, **shelf.read(there)}


def files_of(parts: Iterable[pa.Table]) -> frozenset[str]:
    """The files in which some parts lie."""
    return frozenset(part.file for part in parts if isinstance(part, FilePart))


def moved(parts: Mapping[str, pa.Table], shelf: Shelf) -> dict[str, FilePart]:
    """Of parts in more than `FILES_MAX` files, those of the smallest files, put together in one new
    file: at most `MOVED_BYTES_MAX`. What is left in a file counts, not what it had at first. Raises
    as `Shelf` does.

    Example: each bucket touches one partition of a large state, and writes a file for it. The
    thousand and first file is written, and the hundred smallest ones become one.
    """
    of_file: dict[str, dict[str, FilePart]] = defaultdict(dict)
    for name, part in parts.items():
        if isinstance(part, FilePart):
            of_file[part.file][name] = part
    if len(of_file) <= FILES_MAX:
        return {}
    some, room = dict[str, FilePart](), MOVED_BYTES_MAX
    for own in sorted(of_file.values(), key=_bytes):
        room -= _bytes(own)
        if room < 0:
            break
        some |= own
    new = shelf.write(shelf.read(some)) if some else {}
    return {name: replace(part, first=some[name].written) for name, part in new.items()}


def _bytes(parts: Mapping[str, FilePart]) -> int:
    return sum(part.bytes for part in parts.values())
