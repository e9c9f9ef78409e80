"""`tidegate status` on a screen, in each state of an engine."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import SIGNALS, Tidegate
from tests.support import make
from tidegate.engine.cli import screens
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.store import SqlStore, open_store

NAME, HOLDER = "doors", "one/7/x"
BUCKET = (
    "  bucket 1, everything up to 2026-03-02 10:00:00, 2 fired, 0 rejected, 0 signals waiting\n"
    "  store of 1 MB; times are in UTC"
)
RULES = """\

rule    state            last fired  fired  if failed  damped  dead  open
passed  active  2026-03-02 09:02:00      2          0       0     0     0

`tidegate firings` lists what fired; `tidegate why ID` tells why"""
ALL = """\
rulebook  state        behind  fired  if failed  damped  dead  parked
doors     idle            0 s      2          0       0     0       0
gates     starting  not known      0          0       0     0       0

doors: idle (process 7 on one)
gates: starting: starting Spark (process 7 on one)

store of 1 MB; `tidegate status --rulebook NAME` says all of one"""

REMOTE = SIGNALS.replace(
    "events:",
    "tables: {far: {path: 's3://bucket/far'}}\nevents:\n  row: {on: insert, table: far}",
)


@pytest.fixture
def url(tmp_path: Path, empty_store: Path) -> str:
    return f"sqlite:///{shutil.copy(empty_store, tmp_path / 'doors.db')}"


@pytest.fixture
def store(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlStore]:
    """With a bucket in which rule `passed` fired twice."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(screens, "bytes_text", lambda _: "1 MB")
    with open_store(url, create=False) as store:
        store.of(NAME).versions.register(SIGNALS, None)
        plan = make.plan(rulebook=NAME, activations={"passed": make.BEGIN})
        epoch = store.of(NAME).lease.acquire(HOLDER, 60)
        make.commit(store, epoch, plan, fired=[make.firings("passed")], digests={"passed": "d"})
        yield store


def ago(minutes: int) -> int:
    return time.time_ns() // 1000 - minutes * 60_000_000


@pytest.mark.parametrize(
    ("activity", "first"),
    [
        (Activity("starting", "starting Spark"), "starting: starting Spark"),
        (Activity("starting", "checking tables and SQL"), "starting: checking tables and SQL"),
        (
            Activity("catching up", commits=214, signals=1),
            "catching up: 214 commits, 1 signal, the oldest of 24 min ago",
        ),
        (Activity("catching up"), "catching up: what was due"),
        (
            Activity("catching up", "asking conditions, 3 of 12", losing_since=make.BEGIN),
            "catching up: what was due; losing ground since 2026-03-02 09:00:00; asking\n"
            "  conditions, 3 of 12",
        ),
        (Activity("idle"), "idle"),
        (
            Activity("waiting", "entry 3 of rule passed, to be tried again"),
            "waiting for entry 3 of rule passed, to be tried again",
        ),
        (Activity("idle").ending(), "stopping"),
        (
            Activity("catching up").ending("asking conditions, 12 of 200"),
            "stopping: asking conditions, 12 of 200",
        ),
    ],
)
def test_status_says_first_what_the_engine_does(
    tidegate: Tidegate, store: SqlStore, url: str, activity: Activity, first: str
) -> None:
    store.of(NAME, 1).lease.say(replace(activity, oldest=ago(24) if activity.commits else None))
    said = f"rulebook doors: {first} (process 7 on one)\n{BUCKET}\n{RULES}\n"
    assert tidegate("status", "--store", url).stdout == said


def test_an_idle_engine_has_seen_everything_up_to_its_last_look(
    tidegate: Tidegate, store: SqlStore, url: str
) -> None:
    seen = make.BEGIN + 24 * make.HOUR
    store.of(NAME, 1).lease.say(Activity("idle", looked_at=seen, seen_until=seen))
    lines = tidegate("status", "--store", url).stdout.splitlines()
    assert "\n".join(lines[1:3]) == BUCKET.replace("03-02 10:00", "03-03 09:00")


