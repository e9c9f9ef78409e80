"""The difference between two backtests as JSON lines."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tests.replay.backtest.made import MARCH, SECOND, backtest, firing
from tests.support.hostile_texts import HOSTILE
from tidegate.engine.replay.backtest.against import compared
from tidegate.engine.replay.backtest.model import Backtest
from tidegate.engine.replay.backtest.report import json_lines


def lines(one: Backtest, other: Backtest) -> list[dict[str, Any]]:
    found = list(json_lines(compared(one, other)))
    assert all(line.endswith(b"}\n") and line.count(b"\n") == 1 for line in found)
    return [json.loads(line) for line in found]


def test_a_firing_that_one_has_says_which_and_what_became_of_it_in_the_other() -> None:
    row = firing("pay", '{"account_id":7,"day":null}', MARCH + SECOND, constituents=4)
    one = backtest([{**row, "condition": "held"}])
    other = backtest([{**row, "condition": "failed"}], "pay", label="registered version 3")
    expected = {
        "difference": "only",
        "in": "bank.yaml",
        "rule": "pay",
        "key": {"account_id": 7, "day": None},
        "end": "2026-03-01T00:00:01Z",
        "start": "2026-02-28T23:59:59Z",
        "constituents": 4,
        "firing_id": f"{1:032x}",
        "otherwise": "condition_failed",
    }
    assert lines(one, other) == [expected]
    gone = {**expected, "in": "registered version 3", "otherwise": None}
    assert lines(backtest([], "pay"), backtest([row], label="registered version 3")) == [gone]


def test_firings_of_other_constituents_stand_side_by_side() -> None:
    here = firing("pay", "{}", MARCH, "x", constituents=4)
    there = {**here, "made_of": "y", "constituents": 3, "start": MARCH - 9 * SECOND}
    (line,) = lines(backtest([here]), backtest([there], label="registered version 3"))
    assert (line["difference"], line["rule"], line["key"]) == ("constituents", "pay", {})
    assert line["end"] == "2026-03-01T00:00:00Z"
    assert line["firings"] == [
        {"in": "bank.yaml", "start": "2026-02-28T23:59:58Z", "constituents": 4,
         "firing_id": f"{1:032x}"},
        {"in": "registered version 3", "start": "2026-02-28T23:59:51Z", "constituents": 3,
         "firing_id": f"{1:032x}"},
    ]  # fmt: skip


def test_there_is_a_line_for_each_firing_that_differs_duplicates_too() -> None:
    same = [firing("pay", f'{{"a":{n}}}', MARCH + n) for n in range(6_000)]
    twice = [firing("pay", None, MARCH)] * 2
    other = [*same, *[firing("tell", "{}", MARCH + n) for n in range(5_001)]]
    found = lines(backtest([*same, *twice]), backtest(other))
    kinds = Counter((line["difference"], line["rule"], line["key"] is None) for line in found)
    assert kinds == {("only", "pay", True): 2, ("only", "tell", False): 5_001}
    assert len({line["end"] for line in found if line["rule"] == "tell"}) == 5_001


def test_hostile_keys_and_labels_come_back_as_they_were() -> None:
    keys = [json.dumps({text: text}) for text in HOSTILE]
    rows = [firing("pay", key, MARCH + n) for n, key in enumerate(keys)]
    found = lines(backtest(rows, label=HOSTILE[0]), backtest([], "pay"))
    assert [line["key"] for line in found] == [json.loads(key) for key in keys]
    assert {line["in"] for line in found} == {HOSTILE[0]}
    (line,) = lines(backtest([], "pay"), backtest(rows[:1], label="of \udcff"))
    assert line["in"] == "of \\udcff"  # bytes of a file's name that are no UTF-8
