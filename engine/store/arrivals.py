"""What waits for a plan, in one query: all that an idle engine asks of its store (G2, G4, G24)."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from tidegate.engine.core.ports import Arrivals
from tidegate.engine.store import lease
from tidegate.engine.store.tables import controls, leases, signals

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


def find(connection: sa.Connection, rulebook: str, epoch: int, events: Collection[str]) -> Arrivals:
    """See `engine.core.ports.Store.arrivals`."""
    asked = {"rulebook": rulebook, "events": list(events)}
    found = connection.execute(_ARRIVALS, asked).one_or_none()
    if found is None or found.epoch != epoch:
        raise lease.lost(rulebook, epoch, found.holder if found is not None else "nobody")
    return Arrivals(bool(found.controls), found.first, found.last)
