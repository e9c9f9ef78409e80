"""The lease of a rulebook: one engine at a time, told apart by epochs (G21)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.lifecycle import STARTING, STOPPING, Activity
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import insert_new, server_now
from tidegate.engine.store.holder import is_alive, is_dead
from tidegate.engine.store.suspects import forget_begun
from tidegate.engine.store.tables import UNFINISHED, leases, outbox, rulebooks
from tidegate.rules.errors import EngineError


class Lease(Bound):
    """Who runs the rulebook. The methods of an engine do nothing, or raise `EngineError(
    'lease-lost')`, once the lease has another epoch."""

    def acquire(self, holder: str, seconds: int) -> int:
        """Take the lease if it is free, expired, or its holder's process has ended. Returns the new
        epoch. Raises `EngineError('lease-held')`.

        The texts that the last engine had begun in Spark are suspects if they may have ended its
        process (G13). They are forgotten if that engine gave the lease back, still runs, or was
        being stopped.
        """
        empty = {"holder": "", "epoch": 0, "expires_at": 0, "alive_at": 0}
        with self.database.write() as connection:
            insert_new(connection, leases, {"rulebook": self.rulebook, **empty})
            held = connection.execute(_row(self.rulebook).with_for_update()).one()
            now = server_now(connection)
            if held.expires_at > now and held.holder != holder and not is_dead(held.holder):
                raise _held(self.rulebook, held)
            values = {
                "holder": holder,
                "epoch": held.epoch + 1,
                "expires_at": now + seconds * 1_000_000,
                "alive_at": now,
                **_said(Activity(STARTING), now),
            }
            connection.execute(sa.update(leases).filter_by(rulebook=self.rulebook).values(values))
            if not held.expires_at or held.state == STOPPING or is_alive(held.holder):
                forget_begun(connection, self.rulebook)
            _leave_out(connection, self.rulebook, now - held.alive_at)
            failpoint("lease.acquired")
        return int(held.epoch) + 1

    def renew(self, seconds: int, activity: Activity | None = None) -> None:
        """Extend the lease, and store when the engine looked last."""
        with self.leased() as connection:
            now = server_now(connection)
            looked = {} if activity is None else _looked(activity)
            values = {"expires_at": now + seconds * 1_000_000, "alive_at": now, **looked}
            connection.execute(sa.update(leases).filter_by(rulebook=self.rulebook).values(values))
            failpoint("lease.renewed")

    def say(self, activity: Activity) -> None:
        """Store what the engine does now, for `status`. A crash of the machine may lose it."""
        with self.database.write(durable=False) as connection:
            self._set(connection, _said(activity, server_now(connection)))

    def check(self) -> None:
        """Raise `lease-lost` if the lease is not the engine's any more. Called before each
        entry."""
        with self.database.read() as connection:
            self.check_lease(connection, until_commit=False)

    def release(self) -> None:
        """Give the lease back."""
        with self.database.write() as connection:
            self._set(connection, {"expires_at": 0, "alive_at": server_now(connection)})

    def holder(self) -> str | None:
        """Who holds the lease; None if it is free, expired, or its holder's process has ended."""
        with self.database.read() as connection:
            return holder_of(connection, self.rulebook)

    def set_stopped(self, reason: str | None) -> None:
        """Store why the engine stopped (G7); None once it runs again. Only the lease's last holder
        may say so."""
        with self.leased() as connection:
            named = sa.update(rulebooks).filter_by(name=self.rulebook)
            connection.execute(named.values(stopped=reason))

    def _set(self, connection: sa.Connection, values: Mapping[str, Any]) -> None:
        """Change the lease, unless another engine has taken it."""
        ours = sa.update(leases).filter_by(rulebook=self.rulebook, epoch=self.epoch)
        connection.execute(ours.values(values))


def _held(rulebook: str, held: sa.Row[str, int, int, int, str]) -> EngineError:
    until = datetime.fromtimestamp(held.expires_at // 1_000_000, UTC)
    return EngineError(
        "lease-held",
        f"rulebook {rulebook!r} is run by {held.holder} (machine/process), whose lease lasts "
        f"until {until:%Y-%m-%d %H:%M:%S} UTC unless it is renewed",
        "stop that engine, or wait for it: `--lease-wait 5m` (`--if-held skip`: all is well); "
        "if its machine is gone, start again after that time",
    )


def _leave_out(connection: sa.Connection, rulebook: str, micros: int) -> None:
    """Postpone the alternatives by the downtime, which does not count for them (G23)."""
    timed = (outbox.c.rulebook == rulebook) & outbox.c.otherwise_at.is_not(None)
    later = outbox.c.otherwise_at + max(micros, 0)
    connection.execute(sa.update(outbox).where(timed, UNFINISHED).values(otherwise_at=later))


def _said(activity: Activity, now: int) -> dict[str, Any]:
    """The columns of an activity. The counts of what is not taken keep their last values until an
    engine knows them."""
    names = ["state", "doing", "losing_since"]
    names += ["commits", "signals", "oldest"] if activity.knows else []
    said = {name: getattr(activity, name) for name in names}
    return {**said, "state_at": now, **_looked(activity)}


def _looked(activity: Activity) -> dict[str, int]:
    """The columns that say how far the engine has looked. Unknown ones keep their last values."""
    found = {name: getattr(activity, name) for name in ("next_timer", "looked_at", "seen_until")}
    return {name: at for name, at in found.items() if at is not None}


def standby_of(rulebook: str) -> str:
    """The name of the lease of a standby engine. No rulebook has such a name."""
    return f"{rulebook}/standby"


def holder_of(connection: sa.Connection, rulebook: str) -> str | None:
    """See `Lease.holder`."""
    found = connection.execute(_row(rulebook)).one_or_none()
    if found is None or found.expires_at <= server_now(connection) or is_dead(found.holder):
        return None
    return str(found.holder)


def _row(rulebook: str) -> sa.Select[str, int, int, int, str]:
    c = leases.c
    query = sa.select(c.holder, c.epoch, c.expires_at, c.alive_at, c.state)
    return query.filter_by(rulebook=rulebook)
