"""Arrow tables and firing ids as bytes."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from tidegate.rules.errors import EngineError

VERSION = b"1"
ID_BYTES = 16
_KEY = b"tidegate"
_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")


def table_to_bytes(table: pa.Table) -> bytes:
    """An IPC stream, compressed, with the version of this form in the schema's metadata."""
    sink = pa.BufferOutputStream()
    marked = table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: VERSION})
    with pa.ipc.new_stream(sink, marked.schema, options=_OPTIONS) as writer:
        writer.write_table(marked)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def table_from_bytes(data: bytes) -> pa.Table:
    """The table that `table_to_bytes` was given.

    Raises EngineError `store-payload` if another version of tidegate wrote it in another form.
    """
    table = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
    metadata = dict(table.schema.metadata or {})
    found = metadata.pop(_KEY, b"none")
    if found != VERSION:
        raise EngineError(
            "store-payload",
            f"a stored table has form {found.decode()}, this tidegate reads {VERSION.decode()}",
            "use the tidegate that wrote the store",
        )
    return table.replace_schema_metadata(metadata or None)


def ids_to_bytes(ids: Iterable[str]) -> bytes:
    """Hexadecimal ids as 16 bytes each."""
    return b"".join(bytes.fromhex(i) for i in ids)


def ids_from_bytes(data: bytes) -> tuple[str, ...]:
    """The ids that `ids_to_bytes` was given."""
    text = data.hex()
    width = 2 * ID_BYTES
    return tuple(text[at : at + width] for at in range(0, len(text), width))
