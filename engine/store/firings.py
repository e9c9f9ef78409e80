"""Stored firings as `firings --json` prints them (language.md 3)."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from tidegate.engine.core.parameters import ENGINE_COLUMNS
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import DAMPED, FOREVER, Firings
from tidegate.engine.store import id_runs, totals
from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.outbox import stored_firings, to_entry
from tidegate.engine.store.status import entry_commands
from tidegate.rules.errors import EngineError

_CHUNK_ROWS = 5_000
PAGE_ROWS = 1_000
_TIMES = ("stored_at", "begun_at", "settled_at")  # of an entry


class _Cut(NamedTuple):
    """The firing before which a listing ends."""

    bucket: int
    rule: str
    firing_id: str


_Entry = tuple[tuple[str, ...] | None, dict[str, Any]]
"""The firings that an outbox entry is for, None: all that held; and how it is shown."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which firings are listed. None: no such bound.

    `rule`: of this rule. `since`, `until`: that ended in [since, until], microseconds. `before`:
    those before this firing. `behind`: of this bucket or later ones. `match`: a test of a firing as
    it is shown. `limit`: the newest so many. `before_id`: the first digits of the id of
    `before`."""

    rule: str | None = None
    since: int | None = None
    until: int | None = None
    before: _Cut | None = None
    behind: int | None = None
    match: Callable[[Mapping[str, Any]], bool] | None = None
    limit: int | None = None
    before_id: str | None = None


class Newest(NamedTuple):
    """The newest firings. `before`: the id before which the next ones are; None: there are none.
    `looked_until`: up to where was looked, if time was short; None: as far as wanted."""

    firings: list[dict[str, Any]]
    before: str | None
    looked_until: str | None = None


class StoredFirings(Bound):
    """The firings of one rulebook."""

    def listed(
        self,
        rule: str | None = None,
        since: int | None = None,
        limit: int | None = None,
        before: str | None = None,
        until: int | None = None,
        match: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The firings that `Wanted` describes, ordered by end, rule, key, start. `before`: the
        first digits of a firing's id. One bucket's firings are in memory at a time. Raises
        EngineError `firing-gone`, `firing-unclear`."""
        cut = None if before is None else self._cut(before)
        wanted = Wanted(rule, since, until, cut, match=match, limit=limit)
        if limit is not None:
            return iter(self._newest(wanted, limit))
        buckets = itertools.groupby(self._rows(wanted), key=lambda row: row.bucket)
        return (
            firing
            for bucket, of_bucket in buckets
            for firing in self._of_bucket(bucket, {row.rule for row in of_bucket}, wanted)
        )

    def behind(
        self, rule: str, begin: tuple[int, int], last: int
    ) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """A rule's firings in detection order, as (bucket, number in the bucket, firing): those
        after `begin`, a (bucket, number), up to bucket `last`. One bucket's firings are in memory
        at a time."""
        for row in self._rows(Wanted(rule, behind=begin[0])):
            if row.bucket > last:
                return
            skipped = begin[1] if row.bucket == begin[0] else 0
            if skipped >= row.firing_count:
                continue
            shared, stored = self._stored(row.bucket, [rule])
            for fired, entries in stored:
                found = rule_firings(shared, fired, entries, None, len(fired) - skipped)
                for number, (_, firing) in enumerate(found, skipped + 1):
                    yield row.bucket, number, firing

    def totals(self, rule: str | None = None) -> totals.Total:
        """The totals of all rules, or of one."""
        with self.database.read() as connection:
            found = totals.of_rules(connection, self.rulebook)
        return totals.summed(found.values()) if rule is None else found.get(rule, totals.Total())

    def entry(self, number: int, rules: Collection[str] | None = None) -> dict[str, Any] | None:
        """An entry with its statement, the whole error, and its firings; None if there is none, or
        it was purged."""
        names = ("number", "rule", "bucket", "kind", "target", "state", "fate", "attempts", "error")
        query = sa.select(t.outbox).filter_by(rulebook=self.rulebook, number=number)
        with self.database.read() as connection:
            row = connection.execute(query).one_or_none()
            if row is None:
                return None
            shared = self._shared(connection, row.bucket)
            payloads = stored_firings(connection, self, row.bucket, [row.rule])
        entry = (_ids(row, payloads), {"number": number})
        shown = {name: row._mapping[name] for name in names}
        listed = [
            {name: value for name, value in firing.items() if name != "entries"}
            for fired in payloads
            for _, firing in rule_firings(shared, fired, [entry], None, None)
            if firing["entries"]
        ]
        return {
            **shown,
            **{name: json_text.instant(row._mapping[name]) for name in _TIMES},
            "effect_version": row.effect_version,
            "rows_written": row.rows_written,
            "commands": entry_commands(to_entry(row), rules),
            "text": row.text,
            "details": row.details,
            "firings": listed,
        }

    def _newest(self, wanted: Wanted, limit: int) -> list[dict[str, Any]]:
        """The last `limit` firings. Buckets are read from the newest on."""
        found: list[dict[str, Any]] = []
        rows = self._rows(wanted, newest_first=True)
        for bucket, of_bucket in itertools.groupby(rows, key=lambda row: row.bucket):
            if len(found) >= limit:
                break
            rules = {row.rule for row in of_bucket}
            found = [*self._of_bucket(bucket, rules, wanted), *found]
        return found[-limit:]

    def newest(self, wanted: Wanted, seconds: float) -> Newest:
        """The newest firings that are wanted, oldest first. It looks for `seconds`, and then says
        from where on it has not looked. Raises EngineError `firing-gone`, `firing-unclear`."""
        ends, found, limit = time.monotonic() + seconds, list[dict[str, Any]](), wanted.limit or 0
        cut = None if wanted.before_id is None else self._cut(wanted.before_id)
        wanted = replace(wanted, before=cut)
        plain = wanted.match is None and wanted.until is None
        rows = self._rows(wanted, newest_first=True)
        for bucket, of_bucket in itertools.groupby(rows, key=lambda row: row.bucket):
            if len(found) >= limit:
                break
            of_rules: Sequence[sa.Row[int, str, int, int, int]] = [*of_bucket]
            if plain and not (cut and cut.bucket == bucket):
                of_rules = _last(of_rules, limit - len(found))
            rules = {row.rule for row in of_rules}
            whole = wanted if wanted.match is None else replace(wanted, match=None, limit=None)
            every = [*self._of_bucket(bucket, rules, whole)]
            found = [*filter(wanted.match, every), *found] if wanted.match else [*every, *found]
            if len(found) < limit and every and time.monotonic() > ends:
                return Newest(found, every[0]["firing_id"], every[0]["end"])
        more = found[-limit]["firing_id"] if len(found) >= limit else None
        return Newest(found[-limit:], more)

    def _rows(
        self, wanted: Wanted, *, newest_first: bool = False
    ) -> Iterator[sa.Row[int, str, int, int, int]]:
        """The rows of `firings` in question, by (bucket, rule), read a page at a time."""
        c = t.firings.c
        key = sa.tuple_(c.bucket, c.rule)
        order = [c.bucket.desc(), c.rule.desc()] if newest_first else [c.bucket, c.rule]
        page_rows = min(wanted.limit or PAGE_ROWS, PAGE_ROWS)
        query = ordered = self._query(wanted).order_by(*order).limit(page_rows)
        while True:
            with self.database.read() as connection:
                rows = connection.execute(query).all()
            yield from rows
            if len(rows) < page_rows:
                return
            end = sa.tuple_(rows[-1].bucket, rows[-1].rule)
            query = ordered.where(key < end if newest_first else key > end)

    def _query(self, wanted: Wanted) -> sa.Select[int, str, int, int, int]:
        c = t.firings.c
        times = c.first_detected_at, c.last_detected_at
        query = sa.select(c.bucket, c.rule, c.firing_count, *times)
        query = query.where(c.rulebook == self.rulebook)
        if wanted.rule is not None:
            query = query.where(c.rule == wanted.rule)
        if wanted.before is not None:
            query = query.where(c.bucket <= wanted.before.bucket)
        if wanted.behind is not None:
            query = query.where(c.bucket >= wanted.behind)
        if wanted.until is not None:
            query = query.where(c.first_detected_at <= wanted.until)
        if wanted.since is not None:
            first = sa.select(sa.func.min(c.bucket)).correlate(None)
            first = first.where(c.rulebook == self.rulebook, c.last_detected_at >= wanted.since)
            query = query.where(c.bucket >= first.scalar_subquery())
        return query

    def _of_bucket(self, bucket: int, rules: set[str], wanted: Wanted) -> Iterator[dict[str, Any]]:
        cut = wanted.before if wanted.before and wanted.before.bucket == bucket else None
        shared, stored = self._stored(bucket, rules | {cut.rule} if cut else rules)
        whole = cut is not None or wanted.match is not None or wanted.until is not None
        limit = None if whole else wanted.limit
        streams = (rule_firings(shared, *of_rule, wanted.since, limit) for of_rule in stored)
        merged = heapq.merge(*streams, key=lambda timed: (timed[0], timed[1]["rule"]))
        last = FOREVER if wanted.until is None else wanted.until
        until = itertools.takewhile(lambda timed: timed[0] <= last, merged)
        firings = (firing for _, firing in until)
        if cut is not None:
            end = cut.firing_id
            earlier = itertools.takewhile(lambda firing: firing["firing_id"] != end, firings)
            firings = (firing for firing in earlier if firing["rule"] in rules)
        return firings if wanted.match is None else filter(wanted.match, firings)

    def _stored(
        self, bucket: int, rules: Collection[str]
    ) -> tuple[dict[str, Any], list[tuple[Firings, list[_Entry]]]]:
        """What the firings of a bucket share; and those of each rule, with the rule's entries."""
        with self.database.read() as connection:
            shared = self._shared(connection, bucket)
            payloads = stored_firings(connection, self, bucket, rules)
            entries = self._entries(connection, bucket, rules)
        return shared, [(fired, entries.get(fired.rule, [])) for fired in payloads]

    def _shared(self, connection: sa.Connection, bucket: int) -> dict[str, Any]:
        """The bucket, and when it was planned: the time at which its firings fired."""
        query = sa.select(t.buckets.c.now).filter_by(rulebook=self.rulebook, bucket=bucket)
        at = connection.execute(query).scalar_one_or_none()
        return {"bucket": bucket, "fired_at": json_text.instant(at)}

    def _entries(
        self, connection: sa.Connection, bucket: int, rules: Collection[str]
    ) -> dict[str, list[_Entry]]:
        c = t.outbox.c
        query = sa.select(c.rule, c.firing_ids, c.number, c.state, c.attempts, c.error)
        query = query.where(c.rulebook == self.rulebook, c.bucket == bucket, c.rule.in_(rules))
        query = query.order_by(c.number)
        found: dict[str, list[_Entry]] = {}
        for row in connection.execute(query):
            shows = {name: row._mapping[name] for name in ("number", "state", "attempts", "error")}
            found.setdefault(row.rule, []).append((row.firing_ids, shows))
        return found

    def _cut(self, digits: str) -> _Cut:
        with self.database.read() as connection:
            return _Cut(*of_digits(connection, self.rulebook, digits))


