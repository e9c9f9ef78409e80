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

from tidegate.engine.store.database import insert_from, unpacked
from tidegate.engine.store.tables import signals


@dataclass(frozen=True, slots=True)
class Posted:
    """The signals of one request, of one event type: all of them are inserted, or none.

    `texts` are their fields as `plain.text` has them. `fresh`: the ids were drawn here, so that
    none of them can be taken.
    """

    event: str
    ids: Sequence[str]
    texts: Sequence[str]
    fresh: bool


@dataclass(frozen=True, slots=True)
class Taken:
    """A request that was refused: the id of its signal `number` stands for another occurrence."""

    number: int
    id: str


class RacedError(Exception):
    """Another transaction has inserted one of the ids meanwhile: look again."""


Known = dict[str, tuple[str, str]]  # by id: event and fields


def insert(
    connection: sa.Connection, rulebook: str, requests: Sequence[Posted], received_at: Sequence[int]
) -> list[Taken | int]:
    """Insert the signals of several requests, unplaced; by request, how many of its signals were
    not there yet. The signals of a request are received at one instant.

    A request that gives an id which stands for another event or other fields is refused alone.
    Raises RacedError, after which nothing may be committed.
    """
    given = [id for posted in requests if not posted.fresh for id in posted.ids]
    known = _known(connection, rulebook, given) if given else {}
    found: list[Taken | int] = []
    rows: list[tuple[str, str, str, int]] = []
    for posted, at in zip(requests, received_at, strict=True):
        if posted.fresh:
            found.append(len(posted.ids))
            rows.extend(zip(posted.ids, repeat(posted.event), posted.texts, repeat(at)))
            continue
        taken, new = _new(posted, known)
        known.update(new)
        found.append(len(new) if taken is None else taken)
        rows.extend((id, event, text, at) for id, (event, text) in new.items())
    rows.sort()  # in one order everywhere, else two writers could wait for each other
    if rows:
        statement = _statements(connection.dialect.name == "sqlite").insert
        parameters = {"rows": orjson.dumps(rows).decode(), "rulebook": rulebook}
        if connection.execute(statement, parameters).rowcount < len(rows):
            raise RacedError
    return found


def _new(posted: Posted, known: Mapping[str, tuple[str, str]]) -> tuple[Taken | None, Known]:
    """The signals that are not known; or the first one whose id stands for another."""
    new: Known = {}
    for number, (id, text) in enumerate(zip(posted.ids, posted.texts, strict=True)):
        body = (posted.event, text)
        if (known.get(id) or new.setdefault(id, body)) != body:
            return Taken(number, id), {}
    return None, new


def _known(connection: sa.Connection, rulebook: str, ids: Sequence[str]) -> Known:
    """Those of the ids that are there."""
    query = _statements(connection.dialect.name == "sqlite").known
    given = {"rows": orjson.dumps([(id,) for id in ids]).decode(), "rulebook": rulebook}
    return {row.id: (row.event, row.fields) for row in connection.execute(query, given)}


class _Statements(NamedTuple):
    insert: sa.Executable
    known: sa.Executable


@cache
def _statements(of_sqlite: bool) -> _Statements:
    """Made once: to make them takes longer than to run them."""
    c = signals.c
    rulebook = sa.bindparam("rulebook", type_=sa.Text)
    values = unpacked(of_sqlite, [c.id, c.event, c.fields, c.received_at])
    whole = values.add_columns(rulebook.label("rulebook"), sa.literal(0).label("depth"))
    wanted = unpacked(of_sqlite, [c.id])
    known = sa.select(c.id, c.event, c.fields).where(c.rulebook == rulebook, c.id.in_(wanted))
    return _Statements(insert_from(of_sqlite, signals, whole), known)
