"""What the page for users of other tools says of its rules is what they do."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT, blocks
from tidegate.engine.replay.simulate import simulate

BOOKS = [text for place, text in blocks("yaml") if place.startswith("peers")]
START = datetime(2026, 3, 2, 9)
Row = tuple[str, float, dict[str, Any]]  # a table, minutes from START, what is inserted


def _ansible() -> tuple[list[Row], list[tuple[str, float]]]:
    kinds = [("down", 0), ("unreachable", 0.1), ("alert", 1), ("error", 2), ("error", 4)]
    kinds += [("alert", 10), ("ack", 14), ("error", 20), ("down", 30), ("unreachable", 31)]
    rows: list[Row] = [("messages", at, {"kind": kind, "host": "a"}) for kind, at in kinds]
    return rows, [("both", 0.1), ("once", 2), ("unacknowledged", 6), ("once", 20)]


def _flink() -> tuple[list[Row], list[tuple[str, float]]]:
    moved = [("deposit", 0, 100.0), ("refused", 1, 0.0), ("withdraw", 2, 95.0)]
    moved += [("refused", 3, 0.0), ("refused", 4, 0.0), ("refused", 5, 0.0)]
    moved += [("deposit", 20, 100.0), ("check", 21, 0.0), ("withdraw", 22, 80.0)]
    rows: list[Row] = [
        ("movements", at, {"kind": kind, "account": 7, "amount": amount})
        for kind, at, amount in moved
    ]
    return rows, [("nearly_all", 2), ("unchecked", 2), ("three_refused", 4)]


def _esper() -> tuple[list[Row], list[tuple[str, float]]]:
    came = [("deposit", 0, 0.0), ("deposit", 1, 0.0), ("withdraw", 2, 0.0), ("withdraw", 3, 0.0)]
    came += [("placed", 5, 0.0), ("reading", 10, 85.0), ("reading", 10.5, 90.0)]
    came += [("reading", 12, 60.0), ("reading", 14, 90.0)]
    rows: list[Row] = [
        ("log", at, {"kind": kind, "id": 7, "celsius": celsius}) for kind, at, celsius in came
    ]
    fires = [("in_and_out", 2.0), ("in_and_out", 2.0), ("hot", 10.0), ("hot", 14.0)]
    return rows, [*fires, ("unpaid", 5 + 24 * 60.0)]


def _databricks() -> tuple[list[Row], list[tuple[str, float]]]:
    rows: list[Row] = [("logins", n / 10, {"ok": n % 2 == 0}) for n in range(44)]
    rows += [("loads", 0, {"n": 1}), ("loads", 50, {"n": 2})]
    rows += [("orders", 24 * 60.0 + n, {"order_id": n}) for n in range(99)]
    return rows, [("many", 4.1), ("late", 110.0), ("few", 33 * 60.0)]


def _prometheus() -> tuple[list[Row], list[tuple[str, float]]]:
    rows: list[Row] = [("readings", at, {"sensor": 7, "celsius": 90.0}) for at in (0, 5, 9)]
    rows += [("readings", 30, {"sensor": 7, "celsius": 20.0})]
    rows += [("requests", 1 + n / 60, {"service": "a", "status": 200}) for n in range(9)]
    rows += [("requests", 2, {"service": "a", "status": 503})]
    rows += [("requests", 2.1, {"service": "a", "status": 503})]
    rows += [("states", at, {"host": "a", "state": s}) for at, s in ((40, "down"), (45, "slow"))]
    rows += [("states", 60, {"host": "a", "state": "slow"})]
    return rows, [("failing", 2.1), ("hot", 10), ("slow_alone", 60)]


CASES = {
    "from_ansible": _ansible,
    "from_flink": _flink,
    "from_esper": _esper,
    "from_databricks": _databricks,
    "from_prometheus": _prometheus,
}


def name(book: str) -> str:
    return book.partition("\n")[0].removeprefix("rulebook: ")


@pytest.mark.parametrize("book", BOOKS, ids=name)
def test_the_rules_here_fire_when_they_should(book: str, tmp_path: Path) -> None:
    rows, expected = CASES[name(book)]()
    (tmp_path / "peers.yaml").write_text(book)
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(f"{json.dumps(line)}\n" for line in _lines(rows)))
    out = io.BytesIO()
    until = (START + timedelta(days=1, hours=10)).isoformat()
    simulate(tmp_path / "peers.yaml", trace, until=until, conditions=True, out=out)
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    fired = [one for one in found if one.get("condition") != "failed" and not one.get("damped")]
    ends = [(one["rule"], _minutes(one["end"])) for one in fired]
    assert sorted(ends) == sorted((rule, float(at)) for rule, at in expected)


def _lines(rows: list[Row]) -> Iterator[dict[str, Any]]:
    for table, at, row in rows:
        time = (START + timedelta(minutes=at)).isoformat()
        yield {"table": table, "change": "insert", "time": time, "row": row}


def _minutes(end: str) -> float:
    then = datetime.fromisoformat(end.removesuffix("Z"))
    return round((then - START).total_seconds() / 60, 3)


def test_there_are_three_problems_of_each_of_five_tools() -> None:
    assert [*CASES] == [name(book) for book in BOOKS]
    text = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    there = re.findall(r"^```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert [re.findall(r"(?:#|//|--) (\d)\b", block) for block in there] == [["1", "2", "3"]] * 5
