"""Scripts with a group whose keys are stepped in executors (G26): they emit what they emit in the
engine, whoever reads the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.loop.test_apart import COMMITS, READ, executors
from tests.loop.test_site import Beside, drained, fired
from tests.support import memory
from tests.support.executors import InProcess
from tests.support.make import SECOND
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.step import component_task
from tidegate.engine.store import SqlStore, open_store, shelf
from tidegate.rules.errors import EngineError

BOOK = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events:
  row: {on: insert, table: t}
settings: {bucket_rows_max: 2}
scripts:
  counts:
    text: |
      in {long id;} row group(row.id % 3)
      out {long id; long n;} seen, long late
      (row(x) {n = n + 1; !> seen({id: x.id, n: n});} | elapse[4 seconds]() {!> late(n);})*
    out: {$error: fault}
rules:
  each: {on: row, per: id}
  seen_twice: {on: seen ; seen}
  lates: {on: late}
  faults: {on: fault}
"""
SECOND_SCRIPT = """\
  totals:
    text: |
      in {long id; long n;} seen
      out long total
      (seen(x) {all = all + x.n; !> total(all);})*
rules:
  sums: {on: total}
"""
TWO_KEYED = """\
  others:
    text: |
      in {long id;} row group(row.id % 2)
      out {long id; long n;} odd
      (row(x) {n = n + 1; !> odd({id: x.id, n: n});})*
rules:
  odds: {on: odd}
"""
DIVIDING = BOOK.replace("n = n + 1; !> seen({id: x.id, n: n});", "n = 6 / (x.id - 4); !> late(n);")
RUNNING_AWAY = BOOK.replace("n = n + 1;", "n = n + 1; x.id == 4 ? while (true) {n = n + 1;}")
RUNNING_AWAY = RUNNING_AWAY.replace("settings: {", "settings: {script_steps_max: 50, ")
COUNTED = "  counted: {on: seen, per: n}\n"  # what is emitted is seen in the key
NOTHING_KEYED = "no rule and no script can be cut by its key; `tidegate explain` says why"
OF_OBJECTS = "{object id;} row group(row.id)"
WHOLE = {
    "without a group": BOOK.replace(" group(row.id % 3)", ""),
    "with an input of all keys": BOOK.replace(
        "{long id;} row group", "{} all, {long id;} row group"
    ).replace("text: |", "in: {all: row}\n    text: |"),
}


def all_of(store: SqlStore) -> tuple[Any, ...]:
    """What has fired, with the ids and the rows of each; who stands still; what was rejected."""
    ledger = store.of("loop")
    rows = [
        (one["rule"], one["firing_id"], one["end"], str(one["constituents"]))
        for one in ledger.firings.listed()
    ]
    shown = ledger.status.shown()
    stopped = [(one["rule"], one["reason"]) for one in shown["parked_rules"]]
    return sorted(rows), stopped, shown["rejected_rows"]


def by_driver(folder: Path, text: str, commits: int = COMMITS) -> tuple[Any, ...]:
    with open_store(f"sqlite:///{folder / 'other.db'}", create=True) as other:
        other.of("loop").versions.register(text, None)
        drained(Beside(other, commits, "detect: driver", text))
        return all_of(other)


TAKES_RULE = BOOK.replace("{long id;} row group(row", "{long id;} each group(each")
TAKES_RULE = TAKES_RULE.replace("(row(x)", "(each(x)")


@pytest.mark.parametrize("rule", ["", "  alone: {on: row ; row, context: recent, per: id}\n"])
def test_g26_what_a_rule_sees_that_a_script_takes_is_read_by_the_driver(
    store: SqlStore, tmp_path: Path, rule: str
) -> None:
    """Executors detect the rule beside it."""
    text = TAKES_RULE + rule
    bench = Beside(store, COMMITS, "detect: spark", text)
    why = "detect: spark" if rule else NOTHING_KEYED
    assert why in {why for _, why in drained(bench)}
    assert executors(bench).splits == 0
    assert all_of(store) == by_driver(tmp_path, text)
    assert {"each", "seen_twice", "lates"} <= {rule for rule, *_ in fired(store)}


