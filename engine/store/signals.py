"""Explicit occurrences, from the moment they are raised until a bucket claims them (G4, G22)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from tidegate.engine.core.entries import Entry
from tidegate.engine.core.instants import ceil_watermark
from tidegate.engine.core.ports import Unplaced
from tidegate.engine.core.text import json_text
from tidegate.engine.core.values import Signal
from tidegate.engine.store.database import insert_new
from tidegate.engine.store.tables import signals
from tidegate.rules.errors import EngineError


def raise_signal(connection: sa.Connection, rulebook: str, signal: Signal) -> bool:
    """Insert a signal of a client, unplaced; False if it is there already.

    Its fields are kept as JSON, and come back so. Raises EngineError `signal-conflict` if its id
    stands for another event or other fields.
    """
    row = _row(rulebook, signal)
    if insert_new(connection, signals, row):
        return True
    same = (signals.c.rulebook == rulebook) & (signals.c.namespace == signal.namespace)
    same &= signals.c.id == signal.id
    found = connection.execute(sa.select(signals.c.event, signals.c.fields).where(same)).one()
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
    """Insert the signals that an action raised, each unique by entry and ordinal.

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
    """Insert signals of the engine's own; those that are there already stay."""
    for signal in told:
        insert_new(connection, signals, _row(rulebook, signal))


def unplaced(
    connection: sa.Connection, rulebook: str, events: Collection[str], watermark: int, limit: int
) -> Unplaced:
    """See `engine.core.ports.Store.unplaced_signals`."""
    c = signals.c
    wanted = (c.rulebook == rulebook) & c.bucket.is_(None) & c.event.in_(events)
    received = sa.select(c.received_at).where(wanted).order_by(c.received_at, c.id)
    last = connection.execute(received.offset(limit - 1).limit(1)).scalar_one_or_none()
    left_out = None
    if last is not None:
        together = c.received_at <= ceil_watermark(max(last, watermark + 1))
        left_out = connection.execute(
            received.where(sa.not_(together)).limit(1)
        ).scalar_one_or_none()
        wanted &= together
    query = sa.select(c.id, c.event, c.fields, c.received_at, c.depth, c.namespace)
    rows = connection.execute(query.where(wanted).order_by(c.received_at, c.id, c.namespace))
    return Unplaced(
        tuple(
            Signal(
                row.id,
                row.event,
                json.loads(row.fields),
                row.received_at,
                row.depth,
                namespace=row.namespace,
            )
            for row in rows
        ),
        left_out,
    )


def unplaced_by_event(connection: sa.Connection, rulebook: str) -> Mapping[str, int]:
    """How many signals no bucket has claimed, by event type, also by such that are no longer
    declared."""
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


def _row(rulebook: str, signal: Signal) -> dict[str, object]:
    return {
        "rulebook": rulebook,
        "namespace": signal.namespace,
        "id": signal.id,
        "event": signal.event,
        "fields": json_text.text(signal.fields),
        "received_at": signal.received_at,
        "depth": signal.depth,
    }
