"""Arrow tables and firing ids as bytes."""

from __future__ import annotations

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.columns.memory import give_back, in_one
from tidegate.engine.core.damping_memory import kind_names
from tidegate.engine.core.relation_files import (
    BESIDE,
    PLACES,
    Relation,
    RelationFiles,
    RowsFile,
    RowsShelf,
    with_beside,
)
from tidegate.engine.core.values import DAMPED, Firings
from tidegate.rules.errors import EngineError
from tidegate.rules.model import DAMPINGS, About

VERSION = b"1"
OUTCOMES = ("none", "held", "failed", "dead")
ID_BYTES = 16
_KEY = b"tidegate"
_ABOUT = b"about"
_CONDITION = "condition"
_FILES, _WHOLE = b"files", b"whole"
_DAMPED = len(OUTCOMES)
_LARGE_BYTES, _HUGE_BYTES = 1 << 20, 1 << 24
_SMALL = pa.ipc.IpcWriteOptions(compression="zstd")
_FAST = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ = pa.ipc.IpcReadOptions(use_threads=False)  # threads take four times a small table's work


def table_to_bytes(table: pa.Table, *, fast: bool = False) -> bytes:
    """A table as a compressed IPC stream. The schema's metadata has the version of this format.
    `fast`: it takes a third of the time, and a third more room."""
    options = _FAST if fast else _SMALL
    # Arrow's own is faster, and takes three times what is written to it
    sink = io.BytesIO() if table.nbytes >= _LARGE_BYTES else pa.BufferOutputStream()
    marked = table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: VERSION})
    with pa.ipc.new_stream(sink, marked.schema, options=options) as writer:
        writer.write_table(marked)
    data = sink.getvalue()
    if table.nbytes >= _HUGE_BYTES:
        give_back()  # the columns were compressed before they were written
    return data if isinstance(data, bytes) else bytes(data.to_pybytes())


def table_from_bytes(data: bytes | pa.Buffer) -> pa.Table:
    """The table that `table_to_bytes` was given.

    Raises EngineError `store-payload` if another version of tidegate wrote it in another form.
    """
    table = pa.ipc.open_stream(pa.py_buffer(data), options=_READ).read_all()
    metadata = dict(table.schema.metadata or {})
    found = metadata.pop(_KEY, b"none")
    if found != VERSION:
        raise EngineError(
            "store-payload",
            f"a stored table has form {found.decode()}, this tidegate reads {VERSION.decode()}",
            "use the tidegate that wrote the store",
        )
    return table.replace_schema_metadata(metadata or None)


def firings_to_columns(fired: Firings) -> dict[str, bytes]:
    """The blob columns of `firings`. The outcomes of condition and damping are a blob of their own:
    deciding them later rewrites one byte a firing, and not the table. The sources of constituents
    are columns beside the relation's. Of a relation in files these are named in its metadata, and
    where each firing has its rows are columns beside the firings'. What the rule said of itself is
    metadata of the first."""
    relation, table = fired.relation, fired.firings
    outcomes = {_CONDITION, DAMPED} & {*table.column_names}
    table = table.drop_columns([*outcomes])
    if isinstance(relation, RelationFiles):
        table = relation.placed(table)
        relation = _files_named(relation)
    else:
        relation = with_beside(relation, fired.sources)
    said = {_ABOUT: json.dumps(fired.about.said)} if fired.about.said else None
    table = table.replace_schema_metadata(said)
    return {
        "firings": table_to_bytes(table),
        "outcomes": outcomes_to_bytes(fired),
        "relation": table_to_bytes(relation),
    }


def outcomes_to_bytes(fired: Firings) -> bytes:
    """A byte for each firing, compressed: the index of its condition in OUTCOMES, plus _DAMPED
    times (1 + the index in DAMPINGS of the damping that dropped it).

    Example: `held` is 1. `held`, but dropped by the first of DAMPINGS, is 1 + 4."""
    codes = pc.index_in(fired.firings[_CONDITION], pa.array(OUTCOMES)).to_numpy().astype(np.uint8)
    if DAMPED in fired.firings.column_names:
        dropped = pc.index_in(fired.firings[DAMPED], pa.array([None, *DAMPINGS], pa.string()))
        codes = codes + np.uint8(_DAMPED) * dropped.to_numpy().astype(np.uint8)
    found: bytes = pa.compress(codes.tobytes(), codec="zstd", asbytes=True)
    return found


def through_count(outcomes: bytes, count: int) -> int:
    """How many of `count` firings are acted on: the condition holds, and no damping dropped
    them."""
    codes = pa.decompress(outcomes, count, codec="zstd", asbytes=True)
    return sum(codes.count(OUTCOMES.index(outcome)) for outcome in ("none", "held"))


def firings_from_columns(
    shelf: RowsShelf, rule: str, firings: bytes, outcomes: bytes, relation: bytes
) -> Firings:
    """The firings that `firings_to_columns` was given. `shelf`: where files of rows are."""
    table = table_from_bytes(firings)
    said = json.loads((table.schema.metadata or {}).get(_ABOUT, b"{}"))
    table = table.replace_schema_metadata(None)
    rows, sources = _relation(table_from_bytes(relation), table, shelf)
    table = table.drop_columns([n for n in table.column_names if n.startswith(BESIDE)])
    codes = pa.decompress(outcomes, len(table), codec="zstd", asbytes=True)
    dropped, outcome = np.divmod(np.frombuffer(codes, np.uint8), np.uint8(_DAMPED))
    column = pa.array(OUTCOMES).take(pa.array(outcome))
    at = table.column_names.index("constituents")
    table = table.add_column(at, _CONDITION, column)
    if dropped.any():
        table = table.append_column(DAMPED, kind_names(dropped))
    return Firings(rule, table, rows, sources, About.of(said))


def _files_named(relation: RelationFiles) -> pa.Table:
    """No rows, with the schema of all columns in the files, their names and sizes, and whether they
    have rows of other firings, too."""
    fields = [*relation.schema, *(f.with_name(BESIDE + f.name) for f in relation.beside or ())]
    named = {_FILES: json.dumps(relation.files), _WHOLE: json.dumps(relation.whole)}
    return pa.schema(fields, {**(relation.schema.metadata or {}), **named}).empty_table()


def _relation(
    stored: pa.Table, firings: pa.Table, shelf: RowsShelf
) -> tuple[Relation, pa.Table | None]:
    """A relation, and where its rows came from."""
    beside = [name for name in stored.column_names if name.startswith(BESIDE)]
    shown = [name.removeprefix(BESIDE) for name in beside]
    sources = stored.select(beside).rename_columns(shown) if beside else None
    rows, metadata = stored.drop_columns(beside), dict(stored.schema.metadata or {})
    named = metadata.pop(_FILES, None)
    if named is None:
        return rows, sources
    file, first, count = (firings[BESIDE + name].to_numpy() for name in PLACES)
    files = tuple(RowsFile(*one) for one in json.loads(named))
    whole = json.loads(metadata.pop(_WHOLE))
    ids = in_one(firings["firing_id"])
    schema = rows.schema.with_metadata(metadata or None)
    known = None if sources is None else sources.schema
    return RelationFiles(shelf, files, schema, ids, file, first, count, known, whole), None
