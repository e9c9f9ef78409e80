"""Commits as lines of a trace: `on: transaction` has none that changes no row (G10)."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tidegate.engine.replay.simulate import simulate
from tidegate.rules.errors import InputError

BOOK = """
rulebook: loads
tables: {t: {path: /t}}
events:
  load: {on: transaction, table: t}
  landed: {on: commit, table: t}
rules:
  loaded: {on: load}
  drift: {on: landed}
  begun: {on: begin_of landed ; load}
"""


def simulated(folder: Path, *lines: str) -> list[tuple[str, float, float]]:
    (folder / "book.yaml").write_text(BOOK)
    (folder / "day.jsonl").write_text("\n".join(f"{{{line}}}" for line in lines))
    out = io.BytesIO()
    simulate(folder / "book.yaml", folder / "day.jsonl", out=out)
    found = map(json.loads, out.getvalue().decode().splitlines())
    return [(each["rule"], each["start"], each["end"]) for each in found]


def test_s10_a_commit_without_rows_is_a_line_of_its_own_kind(tmp_path: Path) -> None:
    found = simulated(
        tmp_path,
        '"event": "landed", "time": 1, "operation": "ADD COLUMNS", "changes_rows": false',
        '"event": "load", "time": 2, "operation": "WRITE"',
        '"event": "load", "time": 3, "operation": "MERGE", "changes_rows": true',
    )
    assert found == [
        ("drift", 1.000001, 1.000001),
        ("begun", 0.999999, 2.000001),
        ("loaded", 2.000001, 2.000001),
        ("begun", 0.999999, 3.000001),
        ("loaded", 3.000001, 3.000001),
    ]


@pytest.mark.parametrize(
    ("said", "what"),
    [('"operation": "OPTIMIZE"', "OPTIMIZE"), ('"changes_rows": false', "such a commit")],
)
def test_g10_a_line_of_a_transaction_that_changes_no_row_is_refused(
    tmp_path: Path, said: str, what: str
) -> None:
    fine = '"event": "load", "time": 1, "operation": "WRITE"'
    with pytest.raises(InputError) as caught:
        simulated(tmp_path, fine, f'"event": "load", "time": 2, {said}')
    (problem,) = caught.value.problems
    assert (problem.place.line, problem.message, problem.hint) == (
        2,
        f"load is on: transaction, and {what} changes no row",
        "declare it on: commit",
    )
