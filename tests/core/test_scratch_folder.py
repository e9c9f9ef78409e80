"""Folders of processes that were killed are removed by the next; those of others never."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tidegate.engine.core.scratch_folder import LOCK, PREFIX, scratch_folder

HOLDS = """
from tidegate.engine.core.scratch_folder import scratch_folder
with scratch_folder() as folder:
    (folder / "rows").write_text("x")
    print(folder, flush=True)
    input()
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def started(here: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS],
        env={**os.environ, "TMPDIR": str(here)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_is_removed_and_what_one_holds_is_not(here: Path) -> None:
    killed, left = started(here)
    lives, held = started(here)
    assert (left.parent, held.parent) == (here, here)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert (left / "rows").exists()
    with scratch_folder() as own:
        assert {left.exists(), held.exists(), own.exists()} == {False, True}
        assert not left.exists()
        with scratch_folder() as another:
            assert own.exists(), "a process does not take its own away"
            assert another != own
    assert (held / "rows").exists()
    lives.communicate("\n")
    assert [*here.iterdir()] == []


def test_folders_without_a_lock_of_ours_are_left_alone(here: Path) -> None:
    for name, lock in ((f"{PREFIX}old", False), ("other", True), (f"{PREFIX}draft", False)):
        (here / name).mkdir()
        if lock:
            (here / name / LOCK).touch()
    (here / f"{PREFIX}draft" / f"{LOCK}.new").touch()
    (here / "kept").mkdir()
    (here / "kept" / LOCK).touch()
    (here / f"{PREFIX}link").symlink_to(here / "kept")
    (here / f"{PREFIX}linked").mkdir()
    (here / f"{PREFIX}linked" / LOCK).symlink_to(here / "kept" / LOCK)
    (here / f"{PREFIX}file").touch()
    before = {*here.iterdir()}
    with scratch_folder() as own:
        assert {*here.iterdir()} == {*before, own}
    assert {*here.iterdir()} == before
    assert (here / "kept" / LOCK).exists()


def test_a_folder_is_made_where_nothing_can_be_locked(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", refused)
    with scratch_folder() as own, scratch_folder():
        assert own.exists()
        assert not (own / LOCK).exists()
    assert [*here.iterdir()] == []
