"""`on: transaction` sees the commits that change rows, `on: commit` all but the seals of engines
(G10, S10)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from tests.support.bench import Bench
from tests.support.make import BEGIN, SECOND
from tidegate.engine.store import SqlStore

COMMITS = 8
QUIET, SEALS = (1, 4, 5), (2, 7)
CHANGED = [0, 3, 6]
SEEN = [0, 1, 3, 4, 5, 6]
BOOK = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events:
  row: {on: insert, table: t}
  load: {on: transaction, table: t}
  landed: {on: commit, table: t}
  quiet: {on: commit, table: t, where: not changes_rows}
rules:
  loads: {on: load}
  lands: {on: landed}
  begun: {on: begin_of landed}
  stills: {on: begin_of quiet or end_of quiet}
  gate: {on: "A*(begin_of landed, row, end_of landed)"}
  others: {on: landed, ignore_own: true}
"""


class Quiet(Bench):
    """A table some of whose commits change no row."""

    def __init__(self, store: SqlStore, commits: int = 0, text: str = BOOK) -> None:
        super().__init__(store, 0, text)
        self.feed.quiet, self.feed.seals = QUIET.__contains__, SEALS.__contains__
        self.feed.commits = commits

    def found(self) -> dict[str, list[Any]]:
        """By rule, the times of what it fired for: seconds since the first commit."""
        found: dict[str, list[Any]] = {}
        for fired in self.store.of("loop").firings.listed():
            times = [seconds(each["time"]) for each in fired["constituents"]]
            found.setdefault(fired["rule"], []).append(times)
        return {rule: sorted(times) for rule, times in found.items()}


def seconds(time: str) -> float:
    return round(datetime.fromisoformat(time).timestamp() - BEGIN / SECOND, 6)


def ends(versions: Collection[float], edge: int = 1) -> list[list[float]]:
    return [[round(version + edge / SECOND, 6)] for version in versions]


EXPECTED = {
    "loads": ends(CHANGED),
    "lands": ends(SEEN),
    "begun": ends(SEEN, -1),
    "stills": sorted([*ends(QUIET, -1), *ends(QUIET)]),
    "gate": sorted([*([] for _ in QUIET), *ends(CHANGED, 0)]),
    "others": ends([v for v in SEEN if v not in (3, 4)]),
}


@pytest.mark.parametrize("at_once", [COMMITS, 1])
@pytest.mark.parametrize("rows_max", [1_000_000, 1])
def test_g10_a_commit_is_seen_whether_it_changes_rows_or_not(
    store: SqlStore, at_once: int, rows_max: int
) -> None:
    """Once, however the log is cut into buckets, and whichever process takes them."""
    bench = Quiet(store, text=f"{BOOK}settings: {{bucket_rows_max: {rows_max}}}\n")
    bench.feed.writers = dict.fromkeys((3, 4), ("loop", "others"))
    buckets = 0
    for commits in range(at_once, COMMITS + 1, at_once):
        bench.feed.commits = commits
        bench.clock.at = BEGIN + commits * SECOND - SECOND // 2
        buckets += len(bench.drain())
        bench.restart()
    assert bench.found() == EXPECTED
    assert buckets == (1 if at_once == COMMITS and rows_max > 1 else COMMITS)


def test_g01_a_commit_without_rows_that_comes_late_is_moved_as_any(store: SqlStore) -> None:
    bench = Quiet(store, commits=4)
    bench.drain()
    bench.feed.commits = 6
    bench.drain()
    moved = store.of("loop").status.shown()["moved"]
    assert [one["version"] for one in moved] == [4, 5]
    assert bench.found()["lands"][-2:] == ends([seconds(one["to"]) for one in moved])


def test_g16_what_a_commit_of_an_action_causes_is_deeper_than_that(store: SqlStore) -> None:
    bench = Quiet(store)
    bench.feed.commits, bench.feed.depths = COMMITS, {3: 4, 4: 2}
    bench.drain()
    found = [
        each for each in store.of("loop").firings.listed() if each["rule"] in ("lands", "begun")
    ]
    depths = dict.fromkeys(SEEN, 1) | {3: 5, 4: 3}
    assert sorted(each["depth"] for each in found) == sorted([*depths.values()] * 2)


@pytest.mark.parametrize("on", ["landed", "begin_of landed", "begin_of landed or landed"])
def test_g25_a_commit_on_which_where_raises_is_rejected_whichever_edge_is_asked_for(
    store: SqlStore, on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = "where: 1 / (version - 3) > -2"
    text = f"{BOOK.partition('events:')[0]}events: {{landed: {{on: commit, table: t, {where}}}}}\n"
    bench = Quiet(store, text=f"{text}rules: {{one: {{on: {on}}}}}\n")
    bench.feed.commits = COMMITS

    def decide(rows: pa.Table, where: Mapping[str, str], _: str) -> pa.Table:
        (name,) = where
        return pa.table({name: [None if v == 3 else v > 3 for v in rows["version"].to_pylist()]})

    monkeypatch.setattr(bench.feed, "decide", decide)
    bench.drain()
    (wrong,) = store.of("loop").rejections.newest(10, whole=True)
    assert (wrong["event"], wrong["source"], wrong["fields"]["version"]) == ("landed", "t@3", 3)


def test_an_engine_is_idle_behind_commits_without_rows(store: SqlStore) -> None:
    """They are taken, and the cursor moves, whether a rule sees them or not."""
    for number, on in enumerate(("landed", "row")):
        text = f"{BOOK.partition('rules:')[0]}rules: {{one: {{on: {on}}}}}\n"
        bench = Quiet(store, commits=6, text=text.replace("loop", f"loop{number}"))
        assert len(bench.drain()) == 1
        assert bench.drain() == []
        (table,) = store.of(f"loop{number}").status.shown()["tables"]
        assert table["version"] == 5
