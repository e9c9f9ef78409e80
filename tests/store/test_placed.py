"""What a backtest reads of a store is of its span, whatever else the store has."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import sqlalchemy as sa

from tests.support import make
from tests.support.make import BEGIN, HOUR, SECOND
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.statement import SignalStatement, SwitchStatement
from tidegate.engine.core.values import ENGINE
from tidegate.engine.store import SqlStore, open_store

EVENT = "atm_empty"
FIRED = ("rare", "late")
"""Rules of which a firing of each bucket ends a minute after it begins."""


def filled(store: SqlStore, buckets: int) -> None:
    """In each bucket (an hour) a firing of each rule. `rare` switches `late` off, and raises a
    signal, which the next bucket places, as it does one of a client. The last ones wait."""
    epoch = store.of("bank").lease.acquire("one", 3_600)
    signal = SignalStatement({}, {}, (), EVENT)
    for bucket in range(1, buckets + 1):
        begin = BEGIN + (bucket - 1) * HOUR
        waiting = store.of("bank").signals.unplaced((EVENT,), begin, 99).signals
        placed = tuple(replace(one, instant=begin + SECOND) for one in waiting)
        store.of("bank").signals.raise_signal(make.signal(f"c{bucket}", begin + 50 * SECOND))
        fired = [make.firings(rule, 1, bucket) for rule in FIRED]
        (firing,) = make.hex_ids(fired[0])
        switch, tell = make.commit(
            store,
            epoch,
            make.plan(bucket, signals=placed),
            fired=fired,
            entries=[Entry("rare", SwitchStatement("late", False)), Entry("rare", signal)],
        )
        raised = make.signal(f"{firing}-1", begin + 70 * SECOND, namespace=ENGINE)
        store.of("bank", epoch).outbox.settle(
            [make.outcome(switch, "done", 1), make.outcome(tell, "done", 1, signals=(raised,))]
        )


def rare(bucket: int) -> str:
    (found,) = make.hex_ids(make.firings("rare", 1, bucket))
    return found


def ends(buckets: int) -> list[int]:
    """Watermarks, ends of firings and instants of signals, and the microseconds beside them."""
    whole = [BEGIN + n * HOUR for n in range(buckets + 1)]
    return sorted(
        {at + a + d for at in whole for a in (0, SECOND, 60 * SECOND) for d in (-1, 0, 1)}
    )


def test_a_span_has_what_ended_and_stood_in_it(store: SqlStore) -> None:
    filled(store, 5)
    placed, seen = store.of("bank").placed, 0
    for begin in ends(5)[::4]:
        for end in (at for at in ends(5)[::5] if at > begin):
            inside = [n for n in range(1, 6) if begin < BEGIN + (n - 1) * HOUR + 60 * SECOND <= end]
            switched = placed.switched_by(begin, end)
            assert {(rare(n), "disable", "late") for n in inside} <= switched
            seen += bool(inside) and len(switched) < 5
            stood = {
                (f"c{n}", BEGIN + n * HOUR + SECOND if n < 5 else BEGIN + 4 * HOUR + 50 * SECOND)
                for n in range(1, 6)
            }
            signals = placed.signals(begin, end)
            found = [(one.id, one.received_at) for one, _ in signals]
            assert {(one.namespace == ENGINE, rule) for one, rule in signals} <= {
                (True, "rare"),
                (False, None),
            }
            assert {one for one in found if one[0][0] == "c"} == {
                (id_, at) for id_, at in stood if begin < at <= end
            }
            assert [at for _, at in found] == sorted(at for _, at in found)
    assert seen > 20


def test_signals_after_a_span_are_those_that_its_firings_raised(store: SqlStore) -> None:
    filled(store, 5)
    placed = store.of("bank").placed
    for end in ends(5):
        later = {
            f"{rare(n)}-1"
            for n in range(1, 6)
            if (BEGIN + (n - 1) * HOUR < end or n == 1)  # its bucket begins before the end
            and (BEGIN + n * HOUR + SECOND if n < 5 else BEGIN + 4 * HOUR + 70 * SECOND) > end
        }
        found = {id_ for id_, _ in placed.raised_later(end)}
        waiting = {f"{rare(5)}-1"} if end < BEGIN + 4 * HOUR + 70 * SECOND else set()
        assert found - waiting == later - waiting, end


def test_a_span_is_read_as_quickly_of_a_store_of_many_buckets(sqlite_url: str) -> None:
    """By the instructions that SQLite runs."""
    few, many = (steps(f"{sqlite_url}{count}", count) for count in (8, 32))
    assert all(new < 1.5 * old for old, new in zip(few, many, strict=True)), (few, many)


def steps(url: str, buckets: int) -> list[int]:
    """The instructions of reading three buckets of a store: its first ones, and its last."""
    counted = [0]

    def count() -> None:
        counted[0] += 1

    def watch(connection: sqlite3.Connection, _: object) -> None:
        connection.set_progress_handler(count, 1)

    with open_store(url, create=True) as store:
        filled(store, buckets)
    found = []
    sa.event.listen(sa.Engine, "connect", watch)
    try:
        with open_store(url, create=False) as store:
            placed = store.of("bank").placed
            for first in (0, buckets - 4):
                span = BEGIN + first * HOUR, BEGIN + (first + 3) * HOUR
                for ask in (placed.signals, placed.switched_by):
                    before = counted[0]
                    assert ask(*span)
                    found.append(counted[0] - before)
    finally:
        sa.event.remove(sa.Engine, "connect", watch)
    return found
