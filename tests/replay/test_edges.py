"""The beginning, the end and the failure of a rule's action are lines of a trace."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pytest

from tidegate import detect
from tidegate.engine.replay.simulate import simulate
from tidegate.rules.errors import InputError

BOOK = """
rulebook: bank
tables: {t: {path: /t, key: [account]}}
events:
  asked: {signal: {account: bigint}}
  moved: {on: update, table: t}
rules:
  transfer: {on: asked ; moved, per: account, do: [{signal: {asked: {account: account}}}]}
  slow: {on: "not(end_of transfer)[begin_of transfer, [5 s]]", per: account}
  lost: {on: "A*(begin_of transfer, failed(transfer) or moved, transfer)", context: chronicle}
"""
TRACE = [
    ("begin_of transfer", 1, 7),
    ("failed transfer", 2, 7),
    ("begin_of transfer", 3, 8),
    ("end_of transfer", 8, 8),
    ("asked", 9, 7),
    ("moved", 10, 7),
]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    file = tmp_path / "bank.yaml"
    file.write_text(BOOK)
    return file


def simulated(book: Path, trace: list[tuple[str, int, int]], bucket: int | None) -> list[str]:
    lines = [{"event": e, "time": t, "account": k} for e, t, k in trace]
    book.with_suffix(".jsonl").write_text("\n".join(map(json.dumps, lines)))
    out = io.BytesIO()
    simulate(book, book.with_suffix(".jsonl"), bucket=bucket, out=out, tell=lambda _: None)
    return out.getvalue().decode().splitlines()


@pytest.mark.parametrize("bucket", [None, 1, 2])
def test_s10_the_edges_of_an_action_are_lines_of_a_trace(book: Path, bucket: int | None) -> None:
    found = [json.loads(line) for line in simulated(book, TRACE, bucket)]
    inside = [[(c["event"], c["time"]) for c in each["constituents"]] for each in found]
    assert [(each["rule"], each["key"], each["start"], each["end"]) for each in found] == [
        ("slow", {"account": 7}, 1, 6),
        ("lost", {}, 1, 10),
        ("transfer", {"account": 7}, 9, 10),
    ]
    assert inside == [
        [("begin_of transfer", 1)],
        [("failed transfer", 2), ("moved", 10)],
        [("asked", 9), ("moved", 10)],
    ]


def test_s10_detect_takes_the_edges_of_an_action_as_occurrences(book: Path) -> None:
    event, time, account = zip(*TRACE, strict=True)
    columns = {"event": event, "time": [t * 1_000_000 for t in time], "account": account}
    found = detect(book, pa.table(columns))
    assert found.column("rule").to_pylist() == ["slow", "lost", "transfer"]
    assert found.column("constituents").to_pylist() == [[0], [1, 5], [4, 5]]


def test_s10_only_an_action_has_edges(book: Path) -> None:
    for event, hint in (("end_of slow", "end_of transfer"), ("begin_of moved", "begin_of tr")):
        with pytest.raises(InputError, match=f"unknown event '{event}'\n.*{hint}"):
            simulated(book, [(event, 1, 7)], None)
