"""The examples of time: what they detect on their traces, simulated and live; on real tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.loop.test_live import without_key
from tests.support.lake import Lake
from tests.support.later import Later, set_on
from tests.support.live import Live
from tidegate import Engine, rules
from tidegate.connectors.clock import SystemClock
from tidegate.engine.cli.demo.writer import copy_rulebook
from tidegate.engine.core.clocks import RunningClock
from tidegate.engine.core.text.times import of_text
from tidegate.engine.replay.simulate import simulate
from tidegate.engine.store import open_store
from tidegate.rules.model import ClockEvent, Rulebook, SignalEvent

if TYPE_CHECKING:
    from tests.examples.conftest import Example

EXAMPLES = Path(rules.__file__).parent / "examples"
HOUR = 3_600_000_000
FOUND = {  # rule, key, end, how many constituents
    "report": [
        ("nightly", {}, "2026-03-06T19:00:00Z", 1),
        ("nightly", {}, "2026-03-09T19:00:00Z", 2),  # over a weekend; the 8th is a holiday, too
        ("nightly", {}, "2026-03-10T19:00:00Z", 0),
        ("nightly", {}, "2026-03-11T19:00:00Z", 1),
    ],
    "heartbeat": [
        ("silent", {"device": "d1"}, "2026-03-05T08:00:50Z", 1),
        ("silent", {"device": "d2"}, "2026-03-05T08:00:55Z", 1),
        ("back", {"device": "d1"}, "2026-03-05T08:02:00Z", 2),
        ("silent", {"device": "d1"}, "2026-03-05T08:02:40Z", 1),
    ],
    "unpaid": [("expired", {"order_id": 2}, "2026-03-06T09:00:00Z", 1)],
    "load": [
        ("checked", {}, "2026-03-05T08:00:00.000001Z", 2),
        ("checked", {}, "2026-03-05T09:00:00.000001Z", 1),
        ("drift", {}, "2026-03-05T10:00:00.000001Z", 1),
    ],
}
CANDLES = "day DATE, ticks BIGINT, first DOUBLE, low DOUBLE, high DOUBLE, last DOUBLE"
UNTIL = "2026-03-12T00:00:00.000998Z"


def simulated(example: str, folder: Path) -> list[dict[str, Any]]:
    (trace,) = (EXAMPLES / example).glob("*.jsonl")
    out = folder / "out.jsonl"
    with out.open("wb") as stream:
        simulate(EXAMPLES / example / f"{example}.yaml", trace, until=UNTIL, out=stream)
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.mark.parametrize("example", FOUND)
def test_an_example_detects_what_its_page_says(example: str, tmp_path: Path) -> None:
    found = simulated(example, tmp_path)
    assert [(d["rule"], d["key"], d["end"], len(d["constituents"])) for d in found] == FOUND[
        example
    ]


@pytest.mark.parametrize("example", ["report", "heartbeat", "unpaid"])
def test_g02_an_example_detects_live_what_it_does_in_simulated_time(
    example: str, tmp_path: Path
) -> None:
    """Rows as signals of the same fields; the engine is started anew at each of them, and a clock
    fires what it has missed."""
    (trace,) = (EXAMPLES / example).glob("*.jsonl")
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    times = [of_text(line["time"]) for line in lines]
    with open_store(f"sqlite:///{tmp_path}/s.db", create=True) as store:
        book = as_signals(rules.load(EXAMPLES / example / f"{example}.yaml"), lines)
        live = Live(store, book, example, times[0])
        for line, time in zip(lines, times, strict=True):
            fields = {k: v for k, v in line.items() if k not in ("event", "time")}
            live.signal([(line["event"], time, fields)])
            live.drain(time + 1_000)
            live.restart()
        live.drain(of_text(UNTIL) + 2)
        expected = [without_key(found) for found in simulated(example, tmp_path)]
        assert [without_key(found) for found in live.found()] == expected


def as_signals(book: Rulebook, lines: list[dict[str, Any]]) -> Rulebook:
    kinds = {str: "string", int: "bigint", float: "double"}
    events = dict(book.events)
    for name, event in book.events.items():
        if isinstance(event, ClockEvent):
            events[name] = replace(event, misfire="fire_all")
        else:
            line = next(line for line in lines if line["event"] == name)
            types = {k: kinds[type(v)] for k, v in line.items() if k not in ("event", "time")}
            events[name] = SignalEvent(name, event.place, types)
    return replace(book, events=events, tables={})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Later]:
    return set_on(monkeypatch)


@pytest.mark.long
def test_orders_expire_after_a_day_also_where_the_engine_was_down(
    example: Callable[[str], Example], clock: type[Later]
) -> None:
    unpaid = example("unpaid")
    with Engine(unpaid.rulebook, spark=unpaid.spark, store=unpaid.store) as engine:
        engine.run_once()
        unpaid.sql("INSERT INTO orders VALUES (1, 'open'), (2, 'open')")
        engine.run_once()
    unpaid.sql("INSERT INTO payments VALUES (1, 1, 20)")  # nobody sees it before the day is over
    clock.ahead = 30 * HOUR
    with Engine(unpaid.rulebook, spark=unpaid.spark, store=unpaid.store) as engine:
        engine.run_once()
        unpaid.sql("INSERT INTO payments VALUES (2, 2, 20)")
        engine.run_once()
    assert unpaid.rows("SELECT * FROM orders") == [(1, "open"), (2, "expired")]
    with open_store(unpaid.store, create=False) as store:
        (firing,) = store.of("unpaid").firings.listed()
    assert of_text(firing["end"]) - of_text(firing["start"]) == 24 * HOUR
    assert of_text(firing["fired_at"]) - of_text(firing["end"]) > 5 * HOUR


@pytest.mark.long
def test_s11_a_price_is_sampled_as_it_was_at_each_tick(lake: Lake, clock: type[Later]) -> None:
    """Ticks from 9:35 to 16:00; the price changes at noon and is read after the close."""
    book = rules.load(copy_rulebook("price", lake.folder))
    opening = book.events["opening"]
    assert isinstance(opening, ClockEvent)
    of_day = RunningClock(
        "o", opening.expression, opening.timezone, opening.days, holidays=opening.holidays
    )
    now = SystemClock().wall()
    opens = of_day.following(now)
    assert opens is not None
    (lake.folder / "lake").mkdir()
    inner = Lake(lake.spark, lake.folder / "lake")
    inner.create("prices", "symbol STRING, price DOUBLE", enableInCommitTimestamps="false")
    inner.create("candles", CANDLES)
    with Engine(lake.folder / "price.yaml", spark=lake.spark) as engine:
        engine.run_once()
        for number, price in enumerate((100, 120), 1):
            inner.sql(f"INSERT OVERWRITE {{prices}} VALUES ('ACME', {price})")
            at = opens - HOUR if number == 1 else opens + HOUR * 5 // 2
            inner.place("prices", number, at)
        clock.reach(opens + 8 * HOUR)
        engine.run_once()
    [(_, *candle)] = inner.rows("candles")
    assert candle == [78, 100.0, 100.0, 120.0, 120.0]
