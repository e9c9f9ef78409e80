"""`tidegate status` on a screen, in each state of an engine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import SIGNALS, Tidegate
from tests.support import make
from tidegate.engine.cli import status_screen
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.store import SqlStore, open_store

NAME, HOLDER = "doors", "one/7/x"
BUCKET = (
    "  bucket 1, everything up to 2026-03-02 10:00:00 UTC, 2 fired, 0 rejected, 0 signals waiting\n"
    "  store of 1 MB"
)
RULES = """\

rule      state            last fired  fired  failed  damped  dead  open
passed    active  2026-03-02 09:02:00      2       0       0     0     0"""
ALL = """\
rulebook  state     behind  fired  failed  damped  dead  parked
doors     idle         0 s      2       0       0     0       0
gates     starting     0 s      0       0       0     0       0

doors: idle (process 7 on one)
gates: starting: starting Spark (process 7 on one)

store of 1 MB; `tidegate status --rulebook NAME` says all of one"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'doors.db'}"


@pytest.fixture
def store(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlStore]:
    """With a bucket in which rule `passed` fired twice."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(status_screen, "bytes_text", lambda _: "1 MB")
    with open_store(url, create=True) as store:
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
    store.of("gates").versions.register(SIGNALS.replace("rulebook: doors", "rulebook: gates"), None)
    epoch = store.of("gates").lease.acquire(HOLDER, 60)
    store.of("gates", epoch).lease.say(Activity("starting", "starting Spark"))
    assert tidegate("status", "--store", url).stdout.rstrip("\n") == ALL
    one = tidegate("status", "--store", url, "--rulebook", NAME).stdout
    assert one == f"rulebook doors: idle (process 7 on one)\n{BUCKET}\n{RULES}\n"
    assert len(tidegate("status", "--store", url, "--json").stdout.splitlines()) == 2
