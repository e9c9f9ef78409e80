"""The memory of damping in the store: see `engine.core.damping_memory`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from tidegate.engine.core.damping_memory import MEMORY
from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import unpacked, upsert


class Damping(Bound):
    """Implements `engine.core.ledger.Damping`."""

    def remembered(self, rule: str, wanted: pa.Table) -> pa.Table:
        found: list[sa.Row[int, str, int, bytes]] = []
        query = _query(self.database.is_sqlite)
        with self.database.read() as connection:
            for kind in pc.unique(wanted["kind"]).to_pylist():
                ids = wanted.filter(pc.equal(wanted["kind"], kind))["id"].to_pylist()
                text = orjson.dumps([(one,) for one in ids]).decode()
                given = {"rows": text, "rulebook": self.rulebook, "rule": rule, "kind": kind}
                found += connection.execute(query, given).all()
        columns = zip(*found, strict=True) if found else [()] * len(MEMORY)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, MEMORY, strict=True)]
        return pa.table(arrays, schema=MEMORY)

    def count(self, rule: str, kind: int, instant: int) -> int:
        c = t.damping.c
        of_rule = (c.rulebook == self.rulebook) & (c.rule == rule) & (c.kind == kind)
        query = sa.select(sa.func.count()).where(of_rule, c.until > instant)
        with self.database.read() as connection:
            return int(connection.execute(query).scalar_one())


@cache
def _query(of_sqlite: bool) -> sa.Select[int, str, int, bytes]:
    """The query for rows of one kind. It is made once, because making it takes longer than running
    it."""
    c = t.damping.c
    query = sa.select(c.kind, c.id, c.until, c.instants)
    query = query.where(c.rulebook == sa.bindparam("rulebook"), c.rule == sa.bindparam("rule"))
    return query.where(c.kind == sa.bindparam("kind"), c.id.in_(unpacked(of_sqlite, [c.id])))


def remember(connection: sa.Connection, rulebook: str, memory: Mapping[str, pa.Table]) -> None:
    """Store the rows that damping remembers, by rule."""
    for rule, rows in sorted(memory.items()):
        of_rule = {"rulebook": rulebook, "rule": rule}
        upsert(connection, t.damping, ({**of_rule, **row} for row in rows.to_pylist()))


def past(connection: sa.Connection, rulebook: str) -> sa.ColumnElement[bool]:
    """The rows that have expired for all firings to come. New firings are after the last watermark;
    but conditions that wait in the outbox still judge the firings of their bucket."""
    o, b = t.outbox.c, t.buckets.c
    waiting = (o.rulebook == rulebook) & t.UNFINISHED & o.state.in_(("pending", "held"))
    asked = sa.select(o.bucket).where(waiting, o.kind == "condition")  # few: by their own index
    oldest = min(connection.execute(asked).scalars(), default=None)
    if oldest is None:
        newest = t.of_last_bucket(rulebook, b.watermark)
        return t.damping.c.until <= sa.func.coalesce(newest.scalar_subquery(), 0)
    begin = sa.select(b.watermark_before).where(b.rulebook == rulebook, b.bucket == oldest)
    return t.damping.c.until <= begin.scalar_subquery()
