"""What runs in Spark, and what has ended it (G13)."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from tidegate.engine.core.suspect import STRIKES_MAX, Strikes, Suspect, Text
from tidegate.engine.core.text import json_text
from tidegate.engine.store import tables as t
from tidegate.engine.store.database import server_now, upsert

_NAMED = ("kind", "subject", "text", "item", "part", "told")
_COUNTS = ("deaths", "overruns", "ends", "reason")


def begin(connection: sa.Connection, rulebook: str, running: Sequence[Suspect]) -> None:
    """Store all that runs now."""
    text = json.dumps([asdict(one) for one in running])
    upsert(connection, t.begun, [{"rulebook": rulebook, "running": text}])


def begun(connection: sa.Connection, rulebook: str) -> tuple[Suspect, ...]:
    """What ran when the store was last told."""
    query = sa.select(t.begun.c.running).where(t.begun.c.rulebook == rulebook)
    found = connection.execute(query).scalar_one_or_none()
    return tuple(Suspect(**one) for one in json.loads(found or "[]"))


def forget_begun(connection: sa.Connection, rulebook: str) -> None:
    """What ran last is no fault of anybody's."""
    connection.execute(sa.delete(t.begun).where(t.begun.c.rulebook == rulebook))


def strike(connection: sa.Connection, rulebook: str, strikes: Sequence[Strikes]) -> None:
    """Store what suspects have done up to now."""
    at = server_now(connection)
    rows = [
        {
            "rulebook": rulebook,
            "at": at,
            **{name: getattr(one.suspect, name) for name in _NAMED},
            **{name: getattr(one, name) for name in _COUNTS},
        }
        for one in strikes
    ]
    upsert(connection, t.suspects, rows)


def strikes(connection: sa.Connection, rulebook: str) -> tuple[Strikes, ...]:
    """Everything that is known of suspects, in order of their keys."""
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


def forgive(connection: sa.Connection, rulebook: str, suspects: Collection[Suspect]) -> None:
    """Forget what suspects have done."""
    c = t.suspects.c
    for one in suspects:
        same = (c.rulebook == rulebook) & (c.kind == one.kind) & (c.subject == one.subject)
        same &= (c.text == one.text) & (c.part == one.part)
        connection.execute(sa.delete(t.suspects).where(same))


def shown(
    connection: sa.Connection,
    rulebook: str,
    texts: Collection[Text] | None = None,
) -> list[dict[str, Any]]:
    """The texts that have two strikes or more, for `status`; the slices of a `where` are left out,
    and what is not among the rulebook's `texts` now, if they are given (`rulebook_texts`).
    `rule`: the rule whose text it is, None where several may share it."""
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
        for one in strikes(connection, rulebook)
        if one.count >= STRIKES_MAX
        and not (one.suspect.kind == "where" and one.suspect.part)
        and (texts is None or one.suspect.kind == "read" or one.suspect.key[:3] in texts)
    ]
