"""What is carried in files is what is carried in the store (G26)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.reference.cuts import cuts
from tests.reference.examples import example_count
from tests.reference.hits import detecting, noted, noting, resuming, saw
from tests.reference.planted import cases
from tests.reference.strategies import EVERYTHING, SECOND
from tests.support.executors import InProcess
from tests.support.history import buckets
from tests.support.live import Live
from tests.support.make import BEGIN
from tidegate import rules
from tidegate.engine.control.status import next_timers, rule_timers
from tidegate.engine.core.instants import MILLISECOND
from tidegate.engine.core.ports import OutageError
from tidegate.engine.core.state_parts import FilePart, loaded
from tidegate.engine.core.values import Carried
from tidegate.engine.detect.events.state import partitions
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.loop import loop
from tidegate.engine.store import SqlStore, shelf, state_files
from tidegate.engine.store import tables as t
from tidegate.engine.store.buckets import Buckets
from tidegate.rules.errors import EngineError
from tidegate.rules.model import IN_STORE, Settings

LATE = """
rulebook: b
events: {a: {signal: {v: bigint}}}
rules: {late: {on: "a ; [1 hour]", per: v}}
"""
NUMBERS = itertools.count()
LATER = 10 * 24 * 3_600 * SECOND


def restarted(live: Live, path: str | None, detect: str = "driver") -> None:
    """Another engine, with another place for files, or another one who detects."""
    settings = replace(live.book.settings, state_path=path, detect=detect)
    live.book = replace(live.book, settings=settings)
    live.restart()


def rows_in_files(live: Live) -> bool:
    """Whether the rows of some firings are in files."""
    one = sa.select(t.state_files.c.file).where(t.state_files.c.rule.is_not(None))
    with live.store.database.read() as connection:
        found = connection.execute(one.filter_by(rulebook=live.book.name).limit(1))
        return found.first() is not None


def stored(live: Live) -> Carried:
    return live.store.of(live.book.name).buckets.load().carried


def test_g26_a_status_does_without_files_that_are_gone(
    store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "BYTES_MIN", 1)
    live = Live(
        store, rules.load(LATE + f"settings: {{state_path: {tmp_path}/state}}\n"), "b", BEGIN
    )
    live.signal([("a", BEGIN, {"v": 1})])
    live.drain(BEGIN + SECOND)
    shown = next_timers(store, live.book, live.at), rule_timers(store, live.book, "late")
    assert [len(timers) for timers in shown] == [1, 1]
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    assert next_timers(store, live.book, live.at) == rule_timers(store, live.book, "late") == []
    with pytest.raises(EngineError, match=r"state file .* is gone"):
        stored(live)


class Asked:
    """Instead of `Buckets.compact`. How often it was asked; what it answers in turn, or raises."""

    def __init__(self, *answers: EngineError | set[str]) -> None:
        self.times, self.answers = 0, itertools.cycle(answers)

    def __call__(self, *_: object) -> dict[str, FilePart]:
        self.times += 1
        answer = next(self.answers)
        if isinstance(answer, EngineError):
            raise answer
        return {name: FilePart("file", 0, 1, {}, 1, 1) for name in answer}


@pytest.mark.parametrize("code", ["state-file", "state-unreadable", "state-unwritable"])
def test_g26_files_that_cannot_be_put_together_stop_nothing(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: str
) -> None:
    """They are asked for again after many buckets: each would say the same."""
    asked = Asked(EngineError(code, "state file x is gone", "put it back"))
    monkeypatch.setattr(Buckets, "compact", asked)
    monkeypatch.setattr(loop, "COMPACTED_AGAIN_BUCKETS", 2)
    live, times = Live(store, rules.load(LATE), "b", BEGIN), list[int]()
    for n in range(4):
        live.signal([("a", BEGIN + n * SECOND, {"v": n})])
        live.drain(BEGIN + (n + 1) * SECOND)
        assert not live.loop.compact()
        times.append(asked.times)
    assert times == [1, 1, 2, 2]
    assert (
        caplog.messages.count("small state files are not put together: state file x is gone") == 2
    )


def test_g26_files_are_put_together_until_few_are_left(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In several goes; then not before the next bucket."""
    asked = Asked({"node:a/0"}, {"node:a/1"}, set())
    monkeypatch.setattr(Buckets, "compact", asked)
    live = Live(store, rules.load(LATE), "b", BEGIN)
    for bucket in (1, 2):
        live.signal([("a", BEGIN + bucket * SECOND, {"v": 1})])
        live.drain(BEGIN + (bucket + 1) * SECOND)
        assert [live.loop.compact() for _ in range(5)] == [True, True, False, False, False]
        assert asked.times == 3 * bucket


def test_g07_a_store_that_is_away_while_files_are_put_together_is_an_outage(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Buckets, "compact", Asked(OutageError("store-away", "no answer", "wait")))
    live = Live(store, rules.load(LATE), "b", BEGIN)
    live.drain(BEGIN + SECOND)
    with pytest.raises(OutageError, match="no answer"):
        live.loop.compact()


