"""The ways of a firing through the store: the bucket in which each constituent arrived, its
entries, what it came of, and what came of it.

Example: a firing of bucket 9 has an order that bucket 7 took. Its one entry made version 12 of
`refunds`. The rows of that version came in bucket 10, and a firing of another rule has one of them.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from tidegate.engine.core.values import ENGINE, Firings
from tidegate.engine.store import causes, id_runs
from tidegate.engine.store import tables as t
from tidegate.engine.store.blobs import firings_from_columns
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.firings import firing_gone, of_digits
from tidegate.engine.store.outbox import stored_firings, to_entry
from tidegate.engine.store.recorded import is_for
from tidegate.engine.store.state_files import StateFiles

CHAINED_MAX = 64
"""Buckets of a rule that are looked through for the detections that another rule used."""
CHAINED_BYTES_MAX = 32 << 20
"""As stored: behind so many bytes of firings no further bucket is looked through."""
_ASKED = ("skip", "redrive")
_HALVED_MAX = 64  # instants that are looked up by halving; of more, the buckets are read at once
_VERSIONS_MAX = 1_000  # in one query


class Place(NamedTuple):
    """Where a firing is."""

    bucket: int
    rule: str
    firing_id: str


class Came(NamedTuple):
    """The firings that came of something, by bucket and rule. `unread`: some that may have come of
    it lie behind `CHAINED_BYTES_MAX`."""

    places: list[Place]
    unread: bool


@dataclass(frozen=True, slots=True)
class Trace:
    """A firing as it is stored. `one`: the firing alone, with its rows and their sources.
    `version`: of the rulebook's text that its bucket ran. `now`: when the bucket was planned.
    `pinned`: by table, the version that its conditions saw. `entries`: rows of the outbox, each
    with its `entry`.
    `raised`: how many signals its actions raised, by entry.
    `asked`: of its entries, who asked for what. `acted_on`: how many firings of its rule in the
    bucket are acted on. `through`: whether it is one of these."""

    place: Place
    one: Firings
    version: int
    now: int
    watermark: int
    pinned: Mapping[str, int]
    entries: tuple[Mapping[str, Any], ...]
    raised: Mapping[int, int]
    asked: tuple[Mapping[str, Any], ...]
    through: bool
    acted_on: int


class Traces(Bound):
    """The firings of one rulebook, and the ways between them."""

    def place(self, digits: str) -> Place:
        """Where the firing is whose id begins with these digits. Raises EngineError `firing-gone`,
        `firing-unclear`."""
        with self.database.read() as connection:
            return Place(*of_digits(connection, self.rulebook, digits))

    def trace(self, place: Place) -> Trace:
        """A firing by its place. Raises EngineError `firing-gone` if it was purged meanwhile."""
        bucket, rule, firing_id = place
        b = t.buckets.c
        with self.database.read() as connection:
            found = stored_firings(connection, self, bucket, [rule])
            if not found:
                raise firing_gone(firing_id)
            (fired,) = found
            query = sa.select(b.version, b.now, b.watermark, b.plan)
            of = connection.execute(query.filter_by(rulebook=self.rulebook, bucket=bucket)).one()
            one = fired.some(pc.equal(fired.hex_ids(), firing_id)).loaded()
            through = bool(len(one.acted_on))
            entries = self._entries(connection, place, through=through)
            raised = self._raised(connection, firing_id, entries)
            asked = self._asked(connection, entries)
        pinned = json.loads(of.plan).get("pinned", {})
        return Trace(
            place,
            one,
            of.version,
            of.now,
            of.watermark,
            pinned,
            entries,
            raised,
            asked,
            through,
            len(fired.acted_on),
        )

    def arrived(self, instants: Iterable[int]) -> dict[int, int]:
        """By instant, the bucket that holds it. What is not there any more is left out."""
        with self.database.read() as connection:
            spans = _Spans(connection, self.rulebook)
            wanted = [*dict.fromkeys(instants)]
            if len(wanted) > _HALVED_MAX:
                spans.read(min(wanted), max(wanted))
            found = {instant: spans.holding(instant) for instant in wanted}
        return {instant: bucket for instant, bucket in found.items() if bucket is not None}

    def took(self, table: str, versions: Collection[int], until: int) -> dict[int, int]:
        """By version of a table, the last bucket up to `until` that took its rows."""
        c = t.commits.c
        query = sa.select(c.version, sa.func.max(c.bucket).label("taken")).group_by(c.version)
        query = query.where(c.rulebook == self.rulebook, c.table_name == table)
        query = query.where(c.bucket <= until)
        wanted, found = sorted(versions), dict[int, int]()
        with self.database.read() as connection:
            for at in range(0, len(wanted), _VERSIONS_MAX):
                some = query.where(c.version.in_(wanted[at : at + _VERSIONS_MAX]))
                found |= {row.version: row.taken for row in connection.execute(some)}
        return found

    def instant_of(self, table: str, version: int) -> int | None:
        """The instant of the last commit of a version that a bucket took; None if it is not
        known."""
        c = t.commits.c
        query = sa.select(c.instant).order_by(c.bucket.desc()).limit(1)
        query = query.where(c.rulebook == self.rulebook, c.table_name == table)
        with self.database.read() as connection:
            return connection.execute(query.where(c.version == version)).scalar_one_or_none()

    def schemas(self) -> dict[str, str]:
        """By table, its columns where it was read last, as Delta's JSON."""
        c = t.cursors.c
        query = sa.select(c.table_name, c.schema).where(c.rulebook == self.rulebook)
        with self.database.read() as connection:
            return {row.table_name: row.schema for row in connection.execute(query)}

    def known(self, firing_ids: Iterable[str]) -> dict[str, Place]:
        """Those of these firings that the store has."""
        with self.database.read() as connection:
            found = {one: id_runs.find(connection, self.rulebook, one) for one in firing_ids}
        return {one: Place(*place, one) for one, place in found.items() if place is not None}

    def behind(self, table: str, version: int) -> list[Mapping[str, Any]]:
        """The entries whose commit is a version of a table: rows of the outbox."""
        one = {"rulebook": self.rulebook, "target": table, "effect_version": version}
        query = sa.select(t.outbox).filter_by(**one).order_by(t.outbox.c.number)
        with self.database.read() as connection:
            return [dict(row._mapping) for row in connection.execute(query)]

    def firings_of(self, entry: Mapping[str, Any], limit: int) -> tuple[list[str], bool]:
        """The ids of the firings that an entry is for, at most `limit`; and whether it has more."""
        ids = entry["firing_ids"]
        if ids is None:
            with self.database.read() as connection:
                found = stored_firings(connection, self, entry["bucket"], [entry["rule"]])
            fired = found[0] if found else None
            if fired is None:
                return [], False
            chosen = fired if entry["kind"] == "condition" else fired.acted_on
            ids = chosen.hex_ids().slice(0, limit + 1).to_pylist()
        return [*ids[:limit]], len(ids) > limit

    def came_of_signals(self, firing_id: str, limit: int) -> Came:
        """The firings that have a signal which an action of this one raised, at most `limit`."""
        said = f"{ENGINE}/{firing_id}-"
        return self._came(
            [bytes.fromhex(firing_id)],
            lambda fired: pc.starts_with(fired.sources["signal"], said),
            limit,
        )

    def came_of_commit(self, events: Collection[str], version: int, limit: int) -> Came:
        """The firings that come of another one, and have a row that a version of a table brought,
        at most `limit`. `events`: the event types of that table."""
        of_table = pa.array(sorted(events), pa.string())
        return self._came(
            [causes.commit_id(event, version) for event in events],
            lambda fired: pc.and_(
                pc.is_in(fired.rows["event_type"], of_table),
                pc.equal(fired.sources["version"], version),
            ),
            limit,
        )

    def near(
        self, rule: str, bucket: int, arrived: Collection[int | None], *, later: bool
    ) -> tuple[list[Firings], bool]:
        """A rule's firings in the buckets next to one, from there on, or up to it: at most
        `CHAINED_MAX` buckets and `CHAINED_BYTES_MAX` bytes; and whether there are more. `arrived`:
        unless `later`, the buckets in which the constituents of a firing arrived, None: not known.
        These come first, and none before all of them is looked at."""
        c = t.firings.c
        size = sa.func.length(c.firings) + sa.func.length(c.relation)
        of_rule = sa.select(c.bucket, size.label("size"))
        of_rule = of_rule.where(c.rulebook == self.rulebook, c.rule == rule)
        of_rule = of_rule.order_by(c.bucket if later else c.bucket.desc()).limit(CHAINED_MAX + 1)
        queries = [of_rule.where(c.bucket >= bucket if later else c.bucket <= bucket)]
        known = sorted({one for one in arrived if one is not None})
        if known and not later:
            first = known[0] if None not in arrived else 0
            near = queries[0].where(c.bucket >= first)
            queries = [of_rule.where(c.bucket.in_(known[-CHAINED_MAX:])), near]
        pages = sa.select(c.bucket, c.rule, c.firings, c.outcomes, c.relation)
        pages = pages.where(c.rulebook == self.rulebook, c.rule == rule)
        with self.database.read() as connection:
            sizes = {row.bucket: row.size for query in queries for row in connection.execute(query)}
            ends = accumulate(sizes.values(), initial=0)
            chosen = [one for one, end in zip(sizes, ends, strict=False) if end < CHAINED_BYTES_MAX]
            chosen = chosen[:CHAINED_MAX]
            rows = connection.execute(pages.where(c.bucket.in_(chosen))).all()
        shelf = StateFiles(self.database, self.rulebook).reader
        found = {row.bucket: firings_from_columns(shelf, *row[1:]) for row in rows}
        ends = accumulate((_file_bytes(found[one]) for one in chosen), initial=0)
        read = [one for one, end in zip(chosen, ends, strict=False) if end < CHAINED_BYTES_MAX]
        return [found[one].loaded() for one in sorted(read)], len(sizes) > len(read)

    def _came(self, ids: Sequence[bytes], chosen: Any, limit: int) -> Came:
        came, size = list[Place](), 0
        c, shelf = t.firings.c, StateFiles(self.database, self.rulebook).reader
        query = sa.select(c.rule, c.firings, c.outcomes, c.relation)
        with self.database.read() as connection:
            of = (connection, self.rulebook)
            found = {place for one in ids for place in id_runs.places_of(*of, one, id_runs.CAUSES)}
            for bucket, rule in sorted(found):
                if size >= CHAINED_BYTES_MAX or len(came) >= limit:
                    return Came(came[:limit], unread=len(came) < limit)
                one = query.filter_by(rulebook=self.rulebook, bucket=bucket, rule=rule)
                for row in connection.execute(one):
                    fired = firings_from_columns(shelf, *row)
                    size += len(row.firings) + len(row.relation) + _file_bytes(fired)
                    fired = fired.loaded(["firing_id", "event_type"])
                    if fired.sources is None:
                        continue
                    rows = chosen(fired).fill_null(False)
                    mine = pc.unique(fired.rows["firing_id"].filter(rows)).to_pylist()
                    came += (Place(bucket, rule, firing_id) for firing_id in mine)
        return Came(came[:limit], unread=False)

    def _entries(
        self, connection: sa.Connection, place: Place, *, through: bool
    ) -> tuple[Mapping[str, Any], ...]:
        c = t.outbox.c
        query = sa.select(t.outbox).where(c.rulebook == self.rulebook)
        query = query.where(c.bucket == place.bucket, c.rule == place.rule).order_by(c.number)
        rows = connection.execute(query).all()
        return tuple(
            {**row._mapping, "entry": to_entry(row)}
            for row in rows
            if is_for(row, place.firing_id, through=through)
        )

    def _raised(
        self, connection: sa.Connection, firing_id: str, entries: Sequence[Mapping[str, Any]]
    ) -> dict[int, int]:
        """How many signals the actions of a firing raised, by entry. They are found by their
        ids."""
        ids = [f"{firing_id}-{entry['action']}" for entry in entries if entry["kind"] == "signal"]
        if not ids:
            return {}
        c = t.signals.c
        query = sa.select(c.entry, sa.func.count()).group_by(c.entry)
        query = query.where(c.rulebook == self.rulebook, c.namespace == ENGINE, c.id.in_(ids))
        return {entry: count for entry, count in connection.execute(query) if entry is not None}

    def _asked(
        self, connection: sa.Connection, entries: Sequence[Mapping[str, Any]]
    ) -> tuple[Mapping[str, Any], ...]:
        """What operators asked of entries."""
        numbers = [str(entry["number"]) for entry in entries]
        if not numbers:
            return ()
        c = t.controls.c
        query = sa.select(c.kind, c.subject, c.option, c.asked_at, c.asked_by, c.answer)
        query = query.where(c.rulebook == self.rulebook, c.kind.in_(_ASKED))
        query = query.where(c.subject.in_(numbers))
        first = min(entry["stored_at"] for entry in entries)
        rows = connection.execute(query.where(c.asked_at >= first).order_by(c.id))
        return tuple(dict(row._mapping) for row in rows)


