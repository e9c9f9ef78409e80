"""A backtest on a terminal."""

from __future__ import annotations

import json
import re
from itertools import takewhile

import pytest
from rich.cells import cell_len

from tests.replay.backtest.made import DAY, MARCH, SECOND, Row, backtest, firing
from tests.support.hostile_texts import HOSTILE
from tidegate.engine.replay.backtest.against import compared
from tidegate.engine.replay.backtest.model import RuleFound, Span
from tidegate.engine.replay.backtest.report import show
from tidegate.engine.replay.backtest.report.differences import ROWS_MAX
from tidegate.engine.replay.backtest.report.terminal import KEYS_MAX, RULES_MAX, bar_text

FEW = [
    *[firing("pay", '{"account_id":7}', MARCH + n * SECOND) for n in range(8)],
    *[firing("pay", '{"account_id":8}', MARCH + DAY + n * SECOND) for n in range(2)],
    *[firing("tell", "{}", MARCH + DAY, condition="held")] * 4,
    *[firing("tell", "{}", MARCH + DAY, condition="failed")] * 1_000,
    firing("tell", "{}", MARCH, condition="dead"),
    firing("pay", '{"account_id":9}', MARCH, damped="cooldown"),
]


def words(lines: list[str], begin: str) -> list[list[str]]:
    """The lines after the one that begins so, up to the next empty one, as words."""
    first = next(n for n, line in enumerate(lines) if line.startswith(begin))
    return [line.split() for line in takewhile(bool, lines[first + 1 :])]


def test_counts_are_told_by_rule_by_day_and_by_key() -> None:
    lines = list(show(backtest(FEW, "pay", "tell", "quiet", rows=1_203)))
    said = " ".join(lines)
    assert "14 fired, 1,000 whose condition failed, 1 damped, 1 dead" in said
    assert "1,203 rows of changes read" in said
    assert words(lines, "rule ") == [
        ["pay", "10", "0", "1", "0"],
        ["tell", "4", "1,000", "0", "1"],
        ["quiet", "0", "0", "0", "0"],
    ]
    days = words(lines, "fired, by day and rule")
    assert [(*row[:-2], row[-1]) for row in days] == [
        ("2026-03-01", "pay", "8"), ("2026-03-02", "pay", "2"), ("tell", "4")
    ]  # fmt: skip
    assert [len(row[-2]) for row in days] == [40, 10, 20]
    keys = words(lines, "fired, by rule and key: the busiest")
    assert [(*row[:-2], row[-1]) for row in keys] == [
        ("pay", "account_id=7", "8"), ("pay", "account_id=8", "2")
    ]  # fmt: skip


def test_the_span_its_zone_the_notes_and_the_warm_up_are_said() -> None:
    found = backtest(
        FEW,
        span=Span(MARCH, MARCH + 2 * DAY, "Asia/Kolkata"),
        notes=("The past contains what the real rules did.", "Instants are those of the logs."),
        warm_up=3 * 3_600 * SECOND,
    )
    said = " ".join(" ".join(show(found)).split())
    assert "from 2026-03-01 05:30:00 to 2026-03-03 05:30:00 (Asia/Kolkata)" in said
    assert "3 h before on (what fired in that warm-up is not counted)" in said
    assert "The past contains what the real rules did. Instants are those of the logs." in said


def test_a_rule_that_would_be_parked_says_when_and_why() -> None:
    at = MARCH + 3_600 * SECOND
    rule = RuleFound("pay", parked_at=at, parked_why="it fires too often", hint="add a `within`")
    stopped = RuleFound("tell", parked_at=at + DAY, parked_why="too much is carried")
    said = " ".join(" ".join(show(backtest(FEW, rule, stopped))).split())
    assert (
        "rule pay would be parked at 2026-03-01 01:00:00: it fires too often; add a `within`. "
        "Live nothing of it would follow; 2 detections after that are counted here" in said
    )
    assert (
        "rule tell would be parked at 2026-03-02 01:00:00: too much is carried. "
        "Live nothing of it would follow; nothing after that is counted" in said
    )


def test_conditions_that_are_not_asked_are_not_called_fired() -> None:
    rows = [firing("pay", "{}", MARCH, condition="skipped")] * 3
    lines = list(show(backtest([*rows, firing("pay", "{}", MARCH)])))
    assert any("1 fired, 3 whose condition was not asked" in line for line in lines)
    assert words(lines, "rule ") == [["pay", "1", "0", "0", "0", "3"]]
    label = "fired, or would if its condition held (not asked), by day and rule"
    assert words(lines, label)[0][-1] == "4"


