"""An index of firings by id: sorted runs of ids, merged like a log-structured merge tree. There are
two: by the id of the firing itself, and by the id of what an action did (`CAUSES`), which several
firings may have come of.

A bucket adds one run of level 0. The last `FAN_OUT` runs of a level are merged into one run of the
next level. So few runs have to be searched, and an id is written once a level. Runs with more than
`MERGED_IDS_MAX` ids together are not merged, so no merge takes long. Ids of purged firings stay in
their run until all its firings are purged.

Example: after 17 buckets there are two runs of level 1 (8 buckets each) and one of level 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import sqlalchemy as sa

from tidegate.engine.core.values import Int64
from tidegate.engine.store import tables as t
from tidegate.engine.store.blobs import ID_BYTES

FAN_OUT = 8
MERGED_IDS_MAX = 1_000_000
PIECE_IDS = 192  # ids and places of a piece fit into a page of SQLite
SORTED_AT_ONCE = 1 << 17
PIECES_AT_ONCE = 1_000  # are written by one statement
PLACE = np.dtype([("bucket", "<i8"), ("ordinal", "<i4")])
_CODEC = "zstd"  # of places, most of which are equal

Ids = npt.NDArray[np.bytes_]
Places = npt.NDArray[Any]


class Index(NamedTuple):
    """The tables of an index."""

    runs: sa.Table
    pieces: sa.Table


FIRINGS = Index(t.firing_runs, t.firing_ids)
CAUSES = Index(t.cause_runs, t.cause_ids)


def add(
    connection: sa.Connection, rulebook: str, bucket: int, ids: Sequence[pa.FixedSizeBinaryArray]
) -> None:
    """Add the ids of a bucket's firings: an array for each rule, by the rule's ordinal."""
    add_some(connection, rulebook, bucket, [_values(column) for column in ids])


def add_some(
    connection: sa.Connection,
    rulebook: str,
    bucket: int,
    ids: Sequence[Ids],
    index: Index = FIRINGS,
) -> None:
    """Add the ids that a bucket's firings have in an index, by the rule's ordinal."""
    ends = np.cumsum([len(some) for some in ids])

    def places(index: Int64) -> Places:
        found = np.empty(len(index), PLACE)
        found["bucket"] = bucket
        found["ordinal"] = np.searchsorted(ends, index, side="right")
        return found

    if sum(map(len, ids)):
        write(connection, rulebook, (bucket, bucket), 0, ids, places, index)
        while _merge(connection, rulebook, index):
            pass


def write(
    connection: sa.Connection,
    rulebook: str,
    buckets: tuple[int, int],
    level: int,
    ids: Sequence[Ids],
    places: Callable[[Int64], Places],
    index: Index = FIRINGS,
) -> None:
    """Write a run of all these ids. `buckets`: the first and the last bucket of its firings.
    `places`: those of some ids, by their index among all. Equal ids are in one piece."""
    first, last = buckets
    run = {"rulebook": rulebook, "run": last}
    connection.execute(
        sa.insert(index.runs).values(
            **run, first_bucket=first, level=level, id_count=sum(map(len, ids))
        )
    )
    pieces = ({**run, **piece} for piece in _pieces_of(ids, places))
    while some := [*islice(pieces, PIECES_AT_ONCE)]:
        connection.execute(sa.insert(index.pieces), some)


def _pieces_of(ids: Sequence[Ids], places: Callable[[Int64], Places]) -> Iterator[dict[str, bytes]]:
    """The columns of a run's pieces, made one by one: a bucket may have millions of ids."""
    for index, some in _in_order(ids):
        at = 0
        while at < len(some):
            end = min(at + PIECE_IDS, len(some))
            while end < len(some) and some[end] == some[end - 1]:
                end += 1
            data = some[at:end].tobytes()
            packed = pa.compress(places(index[at:end]).tobytes(), _CODEC, asbytes=True)
            yield {"first_id": data[:ID_BYTES], "ids": data, "places": packed}
            at = end


