"""`tidegate simulate` over 10M lines with a rule per account: lines a second, peak memory.

One core: what counts is the CPU time of the process, its start and its compiled loops included.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.figure import Figure, rulebook

LINES = 10_000_000
PART = 100_000  # the peak of a process counts what its parent held when it was started
ACCOUNTS = 10_000
LINES_PER_SECOND_MIN = 300_000
PEAK_MB_MAX = 1024

_RULES = """events:
  deposit: {signal: {account_id: bigint, amount: "decimal(12,2)"}}
  withdrawal: {signal: {account_id: bigint, amount: "decimal(12,2)"}}
rules:
  in_and_out: {on: deposit ; withdrawal within 1 min, per: account_id}
"""


def write_trace(path: Path) -> None:
    """A deposit or, twice as often, a withdrawal each 10 ms or so, in order of time."""
    random = np.random.default_rng(7)
    time = 1_700_000_000_000_000
    with path.open("wb") as file:
        for _ in range(LINES // PART):
            micros = time + np.cumsum(random.integers(0, 20_000, PART))
            time = int(micros[-1])
            kind = pa.array(["deposit", "withdrawal", "withdrawal"])
            lines = pc.binary_join_element_wise(
                '{"event": "',
                kind.take(pa.array(random.integers(0, 3, PART))),
                '", "time": ',
                _decimal(micros, 6),
                ', "account_id": ',
                pa.array(random.integers(0, ACCOUNTS, PART)).cast(pa.string()),
                ', "amount": ',
                _decimal(random.integers(0, 1_000_00, PART), 2),
                "}\n",
                "",
            )
            file.write("".join(lines.to_pylist()).encode())


def _decimal(values: np.ndarray, scale: int) -> pa.Array:
    whole, rest = np.divmod(values, 10**scale)
    fraction = pc.utf8_lpad(pa.array(rest).cast(pa.string()), scale, "0")
    return pc.binary_join_element_wise(pa.array(whole).cast(pa.string()), fraction, ".")


def run(folder: Path) -> list[Figure]:
    """The command in a process of its own; `/dev/null` takes the detections."""
    book, trace = rulebook(folder, "bank", _RULES), folder / "trace.jsonl"
    write_trace(trace)
    command = [sys.executable, "-m", "tidegate", "simulate", str(book), "--trace", str(trace)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"simulate ended with {process.returncode}")
    unit = 1024 if sys.platform == "linux" else 1024 * 1024  # KiB there, bytes on macOS
    seconds, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / unit
    speed = LINES / seconds
    return [
        Figure(
            "simulate: CPU seconds a line, of 1/300,000",
            LINES_PER_SECOND_MIN / speed,
            1.0,
            {"lines_per_second": speed, "cpu_seconds": seconds, "lines": LINES},
        ),
        Figure("simulate: peak of 1 GB, 10M lines", peak / PEAK_MB_MAX, 1.0, {"peak_mb": peak}),
    ]
