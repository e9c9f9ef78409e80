"""Where buckets are detected: chosen when they are planned, said, and no matter for what is found
(G26)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.bench import Bench
from tests.support.executors import InProcess
from tests.support.make import BEGIN, SECOND
from tidegate.connectors.http.metrics import Metrics
from tidegate.connectors.http.rulebooks import Source
from tidegate.engine.cli.output import bucket_printer
from tidegate.engine.cli.screens import status_lines
from tidegate.engine.control.status import status_of
from tidegate.engine.core.lifecycle import HAS_ROOM
from tidegate.engine.core.state import BucketReport
from tidegate.engine.core.values import Signal
from tidegate.engine.store import SqlStore, open_store

BOOK = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events:
  row: {on: insert, table: t}
  gone: {on: delete, table: t}
settings: {bucket_rows_max: 2}
rules:
  open: {on: "not(gone)[row, [2 s]]", per: id, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  rows: {on: row ; row}
"""
NOTHING = "nothing of it is for executors (detect: spark; they read t)"
WITHOUT_KEYS = BOOK.replace(", per: id", "")


class Beside(Bench):
    """A bench with executors. `reports`: those of all buckets."""

    def __init__(self, store: SqlStore, commits: int, settings: str, text: str = BOOK) -> None:
        self.executors_beside = InProcess()
        self.reports: list[BucketReport] = []
        super().__init__(store, commits, text.replace("settings: {", f"settings: {{{settings}, "))
        self.clock.at = BEGIN + commits * SECOND

    def run(self) -> list[tuple[str, str]]:
        """By bucket, who detected it and why."""
        found = []
        while (report := self.loop.bucket()) is not None:
            self.reports.append(report)
            found.append((report.detected_by, report.because))
        return found

    @property
    def tasks(self) -> int:
        beside = self.executors_beside
        assert isinstance(beside, InProcess)
        return sum(beside.tasks)


def fired(store: SqlStore) -> list[tuple[str, str, Any]]:
    return sorted(
        (one["rule"], one["firing_id"], one["end"]) for one in store.of("loop").firings.listed()
    )


def drained(bench: Beside) -> list[tuple[str, str]]:
    """All commits, and the timers after them."""
    found = bench.run()
    bench.clock.at += 10 * SECOND
    return found + bench.run()


def test_g26_executors_find_what_the_driver_finds(store: SqlStore, tmp_path: Path) -> None:
    bench = Beside(store, 6, "detect: spark")
    sites = drained(bench)
    assert {*sites} == {("executors", "detect: spark")}
    assert bench.tasks > 0
    found = fired(store)
    assert len([one for one in found if one[0] == "open"]) == 6
    assert store.of("loop").status.shown()["detected"] == {
        "by": "executors",
        "because": "detect: spark",
    }
    with open_store(f"sqlite:///{tmp_path / 'other.db'}", create=True) as other:
        other.of("loop").versions.register(BOOK, None)
        alone = Beside(other, 6, "detect: driver")
        assert {*drained(alone)} == {("driver", "")}
        assert alone.tasks == 0
        assert fired(other) == found
        assert [r.detections for r in alone.reports] == [r.detections for r in bench.reports]


def test_g26_auto_takes_executors_while_more_is_visible_than_the_driver_takes(
    store: SqlStore,
) -> None:
    bench = Beside(store, 9, "detect: auto, driver_rows_max: 4")
    by = [by for by, _ in bench.run()]
    assert by == ["executors", "executors", "executors", "driver", "driver"]
    why = [report.because for report in bench.reports]
    assert why[:2] == ["9 rows are visible, driver_rows_max is 4",
                       "7 rows are visible, driver_rows_max is 4"]  # fmt: skip
    assert why[-1] == "detect: auto, and the driver has room"
    bench.clock.at += 10 * SECOND
    bench.run()
    assert len([one for one in fired(store) if one[0] == "open"]) == 9


def test_g26_auto_takes_executors_while_more_is_carried_than_the_driver_takes(
    store: SqlStore,
) -> None:
    bench = Beside(store, 2, "detect: auto, driver_carried_max: 2")
    assert bench.run() == [("driver", "detect: auto, and the driver has room")]
    bench.feed.commits = 4
    bench.clock.at = BEGIN + 4 * SECOND
    ((by, why),) = bench.run()
    assert (by, why) == ("executors", "3 instances are carried, driver_carried_max is 2")
    bench.restart()
    bench.clock.at += 10 * SECOND
    bench.run()
    assert len([one for one in fired(store) if one[0] == "open"]) == 4


