"""Texts that run in Spark now, and the strikes of texts that have ended Spark (G13)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.suspect import STRIKES_MAX, Strikes, Suspect, Text
from tidegate.engine.core.text import json_text
from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import server_now, upsert

_NAMED = ("kind", "subject", "text", "item", "part", "told")
_COUNTS = ("deaths", "overruns", "ends", "reason")


class Suspects(Bound):
    """Implements `engine.core.ledger.Suspects`."""

    def begin(self, running: Sequence[Suspect]) -> None:
        with self.leased(durable=False) as connection:
            _begin(connection, self.rulebook, running)

    def begun(self) -> tuple[Suspect, ...]:
        query = sa.select(t.begun.c.running).where(t.begun.c.rulebook == self.rulebook)
        with self.database.read() as connection:
            found = connection.execute(query).scalar_one_or_none()
        return tuple(Suspect(**one) for one in json.loads(found or "[]"))

    def strike(self, strikes: Sequence[Strikes], running: Sequence[Suspect]) -> None:
        with self.leased() as connection:
            at = server_now(connection)
            rows = [
                {
                    "rulebook": self.rulebook,
                    "at": at,
                    **{name: getattr(one.suspect, name) for name in _NAMED},
                    **{name: getattr(one, name) for name in _COUNTS},
                }
                for one in strikes
            ]
            upsert(connection, t.suspects, rows)
            _begin(connection, self.rulebook, running)
            failpoint("strike.before")

    def strikes(self) -> tuple[Strikes, ...]:
        with self.database.read() as connection:
            return _strikes(connection, self.rulebook)

    def forgive(self, known: Collection[Suspect]) -> None:
        c = t.suspects.c
        with self.leased() as connection:
            these = sa.tuple_(c.kind, c.subject, c.text, c.part).in_([one.key for one in known])
            connection.execute(sa.delete(t.suspects).where(c.rulebook == self.rulebook, these))


def _begin(connection: sa.Connection, rulebook: str, running: Sequence[Suspect]) -> None:
    text = json.dumps([asdict(one) for one in running])
    upsert(connection, t.begun, [{"rulebook": rulebook, "running": text}])


def forget_begun(connection: sa.Connection, rulebook: str) -> None:
    """Delete the record of what ran last: none of it ended the process."""
    connection.execute(sa.delete(t.begun).where(t.begun.c.rulebook == rulebook))


def _strikes(connection: sa.Connection, rulebook: str) -> tuple[Strikes, ...]:
    """In order of their keys."""
    c = t.suspects.c
    query = sa.select(t.suspects).where(c.rulebook == rulebook)
    rows = connection.execute(query.order_by(c.kind, c.subject, c.text, c.part))
    return tuple(
        Strikes(
            Suspect(**{name: getattr(row, name) for name in _NAMED}),
            **{name: getattr(row, name) for name in _COUNTS},
            at=row.at,
        )
        for row in rows
    )


def shown(
    connection: sa.Connection,
    rulebook: str,
    texts: Callable[[], Collection[Text]] | None = None,
) -> list[dict[str, Any]]:
    """The texts with two strikes or more, for `status`, without the slices of a `where`. `texts`:
    of the rulebook now (`rulebook_texts`), if known; others are left out. The key `rule` is the
    rule whose text it is, None if several may share it."""
    struck = [one for one in _strikes(connection, rulebook) if one.count >= STRIKES_MAX]
    now = texts() if texts is not None and struck else None
    return [
        {
            "kind": one.suspect.kind,
            "told": one.suspect.told,
            "did": one.told,
            "reason": one.reason,
            "since": json_text.instant(one.at),
            "strikes": one.count,
            "rule": one.suspect.owner,
        }
        for one in struck
        if not (one.suspect.kind == "where" and one.suspect.part)
        and (now is None or one.suspect.kind == "read" or one.suspect.key[:3] in now)
    ]
