"""A rule's firings, or the placed signals of an event type, from a position on: for listeners.

A position is (bucket, number): after so many items of that bucket, and after all buckets before it.
Buckets come in order and do not change. So reading on from a position misses nothing and repeats
nothing. If something was purged meanwhile, that is an error. Example: `5f3a09c1-12-3` stands after
the third item of bucket 12.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from tidegate.engine.core.text import json_text
from tidegate.engine.core.values import DAMPED, ENGINE
from tidegate.engine.store import buckets
from tidegate.engine.store import tables as t
from tidegate.engine.store.database import server_now
from tidegate.engine.store.sqlstore import SqlStore
from tidegate.rules.errors import EngineError

_POSITION = re.compile(r"([0-9a-f]{8})-([0-9]{1,18})-([0-9]{1,18})")
MICROS_PER_HOUR = 3_600_000_000
MICROS_PER_DAY = 24 * MICROS_PER_HOUR
PAGE_ROWS = 1_000
EARLIEST = "earliest"

Item = tuple[str, dict[str, Any]]
"""A position, and the item just before it, as it is printed."""


@dataclass(frozen=True, slots=True)
class Position:
    """After the first `number` items of `bucket`, in the store whose id begins with `store`."""

    store: str
    bucket: int
    number: int = 0

    def __str__(self) -> str:
        return f"{self.store}-{self.bucket}-{self.number}"


@dataclass(frozen=True, slots=True)
class Heard:
    """What is listened to: a rule or a signal, and for how many days its items are kept."""

    rulebook: str
    name: str
    is_signal: bool
    retention_days: int


class Tail:
    """Reads items in order. `position` stands after those that `take` gave last.

    `since`: a position, EARLIEST (all that is kept), or None: only what comes from now on. Raises
    EngineError `bad-position` or `position-gone`; `take` may raise the latter, too.
    """

    def __init__(self, store: SqlStore, heard: Heard, since: str | None) -> None:
        database, store_id = store.database, store.id
        self._database = database
        self._ledger = store.of(heard.rulebook)
        self._heard = heard
        self._more: Iterator[tuple[Position, dict[str, Any]]] = iter(())
        self._kept_only = since == EARLIEST  # before what must be there yet
        with database.read() as connection:
            if since is None or since == EARLIEST:
                last = buckets.last_bucket(connection, heard.rulebook)
                first = self._first(connection) if self._kept_only else None
                self._position = Position(store_id[:8], last if first is None else first)
                if first is None:
                    at_end = self._count(connection)
                    self._position = replace(self._position, number=at_end)
                return
            self._position = _read(since, store_id)
            self._check(connection)
            if self._count(connection) < self._position.number:
                raise self._gone("its bucket has been forgotten")

    @property
    def position(self) -> str:
        return str(self._position)

    def take(self, items_max: int) -> list[Item]:
        """The next items, none if there are none yet. Firings whose condition does not hold, and
        damped ones, are left out. Raises EngineError `state-file` where the rows of the very next
        ones are gone, until `pass_over` is called; OutageError."""
        while True:
            with self._database.read() as connection:
                last = self._check(connection)
            found = self._next(items_max)
            if not found:
                self._more = self._after(self._position, last)
                found = self._next(items_max)
            if found:
                self._position = found[-1][0]
            elif last > self._position.bucket:
                self._position = replace(self._position, bucket=last, number=0)
            fired = [(str(position), shown) for position, shown in found if self._fired(shown)]
            if fired or not found:
                return fired

    def pass_over(self) -> int:
        """Go on after the bucket of which `take` cannot read the next items; its number."""
        column, where = self._items()
        begin = self._position
        with self._database.read() as connection:
            whole = self._count(connection) <= begin.number
            next_ones = where & (column > begin.bucket if whole else column >= begin.bucket)
            query = sa.select(sa.func.min(column)).where(next_ones)
            bucket = connection.execute(query).scalar_one() or begin.bucket  # None: it was purged
            self._position = replace(begin, bucket=bucket)
            self._position = replace(self._position, number=self._count(connection))
        return int(bucket)

    def _next(self, items_max: int) -> list[tuple[Position, dict[str, Any]]]:
        """The next items at hand. What stands before one that cannot be read is given first."""
        found = []
        try:
            for item in itertools.islice(self._more, items_max):
                found.append(item)
        except EngineError:
            if not found:
                raise
        return found

    def _fired(self, shown: Mapping[str, Any]) -> bool:
        if self._heard.is_signal:
            return True
        return shown["condition"] != "failed" and DAMPED not in shown

    def _check(self, connection: sa.Connection) -> int:
        """The last bucket. Raises EngineError `position-gone` if something after the position may
        have been purged: the position must be an hour younger than the oldest kept bucket."""
        c, heard = t.buckets.c, self._heard
        bucket = max(self._position.bucket, 1)
        query = sa.select(c.now).where(c.rulebook == heard.rulebook)
        then = connection.execute(query.where(c.bucket == bucket)).scalar_one_or_none()
        newest = t.of_last_bucket(heard.rulebook, c.now, c.bucket)
        last = connection.execute(newest).one_or_none()
        if self._position.bucket > (last.bucket if last else 0):
            raise self._gone("the store has no such bucket yet: was it restored?")
        if last is None:
            return 0
        days_back = heard.retention_days * MICROS_PER_DAY - MICROS_PER_HOUR
        oldest = max(server_now(connection), last.now) - days_back
        if then is not None and then >= oldest:
            self._kept_only = False
        elif not self._kept_only:
            raise self._gone(f"it is older than what is kept, {heard.retention_days} days")
        return int(last.bucket)

    def _first(self, connection: sa.Connection) -> int | None:
        """The first bucket with items."""
        column, where = self._items()
        query = sa.select(column).where(where).order_by(column).limit(1)
        return connection.execute(query).scalar_one_or_none()

    def _count(self, connection: sa.Connection) -> int:
        """How many items the position's bucket has."""
        column, where = self._items()
        count = sa.func.count() if self._heard.is_signal else sa.func.sum(t.firings.c.firing_count)
        query = sa.select(sa.func.coalesce(count, 0)).where(where)
        return int(connection.execute(query.where(column == self._position.bucket)).scalar_one())

    def _items(self) -> tuple[sa.ColumnElement[int], sa.ColumnElement[bool]]:
        """The column with the bucket of an item, and the condition that selects items."""
        if self._heard.is_signal:
            c = t.signals.c
            named = (c.event == self._heard.name) & c.bucket.is_not(None)
            return c.bucket, named & (c.rulebook == self._heard.rulebook)
        f = t.firings.c
        return f.bucket, (f.rule == self._heard.name) & (f.rulebook == self._heard.rulebook)

    def _after(self, begin: Position, last: int) -> Iterator[tuple[Position, dict[str, Any]]]:
        """The items after `begin`, up to the end of bucket `last`."""
        if self._heard.is_signal:
            found = self._signals(begin, last)
        else:
            behind = (begin.bucket, begin.number)
            found = self._ledger.firings.behind(self._heard.name, behind, last)
        for bucket, number, shown in found:
            yield replace(begin, bucket=bucket, number=number), shown

    def _signals(self, begin: Position, last: int) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Read a page at a time. The signals of a bucket are in order of their instants."""
        c = t.signals.c
        column, where = self._items()
        query = sa.select(c.bucket, c.instant, c.namespace, c.id, c.fields).where(where)
        bucket, number = begin.bucket, begin.number
        while True:
            ordered = query.where(column.between(bucket, last))
            ordered = ordered.order_by(column, c.instant, c.id, c.namespace)
            with self._database.read() as connection:
                rows = connection.execute(ordered.offset(number).limit(PAGE_ROWS)).all()
            for row in rows:
                number = number + 1 if row.bucket == bucket else 1
                bucket = row.bucket
                yield bucket, number, self._shown(row)
            if len(rows) < PAGE_ROWS:
                return

    def _shown(self, row: sa.Row[*tuple[Any, ...]]) -> dict[str, Any]:
        """A signal as a line of a trace, with its id. `$namespace` is there if a client could have
        the same id."""
        fields = json.loads(row.fields)
        id_name = "$id" if "id" in fields else "id"
        head = {"event": self._heard.name, "time": json_text.instant(row.instant), id_name: row.id}
        whose = {"$namespace": ENGINE} if row.namespace == ENGINE else {}
        return {**head, **whose, "bucket": row.bucket, **fields}

    def _gone(self, why: str) -> EngineError:
        hint = "begin with what is kept, `earliest`, or now, without a position"
        message = f"position {self._position} of {self._heard.name} cannot be gone on from: {why}"
        return EngineError("position-gone", message, hint)


def _read(text: str, store_id: str) -> Position:
    found = _POSITION.fullmatch(text)
    if found is None:
        hint = "give one that came with an item, or `earliest`"
        raise EngineError("bad-position", f"{text[:100]!r} is not a position", hint)
    position = Position(found[1], int(found[2]), int(found[3]))
    if position.store != store_id[:8]:
        hint = "begin with what is kept, `earliest`, or now, without a position"
        message = f"position {position} is of another store, or of before it was adopted"
        raise EngineError("position-gone", message, hint)
    return position
