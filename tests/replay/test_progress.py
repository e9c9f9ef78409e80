"""What a long simulation tells on stderr, and what a short one leaves out."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.engine.replay import simulate
from tidegate.engine.replay.simulate import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(to: io.StringIO) -> str:
    with Progress(to) as said:
        said.read(1_000_000)
        said.detected(500_000, 1_000_000)
    return to.getvalue()


@pytest.mark.parametrize("to", [io.StringIO(), Terminal()])
def test_a_short_run_tells_nothing(to: io.StringIO) -> None:
    assert told(to) == ""


def test_a_long_run_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "_PLAIN_SECONDS", (0.0, 0.0))
    assert told(io.StringIO()).splitlines() == [
        "read 1,000,000 lines",
        "detected over 500,000 of 1,000,000 lines (50%)",
    ]


def test_on_a_terminal_nothing_is_left_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "_LIVE_SECONDS", (0.0, 0.0))
    output = told(Terminal())
    assert "\n" not in output
    assert output.endswith("(50%)\r\x1b[K")


def test_a_simulation_does_without_pandas(tmp_path: Path) -> None:
    book, trace = tmp_path / "book.yaml", tmp_path / "trace.jsonl"
    book.write_text("rulebook: b\nevents: {a: {signal: {k: bigint}}}\nrules: {r: {on: a}}\n")
    trace.write_text('{"event": "a", "time": 1, "k": 2}\n')
    script = (
        "import sys\n"
        f"sys.argv = ['tidegate', 'simulate', {str(book)!r}, '--trace', {str(trace)!r}]\n"
        "import tidegate.engine.cli.main\n"
        "try: tidegate.engine.cli.main.main()\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {'pandas', 'pyspark', 'sqlalchemy'} & set(sys.modules)\n"
        "import pyarrow\n"
        "print(len(pyarrow.table({'a': [1]}).to_pandas()))\n"
    )
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    assert told.stdout.splitlines()[-1] == b"1"
