"""Signals that clients posted: requests of many clients, in one transaction (G4, G28).

A request's signals travel to the database as one JSON text, and are one statement there: a row
after the other would hand Python's lock to and fro for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from typing import NamedTuple

import orjson
import sqlalchemy as sa

from tidegate.engine.core.values import CLIENT
from tidegate.engine.store.database import insert_from, unpacked
from tidegate.engine.store.tables import signals


@dataclass(frozen=True, slots=True)
class Posted:
    """The signals of one request, of one event type: all of them are inserted, into each of its
    rulebooks, or none.

    `texts` are, by rulebook, their fields as `json_text.text` has them. `fresh`: the ids were drawn
    here, so that none of them can be taken.
    """

    event: str
    ids: Sequence[str]
    texts: Mapping[str, Sequence[str]]
    fresh: bool


@dataclass(frozen=True, slots=True)
class Taken:
    """A request that was refused: the id of its signal `number` stands for another occurrence."""

    number: int
    id: str


class RacedError(Exception):
    """Another transaction has inserted one of the ids meanwhile: look again."""


Known = dict[tuple[str, str], tuple[str, str]]  # by rulebook and id: event and fields
_New = tuple[Taken | None, Known]


def insert(
    connection: sa.Connection, requests: Sequence[Posted], received_at: Sequence[int]
) -> list[Taken | int]:
    """Insert the signals of several requests, unplaced; by request, how many of its signals some
    rulebook had not yet. The signals of a request are received at one instant.

    A request that gives an id which stands for another event or other fields is refused alone.
    Raises RacedError, after which nothing may be committed.
    """
    known = _all_known(connection, requests)
    found: list[Taken | int] = []
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
        statement = _statements(connection.dialect.name == "sqlite").insert
        if connection.execute(statement, {"rows": _json(rows)}).rowcount < len(rows):
            raise RacedError
    return found


def _new(posted: Posted, known: Mapping[tuple[str, str], tuple[str, str]]) -> _New:
    """The signals that are not known; or the first one whose id stands for another."""
    new: Known = {}
    for number, id in enumerate(posted.ids):
        for book, texts in posted.texts.items():
            body = (posted.event, texts[number])
            if (known.get((book, id)) or new.setdefault((book, id), body)) != body:
                return Taken(number, id), {}
    return None, new


def _all_known(connection: sa.Connection, requests: Sequence[Posted]) -> Known:
    """Those of the ids that clients gave which are there."""
    given: dict[str, list[str]] = {}
    for posted in requests:
        for book in () if posted.fresh else posted.texts:
            given.setdefault(book, []).extend(posted.ids)
    query = _statements(connection.dialect.name == "sqlite").known
    return {
        (book, row.id): (row.event, row.fields)
        for book, ids in given.items()
        for row in connection.execute(query, {"rows": _json([(id,) for id in ids]), "book": book})
    }


def _json(rows: Sequence[tuple[str | int, ...]]) -> str:
    return orjson.dumps(rows).decode()


class _Statements(NamedTuple):
    insert: sa.Executable
    known: sa.Executable


@cache
def _statements(of_sqlite: bool) -> _Statements:
    """Made once: to make them takes longer than to run them."""
    c = signals.c
    values = unpacked(of_sqlite, [c.rulebook, c.id, c.event, c.fields, c.received_at])
    whole = values.add_columns(sa.literal(0).label("depth"), sa.literal(CLIENT).label("namespace"))
    wanted = unpacked(of_sqlite, [c.id])
    of_book = c.rulebook == sa.bindparam("book", type_=sa.Text)
    of_book &= c.namespace == CLIENT
    known = sa.select(c.id, c.event, c.fields).where(of_book, c.id.in_(wanted))
    return _Statements(insert_from(of_sqlite, signals, whole), known)
