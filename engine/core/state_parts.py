"""Parts of what is carried that lie in state files, and are read where they are needed (G26).

Example: `node:1f/3` is a row group of a file that an executor wrote. The driver knows how many rows
it has and when its first timer is due, and never reads it. The next executor that has an occurrence
of partition 3 does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tidegate.engine.core.relation_files import RowsShelf
from tidegate.rules.errors import EngineError

COMPACTED_BYTES_MAX = 1 << 24
"""So much is read and written in one go where small files are put together."""


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
    """Where a bucket's files are: of what is carried, and of the rows of firings. Each try to take
    the bucket has its own. It goes through pickle: an executor writes and reads the same files as
    the driver."""

    def read(self, parts: Mapping[str, FilePart]) -> dict[str, pa.Table]:
        """The tables, by name. Raises EngineError `state-file` where a file is gone or damaged, and
        OutageError where its storage does not answer."""
        ...

    def write(self, tables: Mapping[str, pa.Table]) -> dict[str, FilePart]:
        """Write tables to one file, to which nothing points before the bucket is committed. Gives
        no parts, and writes nothing, where they are too small for a file. Raises OutageError."""
        ...

    def remove_written(self) -> None:
        """Delete the files that were written by way of this one, wherever that was, and is over.
        What cannot be deleted stays."""
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


def judged(failed: EngineError, tables: Mapping[str, pa.Table], shelf: Shelf | None) -> EngineError:
    """Why a task failed that was given these tables. A file that it has not read may be there, and
    be seen by the driver alone. Raises as `Shelf.read` where it is not."""
    if failed.code == "state-file" and shelf is not None:
        shelf.read({name: part for name, part in tables.items() if isinstance(part, FilePart)})
        return not_shared(f"the engine reads it, but in an executor: {failed.message}")
    return failed


def loaded(tables: Mapping[str, pa.Table], shelf: Shelf | None) -> Mapping[str, pa.Table]:
    """The same, with those in memory that lay in files. Raises as `Shelf.read`."""
    there = {name: part for name, part in tables.items() if isinstance(part, FilePart)}
    if not there:
        return tables
    if shelf is None:
        raise ValueError("parts lie in files, and nobody reads these")
    return {**tables, **shelf.read(there)}
