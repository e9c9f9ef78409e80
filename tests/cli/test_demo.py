"""The demo: what it shows of a firing, how it ends, and the whole of it as a newcomer sees it."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tidegate.engine.cli.demo import demo
from tidegate.engine.cli.demo.process import OtherProcess
from tidegate.engine.cli.demo.screen import Screen
from tidegate.rules.errors import EngineError

ROOT = Path(__file__).parents[2]


def test_a_firing_is_shown_with_its_rule_key_rows_and_action() -> None:
    out = StringIO()
    Screen(Console(file=out, width=100)).firing(
        {
            "rule": "in_and_out",
            "key": {"account_id": 10},
            "condition": "held",
            "constituents": [
                {"event": "large_deposit", "time": 1, "amount": 5000, "kind": None},
                {"event": "withdrawal", "time": 2, "amount": 4800},
            ],
            "entries": [{"number": 3, "state": "done"}],
        }
    )
    assert out.getvalue().splitlines() == [
        "  in_and_out fired for account_id 10",
        "    large_deposit: amount 5000",
        "    withdrawal: amount 4800",
        "    action 3: done",
    ]


def test_a_firing_whose_condition_failed_says_so() -> None:
    out = StringIO()
    Screen(Console(file=out, width=100)).firing(
        {"rule": "r", "key": {}, "condition": "failed", "constituents": [], "entries": []}
    )
    assert out.getvalue() == "  r was detected, its condition failed\n"


def test_a_folder_in_use_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(EngineError, match="is not empty"):
        demo(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


def test_an_other_process_that_dies_is_reported_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://nowhere")
    with OtherProcess(tmp_path) as other, pytest.raises(EngineError) as caught:
        other.wait_ready()
    assert caught.value.code == "demo-writer"
    assert "Spark Connect is refused" in caught.value.hint


ENDED = """
import os, signal, sys, tempfile
from contextlib import contextmanager
from pathlib import Path
from tidegate.engine.cli import demo

@contextmanager
def other(folder):
    try:
        yield
    finally:  # ends while Spark does: Ctrl-C once more, and what is said and raised on the way out
        os.kill(os.getpid(), signal.{name})
        import logging
        logging.getLogger("py4j").error("Error while sending or receiving")
        raise ConnectionError("Spark is gone")

def show(folder, *_, **__):
    with other(folder):
        os.kill(os.getpid(), signal.{name})
        signal.pause()

demo._show = show
from tidegate.engine.cli.main import main
main(["demo"])
"""


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_demo_that_is_ended_says_so_in_one_line(tmp_path: Path, name: str, code: int) -> None:
    run = subprocess.run(
        [sys.executable, "-c", ENDED.replace("{name}", name)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    said = "the demo was ended: its folder is removed\n"
    assert (run.returncode, run.stdout, run.stderr) == (code, "", said)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.long
def test_the_whole_demo_explains_itself_and_leaves_nothing_behind(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tidegate", "demo"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert run.returncode == 0, run.stderr
    for fired in ("in_and_out", "owner_told", "takeover", "overdraft", "closed_with_money"):
        assert f"{fired} fired" in run.stdout
    assert "balance 40.00 -> -30.00" in run.stdout
    assert [file.name for file in tmp_path.iterdir() if "tidegate-demo" in file.name] == []
