"""Several rulebooks on one store, as far as no Spark is needed: what is refused, and who gets a
signal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import SIGNALS, Tidegate
from tests.support.make import unplaced_by_event
from tidegate.engine.store import open_store

WINDOWS = """\
rulebook: windows
events:
  opened: {signal: {door: bigint, by: string}}
  rung: {signal: {}}
rules: {draught: {on: opened}}
"""


@pytest.fixture
def windows(tmp_path: Path) -> Path:
    file = tmp_path / "windows.yaml"
    file.write_text(WINDOWS)
    return file


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "several rulebooks need one store: --store URL, or TIDEGATE_STORE"),
        (["--store", "STORE", "--standby", "--once"], 2, "it excludes --once"),
        (["--store", "STORE", "--standby", "--lease-wait", "1s"], 2, "it excludes"),
        (["--store", "STORE", "--standby", "--if-held", "skip"], 2, "it excludes"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_done(
    tidegate: Tidegate, doors: Path, windows: Path, words: list[str], code: int, said: str
) -> None:
    store = doors.with_name("store.db")
    given = [f"sqlite:///{store}" if word == "STORE" else word for word in words]
    result = tidegate("run", doors, windows, *given)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in " ".join(result.stderr.replace("│", "").split())
    assert not store.exists()


def test_all_that_is_wrong_in_all_files_is_said_before_anything_is_begun(
    tidegate: Tidegate, doors: Path, windows: Path
) -> None:
    store = doors.with_name("store.db")
    doors.write_text(SIGNALS.replace("opened ; closed", "opened ; closde"))
    windows.write_text(WINDOWS.replace("on: opened", "on: opend"))
    again = doors.with_name("again.yaml")
    again.write_text(SIGNALS)
    twice = doors.with_name("twice.yaml")
    twice.write_text(SIGNALS)
    result = tidegate("run", doors, windows, again, twice, "--store", f"sqlite:///{store}")
    assert result.exit_code == 1
    for said in (
        f"{doors}:7:18: ",
        f"{windows}:5:23: ",
        f"{twice}: rulebook `doors` is given twice: {again}",
    ):
        assert said in result.stderr
    assert not store.exists()


def test_a_rulebook_that_another_engine_runs_is_told_and_may_be_left_to_it(
    tidegate: Tidegate, doors: Path, windows: Path
) -> None:
    url = f"sqlite:///{doors.with_name('store.db')}"
    with open_store(url, create=True) as store:
        for name in ("doors", "windows"):
            store.of(name).lease.acquire("elsewhere/1", 600)
    words = ("run", doors, windows, "--store", url, "--once")
    held = tidegate(*words)
    assert (held.exit_code, held.stdout) == (3, "")
    left = tidegate(*words, "--if-held", "skip")
    assert (left.exit_code, left.stdout, left.stderr) == (0, "", "")


@pytest.fixture
def url(store_url: str, doors: Path, windows: Path) -> str:
    """A store that knows both."""
    with open_store(store_url, create=True) as store:
        for name, file in (("doors", doors), ("windows", windows)):
            store.of(name).versions.register(file.read_text(), str(file))
    return store_url


def unplaced(url: str) -> list[int]:
    with open_store(url, create=False) as store:
        return [sum(unplaced_by_event(store, name).values()) for name in ("doors", "windows")]


def test_g04_a_signal_goes_to_every_rulebook_that_declares_it_or_to_none(
    tidegate: Tidegate, url: str, windows: Path
) -> None:
    both = ("signal", "opened", "door=7", "by=ada", "--store", url)
    first = json.loads(tidegate(*both, "--id", "x", "--json").stdout)
    assert first == {"event": "opened", "id": "x", "inserted": True,
                     "rulebooks": ["doors", "windows"]}  # fmt: skip
    assert unplaced(url) == [1, 1]
    told = tidegate(*both).stdout
    assert "rulebooks: doors, windows\n" in told
    with open_store(url, create=False) as store:
        ids = [store.of(n).signals.unplaced(["opened"], 0, 9).signals[-1].id for n in
               ("doors", "windows")]  # fmt: skip
    assert ids[0] == ids[1] != "x"
    assert ids[0] in told
    one = json.loads(tidegate(*both, "--rulebook", "windows", "--json").stdout)
    assert one["rulebooks"] == ["windows"]
    rung = json.loads(tidegate("signal", "rung", "--store", url, "--json").stdout)
    assert rung["rulebooks"] == ["windows"]
    assert unplaced(url) == [2, 4]
    unknown = tidegate("signal", "opend", "--store", url)
    assert unknown.exit_code == 1
    assert "no rulebook declares a signal `opend` (doors, windows)" in unknown.stderr
    assert "did you mean 'opened'" in unknown.stderr

    windows.write_text(WINDOWS.replace("by: string", "by: bigint"))
    with open_store(url, create=False) as store:
        store.of("windows").versions.register(windows.read_text(), str(windows))
    refused = tidegate(*both)
    assert refused.exit_code == 1
    assert "rulebook windows: field `by` of `opened`" in refused.stderr
    assert "rulebook doors" not in refused.stderr
    fits = tidegate("signal", "opened", "door=7", "by=12", "--store", url, "--id", "y", "--json")
    assert json.loads(fits.stdout)["rulebooks"] == ["doors", "windows"]
    with open_store(url, create=False) as store:
        stored = [store.of(n).signals.unplaced(["opened"], 0, 9).signals[-1] for n in
                  ("doors", "windows")]  # fmt: skip
    assert [signal.fields["by"] for signal in stored] == ["12", 12]
    assert tidegate(*both[:2], "door=8", "by=12", "--store", url, "--id", "y").exit_code == 1
    assert unplaced(url) == [3, 5]
