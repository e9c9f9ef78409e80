"""The rules that do not run: parked by a limit (G13), or disabled (G24).

Example: rule `pay` fires too often in bucket 7. It gets a row in `parked`, with the reason and the
instant from which it sees nothing. `tidegate enable pay` moves the row to `parkings` at the next
bucket.
"""

from __future__ import annotations

from dataclasses import asdict

import sqlalchemy as sa

from tidegate.engine.core.entries import Entry
from tidegate.engine.core.state import Parked, StoredBucket
from tidegate.engine.core.values import Plan
from tidegate.engine.store import outbox
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import upsert
from tidegate.engine.store.tables import disabled, parked, parkings


class RuleStates(Bound):
    """The parked and disabled rules of one rulebook."""

    def parked(self) -> frozenset[str]:
        """The names of the parked rules."""
        with self.database.read() as connection:
            return rules_in(connection, parked, self.rulebook)

    def disabled(self) -> frozenset[str]:
        """The names of the disabled rules."""
        with self.database.read() as connection:
            return rules_in(connection, disabled, self.rulebook)

    def obstacles(self) -> tuple[Entry | Parked, ...]:
        """The obstacles of rules: the parked rules, and the first entries that are pending, held or
        dead."""
        c = parked.c
        query = sa.select(c.rule, c.reason, c.hint, c.instant).where(c.rulebook == self.rulebook)
        with self.database.read() as connection:
            rows = connection.execute(query.order_by(c.rule)).all()
            return (*(Parked(*row) for row in rows), *outbox.unfinished(connection, self.rulebook))


def rules_in(connection: sa.Connection, table: sa.Table, rulebook: str) -> frozenset[str]:
    """The names of the rules in `parked`, or in `disabled`."""
    query = sa.select(table.c.rule).where(table.c.rulebook == rulebook)
    return frozenset(connection.execute(query).scalars())


def save(connection: sa.Connection, taken: StoredBucket) -> None:
    """Store which rules a bucket parks, disables and enables, and how many occurrences the parked
    ones did not see. Rules that are not active any more are deleted."""
    plan, name, active = taken.plan, taken.plan.rulebook, taken.digests.keys()
    for table in (parked, disabled):
        over = plan.enabled | (rules_in(connection, table, name) - active)
        if over:
            these = (table.c.rulebook == name) & table.c.rule.in_(over)
            if table is parked:
                _keep_parkings(connection, these, plan)
            connection.execute(sa.delete(table).where(these))
    of_bucket = {"rulebook": name, "bucket": plan.bucket}
    stopped = [{**of_bucket, **asdict(one), "passed_over": 0} for one in taken.parked]
    upsert(connection, parked, stopped)
    instant = plan.watermark_before + 1
    off = sorted(plan.disabled & active)
    upsert(connection, disabled, [{**of_bucket, "rule": r, "instant": instant} for r in off])
    counts = [{"named": rule, "more": n} for rule, n in taken.passed_over.items() if n]
    if counts:
        one = (parked.c.rulebook == name) & (parked.c.rule == sa.bindparam("named"))
        more = parked.c.passed_over + sa.bindparam("more")
        connection.execute(sa.update(parked).where(one).values(passed_over=more), counts)


def _keep_parkings(connection: sa.Connection, these: sa.ColumnElement[bool], plan: Plan) -> None:
    """Keep when rules were parked, of which a bucket lets these go on, or forgets them."""
    c, until = parked.c, plan.watermark_before + 1
    rows = connection.execute(sa.select(c.rulebook, c.rule, c.instant, c.reason).where(these))
    upsert(connection, parkings, [{**row._mapping, "until": until} for row in rows])