def _in_order(ids: Sequence[Ids]) -> Iterator[tuple[Int64, Ids]]:
    """All ids in ascending order, with their indexes among all. Many come in sixteen parts, by
    their first digit: sorted at once they would take as much memory as they do."""
    firsts = np.cumsum([0, *map(len, ids)])
    digits = [some.view(np.uint8)[::ID_BYTES] >> 4 for some in ids]
    parts = [range(16)] if firsts[-1] <= SORTED_AT_ONCE else [range(n, n + 1) for n in range(16)]
    for part_of in parts:
        own = [np.flatnonzero((d >= part_of.start) & (d < part_of.stop)) for d in digits]
        part = np.concatenate([some[at] for some, at in zip(ids, own, strict=True)])
        order = np.argsort(part, kind="stable")
        index = np.concatenate([at + first for at, first in zip(own, firsts, strict=False)])
        yield index[order], part[order]


def find(connection: sa.Connection, rulebook: str, firing_id: str) -> tuple[int, str] | None:
    """The (bucket, rule) of a firing; None if the store does not have it."""
    return next(places_of(connection, rulebook, bytes.fromhex(firing_id)), None)


def places_of(
    connection: sa.Connection, rulebook: str, wanted: bytes, index: Index = FIRINGS
) -> Iterator[tuple[int, str]]:
    """The (bucket, rule) of all that an index has under an id, and that the store still has."""
    c = index.pieces.c
    for run, first_id in _pieces(connection, rulebook, wanted, index):
        query = sa.select(c.ids, c.places).filter_by(rulebook=rulebook, run=run, first_id=first_id)
        piece = connection.execute(query).one()
        ids = np.frombuffer(piece.ids, f"V{ID_BYTES}")
        for number in np.flatnonzero(ids == np.void(wanted)):  # none: it lies across two ids
            place = _places(piece.places, len(ids))[number]
            if rule := _rule(connection, rulebook, int(place["bucket"]), int(place["ordinal"])):
                yield int(place["bucket"]), rule


def begin_with(
    connection: sa.Connection, rulebook: str, digits: str
) -> list[tuple[str, tuple[int, str]]]:
    """The firings whose ids begin with these hexadecimal digits, two of them at most: id, and
    (bucket, rule)."""
    if len(digits) == 2 * ID_BYTES:
        place = find(connection, rulebook, digits)
        return [] if place is None else [(digits, place)]
    low, high = (bytes.fromhex(digits.ljust(2 * ID_BYTES, fill)) for fill in "0f")
    ids = sorted(one.hex() for one in _between(connection, rulebook, low, high))
    places = ((one, find(connection, rulebook, one)) for one in ids)
    return [*islice(((one, place) for one, place in places if place is not None), 2)]


def _between(connection: sa.Connection, rulebook: str, low: bytes, high: bytes) -> set[bytes]:
    """The ids from `low` to `high`. Of each run the last piece that may have some is read with
    those of the other runs, and the pieces before it only where it begins behind `low`."""
    r, c = t.firing_runs.c, t.firing_ids.c
    found: set[bytes] = set()
    last = sa.select(c.ids).where(c.rulebook == rulebook, c.run == r.run, c.first_id <= high)
    last = last.order_by(c.first_id.desc()).limit(1)
    query = sa.select(r.run, last.scalar_subquery()).where(r.rulebook == rulebook)
    for run, piece in connection.execute(query).all():
        if piece is None:
            continue
        found.update(_within(piece, low, high))
        if piece[:ID_BYTES] > low:
            before = sa.select(c.first_id, c.ids).where(c.rulebook == rulebook, c.run == run)
            before = before.where(c.first_id < piece[:ID_BYTES]).order_by(c.first_id.desc())
            for first_id, ids in connection.execute(before):
                found.update(_within(ids, low, high))
                if first_id <= low:
                    break
    return found


def _within(piece: bytes, low: bytes, high: bytes) -> Iterator[bytes]:
    ids = (piece[at : at + ID_BYTES] for at in range(0, len(piece), ID_BYTES))
    return (one for one in ids if low <= one <= high)


