"""What a store knows of the past of a rulebook: where its commits and signals stood, and what
switched its rules.

Example: version 7 of `orders` was committed at 9:00:00.100 by its log, and a bucket placed it at
9:00:00.205, after the watermark that was there already (G1). A backtest places it there, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from tidegate.engine.core.entries import Control
from tidegate.engine.core.statement import SwitchStatement
from tidegate.engine.core.values import ENGINE, FOREVER, Namespace, Signal
from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.controls import asking_rule
from tidegate.engine.store.outbox import DONE, stored_firings, to_entry
from tidegate.engine.store.past import reaching


class PlacedSwitch(NamedTuple):
    """A request that enabled or disabled a rule. It took effect behind `watermark`. `rule`: whose
    action asked for it; None: an operator, or it is not known any more."""

    watermark: int
    control: Control
    rule: str | None = None


class PlacedSignal(NamedTuple):
    """A signal, received where a bucket placed it. `rule`: whose action raised it; None: a client,
    or it is not known any more."""

    signal: Signal
    rule: str | None = None


class Parking(NamedTuple):
    """A rule was parked by a limit: from `begin` on, up to `end`; None: it is parked still."""

    rule: str
    begin: int
    end: int | None
    reason: str


class Placed(Bound):
    """Where the commits, signals and switches of one rulebook stood."""

    def instants(self, table: str) -> Mapping[int, int]:
        """By version of a table, its instant, as far back as `history_retention_days` says, or as
        the last reset of the table."""
        c = t.commits.c
        query = sa.select(c.version, c.instant)
        query = query.where(c.rulebook == self.rulebook, c.table_name == table)
        with self.database.read() as connection:
            return {row.version: row.instant for row in connection.execute(query)}

    def resets(self, after: int) -> frozenset[str]:
        """The tables that were reset behind a watermark: where their versions stood before is
        forgotten."""
        c, b = t.controls.c, t.buckets.c
        query = sa.select(c.subject).where(
            c.rulebook == self.rulebook,
            c.kind == "reset",
            c.answer.is_(None),
            b.rulebook == c.rulebook,
            b.bucket == c.bucket,
            b.watermark > after,
        )
        with self.database.read() as connection:
            return frozenset(connection.execute(query).scalars())

    def parkings(self, begin: int, end: int) -> list[Parking]:
        """When rules were parked in (begin, end], in order."""
        with self.database.read() as connection:
            found = self._parkings(connection)
        mine = [p for p in found if p.begin <= end and (p.end is None or p.end > begin)]
        return sorted(mine, key=lambda one: (one.begin, one.rule))

    def reloads(self, begin: int, end: int) -> list[tuple[int, int]]:
        """The versions of the rulebook that began to run in (begin, end], in order, each with the
        watermark behind which it ran. What ran at first is none of them."""
        c = t.buckets.c
        behind = sa.func.min(c.watermark_before)
        query = sa.select(c.version, behind).where(c.rulebook == self.rulebook)
        query = query.group_by(c.version).order_by(behind)
        with self.database.read() as connection:
            buckets = self._buckets(connection, begin, end)
            rows = connection.execute(query.where(c.bucket.between(*buckets))).all()
        return [(row[0], row[1]) for row in rows[1:]]

    def switches(self) -> list[PlacedSwitch]:
        """What switched rules, by operators and by actions, in order. Of what is older than
        `history_retention_days`, a `disable` of each rule that is off still, and, at no known time
        (0), of each that was off until a kept request enabled it."""
        c, b, d = t.controls.c, t.buckets.c, t.disabled.c
        columns = (c.id, c.kind, c.subject, c.asked_at, c.asked_by)
        query = sa.select(b.watermark_before, b.now, b.plan, *columns).where(
            c.rulebook == self.rulebook,
            c.kind.in_(("enable", "disable")),
            c.answer.is_(None),
            b.rulebook == c.rulebook,
            b.bucket == c.bucket,
        )
        off = sa.select(d.rule, d.instant).where(d.rulebook == self.rulebook)
        with self.database.read() as connection:
            rows = connection.execute(query.order_by(c.id)).all()
            old: list[PlacedSwitch] = []
            known = set[str]()
            for row in rows:
                if row.subject not in known and row.kind == "enable" and _anew(row) is not None:
                    old.append(PlacedSwitch(0, Control(0, "disable", row.subject)))
                known.add(row.subject)
            old += [
                PlacedSwitch(instant - 1, Control(0, "disable", rule, asked_at=instant - 1))
                for rule, instant in connection.execute(off)
                if rule not in known
            ]
            found = [_switch(row) for row in rows]
        return sorted(old + found, key=lambda one: one.watermark)

    def switched_by(self, begin: int, end: int) -> frozenset[tuple[str, str, str]]:
        """The firings in the buckets of (begin, end] whose actions have switched rules: their ids,
        with what was asked for, of which rule."""
        c, found = t.outbox.c, set()
        query = sa.select(t.outbox).where(
            c.rulebook == self.rulebook, c.kind == "switch", c.state == DONE
        )
        with self.database.read() as connection:
            buckets = self._buckets(connection, begin, end)
            rows = connection.execute(query.where(c.bucket.between(*buckets))).all()
            for entry in map(to_entry, rows):
                one = entry.stating(SwitchStatement)
                ids = entry.firing_ids
                if ids is None:
                    stored = stored_firings(connection, self, entry.bucket, [entry.rule])
                    ids = tuple(i for fired in stored for i in fired.acted_on.hex_ids().to_pylist())
                kind = "enable" if one.enabled else "disable"
                found |= {(firing, kind, one.rule) for firing in ids}
        return frozenset(found)

    def signals(self, begin: int, end: int) -> list[PlacedSignal]:
        """The signals in (begin, end]."""
        c, o = t.signals.c, t.outbox.c
        columns = (c.id, c.event, c.fields, c.depth, c.namespace, o.rule)
        some = sa.select(*columns).outerjoin_from(t.signals, t.outbox, o.number == c.entry)
        some = some.where(c.rulebook == self.rulebook)
        waiting = some.add_columns(c.received_at.label("at")).where(
            c.bucket.is_(None), c.received_at > begin, c.received_at <= end
        )
        placed = some.add_columns(c.instant.label("at")).where(
            c.bucket.is_not(None), c.instant > begin, c.instant <= end
        )
        with self.database.read() as connection:
            buckets = self._buckets(connection, begin, end)
            rows = [*connection.execute(waiting)]
            rows += connection.execute(placed.where(c.bucket.between(*buckets)))
        rows.sort(key=lambda row: (row.at, row.id))
        return [_signal(row) for row in rows]

    def raised_later(self, end: int) -> frozenset[tuple[str, Namespace]]:
        """The ids of the signals after an instant that actions have raised, without those of which
        it is known that their firing is in a later bucket, too."""
        c, o = t.signals.c, t.outbox.c
        own = sa.select(c.id, c.namespace).where(c.rulebook == self.rulebook, c.namespace == ENGINE)
        waiting = own.where(c.bucket.is_(None), c.received_at > end)
        placed = own.outerjoin_from(t.signals, t.outbox, o.number == c.entry)
        placed = placed.where(c.bucket.is_not(None), c.instant > end)
        with self.database.read() as connection:
            _, last = self._buckets(connection, end, end)
            early = o.number.is_(None) | (o.bucket <= last)
            rows = [*connection.execute(waiting)]
            rows += connection.execute(placed.where(c.bucket >= last, early))
        return frozenset((row.id, row.namespace) for row in rows)

    def _parkings(self, connection: sa.Connection) -> list[Parking]:
        """All that is known, the present ones included."""
        p, o = t.parked.c, t.parkings.c
        now = sa.select(p.rule, p.instant, sa.null(), p.reason).where(p.rulebook == self.rulebook)
        over = sa.select(o.rule, o.instant, o.until, o.reason).where(o.rulebook == self.rulebook)
        return [Parking(*row) for query in (over, now) for row in connection.execute(query)]

    def _buckets(self, connection: sa.Connection, begin: int, end: int) -> tuple[int, int]:
        """The first and the last bucket of (begin, end]; the first is later where there is none."""
        first, last = (reaching(connection, self.rulebook, at) for at in (begin + 1, end))
        return first or FOREVER, last or FOREVER


def _switch(row: sa.Row[*tuple[Any, ...]]) -> PlacedSwitch:
    """A switch with the instant at which the rule began anew, if it did, on the engine's clock."""
    anew = _anew(row)
    asked_at = min(row.asked_at, row.now) if anew is None else anew - 1
    control = Control(row.id, row.kind, row.subject, asked_at=asked_at)
    return PlacedSwitch(row.watermark_before, control, asking_rule(row.asked_by))


def _signal(row: sa.Row[*tuple[Any, ...]]) -> PlacedSignal:
    fields = json.loads(row.fields)
    made = Signal(row.id, row.event, fields, row.at, row.depth, namespace=row.namespace)
    return PlacedSignal(made, row.rule)


def _anew(row: sa.Row[*tuple[Any, ...]]) -> int | None:
    """The instant at which the bucket that took a request began its rule anew."""
    found: int | None = json.loads(row.plan)["activations"].get(row.subject)
    return found
