"""The lease of a rulebook: one engine at a time, told apart by epochs (G21)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from tidegate.engine.core.lifecycle import STARTING, Activity
from tidegate.engine.store import suspects
from tidegate.engine.store.database import insert_new, server_now
from tidegate.engine.store.holder import is_alive, is_dead
from tidegate.engine.store.tables import UNFINISHED, leases, outbox
from tidegate.rules.errors import EngineError


def acquire(connection: sa.Connection, rulebook: str, holder: str, seconds: int) -> int:
    """Take the lease if it is free, expired, or its holder's process has ended; its new epoch.

    What Spark ran of an engine that gave the lease back, or that has lost it and goes on, did not
    end that engine's process (G13). Of one on another machine nobody knows.
    """
    empty = {"rulebook": rulebook, "holder": "", "epoch": 0, "expires_at": 0, "alive_at": 0}
    insert_new(connection, leases, empty)
    held = connection.execute(_row(rulebook).with_for_update()).one()
    now = server_now(connection)
    if held.expires_at > now and held.holder != holder and not is_dead(held.holder):
        until = datetime.fromtimestamp(held.expires_at // 1_000_000, UTC)
        raise EngineError(
            "lease-held",
            f"rulebook {rulebook!r} is run by {held.holder} (machine/process), whose lease lasts "
            f"until {until:%Y-%m-%d %H:%M:%S} UTC unless it is renewed",
            "stop that engine, or wait for it: `--lease-wait 5m` (`--if-held skip`: all is well); "
            "if its machine is gone, start again after that time",
        )
    values = {
        "holder": holder,
        "epoch": held.epoch + 1,
        "expires_at": now + seconds * 1_000_000,
        "alive_at": now,
        **_said(Activity(STARTING), now),
    }
    connection.execute(sa.update(leases).where(leases.c.rulebook == rulebook).values(values))
    if not held.expires_at or is_alive(held.holder):
        suspects.forget_begun(connection, rulebook)
    _leave_out(connection, rulebook, now - held.alive_at)
    return int(held.epoch) + 1


def _leave_out(connection: sa.Connection, rulebook: str, micros: int) -> None:
    """Downtime does not count for alternatives (G23): they are due later by as much."""
    timed = (outbox.c.rulebook == rulebook) & outbox.c.otherwise_at.is_not(None)
    later = outbox.c.otherwise_at + max(micros, 0)
    connection.execute(sa.update(outbox).where(timed, UNFINISHED).values(otherwise_at=later))


def renew(
    connection: sa.Connection,
    rulebook: str,
    epoch: int,
    seconds: int,
    activity: Activity | None = None,
) -> None:
    """Let the lease last `seconds` from now, and say when the engine looked last; EngineError
    `lease-lost` if the epoch is not ours."""
    check(connection, rulebook, epoch)
    now = server_now(connection)
    looked = {} if activity is None else _looked(activity)
    values = {"expires_at": now + seconds * 1_000_000, "alive_at": now, **looked}
    connection.execute(sa.update(leases).where(leases.c.rulebook == rulebook).values(values))


def say(connection: sa.Connection, rulebook: str, epoch: int, activity: Activity) -> None:
    """Say what the engine does; nothing happens if the lease is not its own any more."""
    ours = (leases.c.rulebook == rulebook) & (leases.c.epoch == epoch)
    values = _said(activity, server_now(connection))
    connection.execute(sa.update(leases).where(ours).values(values))


def _said(activity: Activity, now: int) -> dict[str, Any]:
    names = ("state", "doing", "commits", "signals", "oldest", "losing_since")
    said = {name: getattr(activity, name) for name in names}
    return {**said, "state_at": now, **_looked(activity)}


def _looked(activity: Activity) -> dict[str, int]:
    """What is known of it; a new engine leaves what the one before has said."""
    found = {name: getattr(activity, name) for name in ("next_timer", "looked_at", "seen_until")}
    return {name: at for name, at in found.items() if at is not None}


def release(connection: sa.Connection, rulebook: str, epoch: int) -> None:
    """Give the lease back; nothing happens if it is not ours any more."""
    ours = (leases.c.rulebook == rulebook) & (leases.c.epoch == epoch)
    values = {"expires_at": 0, "alive_at": server_now(connection)}
    connection.execute(sa.update(leases).where(ours).values(values))


def check(
    connection: sa.Connection, rulebook: str, epoch: int, *, until_commit: bool = True
) -> None:
    """EngineError `lease-lost` unless the lease has this epoch, and keeps it `until_commit`."""
    row = _row(rulebook)
    found = connection.execute(row.with_for_update() if until_commit else row).one_or_none()
    if found is None or found.epoch != epoch:
        raise lost(rulebook, epoch, found.holder if found is not None else "nobody")


def lost(rulebook: str, epoch: int, holder: str) -> EngineError:
    """The lease has another epoch: it is `holder`'s now."""
    return EngineError(
        "lease-lost",
        f"rulebook {rulebook!r} is run by {holder} now; this engine's epoch {epoch} is over",
        "nothing of this bucket was written; let the other engine go on",
    )


def standby_of(rulebook: str) -> str:
    """The lease of the engine that waits for a rulebook's; no rulebook has such a name."""
    return f"{rulebook}/standby"


def holder(connection: sa.Connection, rulebook: str) -> str | None:
    """Who holds the lease; None if it is free, expired, or its holder's process has ended."""
    found = connection.execute(_row(rulebook)).one_or_none()
    if found is None or found.expires_at <= server_now(connection) or is_dead(found.holder):
        return None
    return str(found.holder)


def _row(rulebook: str) -> sa.Select[str, int, int, int]:
    where = leases.c.rulebook == rulebook
    c = leases.c
    return sa.select(c.holder, c.epoch, c.expires_at, c.alive_at).where(where)