def _last(
    rows: Sequence[sa.Row[int, str, int, int, int]], count: int
) -> Sequence[sa.Row[int, str, int, int, int]]:
    """The fewest rows of a bucket that hold its last so many firings. They are ordered by end, then
    rule; all firings of a row lie between its first and its last."""
    rows = sorted(rows, key=lambda row: (row.last_detected_at, row.rule), reverse=True)
    for n in range(1, len(rows)):
        rest = (rows[n].last_detected_at, rows[n].rule)
        sure = [row for row in rows[:n] if (row.first_detected_at, row.rule) > rest]
        if sum(row.firing_count for row in sure) >= count:
            return rows[:n]
    return rows


def firing_gone(digits: str) -> EngineError:
    """The error where no firing's id begins with these digits."""
    hint = (
        "is the id mistyped, or of another rulebook or store (--rulebook, --store)? Firings are "
        "kept for firings_retention_days after their entries are finished"
    )
    return EngineError("firing-gone", f"there is no firing {digits} (any more)", hint)


def of_digits(connection: sa.Connection, rulebook: str, digits: str) -> tuple[int, str, str]:
    """The (bucket, rule, id) of the firing whose id begins with these digits. Raises EngineError
    `firing-gone`, `firing-unclear`."""
    known = id_runs.begin_with(connection, rulebook, digits)
    if not known:
        raise firing_gone(digits)
    if len(known) > 1:
        hint = f"give more digits: {', '.join(one for one, _ in known)}"
        raise EngineError("firing-unclear", f"several firings begin with {digits}", hint)
    [(firing_id, place)] = known
    return *place, firing_id


