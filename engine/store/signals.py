"""Signals in the store, from the moment they are raised until a bucket claims them (G4, G22)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from tidegate.engine.core.entries import Entry
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.instants import ceil_watermark
from tidegate.engine.core.ledger import Arrivals, Unplaced
from tidegate.engine.core.text import json_text
from tidegate.engine.core.values import Signal
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import insert_new
from tidegate.engine.store.tables import controls, leases, signals
from tidegate.rules.errors import EngineError

_SAME = ("namespace", "id", "event", "received_at", "depth")  # of a signal and of its row
_RULEBOOK: sa.BindParameter[str] = sa.bindparam("rulebook")
_EVENTS: sa.BindParameter[str] = sa.bindparam("events", expanding=True)
_RECEIVED = sa.select(signals.c.received_at).where(
    signals.c.rulebook == _RULEBOOK, signals.c.bucket.is_(None), signals.c.event.in_(_EVENTS)
)
_PENDING = sa.select(controls.c.id).where(
    controls.c.rulebook == _RULEBOOK, controls.c.bucket.is_(None), controls.c.answer.is_(None)
)
_ARRIVALS = sa.select(
    leases.c.epoch,
    leases.c.holder,
    _PENDING.exists().label("controls"),
    _RECEIVED.order_by(signals.c.received_at).limit(1).scalar_subquery().label("first"),
    _RECEIVED.order_by(signals.c.received_at.desc()).limit(1).scalar_subquery().label("last"),
).where(leases.c.rulebook == _RULEBOOK)


class Signals(Bound):
    """Implements `engine.core.ledger.Signals`."""

    def waiting(self) -> Mapping[str, int]:
        """See `unplaced_by_event`."""
        with self.database.read() as connection:
            return unplaced_by_event(connection, self.rulebook)

    def arrivals(self, events: Collection[str]) -> Arrivals:
        asked = {"rulebook": self.rulebook, "events": list(events)}
        with self.database.read() as connection:
            found = connection.execute(_ARRIVALS, asked).one_or_none()
        if found is None or found.epoch != self.epoch:
            raise self.lost(found.holder if found is not None else "nobody")
        return Arrivals(bool(found.controls), found.first, found.last)

    def raise_signal(self, signal: Signal) -> bool:
        """See the function."""
        with self.database.write() as connection:
            new = raise_signal(connection, self.rulebook, signal)
            failpoint("signal.raised")
        return new

    def tell(self, told: Sequence[Signal]) -> None:
        if told:
            with self.leased() as connection:
                tell(connection, self.rulebook, told)
                failpoint("tell.before")

    def unplaced(self, events: Collection[str], watermark: int, limit: int) -> Unplaced:
        c = signals.c
        wanted = (c.rulebook == self.rulebook) & c.bucket.is_(None) & c.event.in_(events)
        received = sa.select(c.received_at).where(wanted).order_by(c.received_at, c.id)
        query = sa.select(c.id, c.event, c.fields, c.received_at, c.depth, c.namespace)
        query = query.order_by(c.received_at, c.id, c.namespace)
        left_out = None
        with self.database.read() as connection:
            last = connection.execute(received.offset(limit - 1).limit(1)).scalar_one_or_none()
            if last is not None:
                together = c.received_at <= ceil_watermark(max(last, watermark + 1))
                later = received.where(sa.not_(together)).limit(1)
                left_out = connection.execute(later).scalar_one_or_none()
                wanted &= together
            rows = connection.execute(query.where(wanted)).all()
        return Unplaced(tuple(map(_signal, rows)), left_out)


def raise_signal(connection: sa.Connection, rulebook: str, signal: Signal) -> bool:
    """Insert a signal of a client, unplaced. Returns False if it is there already.

    Raises EngineError `signal-conflict` if its id belongs to another event or other fields.
    """
    row = _row(rulebook, signal)
    if insert_new(connection, signals, row):
        return True
    same = {"rulebook": rulebook, "namespace": signal.namespace, "id": signal.id}
    query = sa.select(signals.c.event, signals.c.fields).filter_by(**same)
    found = connection.execute(query).one()
    if (found.event, found.fields) != (row["event"], row["fields"]):
        raise EngineError(
            "signal-conflict",
            f"signal id {signal.id!r} of rulebook {rulebook!r} stands for {found.event} "
            f"{found.fields}, not for {row['event']} {row['fields']}",
            "an id means one occurrence: give a new one, or none",
        )
    return False


def raise_by_entry(
    connection: sa.Connection, rulebook: str, entry: Entry, raised: Sequence[Signal]
) -> None:
    """Insert the signals that an entry raised. Each is unique by entry and ordinal.

    Raises EngineError `signal-conflict` if an id is taken.
    """
    rows = [
        {**_row(rulebook, signal), "entry": entry.number, "ordinal": ordinal}
        for ordinal, signal in enumerate(raised)
    ]
    try:
        if rows:
            connection.execute(sa.insert(signals), rows)
    except IntegrityError as error:
        raise EngineError(
            "signal-conflict",
            f"entry {entry.number} of rule {entry.rule!r} raises signals whose ids are taken",
            "another entry has raised them for the same firings",
        ) from error


def tell(connection: sa.Connection, rulebook: str, told: Sequence[Signal]) -> None:
    """Insert signals of the engine's own. Those that are there already stay."""
    for signal in told:
        insert_new(connection, signals, _row(rulebook, signal))


def unplaced_by_event(connection: sa.Connection, rulebook: str) -> Mapping[str, int]:
    """How many signals no bucket has claimed, by event type. It may not be declared any more."""
    c = signals.c
    query = sa.select(c.event, sa.func.count()).group_by(c.event).order_by(c.event)
    found = connection.execute(query.where(c.rulebook == rulebook, c.bucket.is_(None)))
    return {row[0]: row[1] for row in found}


def place(connection: sa.Connection, rulebook: str, bucket: int, placed: Sequence[Signal]) -> None:
    """Claim signals for a bucket, at their instants.

    Raises EngineError `signal-placed` if one of them is in a bucket already, or not there.
    """
    if not placed:
        return
    statement = (
        sa.update(signals)
        .where(
            signals.c.rulebook == rulebook,
            signals.c.namespace == sa.bindparam("of"),
            signals.c.id == sa.bindparam("signal_id"),
            signals.c.bucket.is_(None),
        )
        .values(bucket=bucket, instant=sa.bindparam("at"))
    )
    keys = [{"signal_id": s.id, "of": s.namespace, "at": s.instant} for s in placed]
    found = connection.execute(statement, keys)
    if found.rowcount != len(placed):
        raise EngineError(
            "signal-placed",
            f"signals of bucket {bucket} of {rulebook!r} are in another bucket, or gone:"
            f" {len(placed) - found.rowcount}",
            "is a second engine at work? start again",
        )


def _signal(row: sa.Row[*tuple[Any, ...]]) -> Signal:
    fields = json.loads(row.fields)
    return Signal(row.id, row.event, fields, row.received_at, row.depth, namespace=row.namespace)


def _row(rulebook: str, signal: Signal) -> dict[str, object]:
    same = {name: getattr(signal, name) for name in _SAME}
    return {"rulebook": rulebook, **same, "fields": json_text.text(signal.fields)}