@resuming
@detecting
def test_g26_files_change_nothing_that_is_detected_or_carried(
    store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least size of a part that is a file, and their place, change from bucket to bucket."""
    paths = [None, str(tmp_path / "one"), f"file://{tmp_path}/two", IN_STORE]
    sizes = st.sampled_from([1, 900, 1_500, 10**9])
    seen, removed = list[int](), list[int]()

    @given(data=st.data())
    @example_count(100, least=4)
    def some(data: st.DataObject) -> None:
        book, history = data.draw(cases(operators=EVERYTHING, depth=2, rules_max=2))
        assume(history)
        settings = Settings(state_partitions=data.draw(st.sampled_from([1, 7])))
        book = replace(book, settings=replace(settings, state_path=IN_STORE))
        monkeypatch.setattr(partitions, "ROWS_MAX", data.draw(st.sampled_from([-1, 2])))
        first, last = (pick(time for _, time, _ in history) for pick in (min, max))
        number = next(NUMBERS)
        plain, filed = (Live(store, book, f"{name}{number}", first) for name in ("p", "f"))
        end = last + 5 * SECOND + MILLISECOND
        ends = {
            end,
            *(now for now in data.draw(cuts(book, history, least=3)) if first <= now < end),
        }
        for now, piece in buckets(history, ends):
            monkeypatch.setattr(shelf, "BYTES_MIN", data.draw(sizes))
            restarted(filed, data.draw(st.sampled_from(paths)))
            for live in (plain, filed):
                live.signal(piece)
                live.drain(now)
            retention = filed.loop.ports.ledger.retention
            removed.append(retention.remove_files(filed.book.settings, now + LATER))
            assert stored(filed).tables == stored(plain).tables == filed.loop.state.carried.tables
            seen.append(store.of(filed.book.name).status.shown()["state_files"])
        assert saw(filed.found()) == plain.found()

    some()
    print(f"{sum(map(bool, seen))} of {len(seen)} times in files, {sum(removed)} removed")
    assert sum(map(bool, seen)) * 5 > len(seen)
    assert sum(removed) > 0


@noting(
    executors_left_files=5,
    read_by_driver=16,
    files_removed=5,
    rows_in_files=8,
    put_together=5,
    put_together_apart=10,
)
@resuming
@detecting
def test_g26_executors_and_driver_take_over_each_others_files(
    store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same is detected, whoever detects, in whichever place; small files are put together, and
    those that nobody needs are removed meanwhile."""
    monkeypatch.setattr(state_files, "SMALL_FILES_MIN", 2)
    paths = [None, str(tmp_path / "one"), str(tmp_path / "one"), IN_STORE]
    ways = st.sampled_from(["driver", "spark"])

    @given(data=st.data())
    @example_count(100, least=8)
    def some(data: st.DataObject) -> None:
        book, history = data.draw(cases(operators=EVERYTHING, depth=2, rules_max=2))
        assume(history and all(rule.pattern.per for rule in book.rules.values()))
        path, detect = data.draw(st.sampled_from(paths)), data.draw(ways)
        settings = Settings(state_partitions=4, state_path=path, detect=detect)
        book = replace(book, settings=settings)
        monkeypatch.setattr(partitions, "ROWS_MAX", data.draw(st.sampled_from([-1, 2])))
        first, last = (pick(time for _, time, _ in history) for pick in (min, max))
        number = next(NUMBERS)
        plain = Live(store, book, f"p{number}", first)
        filed = Live(store, book, f"f{number}", first, beside=InProcess())
        end = last + 5 * SECOND + MILLISECOND
        drawn = data.draw(cuts(book, history, least=3))
        left, taken, removed, moved, moved_apart = False, False, 0, False, False
        for now, piece in buckets(history, {end, *(now for now in drawn if first <= now < end)}):
            monkeypatch.setattr(shelf, "BYTES_MIN", data.draw(st.sampled_from([1, 1, 900, 10**9])))
            monkeypatch.setattr(shelf, "ROWS_BYTES_MIN", data.draw(st.sampled_from([1, 1, 10**9])))
            files = Parts.of(filed.loop.state.carried.tables).files
            if data.draw(st.booleans()):
                detect = data.draw(ways)
                restarted(filed, data.draw(st.sampled_from(paths)), detect)
            taken |= bool(files) and detect == "driver"
            for live in (plain, filed):
                live.signal(piece)
                live.drain(now)
            if data.draw(st.booleans()) and filed.loop.compact():
                moved = True
                moved_apart |= bool(Parts.of(filed.loop.state.carried.tables).files)
            carried = filed.loop.state.carried.tables
            left |= bool(Parts.of(carried).files)
            retention = filed.loop.ports.ledger.retention
            removed += retention.remove_files(filed.book.settings, now + LATER)
            reader = filed.loop.ports.ledger.buckets.shelf(None, 0)
            assert stored(filed).tables == loaded(carried, reader)
        noted("executors left files", left)
        noted("read by driver", taken)
        noted("files removed", removed > 0)
        noted("rows in files", rows_in_files(filed))
        noted("put together", moved)
        noted("put together apart", moved_apart)
        assert saw(filed.found()) == plain.found()

    some()
