"""What commands show of a store: every method one look at the database, or a few."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from tidegate.engine.core.suspect import Text
from tidegate.engine.store import (
    buckets,
    dead_letters,
    disabling,
    id_runs,
    lease,
    parking,
    rejections,
    status,
    timers,
    totals,
)
from tidegate.engine.store import firings as listing
from tidegate.engine.store import tables as t
from tidegate.engine.store.database import Database
from tidegate.engine.store.status import store_bytes
from tidegate.engine.store.tail import Heard, Tail
from tidegate.rules.errors import EngineError


class Shown:
    """The part of `SqlStore` that the engine itself does not need."""

    _database: Database
    _id: str

    def status(
        self,
        rulebook: str,
        declared: Collection[str] | None = None,
        rules: Collection[str] | None = None,
        texts: Collection[Text] | None = None,
    ) -> dict[str, Any]:
        """See `engine.store.status`."""
        with self._database.read() as connection:
            found = status.rulebook_status(connection, rulebook, declared, rules, texts)
            return {**found, "store_bytes": store_bytes(self._database, connection)}

    def parked(self, rulebook: str) -> frozenset[str]:
        with self._database.read() as connection:
            return parking.names(connection, rulebook)

    def disabled(self, rulebook: str) -> frozenset[str]:
        with self._database.read() as connection:
            return disabling.names(connection, rulebook)

    def holder(self, rulebook: str) -> str | None:
        with self._database.read() as connection:
            return lease.holder(connection, rulebook)

    def firings(
        self,
        rulebook: str,
        rule: str | None = None,
        since: int | None = None,
        limit: int | None = None,
        before: str | None = None,
        until: int | None = None,
        match: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """See `engine.store.firings.Wanted`; none from the firing on whose id begins with `before`.
        EngineError `firing-gone`, `firing-unclear`."""
        cut = None if before is None else self._cut(rulebook, before)
        wanted = listing.Wanted(rulebook, rule, since, until, cut, match=match, limit=limit)
        return listing.list_firings(self._database, wanted)

    def totals(self, rulebook: str, rule: str | None = None) -> totals.Total:
        """What became of the detections of all rules, or of one."""
        with self._database.read() as connection:
            found = totals.of_rules(connection, rulebook)
        return totals.summed(found.values()) if rule is None else found.get(rule, totals.Total())

    def tail(self, heard: Heard, since: str | None) -> Tail:
        """What is waited for, from a position on: see `engine.store.tail`."""
        return Tail(self._database, self._id, heard, since)

    def first_timers(self, rulebook: str, parts: int) -> timers.FirstTimers:
        with self._database.read() as connection:
            return timers.first_parts(connection, rulebook, parts)

    def last_bucket(self, rulebook: str) -> int:
        """The number of the last bucket, 0 if there is none."""
        with self._database.read() as connection:
            return buckets.last_bucket(connection, rulebook)

    def stage_seconds(self, rulebook: str) -> dict[str, float]:
        """How long the stages of the last bucket took, those that are known."""
        with self._database.read() as connection:
            return status.stage_seconds(connection, rulebook)

    def _cut(self, rulebook: str, digits: str) -> listing.Cut:
        with self._database.read() as connection:
            known = id_runs.begin_with(connection, rulebook, digits)
            place = id_runs.find(connection, rulebook, known[0]) if known else None
        if place is None:
            hint = "they are kept for firings_retention_days after their entries are finished"
            raise EngineError("firing-gone", f"there is no firing {digits} (any more)", hint)
        if len(known) > 1:
            hint = f"give more digits: {known[0]}, {known[1]}"
            raise EngineError("firing-unclear", f"several firings begin with {digits}", hint)
        return listing.Cut(*place, known[0])

    def cursor(self, rulebook: str, table: str) -> int | None:
        """The last version of a table that was read."""
        c = t.cursors.c
        query = sa.select(c.version).where(c.rulebook == rulebook, c.table_name == table)
        with self._database.read() as connection:
            return connection.execute(query).scalar_one_or_none()

    def entry(
        self, rulebook: str, number: int, rules: Collection[str] | None = None
    ) -> dict[str, Any] | None:
        """What `tidegate firings --entry` shows; None if there is no such entry (any more)."""
        return listing.show_entry(self._database, rulebook, number, rules)

    def rejected(self, rulebook: str, limit: int, *, whole: bool) -> list[dict[str, Any]]:
        """What `tidegate rejected` shows: see `engine.store.rejections`."""
        with self._database.read() as connection:
            return rejections.newest(connection, rulebook, limit, whole=whole)

    def dead_letters(
        self, rulebook: str, rule: str | None, limit: int, rules: Collection[str]
    ) -> list[dict[str, Any]]:
        """What `tidegate dead` shows: see `engine.store.dead_letters`."""
        with self._database.read() as connection:
            return dead_letters.newest(connection, rulebook, rule, limit, rules)

    def stuck_entries(self, rulebook: str, rule: str | None) -> list[tuple[int, str]]:
        """See `engine.store.dead_letters.stuck`."""
        with self._database.read() as connection:
            return dead_letters.stuck(connection, rulebook, rule)

    def find_firing(self, rulebook: str, firing_id: str) -> tuple[int, str] | None:
        """The (bucket, rule) of a firing by its hexadecimal id."""
        with self._database.read() as connection:
            return id_runs.find(connection, rulebook, firing_id)