def test_the_longest_bar_is_that_of_the_most_wherever_it_stands() -> None:
    rows = [firing("pay", "{}", MARCH + n * DAY) for n in (0, 1, 1, 1, 1)]
    days = words(list(show(backtest(rows))), "fired, by day and rule")
    assert [len(row[-2]) for row in days] == [10, 40]


def test_nothing_that_fired_has_no_bars() -> None:
    lines = list(show(backtest([], "pay")))
    assert words(lines, "rule ") == [["pay", "0", "0", "0", "0"]]
    assert lines[-1].split()[0] == "pay"


def test_rules_beyond_those_with_bars_are_counted_together() -> None:
    def days(rules: int) -> list[list[str]]:
        rows = [firing(f"r{n}", "{}", MARCH) for n in range(rules) for _ in range(20 - n)]
        return words(list(show(backtest(rows))), "fired, by day and rule")

    counts = [str(20 - n) for n in range(10)]
    assert RULES_MAX == 10
    assert [row[-1] for row in days(10)] == counts
    assert [row[-1] for row in days(13)] == [*counts, str(10 + 9 + 8)]
    assert "(3 other rules)" in " ".join(days(13)[-1])


def test_the_busiest_keys_are_no_more_than_fit() -> None:
    rows = [firing("pay", f'{{"a":{n}}}', MARCH) for n in range(KEYS_MAX + 5)]
    assert len(words(list(show(backtest(rows))), "fired, by rule and key")) == KEYS_MAX


def hostile_rows() -> list[Row]:
    return [firing("pay", json.dumps({"a": text}), MARCH, text) for text in HOSTILE]


@pytest.mark.parametrize("width", [40, 80, 100, 200])
def test_hostile_values_are_harmless_and_every_line_fits(width: int) -> None:
    rule = RuleFound("pay", parked_at=MARCH, parked_why=HOSTILE[25], hint=HOSTILE[27])
    for text in HOSTILE:
        rows = [firing("pay", json.dumps({"a": text, "b": "漢" * 90}), MARCH, condition="held")]
        found = backtest(
            [*rows, *hostile_rows()],
            rule,
            rulebook=text.partition("[red]")[0] or "b",
            label=text,
            notes=(text,),
        )
        other = backtest([firing("tell", json.dumps({text: 1}), MARCH)], label=text, notes=(text,))
        lines = list(show(found, compared(found, other), width=width))
        assert max(map(cell_len, lines)) <= width
        assert not [line for line in lines if re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u202e]", line)]


def test_differences_are_told_by_rule_and_one_by_one() -> None:
    here = [firing("pay", f'{{"account_id":{n}}}', MARCH + n * SECOND) for n in range(30)]
    there = [{**row, "condition": "failed"} for row in here[:24]]
    there += [{**row, "made_of": "others", "constituents": 3} for row in here[24:29]] + here[29:]
    one = backtest(here, "pay", "gone")
    other = backtest([*there, firing("new", "{}", MARCH)], label="registered version 3")
    lines = list(show(one, compared(one, other)))
    said = " ".join(" ".join(lines).split())
    assert "1: bank.yaml 2: registered version 3" in said
    assert "30 firings differ: 24 only in 1, 1 only in 2, 5 in both, but of other" in said
    assert "rules that only 1 has: gone" in said
    assert "rules that only 2 has: new" in said
    assert "pay 24 0 5 1" in said
    assert "pay account_id=0 1 constituent; in 2: condition failed" in said
    assert f".. and {24 - ROWS_MAX} more" in said
    assert "1: 1 constituent from 2026-03-01 00:00:22; 2: 3 constituents from" in said


def test_rows_of_rules_that_both_have_are_shown_before_those_of_others() -> None:
    alone = [firing("gone", "{}", MARCH + n) for n in range(2 * ROWS_MAX)]
    one = backtest([*alone, firing("pay", "{}", MARCH + DAY)])
    lines = list(show(one, compared(one, backtest([], "pay"))))
    rows = words(lines, "only in 1")
    assert [row[2] for row in rows[:3]] == ["pay", "gone", "gone"]
    assert rows[-1] == ["..", "and", f"{ROWS_MAX + 1}", "more"]


def test_no_difference_is_said() -> None:
    one = backtest(FEW)
    lines = list(show(one, compared(one, one)))
    assert lines[-1].strip() == "no firing differs, 14 are the same"


def test_a_bar_is_as_long_as_its_count() -> None:
    assert bar_text(10, 10, 4) == "████"
    assert bar_text(5, 10, 4) == "██"
    assert bar_text(0, 10, 4) == ""
    assert bar_text(1, 1_000_000, 4) == "▏"
    assert bar_text(3, 8, 2) == "▊"
