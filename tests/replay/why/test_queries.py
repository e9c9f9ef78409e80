"""A condition that is a query: which versions it saw, and where the others are found."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support import make
from tests.support.make import BEGIN, SECOND
from tidegate import rules
from tidegate.engine.app.asked_again import seen
from tidegate.engine.replay.memory.feed import MemoryFeed
from tidegate.engine.replay.memory.tables import MemoryTable
from tidegate.engine.replay.why.ask import why
from tidegate.engine.replay.why.model import AskedAgain, as_json
from tidegate.engine.replay.why.text import condition_sentence
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store.traces import Trace
from tidegate.rules.model import Rule, Rulebook

BOOK = """\
rulebook: bank
tables: {readings: {path: /readings}, sensors: {path: /sensors}, limits: {path: /limits}}
events: {withdrawal: {on: insert, table: readings}, transfer: {on: insert, table: readings}}
rules:
  blocked:
    on: withdrawal ; transfer
    coupling: immediate
    if: {sql: "SELECT e.firing_id FROM event e JOIN sensors s ON s.id = e.account_id JOIN readings"}
"""
END = BEGIN + 60 * SECOND  # of the first firing


@pytest.fixture
def store(empty_store: Path, tmp_path: Path) -> Iterator[SqlStore]:
    """A firing of `blocked`, in a bucket that placed the versions 0 to 3 of `readings`."""
    url = f"sqlite:///{shutil.copy(empty_store, tmp_path / 'bank.db')}"
    with open_store(url, create=False) as opened:
        epoch = opened.of("bank").lease.acquire("one", 60)
        opened.of("bank").versions.register(BOOK, "/bank.yaml")
        fired = make.firings("blocked", condition=pa.array(["held"]))
        ranges = (make.a_range("readings", 0, 3),)
        make.commit(opened, epoch, make.plan(ranges=ranges), fired=[fired])
        yield opened


def test_a_table_without_events_stands_in_its_log(store: SqlStore) -> None:
    (firing,) = make.hex_ids(make.firings("blocked", 1))
    told = why(store, None, firing).condition
    assert (told.versions, told.in_log) == ({"readings": 3}, ("sensors",))
    assert condition_sentence(told).endswith(
        "held; it saw version 3 of readings. The version of `sensors` stands in the table's log:"
        " --spark finds it."
    )
    assert as_json(why(store, None, firing))["condition"]["in_log"] == ["sensors"]


def test_what_was_found_in_the_log_is_told_as_seen(store: SqlStore) -> None:
    (firing,) = make.hex_ids(make.firings("blocked", 1))
    given = list[Mapping[str, int]]()

    def again(trace: Trace, rule: Rule, book: Rulebook, stored: Mapping[str, int]) -> AskedAgain:
        given.append(stored)
        feed = MemoryFeed({"sensors": sensors(), "readings": sensors()})
        found = seen(trace, book, {"sensors", "readings"}, stored, feed)
        return AskedAgain(f"Asked again of {rule.name}.", found)

    told = why(store, None, firing, again).condition
    assert given == [{"readings": 3}]
    assert (told.versions, told.in_log) == ({"readings": 3, "sensors": 1}, ())
    said = condition_sentence(told)
    assert "it saw version 3 of readings, version 1 of sensors. Asked again of blocked." in said
    assert "log" not in said


@pytest.mark.parametrize(("after", "version"), [(-1, 1), (0, 2), (1, 2)])
def test_the_log_tells_the_version_at_the_end_of_the_firing(
    store: SqlStore, after: int, version: int
) -> None:
    """A commit just before, at, or just after the end: version 2 stands there."""
    place = store.of("bank").traces.place(make.hex_ids(make.firings("blocked", 1))[0])
    trace = store.of("bank").traces.trace(place)
    feed = MemoryFeed({"sensors": sensors(END - after)})
    found = seen(trace, rules.load(BOOK), {"sensors"}, {}, feed)
    assert found == {"sensors": version}
    late = MemoryFeed({"sensors": MemoryTable("sensors", ROWS, END + 1)})
    assert seen(trace, rules.load(BOOK), {"sensors"}, {}, late) == {}


ROWS = pa.table({"id": pa.array([7], pa.int64())})


def sensors(last: int = END + SECOND) -> MemoryTable:
    """A table of three versions, the last one at an instant."""
    table = MemoryTable("sensors", ROWS, BEGIN)
    for instant in (BEGIN + SECOND, last):
        table.commit(instant, ROWS, (), None)
    return table