@pytest.mark.parametrize(
    "text",
    [
        *(BOOK + COUNTED, DIVIDING),
        *(BOOK.replace("rules:\n", more, 1) for more in (SECOND_SCRIPT, TWO_KEYED)),
    ],
)
def test_g26_a_script_with_a_group_is_run_by_executors_that_read_its_rows(
    store: SqlStore, tmp_path: Path, text: str
) -> None:
    bench = Beside(store, COMMITS, "detect: spark, spark_rows_max: 5", text)
    assert {*drained(bench)} == {("executors", READ)}
    assert [r.rows for r in bench.reports if r.rows] == [5, 2]
    assert executors(bench).splits == 3 + 1
    assert all_of(store) == by_driver(tmp_path, text)
    late = "lates" if text is not DIVIDING else "faults"
    assert {"each", late} <= {rule for rule, *_ in fired(store)}


def test_g26_equal_rows_of_a_commit_have_the_ids_that_the_driver_gives_them(
    store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of the three are in one split."""
    made = memory.Made

    def doubled(at: int, rows: pa.Table, *others: Any, **more: Any) -> memory.Made:
        return made(at, pa.concat_tables([rows] * 3), *others, **more)

    monkeypatch.setattr(memory, "Made", doubled)
    bench = Beside(store, 3, "detect: spark", BOOK)
    bench.executors_beside = InProcess(split=2)
    bench.restart()
    assert {*drained(bench)} == {("executors", READ)}
    assert executors(bench).splits == 5
    found = all_of(store)
    assert found == by_driver(tmp_path, BOOK, 3)
    assert len({firing_id for _, firing_id, *_ in found[0]}) == len(found[0])


def test_g13_a_script_that_runs_away_in_executors_is_parked_as_by_the_driver(
    store: SqlStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The driver, which knows the order of its keys, reads that bucket, and passes over the rest of
    its rows."""
    bench = Beside(store, COMMITS, "detect: spark", RUNNING_AWAY)
    sites = drained(bench)
    assert {why for _, why in sites} == {"detect: spark"}
    assert "script counts runs away" in caplog.text
    (_, parked, _) = found = all_of(store)
    assert [rule for rule, _ in parked] == ["counts"]
    assert found == by_driver(tmp_path, RUNNING_AWAY)
    (shown,) = store.of("loop").status.shown()["parked_rules"]
    assert shown["passed_over"] == 2


@pytest.mark.parametrize("how", WHOLE)
def test_g26_a_table_that_a_script_takes_without_a_key_is_the_drivers(
    store: SqlStore, tmp_path: Path, how: str
) -> None:
    bench = Beside(store, COMMITS, "detect: spark", WHOLE[how])
    assert READ not in {why for _, why in drained(bench)}
    assert executors(bench).splits == 0
    assert all_of(store) == by_driver(tmp_path, WHOLE[how])


def test_g26_a_script_that_was_disabled_begins_anew_in_executors(
    store: SqlStore, tmp_path: Path
) -> None:
    """What it passes over is counted by the driver."""

    def switched(bench: Beside) -> list[tuple[str, str]]:
        controls, sites = bench.store.of("loop").controls, []
        for commits, word in ((2, "disable"), (4, "enable"), (6, "")):
            bench.feed.commits = commits
            bench.clock.at += 4 * SECOND
            sites.append(bench.run()[-1])
            if word:
                controls.ask(word, "counts")
        return sites

    sites = switched(Beside(store, 2, "detect: spark", BOOK))
    assert sites == [("executors", READ), ("executors", "detect: spark"), ("executors", READ)]
    with open_store(f"sqlite:///{tmp_path / 'other.db'}", create=True) as other:
        other.of("loop").versions.register(BOOK, None)
        switched(Beside(other, 2, "detect: driver", BOOK))
        assert all_of(store) == all_of(other)


def test_g26_a_disabled_script_without_a_group_leaves_a_table_to_executors(
    store: SqlStore,
) -> None:
    idle = "  idle:\n    enabled: false\n    text: in {} row (row())*\nrules:\n"
    bench = Beside(store, COMMITS, "detect: spark", BOOK.replace("rules:\n", idle))
    assert {*drained(bench)} == {("executors", READ)}


def test_g26_rows_that_the_driver_reads_are_counted_in_executors(
    store: SqlStore, tmp_path: Path
) -> None:
    """A rule without a key looks at them, too."""
    text = BOOK.replace("  each: {on: row, per: id}\n", "  rows: {on: row ; row}\n")
    bench = Beside(store, COMMITS, "detect: spark", text)
    assert {*drained(bench)} == {("executors", "detect: spark")}
    assert executors(bench).splits == 0
    assert all_of(store) == by_driver(tmp_path, text)


def test_g26_executors_come_and_go_and_the_keys_of_a_script_with_them(
    store: SqlStore, tmp_path: Path
) -> None:
    """More of them than there are partitions: these are cut before the step, and kept, though it
    touches one key alone."""
    text = BOOK + COUNTED
    bench = Beside(store, COMMITS, "detect: spark, spark_rows_max: 1", text)
    for slots in (1, 2, 16, 3, 64):
        executors(bench).slots = slots
        assert bench.loop.bucket() is not None
        bench.restart()
    drained(bench)
    assert all_of(store) == by_driver(tmp_path, text)


def test_g26_many_rows_that_executors_read_for_a_script_are_cut_into_many_tasks(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker holds two of them here."""
    monkeypatch.setattr(component_task, "WORKER_ROWS", 2)
    text = BOOK.replace("  each: {on: row, per: id}\n", "")
    bench = Beside(store, 16, "detect: spark", text)
    assert bench.run() == [("executors", READ)]
    assert executors(bench).tasks == [8]


def test_g26_a_key_that_expires_is_carried_no_more(store: SqlStore) -> None:
    """Its last timer is due in the bucket that drops it; nor does the store have it."""

    def keys() -> int:
        return Parts.of(bench.loop.state.carried.tables).scripts(only=True).instances

    text = BOOK.replace("    out: {", "    expire_key_after: 1 minute\n    out: {")
    text = text.replace(" | elapse", " elapse")
    bench = Beside(store, COMMITS, "detect: spark", text)
    bench.run()
    assert keys() == 3
    bench.clock.at += 3_600 * SECOND
    bench.run()
    bench.restart()
    assert keys() == 0


class OfAnotherMachine(InProcess):
    """From the second job on, they do not see what is in a folder; or nobody sees what they write
    there."""

    def __init__(self, folder: Path, *, writes: bool) -> None:
        super().__init__()
        self.folder, self.writes = folder, writes

    def map_rows(self, *given: Any) -> Any:
        if not self.folder.exists():
            made = super().map_rows(*given)
            if self.writes:
                self.folder.rename(self.folder.with_name("away"))
            return made
        away = self.folder.rename(self.folder.with_name("away"))
        try:
            return super().map_rows(*given)
        finally:
            away.rename(self.folder)


@pytest.mark.parametrize(("writes", "said"), [
    (False, "the engine reads it, but in an executor: state file"),
    (True, "and the engine does not see it"),
])  # fmt: skip
def test_g26_what_a_script_carries_in_files_is_seen_by_all(
    store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: bool, said: str
) -> None:
    monkeypatch.setattr(shelf, "BYTES_MIN", 1)
    text, folder = BOOK.replace("  each: {on: row, per: id}\n", ""), tmp_path / "state"
    bench = Beside(store, 0, f"detect: spark, state_path: {folder}, spark_rows_max: 2", text)
    bench.executors_beside = OfAnotherMachine(folder, writes=writes)
    bench.restart()
    bench.feed.commits = COMMITS
    bench.clock.at += COMMITS * SECOND
    with pytest.raises(EngineError, match=said) as error:
        drained(bench)
    assert error.value.code == "state-apart"
    assert len(bench.reports) == (0 if writes else 1)


def test_g26_a_bucket_with_more_emissions_than_the_driver_takes_ends_earlier(
    store: SqlStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    text = BOOK.replace("  each: {on: row, per: id}\n", "")
    bench = Beside(store, COMMITS, "detect: spark, driver_rows_max: 4", text)
    drained(bench)
    assert [r.rows for r in bench.reports if r.rows] == [2, 2, 2, 1]
    assert "detections, and the driver takes 4 (driver_rows_max)" in caplog.text
    assert all_of(store) == by_driver(tmp_path, text)


def test_a_script_may_be_grouped_by_an_object(store: SqlStore, tmp_path: Path) -> None:
    """Rules see such a key as text; a fault is stored with it."""
    text = DIVIDING.replace("{long id;} row group(row.id % 3)", OF_OBJECTS)
    text = text.replace("{on: late}", "{on: late, per: id}").replace("6 / (x.id - 4)", "6 / n")
    text = text.replace("out: {$error: fault}", "on_error: log").replace(
        "  faults: {on: fault}\n", ""
    )
    bench = Beside(store, COMMITS, "detect: spark", text)
    assert {*drained(bench)} == {("executors", READ)}
    found = all_of(store)
    assert found == by_driver(tmp_path, text)
    rejected = store.of("loop").rejections.newest(9, whole=True)
    assert sorted(row["fields"]["id"] for row in rejected) == [*range(COMMITS)]
