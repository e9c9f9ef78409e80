"""What the store kept of past buckets: their plans, the commits and signals that they hold, and
what switched rules meanwhile.

Example: asked is what a rule saw up to 9:10. Bucket 7 has the watermark 9:10:02, and holds versions
12 to 14 of a table; bucket 6 carried out `disable`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import sqlalchemy as sa

from tidegate.engine.core.entries import Control, Entry
from tidegate.engine.core.values import Cursor, Firings, Signal
from tidegate.engine.store import tables as t
from tidegate.engine.store.blobs import firings_from_columns, table_from_bytes
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.outbox import HELD, to_entry
from tidegate.engine.store.state_files import StateFiles

PAGE_BUCKETS = 500
PAGE_BYTES = 32 << 20
"""As stored: firings that are read by one statement."""
_SWITCHES = ("enable", "disable")
Mine = Callable[[pa.Table], npt.NDArray[np.bool_]]
"""Which of some firings are asked for, by their key: a table with its columns."""


@dataclass(frozen=True, slots=True)
class PastRange:
    """The versions [`first`, `last`] of a table that a bucket holds (`TableRange`)."""

    table: str
    table_id: str
    first: int
    last: int
    depths: Mapping[int, int]
    skipped: frozenset[int]
    snapshot: bool


@dataclass(frozen=True, slots=True)
class PastBucket:
    """A bucket, with the `version` of the rulebook's text that it was made by. `activations`: the
    rules that it activated, by their instants. `switches`: the requests to enable and disable rules
    that it carried out, in order."""

    number: int
    watermark_before: int
    watermark: int
    now: int
    version: int
    rows: int
    activations: Mapping[str, int]
    ranges: tuple[PastRange, ...]
    switches: tuple[Control, ...] = ()


class Stop(NamedTuple):
    """A rule that does not run now: from which instant on, and why."""

    instant: int
    why: str


class PastRejected(NamedTuple):
    """A rejected row or signal. `source`: `orders@12`, `signal k-19`."""

    bucket: int
    event: str
    source: str
    reason: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a rulebook stands. `seen`: up to there everything was taken: the watermark of its last
    bucket, or later if nothing came since; None before the first bucket. `now`: of its last bucket.
    `activations`, `stops`: by rule. `cursors`: by table."""

    seen: int | None = None
    now: int = 0
    activations: Mapping[str, int] = field(default_factory=dict)
    stops: Mapping[str, Stop] = field(default_factory=dict)
    cursors: Mapping[str, Cursor] = field(default_factory=dict)


