"""What each rule carries, by the hour: whether its state grows (G13, G26).

Example: rule `pay` carries 40 instances at 09:00 and 90 at 10:00. The first bucket of each hour
notes that. A rule that carries nothing has no row.
"""

from __future__ import annotations

import sqlalchemy as sa

from tidegate.engine.core.state import StoredBucket
from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import upsert
from tidegate.engine.store.hours import HOUR_MICROS, HOURS_SHOWN, hour_of


class Sizes(Bound):
    """The sizes of one rulebook's rules."""

    def lately(self, now: int) -> dict[str, dict[int, int]]:
        """How many instances each rule carried at the begin of the hour of `now`, and of those
        before it, `HOURS_SHOWN` in all: by rule and hour, the first hour first."""
        c = t.rule_sizes.c
        first = hour_of(now) - (HOURS_SHOWN - 1) * HOUR_MICROS
        query = sa.select(c.rule, c.hour, c.instances).where(
            c.rulebook == self.rulebook, c.hour >= first
        )
        found: dict[str, dict[int, int]] = {}
        with self.database.read() as connection:
            for rule, hour, instances in connection.execute(query.order_by(c.hour)):
                found.setdefault(rule, {})[hour] = instances
        return found


def note(connection: sa.Connection, taken: StoredBucket) -> None:
    """Note what is carried, before the first bucket of an hour is stored."""
    plan = taken.plan
    last = connection.execute(t.of_last_bucket(plan.rulebook, t.buckets.c.now))
    before = last.scalar_one_or_none()
    hour = hour_of(plan.now)
    if before is not None and hour_of(before) == hour:
        return
    key = {"rulebook": plan.rulebook, "hour": hour}
    rows = [
        {**key, "rule": rule, "instances": load.instances, "keys": load.keys}
        for rule, load in sorted(taken.loads.items())
        if load.instances
    ]
    upsert(connection, t.rule_sizes, rows)
