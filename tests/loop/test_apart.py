"""Buckets whose rows executors read themselves (G26): how they are cut, and when the driver reads
after all."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.loop.test_site import BOOK, Beside, drained, fired
from tests.support.executors import InProcess
from tests.support.make import SECOND
from tidegate.engine.core.text import logs
from tidegate.engine.core.values import Signal
from tidegate.engine.store import SqlStore, open_store
from tidegate.rules.errors import EngineError
from tidegate.rules.model import SignalEvent

if TYPE_CHECKING:
    from pathlib import Path

KEYED = BOOK.replace("{on: row ; row}", "{on: row and row, per: id}")
READ = "detect: spark; they read t"
COMMITS = 7


class Failing(InProcess):
    """Fails when it is asked to read for the first time."""

    def map_rows(self, *given: object) -> object:  # type: ignore[override]
        if not self.splits:
            self.splits += 1
            raise OSError("an executor was lost")
        return super().map_rows(*given)  # type: ignore[arg-type]


def executors(bench: Beside) -> InProcess:
    assert isinstance(bench.executors_beside, InProcess)
    return bench.executors_beside


def tell(store: SqlStore, bench: Beside) -> None:
    if isinstance(bench.book.events["row"], SignalEvent):
        store.of("loop").signals.raise_signal(Signal("one", "row", {"id": 0}, bench.clock.at))


def by_driver(
    folder: Path, commits: int = COMMITS, text: str = KEYED
) -> list[tuple[str, str, Any]]:
    with open_store(f"sqlite:///{folder / 'other.db'}", create=True) as other:
        other.of("loop").versions.register(text, None)
        bench = Beside(other, commits, "detect: driver", text)
        tell(other, bench)
        drained(bench)
        return fired(other)


def test_g26_what_executors_read_is_what_the_driver_reads(store: SqlStore, tmp_path: Path) -> None:
    """A bucket holds what executors take, not what the driver would: `bucket_rows_max` is 2."""
    bench = Beside(store, COMMITS, "detect: spark, spark_rows_max: 5", KEYED)
    assert {*drained(bench)} == {("executors", READ)}
    assert [r.rows for r in bench.reports if r.rows] == [5, 2]
    assert bench.feed.read_spans == [(0, 4), (5, 6)]
    assert executors(bench).splits == 3 + 1
    assert fired(store) == by_driver(tmp_path)


def test_g26_a_table_that_a_rule_without_a_key_looks_at_is_the_drivers(store: SqlStore) -> None:
    bench = Beside(store, COMMITS, "detect: spark", BOOK)
    assert {*drained(bench)} == {("executors", "detect: spark")}
    assert executors(bench).splits == 0


def test_g26_rows_that_raise_a_signal_are_the_drivers(store: SqlStore, tmp_path: Path) -> None:
    """Beside those, the store has signals of the same event type."""
    text = KEYED.replace("{on: insert, table: t}", "{signal: {id: bigint}, from_table: t}")
    bench = Beside(store, 2, "detect: spark", text)
    tell(store, bench)
    assert {*drained(bench)} == {("executors", "detect: spark")}
    alone = by_driver(tmp_path, 2, text)
    assert fired(store) == alone
    assert {rule for rule, *_ in alone} == {"open", "rows"}


@pytest.mark.parametrize("where", ["where: id < 100", "where: \"id < 100 OR reverse(id) = 'x'\""])
def test_g26_a_where_that_spark_decides_is_the_drivers(store: SqlStore, where: str) -> None:
    """It is asked where a text that ends Java is named. One that Arrow decides may be anywhere."""
    text = KEYED.replace("row: {on: insert, table: t}", f"row: {{on: insert, table: t, {where}}}")
    bench = Beside(store, 1, "detect: spark", text)
    if "reverse" in where:
        bench.feed.commits = 0
        assert {why for _, why in drained(bench)} == {"detect: spark"}
    else:
        assert {why for _, why in drained(bench)} == {READ}
        assert executors(bench).splits == 1


@pytest.mark.parametrize(("rules", "sizes"), [("one: {on: row, per: id}", [2, 2, 2, 1]), (
    "one: {on: row, per: id}, two: {on: row, per: id}, three: {on: row, per: id}, "
    "four: {on: row, per: id}, five: {on: row, per: id}", [1] * COMMITS)])  # fmt: skip
def test_g26_a_bucket_with_more_detections_than_the_driver_takes_ends_earlier(
    store: SqlStore, tmp_path: Path, caplog: pytest.LogCaptureFixture, rules: str, sizes: list[int]
) -> None:
    """A commit of which more is found is taken whole: it cannot be cut."""
    caplog.set_level("INFO")
    text = KEYED[: KEYED.index("rules:")] + f"rules: {{{rules}}}\n"
    bench = Beside(store, COMMITS, "detect: spark, driver_rows_max: 4", text)
    assert {*drained(bench)} == {("executors", READ)}
    assert [r.rows for r in bench.reports if r.rows] == sizes
    found = COMMITS * rules.count("per")
    said = f"bucket 1: {found} detections, and the driver takes 4 (driver_rows_max): "
    assert said + "the bucket ends earlier" in caplog.messages
    ends = [m for m in caplog.messages if m.endswith("all rows are of one instant")]
    assert len(ends) == (COMMITS if len(sizes) == COMMITS else 0)
    assert fired(store) == by_driver(tmp_path, COMMITS, text)
    assert len(fired(store)) == found


def test_g26_a_bucket_of_which_much_is_found_makes_no_later_one_smaller(
    store: SqlStore, tmp_path: Path
) -> None:
    """Seven in the first three rows, of the eight that the driver takes; one in each other row."""
    few = "events:\n  few: {on: insert, table: t, where: id < 2}\n"
    text = KEYED[: KEYED.index("rules:")].replace("events:\n", few)
    text += "rules: {one: {on: row, per: id}, two: {on: few, per: id}, three: {on: few, per: id}}\n"
    bench = Beside(store, 16, "detect: spark, driver_rows_max: 8", text)
    assert {*drained(bench)} == {("executors", READ)}
    assert [r.rows for r in bench.reports if r.rows] == [3, 3, 4, 4, 2]
    assert fired(store) == by_driver(tmp_path, 16, text)


@pytest.mark.parametrize("most", [1, 3])
def test_g26_commits_that_change_no_rows_make_a_bucket_no_longer(
    store: SqlStore, most: int
) -> None:
    """One commit is taken whole, whatever stands behind it. Of two the first is."""
    text = (
        KEYED[: KEYED.index("rules:")]
        + "rules: {one: {on: row, per: id}, two: {on: row, per: id}}\n"
    )
    bench = Beside(store, 0, f"detect: spark, driver_rows_max: {most}", text)
    bench.feed.quiet = lambda version: version % 30 > 1
    bench.feed.commits, looks = 60, 0

    def counted() -> None:
        nonlocal looks
        looks += 1
        assert looks < 20

    bench.feed.meanwhile = counted
    bench.clock.at += 60 * SECOND
    assert {*drained(bench)} == {("executors", READ)}
    assert [r.detections for r in bench.reports if r.detections] == [2] * 4


def test_the_seconds_of_a_bucket_are_those_of_all_its_tries(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More is found in 7 rows, and in 3, than the driver takes: a second of this clock each."""
    clock = count()
    monkeypatch.setattr(logs, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    rules = "one: {on: row, per: id}, two: {on: row, per: id}, three: {on: row, per: id}"
    text = KEYED[: KEYED.index("rules:")] + f"rules: {{{rules}}}\n"
    bench = Beside(store, COMMITS, "detect: spark, driver_rows_max: 2", text)
    first = bench.loop.bucket()
    assert first is not None
    tries = len(executors(bench).tasks)
    assert tries > 1
    assert first.seconds == {
        "plan": tries, "capture": tries, "detect": tries, "evaluate": 1, "commit": 1, "act": 1,
    }  # fmt: skip
    second = bench.loop.bucket()
    assert second is not None
    assert second.seconds["detect"] == len(executors(bench).tasks) - tries


def test_g26_what_only_timers_have_found_makes_no_later_bucket_smaller(store: SqlStore) -> None:
    """Each time eight of them are due with the last row, which is taken alone."""
    rule = "{open: {on: 'not(gone)[row, [2 s]]', per: id}}"
    text = KEYED[: KEYED.index("rules:")] + f"rules: {rule}\n"
    bench = Beside(store, 0, "detect: spark, driver_rows_max: 4", text)
    found = []
    for first in range(0, 32, 8):
        bench.feed.instants |= {first + n: bench.clock.at + 1_000 * n for n in range(8)}
        bench.feed.commits += 8
        bench.clock.at += 100 * SECOND
        bench.reports.clear()
        assert {*bench.run()} == {("executors", READ)}
        found.append([(r.rows, r.detections) for r in bench.reports if r.rows])
    assert found == [[(2, 0), (4, 0), (1, 0), (1, 8)], *[[(1, 0), (2, 0), (4, 0), (1, 8)]] * 3]


def test_g26_what_executors_cannot_read_the_driver_reads(
    store: SqlStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """All that the failed bucket would have held, in buckets of the driver's size."""
    bench = Beside(store, COMMITS, "detect: spark, spark_rows_max: 5", KEYED)
    bench.executors_beside = Failing()
    bench.restart()
    sites = drained(bench)
    assert [r.rows for r in bench.reports if r.rows] == [2, 2, 2, 1]
    assert [why for _, why in sites[:4]] == ["detect: spark"] * 3 + [READ]
    said = "bucket 1: executors do not read its rows, the driver does: an executor was lost"
    assert said in caplog.messages
    assert fired(store) == by_driver(tmp_path)


class Other(InProcess):
    """They have another version, or see other files."""

    code = "executors-differ"

    def map_rows(self, *given: object) -> object:  # type: ignore[override]  # noqa: ARG002
        raise EngineError(self.code, "executors have 0.0.1", "install 0.0.2")


@pytest.mark.parametrize(
    ("text", "code"),
    [(KEYED, "executors-differ"), (BOOK, "executors-differ"), (KEYED, "state-apart")],
)
def test_g26_auto_does_without_executors_that_have_another_installation_or_see_other_files(
    store: SqlStore, tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, code: str
) -> None:
    bench = Beside(store, COMMITS, "detect: auto, driver_rows_max: 1", text)
    bench.executors_beside = Other()
    bench.executors_beside.code = code
    bench.executors_beside.map = bench.executors_beside.map_rows  # type: ignore[assignment]
    bench.restart()
    assert {*drained(bench)} == {("driver", f"executors cannot detect it ({code})")}
    said = [m for m in caplog.messages if "the driver detects it, and all others" in m]
    assert len(said) == 1
    assert fired(store) == by_driver(tmp_path, COMMITS, text)


def test_g26_spark_does_not_do_without_executors(store: SqlStore) -> None:
    bench = Beside(store, COMMITS, "detect: spark", KEYED)
    bench.executors_beside = Other()
    bench.restart()
    with pytest.raises(EngineError, match=r"executors have 0\.0\.1"):
        drained(bench)


def test_g26_what_a_disabled_rule_passes_over_is_counted_by_the_driver(store: SqlStore) -> None:
    bench = Beside(store, 2, "detect: spark", KEYED)
    bench.run()
    store.of("loop").controls.ask("disable", "open")
    bench.feed.commits = 4
    bench.clock.at += 4_000_000
    bench.reports.clear()
    assert {why for _, why in bench.run()} == {"detect: spark"}
    store.of("loop").controls.ask("enable", "open")
    bench.feed.commits = 6
    bench.clock.at += 4_000_000
    assert bench.run()[-1] == ("executors", READ)
