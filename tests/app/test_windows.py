"""Windows, `holds`, `resolved`, business days and `where`, by an engine on a real Delta table: rows
of several commits, restarts while windows are open, ends at which nothing arrives, and effects in
another table. The clock is set on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support.lake import Shop
from tests.support.later import Later, set_on
from tidegate.connectors.clock import SystemClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE
INTO = (
    "INSERT INTO log SELECT '{}', k, count(*), max(v), unix_micros(detected_at)"
    " FROM event GROUP BY ALL"
)
RULES = {
    "tumbling": "on: {window: 5 min, of: reading}, per: k",
    "sliding": "on: {window: 10 min, every: 5 min, of: hot}, per: k",
    "session": "on: {session: 3 min, of: reading}, per: k",
    "crossing": "on: {over: {window: 2 min, of: reading, fire: avg(v) > 80, rearm: avg(v) < 70}},"
    " per: k",
    "holding": "on: {holds: hot, until: cool, for: 2 min, keep: 1 min}, per: k",
    "over": "on: resolved holding, per: k",
    "unpaid": "on: 'placed ; [3 business days] without paid', per: k",
    "rising": "on: 'x:(hot) ; y:(hot) within 10 min', per: k, context: chronicle,"
    " where: y.v > x.v + 5",
}
BOOK = """\
rulebook: shop
tables: {rows: {path: ./rows}, log: {path: ./log}}
events:
  reading: {on: insert, table: rows, where: kind = 'reading'}
  hot: {on: insert, table: rows, where: kind = 'reading' AND v > 80}
  cool: {on: insert, table: rows, where: kind = 'reading' AND v <= 80}
  placed: {on: insert, table: rows, where: kind = 'placed'}
  paid: {on: insert, table: rows, where: kind = 'paid'}
rules:
""" + "".join(
    f'  {name}: {{{text}, do: [{{sql: "{INTO.format(name)}"}}]}}\n' for name, text in RULES.items()
)
FOUND = """
    crossing 1 1 90 1, crossing 2 1 85 1.5, crossing 1 1 99 14,
    holding 1 1 90 3, holding 2 1 85 3.5, over 2 1 10 5, over 1 1 50 16,
    rising 1 2 96 3.5,
    session 1 2 96 6.5, session 2 2 85 7, session 1 3 99 18,
    sliding 1 2 96 5, sliding 1 2 96 10, sliding 1 1 99 15, sliding 1 1 99 20,
    sliding 2 1 85 5, sliding 2 1 85 10,
    tumbling 1 2 96 5, tumbling 1 2 99 15, tumbling 1 1 50 20, tumbling 2 2 85 5
"""
"""Worked out by hand: rule, sensor, how many rows, the greatest value, minutes after the hour."""


class Room(Shop):
    """The sensors 1 and 2. Their rows are so many minutes after `begin`, microseconds."""

    begin: int
    version: int

    def insert(self, minutes: float, *rows: tuple[int, str, float]) -> None:
        """A commit."""
        values = ", ".join(f"({k}, '{kind}', {v})" for k, kind, v in rows)
        self.sql(f"INSERT INTO {{rows}} VALUES {values}")
        self.version += 1
        self.place("rows", self.version, self.at(minutes))

    def at(self, minutes: float) -> int:
        return self.begin + round(minutes * MINUTE)


@pytest.fixture
def room(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Room:
    set_on(monkeypatch)
    room = Room(spark, tmp_path)
    room.version, room.begin = 0, SystemClock().wall() // (10 * MINUTE) * 10 * MINUTE + 20 * MINUTE
    room.book.write_text(BOOK)
    room.create("rows", "k BIGINT, kind STRING, v DOUBLE", enableInCommitTimestamps="false")
    room.sql(
        "CREATE TABLE {log} (rule STRING, k BIGINT, n BIGINT, v DOUBLE, at BIGINT) USING delta"
    )
    room.run_once()
    return room


@pytest.mark.long
def test_windows_end_live_though_nothing_arrives(room: Room) -> None:
    room.insert(1, (1, "reading", 90), (1, "placed", 0), (2, "placed", 0))
    room.insert(1.5, (2, "reading", 85))
    room.insert(3.5, (1, "reading", 96))
    Later.reach(room.at(3.75))
    room.run_once()
    early = {key: n for key, n in expected(room).items() if key[4] <= room.at(3.5)}
    assert room.logged() == early
    assert len(early) == 5
    room.insert(4, (2, "reading", 10), (2, "paid", 0))
    room.insert(12, (1, "reading", 60))
    room.insert(12.5, (1, "reading", 99))
    room.insert(15, (1, "reading", 50))
    Later.reach(room.at(40))
    room.run_once()
    assert room.logged() == expected(room)
    Later.reach(room.begin + 8 * DAY)
    room.run_once()
    late = ("unpaid", 1, 1, 0.0, after_business_days(room.at(1), 3))
    assert room.logged() == expected(room) + Counter([late])


def expected(room: Room) -> Counter[tuple[Any, ...]]:
    each = [one.split() for one in FOUND.split(",")]
    return Counter(
        (rule, int(k), int(n), float(v), room.at(float(minutes))) for rule, k, n, v, minutes in each
    )


def after_business_days(instant: int, days: int) -> int:
    """The same time of day on the n-th day after that is none of a weekend, in UTC."""
    day = np.datetime64(instant // DAY, "D")
    return int(np.busday_offset(day, days, roll="backward").astype(int)) * DAY + instant % DAY
