"""Counts of each rule's detections: how many fired, how many did not, and why (G13)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from tidegate.engine.core.state import MINUTE_MICROS, Fired
from tidegate.engine.core.values import Firings
from tidegate.engine.store import tables as t
from tidegate.engine.store.blobs import through_count
from tidegate.engine.store.database import add_up, adding


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of detections: they fired, their condition failed, they were damped. `dead`: of
    how many the first entry died."""

    fired: int = 0
    condition_failed: int = 0
    damped: int = 0
    dead: int = 0


@dataclass(slots=True)
class Total:
    """The counts of a rule's detections.

    `detected`: all. `fired`: those that are acted on. `condition_failed`: their condition does not
    hold. `damped`: dropped, by the kind of damping. The rest has no answer of its condition yet.
    `dead`: those with a dead entry; they are among `fired`, or among the rest."""

    detected: int = 0
    fired: int = 0
    condition_failed: int = 0
    last_fired_at: int | None = None
    damped: dict[str, int] = field(default_factory=dict)
    dead: int = 0

    @property
    def unanswered(self) -> int:
        """Those whose condition has no answer: it is not asked yet, or could not be asked."""
        decided = self.fired + self.condition_failed + sum(self.damped.values())
        return self.detected - decided

    @property
    def fates(self) -> dict[str, int]:
        """What became of all of them: disjoint, and together `detected`."""
        return {**self.shown, "unanswered": self.unanswered, "dead": 0}

    @property
    def shown(self) -> dict[str, int]:
        """The four numbers that commands and monitors show."""
        return {
            "fired": self.fired,
            "condition_failed": self.condition_failed,
            "damped": sum(self.damped.values()),
            "dead": self.dead,
        }


def add_detected(connection: sa.Connection, rulebook: str, some: Sequence[Firings]) -> None:
    """Add the detections of a bucket, of one rule or more."""
    rows = [{"rulebook": rulebook, "rule": f.rule, "firing_count": len(f)} for f in some]
    connection.execute(_detected(connection.dialect.name == "sqlite"), rows)


@cache
def _detected(of_sqlite: bool) -> sa.Executable:
    """Made once, because making it takes longer than running it."""
    return adding(of_sqlite, t.rule_totals, ["firing_count"])


def add_decided(connection: sa.Connection, rulebook: str, fired: Firings) -> Counts:
    """Add what became of detections, once their condition has its answer. Dead ones, whose
    condition could not be asked, are counted by their entries. Returns what was added."""
    c = t.rule_totals.c
    through = fired.acted_on.firings
    dropped = fired.damped
    unasked = pc.sum(pc.equal(fired.firings["condition"], "dead")).as_py() or 0
    failed = len(fired) - len(through) - sum(dropped.values()) - unasked
    values = {"fired": c.fired + len(through), "condition_failed": c.condition_failed + failed}
    if len(through):
        last = pc.max(through["detected_at"].cast(pa.int64())).as_py()
        before = sa.func.coalesce(c.last_fired_at, last)
        values["last_fired_at"] = sa.case((before > last, before), else_=last)
    of_rule = sa.update(t.rule_totals).where(c.rulebook == rulebook, c.rule == fired.rule)
    connection.execute(of_rule.values(values))
    for kind, number in sorted(dropped.items()):
        one = {"rulebook": rulebook, "rule": fired.rule, "kind": kind}
        add_up(connection, t.damped_totals, one, {"firing_count": number})
    return Counts(len(through), failed, sum(dropped.values()))


def of_rules(connection: sa.Connection, rulebook: str) -> dict[str, Total]:
    """The totals by rule, inactive rules included."""
    c, d = t.rule_totals.c, t.damped_totals.c
    query = sa.select(c.rule, c.firing_count, c.fired, c.condition_failed, c.last_fired_at)
    rows = connection.execute(query.where(c.rulebook == rulebook))
    found = {rule: Total(*counts) for rule, *counts in rows}
    dropped = sa.select(d.rule, d.kind, d.firing_count).where(d.rulebook == rulebook)
    for row in connection.execute(dropped.order_by(d.kind)):
        found.setdefault(row.rule, Total()).damped[row.kind] = row.firing_count
    for rule, number in dead_of(connection, rulebook).items():
        found.setdefault(rule, Total()).dead = number
    return found


def summed(totals: Iterable[Total]) -> Total:
    """The sum of totals."""
    found = Total()
    for one in totals:
        found.detected += one.detected
        found.fired += one.fired
        found.condition_failed += one.condition_failed
        found.dead += one.dead
        for kind, number in one.damped.items():
            found.damped[kind] = found.damped.get(kind, 0) + number
    return found


def dead_of(
    connection: sa.Connection,
    rulebook: str,
    bucket: int | None = None,
    rules: Collection[str] = (),
) -> dict[str, int]:
    """How many firings have a dead entry, by rule. A firing with several counts once. `bucket`,
    `rules`: of these rules in this bucket."""
    o, f = t.outbox.c, t.firings.c
    of_bucket = (f.rulebook == o.rulebook) & (f.bucket == o.bucket) & (f.rule == o.rule)
    query = sa.select(o.rule, o.bucket, o.kind, o.firing_ids, f.firing_count, f.outcomes)
    query = query.join_from(t.outbox, t.firings, of_bucket)
    query = query.where(o.rulebook == rulebook, t.UNFINISHED, o.state == "dead")
    if bucket is not None:
        query = query.where(o.bucket == bucket, o.rule.in_(rules))
    some: dict[tuple[str, int], set[str]] = {}
    whole: dict[tuple[str, int], int] = {}
    for row in connection.execute(query):
        place = (row.rule, row.bucket)
        if row.firing_ids is not None:
            some.setdefault(place, set()).update(row.firing_ids)
        elif row.kind == "condition":
            whole[place] = row.firing_count
        elif place not in whole:
            whole[place] = through_count(row.outcomes, row.firing_count)
    counts = {place: len(ids) for place, ids in some.items()} | whole
    found: dict[str, int] = {}
    for (rule, _), number in counts.items():
        found[rule] = found.get(rule, 0) + number
    return found


def fired_lately(connection: sa.Connection, rulebook: str, now: int) -> tuple[Fired, ...]:
    """As `engine.loop.limits` has it: `now` is the last bucket's."""
    b, f, c = t.buckets.c, t.firings.c, t.controls.c
    recent = (b.rulebook == rulebook) & (b.now > now - MINUTE_MICROS)
    enabled = sa.select(c.subject, sa.func.max(c.bucket)).join(
        t.buckets, (b.rulebook == c.rulebook) & (b.bucket == c.bucket)
    )
    enabled = enabled.where(recent, c.kind == "enable").group_by(c.subject)
    since = {row[0]: row[1] for row in connection.execute(enabled)}
    query = sa.select(b.bucket, b.now, f.rule, f.firing_count, f.outcomes).join(
        t.firings, (f.rulebook == b.rulebook) & (f.bucket == b.bucket)
    )
    fresh = b.now - MINUTE_MICROS
    query = query.where(recent, (b.watermark_before > fresh) | (f.first_detected_at > fresh))
    return tuple(
        Fired(row.now, {row.rule: through_count(row.outcomes, row.firing_count)})
        for row in connection.execute(query.order_by(b.now, b.bucket))
        if row.bucket >= since.get(row.rule, 0)
    )
