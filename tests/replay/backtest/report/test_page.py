"""A backtest as a page: what a browser's parser finds in it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tests.replay.backtest.made import DAY, MARCH, SECOND, backtest, firing
from tests.support.hostile_texts import HOSTILE
from tests.support.parsed_page import Page
from tidegate.engine.core.text.printable import in_line
from tidegate.engine.replay.backtest.against import compared
from tidegate.engine.replay.backtest.model import FIRINGS, Backtest, RuleFound, Span
from tidegate.engine.replay.backtest.report import page as page_of
from tidegate.engine.replay.backtest.report.timelines import HELD_MAX, OF_KEY_MAX, SCRIPT

MADE_AT = MARCH + 40 * DAY


def parsed(found: Backtest, *against: Backtest) -> Page:
    difference = compared(found, *against) if against else None
    return Page(page_of(found, difference, made_at=MADE_AT))


def rows(page: Page, heading: str) -> list[list[str]]:
    """The cells of the first table after a heading."""
    every = list(zip(page.tags, page.every_text, strict=True))
    tags = [(tag, text) for (tag, _), text in every]
    found: list[list[str]] = []
    for tag, text in tags[next(n for n, (t, x) in enumerate(tags) if (t, x) == ("h2", heading)) :]:
        if found and tag in ("h2", "h3", "table"):
            break
        if tag == "tr":
            found.append([])
        elif tag in ("td", "th"):
            found[-1].append(text)
    return found


def held(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.text("script", id="timelines"))
    return found


FEW = [
    *[firing("pay", '{"account_id":7}', MARCH + n * SECOND) for n in range(8)],
    *[firing("pay", '{"account_id":8}', MARCH + DAY + n * SECOND) for n in range(2)],
    *[firing("tell", "{}", MARCH + DAY, condition="held")] * 4,
    *[firing("tell", "{}", MARCH + DAY, condition="failed")] * 1_000,
    firing("pay", '{"account_id":9}', MARCH, damped="cooldown"),
]


def test_counts_are_told_by_rule_by_day_and_by_key() -> None:
    page = parsed(backtest(FEW, "pay", "tell", "quiet"))
    assert rows(page, "By rule") == [
        ["rule", "fired", "condition failed", "damped", "dead"],
        ["pay", "10", "0", "1", "0"],
        ["tell", "4", "1,000", "0", "0"],
        ["quiet", "0", "0", "0", "0"],
    ]
    assert rows(page, "By day") == [
        ["day", "pay", "tell"],
        ["2026-03-01", "8", "0"],
        ["2026-03-02", "2", "4"],
    ]
    labels = [own["aria-label"] for own in page.attributes("svg") if own.get("role") == "img"]
    assert labels == [
        "pay: 10 fired; most in a day: 8 (2026-03-01)",
        "tell: 4 fired; most in a day: 4 (2026-03-02)",
    ]
    assert page.texts("title")[1:] == ["2026-03-01: 8", "2026-03-02: 2", "2026-03-02: 4"]
    assert [row[:3] for row in rows(page, "The busiest keys")[1:]] == [
        ["pay", "account_id=7", "8"],
        ["pay", "account_id=8", "2"],
    ]
    heights = [float(own["height"] or 0) for own in page.attributes("rect") if "y" in own]
    assert heights[0] == pytest.approx(4 * heights[1], rel=0.01)


def test_the_data_of_a_timeline_is_what_was_detected_of_its_key() -> None:
    zone = Span(MARCH, MARCH + 2 * DAY, "Europe/Berlin")
    found = backtest([*FEW, firing("tell", '{"account_id":7}', MARCH + DAY)], span=zone)
    page = parsed(found)
    data = held(page)
    assert data["keys"][:2] == ["account_id=7", "(no key)"]
    assert data["ends"][:2] == [9, 9 + 1_004]
    of_seven = slice(0, 9)
    assert [data["rules"][n] for n in data["rule"][of_seven]] == ["pay"] * 8 + ["tell"]
    assert data["end"][of_seven] == [*(n * SECOND for n in range(8)), DAY]
    assert data["start"][0] == -2 * SECOND
    assert data["at"][0] == "2026-03-01 01:00:00"
    outcomes = Counter(data["fates"][n] for n in data["fate"])
    assert outcomes == {"fired": 15, "condition failed": 1_000, "damped": 1}
    busiest = [row[1] for row in rows(page, "The busiest keys")[1:]]
    buttons = [int(own["data-key"] or -1) for own in page.attributes("button")]
    assert [data["keys"][number] for number in buttons] == busiest
    assert len(busiest) == 3


def hostile(text: str) -> Page:
    """A page in which a text stands wherever a text of others can."""
    rule = RuleFound(f"r{text}", parked_at=MARCH, parked_why=text, hint=text)
    key = json.dumps({f"k{text}": text})
    firings = [firing(rule.name, key, MARCH + n, f"{n}") for n in range(3)]
    found = backtest(firings, rule, rulebook=text, label=text, notes=(text,))
    changed = [firing("r", key, MARCH), *({**row, "made_of": "other"} for row in firings[1:])]
    other = backtest(changed, replace(rule, name="r"), rule, label=text, notes=(f"2{text}",))
    return parsed(found, other)


TAME = hostile("x")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_value_is_inert_wherever_it_stands(text: str) -> None:
    page = hostile(text)
    shape = [(tag, sorted(own)) for tag, own in page.tags]
    assert shape == [(tag, sorted(own)) for tag, own in TAME.tags]
    assert page.scripts == [SCRIPT]
    assert page.texts("style") == TAME.texts("style")
    assert in_line(text) in page.text("h1")
    assert in_line(text)[:200] in held(page)["keys"][0]
    assert not {"style", "src", "href"} & {name for _, own in page.tags for name in own}
    assert not [name for _, own in page.tags for name in own if name.startswith("on")]
    whole = "".join(page.every_text)
    assert not {*map(chr, range(32)), "\u202e", "\u200b", "\x7f"} - {"\n"} & {*whole}


def many(count: int, keys: int) -> pa.Table:
    """Firings of rule `pay`, a second apart, each key as often."""
    texts = [f'{{"account_id":{n % keys}}}' for n in range(count)]
    ends = [MARCH + n * SECOND for n in range(count)]
    columns = {
        "rule": ["pay"] * count, "firing_id": [f"{n:032x}" for n in range(count)], "key": texts,
        "start": ends, "end": ends, "condition": ["none"] * count, "damped": [None] * count,
        "depth": [1] * count, "constituents": [2] * count, "made_of": [""] * count,
    }  # fmt: skip
    return pa.table(columns, FIRINGS)


def test_a_page_of_100_000_firings_holds_a_part_and_says_so() -> None:
    found = replace(backtest([], "pay"), firings=many(100_000, 700))
    page = parsed(found)
    data = held(page)
    assert len(data["end"]) == data["ends"][-1] <= HELD_MAX
    assert len(data["keys"]) == 69  # of 143 each
    said = "Of 100,000 detections this page holds 9,867, for timelines: those of 69 of 700 keys"
    assert [text for text in page.texts("p") if said in text]
    assert rows(page, "By rule")[1] == ["pay", "100,000", "0", "0", "0"]
    assert sum(int(row[1].replace(",", "")) for row in rows(page, "By day")[1:]) == 100_000
    assert len(page_of(found, made_at=MADE_AT)) < 2_000_000


def test_one_key_does_not_fill_a_page_alone() -> None:
    table = pa.concat_tables([many(50_000, 1), many(30, 30)])
    page = parsed(replace(backtest([], "pay"), firings=table))
    data = held(page)
    assert data["ends"][0] == OF_KEY_MAX
    assert len(data["keys"]) == 30
    assert data["end"][: OF_KEY_MAX - 1] == [n * SECOND for n in range(OF_KEY_MAX - 1)]
    assert [text for text in page.texts("p") if f"the first {OF_KEY_MAX:,} at most" in text]


def test_what_fits_is_whole_and_nothing_is_said_to_be_left_out() -> None:
    page = parsed(backtest(FEW))
    assert not [text for text in page.texts("p") if "this page holds" in text]
    assert not page.texts("p", **{"class": "warning"})


def test_differences_are_told_by_rule_and_one_by_one() -> None:
    here = [firing("pay", f'{{"account_id":{n}}}', MARCH + n * SECOND) for n in range(4)]
    there = [{**here[0], "damped": "cooldown"}, {**here[1], "made_of": "others"}, *here[2:]]
    page = parsed(backtest(here, "pay"), backtest([*there, firing("new", "{}", MARCH)]))
    said = "3 firings differ: 1 only in 1, 1 only in 2, 1 in both, but of other constituents"
    assert [text for text in page.texts("p") if text == f"{said}; 2 are the same."]
    assert "rules that only 2 has: new." in page.texts("p")
    assert rows(page, "What differs")[1:] == [
        ["pay", "1", "0", "1", "2"],
        ["new", "0", "1", "0", "0"],
    ]
    every = [own for own in page.texts("tr") if own.startswith("2026-03-01 00:00:0")]
    assert every == [
        "2026-03-01 00:00:00payaccount_id=01 constituent; in 2: damped",
        "2026-03-01 00:00:00new1 constituent",
        "2026-03-01 00:00:01payaccount_id=1"
        "1: 1 constituent from 2026-02-28 23:59:59; 2: 1 constituent from 2026-02-28 23:59:59",
    ]
    assert page.texts("h3") == ["only in 1", "only in 2", "in both, but of other constituents"]


def test_differences_beyond_those_listed_are_counted() -> None:
    rows_of_one = [firing("pay", "{}", MARCH + n) for n in range(501)]
    page = parsed(backtest(rows_of_one, "pay"), backtest([], "pay"))
    assert "The first 500 of 501 (DIFFERENCES_MAX); `--json` prints all." in page.texts("p")


def test_rules_without_bars_are_counted() -> None:
    found = backtest([firing(f"r{n:02}", "{}", MARCH) for n in range(22) for _ in range(30 - n)])
    page = parsed(found)
    assert [
        t for t in page.texts("p") if t == "2 rules that fired less have no bars here (RULES_MAX)."
    ]
    assert rows(page, "By day")[0] == ["day", *(f"r{n:02}" for n in range(20))]


def test_an_empty_backtest_says_so() -> None:
    page = parsed(backtest([], "pay"))
    assert "None fired." in page.texts("p")
    assert "Nothing was detected." in page.texts("p")
    assert held(page)["keys"] == []


def test_a_rule_that_would_be_parked_is_a_warning() -> None:
    rule = RuleFound("pay", parked_at=MARCH, parked_why="too much is carried")
    (warning,) = parsed(backtest([], rule)).texts("p", **{"class": "warning"})
    assert warning.startswith(
        "rule pay would be parked at 2026-03-01 00:00:00: too much is carried"
    )


def test_every_control_has_a_name_and_what_scrolls_is_reached_by_keyboard() -> None:
    page = parsed(backtest(FEW))
    assert [text.strip() for text in page.texts("label")] == ["Keys that hold", "Key"]
    assert {own["tabindex"] for own in page.attributes("div") if own.get("class") == "scroll"} == {
        "0"
    }
    assert all(own.get("role") == "img" or own.get("aria-hidden") for own in page.attributes("svg"))