def _ids(row: sa.Row[Any], payloads: Sequence[Firings]) -> tuple[str, ...] | None:
    """The ids of the firings that an entry is for, None: all that held. A condition is for all
    firings, whether they held or not."""
    ids: tuple[str, ...] | None = row.firing_ids
    if ids is None and row.kind == "condition":
        return tuple(found for fired in payloads for found in fired.hex_ids().to_pylist())
    return ids


def rule_firings(
    shared: Mapping[str, Any],
    fired: Firings,
    entries: Sequence[_Entry],
    since: int | None,
    limit: int | None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """A rule's firings as (end, firing) in detection order: the last `limit`."""
    for_all = [shows for firing_ids, shows in entries if firing_ids is None]
    for_some: dict[str, list[dict[str, Any]]] = {}
    for firing_ids, shows in entries:
        for firing_id in firing_ids or ():
            for_some.setdefault(firing_id, []).append(shows)
    for chunk, constituents in _chunks(fired, limit):
        keys = list(map(json_text.value, python_rows(chunk.select(fired.key_names))))
        ends = chunk["detected_at"].cast(pa.int64()).to_pylist()
        starts = chunk["started_at"].cast(pa.int64()).to_pylist()
        ids = [found.hex() for found in chunk["firing_id"].to_pylist()]
        conditions = chunk["condition"].to_pylist()
        dropped = chunk[DAMPED].to_pylist() if DAMPED in chunk.column_names else [None] * len(ends)
        through = replace(fired, firings=chunk).through.to_pylist()
        depths = chunk["depth"].to_pylist()
        for n, end in enumerate(ends):
            if since is not None and end < since:
                continue
            own = [*(for_all if through[n] else ()), *for_some.get(ids[n], ())]
            yield (
                end,
                {
                    "rule": fired.rule,
                    **fired.about.said,
                    "key": keys[n],
                    "start": json_text.instant(starts[n]),
                    "end": json_text.instant(end),
                    "constituents": constituents[n],
                    "firing_id": ids[n],
                    **shared,
                    "condition": conditions[n],
                    **({DAMPED: dropped[n]} if dropped[n] else {}),
                    "depth": depths[n],
                    "entries": sorted(own, key=lambda shows: shows["number"]),
                },
            )


def _chunks(
    fired: Firings, limit: int | None
) -> Iterator[tuple[pa.Table, list[list[dict[str, Any]]]]]:
    """A rule's firings in chunks, each with the constituents of its firings as they are printed."""
    skipped = 0 if limit is None else max(0, len(fired) - limit)
    for first in range(skipped, len(fired), _CHUNK_ROWS):
        chunk = fired.slice(first, _CHUNK_ROWS).loaded()
        bounds, rows = chunk.offsets, constituents_of(chunk.rows)
        yield (
            chunk.firings,
            [
                [row for row in rows[start:end] if row["event"] is not None]
                for start, end in itertools.pairwise(bounds)
            ],
        )


def constituents_of(relation: pa.Table) -> list[dict[str, Any]]:
    """The rows of a relation as constituents. Null parameters, as those of other event types, are
    left out."""
    names = parameter_names(relation)
    events = relation["event_type"].to_pylist()
    times = relation["occurred_at"].cast(pa.int64()).to_pylist()
    parameters = map(json_text.value, python_rows(relation.select(names)))
    return [
        {
            "event": event,
            "time": json_text.instant(time),
            **{name: found for name, found in row.items() if found is not None},
        }
        for event, time, row in zip(events, times, parameters, strict=True)
    ]


def parameter_names(relation: pa.Table) -> list[str]:
    """The columns of a relation that its event types brought."""
    labels = [label for label in pc.unique(relation["label"]).to_pylist() if label is not None]
    spans = {f"{label}_{side}" for label in labels for side in ("start", "end")}
    return [n for n in relation.column_names if n not in ENGINE_COLUMNS and n not in spans]