def forget(connection: sa.Connection, rulebook: str, rows_max: int, index: Index = FIRINGS) -> int:
    """Delete runs without firings, oldest first, about `rows_max` pieces at most. Returns how many
    pieces."""
    r, f = index.runs.c, t.firings.c
    kept = sa.exists().where(f.rulebook == rulebook, f.bucket.between(r.first_bucket, r.run))
    query = sa.select(r.run, r.id_count).where(r.rulebook == rulebook, ~kept).order_by(r.run)
    pieces = 0
    for row in connection.execute(query.limit(rows_max)).all():
        if pieces >= rows_max:
            break
        pieces += -(-row.id_count // PIECE_IDS)
        _delete(connection, rulebook, row.run, row.run, index)
    return pieces


def _pieces(
    connection: sa.Connection, rulebook: str, wanted: bytes, index: Index
) -> list[tuple[int, bytes]]:
    """The (run, first id) of the pieces that hold these bytes. Of each run only the one piece is
    read that may hold them."""
    r, c = index.runs.c, index.pieces.c
    sqlite = connection.dialect.name == "sqlite"
    at = sa.func.instr(c.ids, wanted) if sqlite else sa.func.pg_catalog.position(c.ids, wanted)
    piece = sa.select(sa.case((at > 0, c.first_id))).where(
        c.rulebook == rulebook, c.run == r.run, c.first_id <= wanted
    )
    piece = piece.order_by(c.first_id.desc()).limit(1)
    query = sa.select(r.run, piece.scalar_subquery()).where(r.rulebook == rulebook)
    return [(run, first_id) for run, first_id in connection.execute(query) if first_id is not None]


def _merge(connection: sa.Connection, rulebook: str, index: Index) -> bool:
    """Merge the last `FAN_OUT` runs if they have the same level. Returns whether it did."""
    r, c = index.runs.c, index.pieces.c
    query = sa.select(index.runs).where(r.rulebook == rulebook).order_by(r.run.desc())
    runs = connection.execute(query.limit(FAN_OUT)).all()
    level = runs[0].level
    full = len(runs) == FAN_OUT and all(run.level == level for run in runs)
    if not full or sum(run.id_count for run in runs) > MERGED_IDS_MAX:
        return False
    first, last = runs[-1].run, runs[0].run
    these = (c.rulebook == rulebook) & c.run.between(first, last)
    pieces = connection.execute(sa.select(c.ids, c.places).where(these)).all()
    ids = np.frombuffer(b"".join(piece.ids for piece in pieces), f"S{ID_BYTES}")
    places = [_places(piece.places, len(piece.ids) // ID_BYTES) for piece in pieces]
    _delete(connection, rulebook, first, last, index)
    buckets = (runs[-1].first_bucket, last)
    write(connection, rulebook, buckets, level + 1, [ids], np.concatenate(places).take, index)
    return True


def _delete(connection: sa.Connection, rulebook: str, first: int, last: int, index: Index) -> None:
    for table in (index.pieces, index.runs):
        these = (table.c.rulebook == rulebook) & table.c.run.between(first, last)
        connection.execute(sa.delete(table).where(these))


def _rule(connection: sa.Connection, rulebook: str, bucket: int, ordinal: int) -> str | None:
    one = {"rulebook": rulebook, "bucket": bucket, "ordinal": ordinal}
    return connection.execute(sa.select(t.firings.c.rule).filter_by(**one)).scalar_one_or_none()


def _values(ids: pa.FixedSizeBinaryArray) -> Ids:
    if not len(ids):
        return np.empty(0, f"S{ID_BYTES}")
    data = ids.buffers()[1].slice(ids.offset * ID_BYTES, len(ids) * ID_BYTES)
    return np.frombuffer(data, f"S{ID_BYTES}")


def _places(data: bytes, count: int) -> Places:
    size = count * PLACE.itemsize
    return np.frombuffer(pa.decompress(data, size, _CODEC, asbytes=True), PLACE)
