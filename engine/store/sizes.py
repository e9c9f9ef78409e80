"""What each rule carries, by the hour: whether its state grows (G13, G26).

Example: rule `pay` carries 40 instances at 09:00 and 90 at 10:00. The first bucket of each hour
notes that. A rule that carries nothing has no row.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from tidegate.engine.core.state import StoredBucket
from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import upsert
from tidegate.engine.store.hours import first_shown, hour_of


class Sizes(Bound):
    """The sizes of one rulebook's rules."""

    def totals(self, now: int) -> dict[int, int]:
        """How many instances all rules carried at the begin of the hour of `now`, and of those
        before it, `HOURS_SHOWN` in all: by hour, the first one first."""
        c = t.rule_sizes.c
        query = sa.select(c.hour, sa.func.sum(c.instances)).where(*self._lately(now))
        with self.database.read() as connection:
            rows = connection.execute(query.group_by(c.hour).order_by(c.hour))
            return {hour: int(instances) for hour, instances in rows}

    def of_rules(self, rules: Collection[str], now: int) -> dict[str, dict[int, int]]:
        """The same of each of these rules, by rule and hour; a rule may be left out that carried
        nothing."""
        c = t.rule_sizes.c
        query = sa.select(c.rule, c.hour, c.instances).where(*self._lately(now))
        query = query.where(c.rule.in_(rules)).order_by(c.hour)
        found: dict[str, dict[int, int]] = {}
        with self.database.read() as connection:
            for rule, hour, instances in connection.execute(query) if rules else ():
                found.setdefault(rule, {})[hour] = instances
        return found

    def _lately(self, now: int) -> tuple[sa.ColumnElement[bool], ...]:
        c = t.rule_sizes.c
        return c.rulebook == self.rulebook, c.hour >= first_shown(now)


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