class Past(Bound):
    """The past of one rulebook."""

    def standing(self) -> Standing:
        """Where it stands."""
        b = t.buckets.c
        looked = sa.select(t.leases.c.seen_until).filter_by(rulebook=self.rulebook)
        with self.database.read() as connection:
            newest = t.of_last_bucket(self.rulebook, b.watermark, b.now)
            last = connection.execute(newest).one_or_none()
            seen_until = connection.execute(looked).scalar_one_or_none()
            active, parked, off, cursors = (
                connection.execute(sa.select(table).filter_by(rulebook=self.rulebook)).all()
                for table in (t.activations, t.parked, t.disabled, t.cursors)
            )
        if last is None:
            return Standing()
        stops = {row.rule: Stop(row.instant, "it was disabled") for row in off}
        stops |= {row.rule: Stop(row.instant, f"parked: {row.reason}") for row in parked}
        return Standing(
            max(last.watermark, seen_until or last.watermark),
            last.now,
            {row.rule: row.instant for row in active},
            stops,
            {
                row.table_name: Cursor(
                    row.table_name, row.table_id, row.version, row.instant, row.schema, row.digest
                )
                for row in cursors
            },
        )

    def reaching(self, instant: int) -> int | None:
        """See the function."""
        with self.database.read() as connection:
            return reaching(connection, self.rulebook, instant)

    def back_from(self, last: int | None) -> Iterator[PastBucket]:
        """The buckets from `last` back, by default from the newest one."""
        c, before = t.buckets.c, last
        columns = (
            c.bucket, c.watermark_before, c.watermark, c.now, c.version, c.row_count, c.plan,
        )  # fmt: skip
        while True:
            query = sa.select(*columns).where(c.rulebook == self.rulebook)
            if before is not None:
                query = query.where(c.bucket <= before)
            with self.database.read() as connection:
                rows = connection.execute(query.order_by(c.bucket.desc()).limit(PAGE_BUCKETS)).all()
                switches = self._switches(connection, rows)
            for row in rows:
                yield _bucket(row, switches.get(row.bucket, ()))
            if len(rows) < PAGE_BUCKETS:
                return
            before = rows[-1].bucket - 1

    def _switches(
        self, connection: sa.Connection, rows: Sequence[Any]
    ) -> dict[int, tuple[Control, ...]]:
        """By bucket, the switches that it carried out."""
        if not rows:
            return {}
        c = t.controls.c
        query = sa.select(
            c.bucket, c.id, c.kind, c.subject, c.version, c.option, c.asked_at, c.asked_by
        ).where(
            c.rulebook == self.rulebook,
            c.kind.in_(_SWITCHES),
            c.bucket.is_not(None),
            c.bucket.between(rows[-1].bucket, rows[0].bucket),
        )
        found: dict[int, tuple[Control, ...]] = {}
        for row in connection.execute(query.order_by(c.id)):
            found[row.bucket] = (*found.get(row.bucket, ()), Control(*row[1:]))
        return found

    def instants(
        self, tables: Collection[str], first: int, last: int
    ) -> dict[tuple[int, str], dict[int, int]]:
        """The instants of the commits that the buckets [first, last] hold: by bucket and table, by
        version."""
        c = t.commits.c
        query = sa.select(c.bucket, c.table_name, c.version, c.instant).where(
            c.rulebook == self.rulebook, c.bucket.between(first, last), c.table_name.in_(tables)
        )
        found: dict[tuple[int, str], dict[int, int]] = {}
        with self.database.read() as connection:
            for row in connection.execute(query):
                found.setdefault((row.bucket, row.table_name), {})[row.version] = row.instant
        return found

    def signals(self, events: Collection[str], first: int, last: int) -> tuple[Signal, ...]:
        """The signals that the buckets [first, last] placed."""
        c = t.signals.c
        columns = (c.id, c.event, c.fields, c.received_at, c.depth, c.instant, c.namespace)
        query = sa.select(*columns).where(
            c.rulebook == self.rulebook,
            c.bucket.is_not(None),
            c.bucket.between(first, last),
            c.event.in_(events),
        )
        with self.database.read() as connection:
            rows = connection.execute(query.order_by(c.instant, c.id)).all()
        return tuple(
            Signal(
                r.id, r.event, json.loads(r.fields), r.received_at, r.depth, r.instant, r.namespace
            )
            for r in rows
        )

    def rejected(self, events: Collection[str], first: int, last: int) -> list[PastRejected]:
        """The rows and signals that the buckets [first, last] rejected."""
        c = t.rejected.c
        query = sa.select(c.bucket, c.event, c.source, c.reason, c.fields).where(
            c.rulebook == self.rulebook, c.bucket.between(first, last), c.event.in_(events)
        )
        with self.database.read() as connection:
            rows = connection.execute(query.order_by(c.bucket, c.ordinal)).all()
        return [PastRejected(*row[:-1], json.loads(row.fields)) for row in rows]

    def firings(
        self, rule: str, since: int, until: int, mine: Mine, most: int
    ) -> tuple[dict[int, Firings], int | None]:
        """A rule's firings that are `mine`, of the buckets in which some ended in [since, until],
        by bucket, the oldest first; and from which instant on they are looked at, where more than
        `most` are there (None: all are). What is not mine is not kept in memory."""
        c, found, count = t.firings.c, dict[int, Firings](), 0
        own = sa.and_(c.rulebook == self.rulebook, c.rule == rule)
        oldest = self.reaching(since)
        if oldest is None:
            return {}, None
        size = sa.func.length(c.firings) + sa.func.length(c.relation)
        query = (
            sa.select(c.bucket, c.firing_count, c.last_detected_at, size.label("size"))
            .where(own, c.bucket >= oldest, c.last_detected_at >= since)
            .where(c.first_detected_at <= until)
            .order_by(c.bucket.desc())
            .limit(PAGE_BUCKETS)
        )
        page = query
        while True:
            with self.database.read() as connection:
                rows = connection.execute(page).all()
                before = [*accumulate((row.firing_count for row in rows), initial=count)]
                looked = [row for row, so_far in zip(rows, before, strict=False) if so_far <= most]
                for buckets in _by_size(looked):
                    found |= self._mine(connection, own, buckets, mine)
            if len(looked) < len(rows):
                return _reversed(found), rows[len(looked)].last_detected_at + 1
            if len(rows) < PAGE_BUCKETS:
                return _reversed(found), None
            count = before[-1]
            page = query.where(c.bucket < rows[-1].bucket)

    def _mine(
        self,
        connection: sa.Connection,
        own: sa.ColumnElement[bool],
        buckets: Collection[int],
        mine: Mine,
    ) -> dict[int, Firings]:
        """The firings of some buckets that are `mine`, by bucket; only of these the rest is
        read."""
        c, masks = t.firings.c, dict[int, pa.Array]()
        query = sa.select(c.bucket, c.firings).where(own, c.bucket.in_(buckets))
        for row in connection.execute(query):
            mask = mine(table_from_bytes(row.firings))
            if mask.any():
                masks[row.bucket] = pa.array(mask)
        if not masks:
            return {}
        whole = sa.select(c.bucket, c.rule, c.firings, c.outcomes, c.relation)
        rows = connection.execute(whole.where(own, c.bucket.in_(masks)))
        shelf = StateFiles(self.database, self.rulebook).reader
        return {
            row[0]: firings_from_columns(shelf, *row[1:]).some(masks[row[0]]).loaded()
            for row in rows
        }

    def entries(self, rule: str, buckets: Collection[int]) -> list[Entry]:
        """A rule's entries of these buckets, and those that hold its queues."""
        c, asked = t.outbox.c, sorted(buckets)
        query = sa.select(t.outbox).where(c.rulebook == self.rulebook, c.rule == rule)
        pages = range(0, len(asked), PAGE_BUCKETS)
        parts = [c.bucket.in_(asked[at : at + PAGE_BUCKETS]) for at in pages]
        with self.database.read() as connection:
            rows = [
                row
                for some in (t.UNFINISHED & (c.state == HELD), *parts)  # an index has these
                for row in connection.execute(query.where(some))
            ]
        found = {row.number: to_entry(row) for row in rows}
        return [found[number] for number in sorted(found)]

    def writers(self, rule: str, table: str, first: int, last: int) -> frozenset[int]:
        """The versions in [`first`, `last`] of a table that a rule's own actions wrote, as far as
        it is recorded."""
        c = t.outbox.c
        query = sa.select(c.effect_version).where(
            c.rulebook == self.rulebook,
            c.rule == rule,
            c.target == table,
            c.effect_version.is_not(None),  # an index has these
            c.effect_version.between(first, last),
        )
        with self.database.read() as connection:
            return frozenset(connection.execute(query).scalars())


