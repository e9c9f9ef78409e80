"""Signals that clients posted: requests of many clients, in one transaction (G4, G28).

The signals of all requests go to the database as one JSON text in one statement. Row by row, each
row would take and release Python's lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import repeat

import orjson
import sqlalchemy as sa

from tidegate.engine.core.values import CLIENT
from tidegate.engine.store.database import insert_from, unpacked
from tidegate.engine.store.tables import signals


@dataclass(frozen=True, slots=True)
class Posted:
    """The signals of one request, of one event type. All of them are inserted into each of its
    rulebooks, or none.

    `texts`: by rulebook, the fields of each signal as canonical JSON (`json_text.text`). `fresh`:
    the ids were drawn here, so they are new.
    """

    event: str
    ids: Sequence[str]
    texts: Mapping[str, Sequence[str]]
    fresh: bool


@dataclass(frozen=True, slots=True)
class IdConflict:
    """A request was refused: the id of its signal `number` belongs to another occurrence."""

    number: int
    id: str


class RacedError(Exception):
    """Another transaction has inserted one of the ids meanwhile: look again."""


Known = dict[tuple[str, str], tuple[str, str]]  # by rulebook and id: event and fields
_New = tuple[IdConflict | None, Known]


def insert(
    connection: sa.Connection, requests: Sequence[Posted], received_at: Sequence[int]
) -> list[IdConflict | int]:
    """Insert the signals of several requests, unplaced. Returns for each request how many of its
    signals are new to some rulebook. received_at[n]: when request n came.

    A request is refused by itself if one of its ids belongs to another event or other fields.
    Raises RacedError; the transaction must be rolled back then.
    """
    known = _all_known(connection, requests)
    found: list[IdConflict | int] = []
    rows: list[tuple[str, str, str, str, int]] = []
    for posted, at in zip(requests, received_at, strict=True):
        event = posted.event
        if posted.fresh:
            found.append(len(posted.ids))
            for book, texts in posted.texts.items():
                rows.extend(zip(repeat(book), posted.ids, repeat(event), texts, repeat(at)))
            continue
        taken, new = _new(posted, known)
        known.update(new)
        found.append(len({id for _, id in new}) if taken is None else taken)
        rows.extend((book, id, event, text, at) for (book, id), (_, text) in new.items())
    rows.sort()  # in one order everywhere, else two writers could wait for each other
    if rows:
        inserted, _ = _statements(connection.dialect.name == "sqlite")
        if connection.execute(inserted, {"rows": _json(rows)}).rowcount < len(rows):
            raise RacedError
    return found


def _new(posted: Posted, known: Mapping[tuple[str, str], tuple[str, str]]) -> _New:
    """The signals that are not known yet; or the first one whose id belongs to another."""
    new: Known = {}
    for number, id in enumerate(posted.ids):
        for book, texts in posted.texts.items():
            body = (posted.event, texts[number])
            if (known.get((book, id)) or new.setdefault((book, id), body)) != body:
                return IdConflict(number, id), {}
    return None, new


def _all_known(connection: sa.Connection, requests: Sequence[Posted]) -> Known:
    """The stored signals with the ids that clients gave."""
    given: dict[str, list[str]] = {}
    for posted in requests:
        for book in () if posted.fresh else posted.texts:
            given.setdefault(book, []).extend(posted.ids)
    _, query = _statements(connection.dialect.name == "sqlite")
    return {
        (book, row.id): (row.event, row.fields)
        for book, ids in given.items()
        for row in connection.execute(query, {"rows": _json([(id,) for id in ids]), "book": book})
    }


def _json(rows: Sequence[tuple[str | int, ...]]) -> str:
    return orjson.dumps(rows).decode()


@cache
def _statements(of_sqlite: bool) -> tuple[sa.Executable, sa.Executable]:
    """The statements: one inserts, one finds what is known. They are made once, because making them
    takes longer than running them."""
    c = signals.c
    values = unpacked(of_sqlite, [c.rulebook, c.id, c.event, c.fields, c.received_at])
    whole = values.add_columns(sa.literal(0).label("depth"), sa.literal(CLIENT).label("namespace"))
    wanted = unpacked(of_sqlite, [c.id])
    of_book = c.rulebook == sa.bindparam("book", type_=sa.Text)
    of_book &= c.namespace == CLIENT
    known = sa.select(c.id, c.event, c.fields).where(of_book, c.id.in_(wanted))
    return insert_from(of_sqlite, signals, whole), known