def test_g26_without_a_key_or_executors_it_is_the_driver(store: SqlStore) -> None:
    bench = Beside(store, 2, "detect: spark", WITHOUT_KEYS)
    assert bench.run() == [
        ("driver", "no rule has a `per`, no script a `group`: there is no key to cut by")
    ]
    assert bench.tasks == 0
    bench.executors_beside = None
    bench.write(BOOK.replace("settings: {", "settings: {detect: spark, "))
    bench.restart()
    bench.feed.commits = 4
    bench.clock.at = BEGIN + 4 * SECOND
    assert bench.run() == [("driver", "")]


ASKED = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}}
events: {row: {on: insert, table: t}, asked: {signal: {}}, gone: {signal: {id: bigint}}}
settings: {detect: spark}
rules:
  open: {on: "not(gone)[row, [1 hour]]", per: id}
  heard: {on: asked}
"""


def test_g26_executors_are_given_no_bucket_in_which_nothing_is_theirs(store: SqlStore) -> None:
    """But for the first one of a detector, which looks at all that is carried."""

    def asked(event: str = "asked", **fields: int) -> list[tuple[str, str]]:
        raised = Signal(str(bench.clock.at), event, fields, bench.clock.at)
        store.of("loop").signals.raise_signal(raised)
        bench.clock.at += 10 * SECOND
        return bench.run()

    bench, none = Beside(store, 3, "state_partitions: 4", ASKED), ("driver", NOTHING)
    read = [("executors", "detect: spark; they read t")]
    bench.clock.at += 10 * SECOND
    assert bench.run() == read
    tasks = bench.tasks
    assert asked() == asked() == [none]
    assert bench.tasks == tasks
    assert store.of("loop").status.shown()["detected"] == {"by": "driver", "because": NOTHING}
    assert asked("gone", id=1) == read
    assert bench.tasks > tasks
    bench.restart()
    assert [*asked(), *asked()] == [*read, none]
    bench.feed.commits += 1
    bench.feed.instants[3] = bench.clock.at
    assert asked() == read
    tasks = bench.tasks
    bench.clock.at += 3_600 * SECOND
    assert {*bench.run()} == {*read}
    assert bench.tasks > tasks
    fired_by = Counter(rule for rule, *_ in fired(store))
    assert fired_by == {"open": 3, "heard": 5}


@pytest.mark.parametrize(("settings", "said", "figure"), [
    ("detect: spark", "the last bucket was detected by the executors: detect: spark", 1),
    ("detect: driver", "", 0),
])  # fmt: skip
def test_screen_and_monitor_say_who_detected(
    store: SqlStore, settings: str, said: str, figure: int
) -> None:
    bench = Beside(store, 2, settings)
    bench.run()
    status = {**status_of(store, bench.book), "next_timers": [], "held_back": []}
    told = [line.strip() for line in status_lines(status, 100) if "detected by" in line]
    assert told == ([said] if said else [])
    figures = Metrics(Source(store)).text({"loop": {**status, "stage_seconds": {}}}).decode()
    assert f'tidegate_detected_by_executors{{rulebook="loop"}} {figure}.0' in figures


@pytest.mark.parametrize("as_json", [True, False])
def test_a_buckets_line_says_who_detected_it(
    as_json: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    printed = bucket_printer(as_json=as_json)
    printed("", BucketReport(1, 1, 3, 0, 1, 0, 0, 0, {}, "executors", "detect: spark"))
    printed("", BucketReport(2, 1, 3, 0, 1, 0, 0, 0, {}))
    printed("", BucketReport(3, 1, 3, 0, 1, 0, 0, 0, {}, "driver", HAS_ROOM))
    printed("", BucketReport(4, 1, 3, 0, 1, 0, 0, 0, {}, "driver", NOTHING))
    first, second, third, fourth = capsys.readouterr().out.splitlines()
    if as_json:
        assert '"detected_by":"executors","because":"detect: spark"' in first
        assert '"detected_by":"driver","because":""' in second
        assert f'"detected_by":"driver","because":"{HAS_ROOM}"' in third
        assert f'"detected_by":"driver","because":"{NOTHING}"' in fourth
    else:
        assert first.endswith("detected by executors (detect: spark)")
        assert "detected by" not in second + third
        assert fourth.endswith(f"detected by the driver ({NOTHING})")