def reaching(connection: sa.Connection, rulebook: str, instant: int) -> int | None:
    """The first bucket whose watermark is at `instant` or later; None if there is none. A watermark
    is never later than the `now` of its bucket."""
    c = t.buckets.c
    own = sa.select(c.bucket, c.watermark).where(c.rulebook == rulebook)
    query = own.where(c.now >= instant).order_by(c.now, c.bucket)
    rows = connection.execute(query.limit(1)).all()
    while rows:
        for row in rows:
            if row.watermark >= instant:
                return int(row.bucket)
        later = own.where(c.bucket > rows[-1].bucket).order_by(c.bucket)
        rows = connection.execute(later.limit(PAGE_BUCKETS)).all()
    return None


def _by_size(rows: Sequence[Any]) -> Iterator[list[int]]:
    """The buckets of some rows, in parts of at most `PAGE_BYTES`; a larger bucket is alone."""
    part, size = list[int](), 0
    for row in rows:
        if part and size + row.size > PAGE_BYTES:
            yield part
            part, size = [], 0
        part.append(row.bucket)
        size += row.size
    if part:
        yield part


def _reversed(found: Mapping[int, Firings]) -> dict[int, Firings]:
    return {bucket: found[bucket] for bucket in sorted(found)}


def _bucket(row: Any, switches: tuple[Control, ...]) -> PastBucket:
    plan = json.loads(row.plan)
    return PastBucket(
        row.bucket,
        row.watermark_before,
        row.watermark,
        row.now,
        row.version,
        row.row_count,
        plan["activations"],
        tuple(map(_range, plan["ranges"])),
        switches,
    )


def _range(said: Mapping[str, Any]) -> PastRange:
    return PastRange(
        said["table"],
        said["table_id"],
        said["first"],
        said["last"],
        {int(version): depth for version, depth in said["depths"].items()},
        frozenset(said["skipped"]),
        said["snapshot"],
    )
