"""Deletes what is too old, in small steps.

Deleted after `firings_retention_days`: the firings of a rule in a bucket with their entries, if all
these entries are finished. Deleted after `history_retention_days`: rejected rows, placed signals,
the counts and sizes of hours, controls that were carried out or answered, parkings that are over,
and buckets with their plans if nothing stored belongs to them any more. The memory of damping is
deleted once it has expired for all firings to come.

Kept: the last bucket; entries that are pending, held or dead, and their rule's firings; signals
that no bucket has placed; cursors, totals, and the carried state.

A signal's id is known as long as the signal is kept. A signal that is sent again after that is
another occurrence (G4).
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.store import buckets, damping, hours, id_runs
from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.state_files import StateFiles, unpointed
from tidegate.rules.model import Settings

FIRINGS_A_ROW = 100  # so many firings count as one more row, because large values delete slowly


@dataclass(slots=True)
class _Step:
    """A transaction that deletes about `left` more rows at most."""

    connection: sa.Connection
    rulebook: str
    left: int

    def delete(self, table: sa.Table, where: sa.ColumnElement[bool]) -> None:
        """Delete the first rows of the rulebook, by their key, for which `where` holds."""
        if self.left > 0:
            keys = list(table.primary_key.columns)
            some = sa.select(*keys).where(table.c.rulebook == self.rulebook, where)
            these = sa.tuple_(*keys).in_(some.limit(self.left).correlate(None))
            self.left -= self.connection.execute(sa.delete(table).where(these)).rowcount


class Retention(Bound):
    """Implements `engine.core.ledger.Retention`."""

    def remove_files(self, settings: Settings, now: int) -> int:
        return self._files.remove_unused(settings, now)

    def remove_lost_files(self, settings: Settings, now: int) -> int:
        return self._files.remove_lost(settings, now)

    @property
    def _files(self) -> StateFiles:
        return StateFiles(self.database, self.rulebook, self.epoch)

    def purge(self, firings_before: int, history_before: int, rows_max: int) -> int:
        with self.leased() as connection:
            step = _Step(connection, self.rulebook, rows_max)
            old = _last_before(step, firings_before)
            _forget_entries(step, old)
            _forget_firings(step, old)
            failpoint("purge.middle")
            if step.left > 0:
                step.left -= id_runs.forget(connection, self.rulebook, step.left)
            if step.left > 0:
                step.left -= id_runs.forget(connection, self.rulebook, step.left, id_runs.CAUSES)
            old = _last_before(step, history_before)
            step.delete(t.rejected, t.rejected.c.bucket <= old)
            step.delete(t.signals, t.signals.c.bucket <= old)
            step.delete(t.commits, t.commits.c.bucket <= old)
            step.delete(t.rule_hours, t.rule_hours.c.hour <= history_before - hours.HOUR_MICROS)
            step.delete(t.rule_sizes, t.rule_sizes.c.hour <= history_before - hours.HOUR_MICROS)
            c = t.controls.c
            finished = c.bucket.is_not(None) | c.answer.is_not(None)
            step.delete(t.controls, (c.asked_at < history_before) & finished)
            step.delete(t.parkings, t.parkings.c.until < history_before)
            step.delete(t.damping, damping.past(connection, self.rulebook))
            _forget_buckets(step, old)
            failpoint("purge.before")
        return rows_max - max(step.left, 0)


def _last_before(step: _Step, instant: int) -> int:
    """The last bucket that was planned before an instant; 0 if there is none."""
    c = t.buckets.c
    query = sa.select(c.bucket).where(c.rulebook == step.rulebook, c.now < instant)
    query = query.order_by(c.now.desc(), c.bucket.desc()).limit(1)
    return step.connection.execute(query).scalar_one_or_none() or 0


def _forget_entries(step: _Step, last: int) -> None:
    """Delete entries of buckets up to `last`, unless their rule has unfinished ones in that
    bucket."""
    c, other = t.outbox.c, t.outbox.alias("other").c
    unfinished = sa.select(other.bucket, other.rule).where(other.rulebook == step.rulebook)
    unfinished = unfinished.where(t.UNFINISHED)
    step.delete(t.outbox, (c.bucket <= last) & sa.tuple_(c.bucket, c.rule).not_in(unfinished))


def _forget_firings(step: _Step, last: int) -> None:
    """Delete firings of buckets up to `last` that have no entries any more."""
    if step.left <= 0:
        return
    c, o = t.firings.c, t.outbox.c
    entries = sa.exists().where(o.rulebook == step.rulebook, o.bucket == c.bucket, o.rule == c.rule)
    query = sa.select(c.bucket, c.rule, c.firing_count)
    query = query.where(c.rulebook == step.rulebook, c.bucket <= last, ~entries)
    keys = []
    for row in step.connection.execute(query.order_by(c.bucket).limit(step.left)).all():
        if step.left <= 0:
            break
        step.left -= 1 + row.firing_count // FIRINGS_A_ROW
        keys.append({"b": row.bucket, "r": row.rule})
    if keys:
        one = (c.bucket == sa.bindparam("b")) & (c.rule == sa.bindparam("r"))
        statement = sa.delete(t.firings).where(c.rulebook == step.rulebook, one)
        step.connection.execute(statement, keys)
        unpointed(step.connection, step.rulebook, keys)


def _forget_buckets(step: _Step, last: int) -> None:
    """Delete buckets up to `last` to which nothing belongs, but never the very last one."""
    c = t.buckets.c
    last = min(last, buckets.last_bucket(step.connection, step.rulebook) - 1)
    used = [
        sa.exists().where(child.c.rulebook == step.rulebook, child.c.bucket == c.bucket)
        for child in (t.outbox, t.firings, t.signals, t.rejected, t.controls)
    ]
    step.delete(t.buckets, (c.bucket <= last) & ~sa.or_(*used))
