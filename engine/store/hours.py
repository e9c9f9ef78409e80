"""Counts of what became of each rule's detections, by the hour (G13): how many fired, how many did
not, and why.

Example: rule `pay` fires 3 times at 09:40 and twice at 10:05. It has a row for the hour from 09:00
on, and one for the hour from 10:00 on. An hour in which nothing became of anything has no row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from typing import Any

import sqlalchemy as sa

from tidegate.engine.core.text import json_text
from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import adding
from tidegate.engine.store.totals import Counts, dead_of

HOUR_MICROS = 3_600_000_000
HOURS_SHOWN = 24


class Hours(Bound):
    """The hours of one rulebook."""

    def of_rule(self, rule: str, since: int) -> list[dict[str, Any]]:
        """The hours of a rule from that of `since` on, oldest first."""
        c = t.rule_hours.c
        query = sa.select(c.hour, c.fired, c.condition_failed, c.damped, c.dead)
        query = query.where(c.rulebook == self.rulebook, c.hour >= hour_of(since), c.rule == rule)
        with self.database.read() as connection:
            rows = connection.execute(query.order_by(c.hour)).all()
        return [{"hour": json_text.instant(row.hour), **_counts(row)} for row in rows]

    def of_all(self, now: int) -> list[dict[str, Any]]:
        """The hour of `now` and those before it, `HOURS_SHOWN` in all, of all rules together,
        newest first. `to`: the end of the hour, or `now`."""
        with self.database.read() as connection:
            known = _sums(connection, self.rulebook, now, t.rule_hours.c.hour)
        return [
            {
                "from": json_text.instant(hour),
                "to": json_text.instant(min(hour + HOUR_MICROS, now)),
                **known.get(hour, NOTHING),
            }
            for hour in reversed(shown_hours(now))
        ]

    def fired(self, rules: Collection[str], now: int) -> dict[str, list[int]]:
        """How many of each rule's detections fired in each of `HOURS_SHOWN` hours, the oldest
        first; the last one is the hour of `now`."""
        c, hours = t.rule_hours.c, shown_hours(now)
        query = sa.select(c.rule, c.hour, c.fired).where(c.rulebook == self.rulebook)
        query = query.where(c.hour.in_(hours), c.rule.in_(rules))
        found = {rule: dict.fromkeys(hours, 0) for rule in rules}
        with self.database.read() as connection:
            for rule, hour, fired in connection.execute(query):
                found[rule][hour] = fired
        return {rule: [*of_rule.values()] for rule, of_rule in found.items()}


def shown_hours(now: int) -> range:
    """The begins of the hour of `now` and of those before it."""
    return range(first_shown(now), now + 1, HOUR_MICROS)


def first_shown(now: int) -> int:
    """The begin of the first of the `HOURS_SHOWN` hours that end with that of `now`."""
    return hour_of(now) - (HOURS_SHOWN - 1) * HOUR_MICROS


def hour_of(instant: int) -> int:
    """The begin of an instant's hour."""
    return instant - instant % HOUR_MICROS


def add(
    connection: sa.Connection, rulebook: str, instant: int, counts: Mapping[str, Counts]
) -> None:
    """Add counts to the hour of an instant, by rule."""
    hour = hour_of(instant)
    rows = [
        {"rulebook": rulebook, "hour": hour, "rule": rule, **asdict(one)}
        for rule, one in sorted(counts.items())
        if one != _NONE
    ]
    if rows:
        connection.execute(_adding(connection.dialect.name == "sqlite"), rows)


@contextmanager
def deaths(
    connection: sa.Connection, rulebook: str, bucket: int, rules: Collection[str], instant: int
) -> Iterator[None]:
    """Count the firings of some rules in a bucket that had no dead entry before, and have one
    after what happens inside. Example: both entries of a firing die, one after the other. The
    firing counts once."""
    if not rules:
        yield
        return
    before = dead_of(connection, rulebook, bucket, rules)
    yield
    after = dead_of(connection, rulebook, bucket, rules)
    new = {rule: number - before.get(rule, 0) for rule, number in after.items()}
    counts = {rule: Counts(dead=number) for rule, number in new.items() if number > 0}
    add(connection, rulebook, instant, counts)


def lately(connection: sa.Connection, rulebook: str, now: int) -> dict[str, dict[str, int]]:
    """The sums of the hour of `now` and of those before it, `HOURS_SHOWN` in all, by rule."""
    return _sums(connection, rulebook, now, t.rule_hours.c.rule)


def _sums(
    connection: sa.Connection, rulebook: str, now: int, by: sa.Column[Any]
) -> dict[Any, dict[str, int]]:
    """The sums of the hours that are shown, by a column."""
    c = t.rule_hours.c
    sums = (sa.func.sum(c[name]).label(name) for name in NOTHING)
    query = sa.select(by.label("of"), *sums).group_by(by)
    query = query.where(c.rulebook == rulebook, c.hour >= first_shown(now))
    return {row.of: _counts(row) for row in connection.execute(query)}


def _counts(row: sa.Row[*tuple[Any, ...]]) -> dict[str, int]:
    return {name: int(row._mapping[name]) for name in NOTHING}


@cache
def _adding(of_sqlite: bool) -> sa.Executable:
    return adding(of_sqlite, t.rule_hours, [*asdict(_NONE)])


_NONE = Counts()
NOTHING = asdict(_NONE)