def _file_bytes(fired: Firings) -> int:
    return sum(file.bytes for file in fired.files)


class _Spans:
    """The instants of buckets, looked up by halving: a bucket's instants come after those of the
    bucket before."""

    def __init__(self, connection: sa.Connection, rulebook: str) -> None:
        b = t.buckets.c
        self._connection = connection
        self._query = sa.select(b.bucket, b.watermark_before, b.watermark)
        self._query = self._query.where(b.rulebook == rulebook).order_by(b.bucket).limit(1)
        first, last = (
            connection.execute(sa.select(end(b.bucket)).where(b.rulebook == rulebook)).scalar()
            for end in (sa.func.min, sa.func.max)
        )
        self._first, self._last = first or 1, last or 0
        self._known: list[tuple[int, int, int]] | None = None
        self._seen: dict[int, tuple[int, int, int] | None] = {}

    def read(self, first: int, last: int) -> None:
        """Read all buckets between two instants."""
        low, high = self._near(first), self._near(last)
        query = self._query.where(t.buckets.c.bucket.between(low, high)).limit(None)
        self._known = [(row[0], row[1], row[2]) for row in self._connection.execute(query)]

    def holding(self, instant: int) -> int | None:
        """The bucket that holds an instant."""
        if self._known is None:
            found = self._from(self._near(instant))
        else:
            at = bisect_left(self._known, instant, key=lambda span: span[2])
            found = self._known[at] if at < len(self._known) else None
        return found[0] if found is not None and found[1] < instant <= found[2] else None

    def _near(self, instant: int) -> int:
        """The bucket that holds an instant, or else one next to it."""
        low, high = self._first, self._last
        while low <= high:
            middle = (low + high) // 2
            found = self._from(middle)
            if found is None or instant <= found[1]:
                high = middle - 1
            elif instant > found[2]:
                low = found[0] + 1
            else:
                return found[0]
        return min(low, self._last)

    def _from(self, bucket: int) -> tuple[int, int, int] | None:
        """The first bucket from a number on: its number, and its watermarks before and after."""
        if bucket not in self._seen:
            row = self._connection.execute(self._query.where(t.buckets.c.bucket >= bucket)).first()
            self._seen[bucket] = None if row is None else (row[0], row[1], row[2])
        return self._seen[bucket]


def source_of(signal: str | None) -> tuple[str | None, str | None]:
    """The namespace and the id of a signal, from its stored text."""
    namespace, _, signal_id = (signal or "").partition("/")
    return namespace or None, signal_id or None


def raiser_of(signal: str | None) -> str | None:
    """The id of the firing whose action raised a signal; None for a client's."""
    namespace, signal_id = source_of(signal)
    if namespace != ENGINE or signal_id is None:
        return None
    digits = signal_id.partition("-")[0]
    return digits if len(digits) == 32 else None