def test_an_engine_that_has_stopped_says_so_whatever_it_did_last(
    tidegate: Tidegate, store: SqlStore, url: str
) -> None:
    store.of(NAME, 1).lease.say(Activity("waiting", "nothing"))
    store.of(NAME, 1).lease.release()
    said = f"stopped (not running); `tidegate run` goes on\n{BUCKET}\n{RULES}\n"
    assert tidegate("status", "--store", url).stdout == f"rulebook doors: {said}"


def test_several_rulebooks_are_an_overview(tidegate: Tidegate, store: SqlStore, url: str) -> None:
    store.of(NAME, 1).lease.say(Activity("idle"))
    store.of("gates").versions.register(REMOTE.replace("rulebook: doors", "rulebook: gates"), None)
    epoch = store.of("gates").lease.acquire(HOLDER, 60)
    store.of("gates", epoch).lease.say(Activity("starting", "starting Spark"))
    assert tidegate("status", "--store", url).stdout.rstrip("\n") == ALL
    one = tidegate("status", "--store", url, "--rulebook", NAME).stdout
    assert one == f"rulebook doors: idle (process 7 on one)\n{BUCKET}\n{RULES}\n"
    assert len(tidegate("status", "--store", url, "--json").stdout.splitlines()) == 2


def test_what_was_not_taken_is_known_after_a_kill_and_not_before_a_first_look(
    tidegate: Tidegate, store: SqlStore, url: str
) -> None:
    """Of a table that this machine cannot see."""
    store.of(NAME).versions.register(REMOTE, None)

    def lines(state: str) -> list[str]:
        found = tidegate("status", "--store", url).stdout.splitlines()
        assert found[0].startswith(f"rulebook doors: {state}")
        return found

    def lag() -> tuple[object, ...]:
        found = json.loads(tidegate("status", "--store", url, "--json").stdout)
        return tuple(found["lag"][name] for name in ("commits", "seconds", "as_of"))

    assert lines("starting")[1] == "  behind: not known yet"
    assert lag() == (None, None, None)
    looked = make.BEGIN + make.HOUR
    behind = Activity("catching up", commits=214, oldest=ago(24), looked_at=looked)
    store.of(NAME, 1).lease.say(behind)
    assert "behind" not in lines("catching up: 214 commits")[1]
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file, file:
        file.execute("UPDATE leases SET expires_at = 1")  # it was killed, and its lease ran out
    said = "  behind: 214 commits, the oldest of 24 min ago, as of 2026-03-02 10:00:00"
    assert said in lines("stopped: its process ended without notice")
    assert lag()[::2] == (214, "2026-03-02T10:00:00Z")
    epoch = store.of(NAME).lease.acquire(HOLDER, 60)  # another one starts
    store.of(NAME, epoch).lease.say(Activity("starting", "starting Spark"))
    assert lines("starting: starting Spark")[1] == said
    store.of(NAME, epoch).lease.say(Activity("idle", looked_at=looked + make.HOUR))
    assert lag() == (0, 0.0, "2026-03-02T11:00:00Z")


def test_a_rulebook_that_has_never_been_looked_at_says_so(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    with open_store(f"sqlite:///{tmp_path}/new.db", create=True) as store:
        store.of(NAME).versions.register(REMOTE, None)
        epoch = store.of(NAME).lease.acquire(HOLDER, 60)
        store.of(NAME, epoch).lease.say(Activity("starting", "taking its first bucket"))
        said = tidegate("status", "--store", f"sqlite:///{tmp_path}/new.db").stdout.splitlines()
    assert said[:3] == [
        "rulebook doors: starting: taking its first bucket (process 7 on one)",
        "  behind: not known yet",
        "  bucket 0, nothing seen yet, 0 fired, 0 rejected, 0 signals waiting",
    ]
