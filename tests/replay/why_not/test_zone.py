"""Times of a question are in the rulebook's zone, as those of a backtest are."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.replay.why_not.stored import Stored
from tests.support.make import BEGIN, SECOND
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.times import of_question
from tidegate.engine.replay.why_not.asking import Question, asked
from tidegate.engine.replay.why_not.words import Words, key_options, quoted
from tidegate.engine.store import SqlStore
from tidegate.rules import load
from tidegate.rules.errors import InputError

TEXT = """\
rulebook: shop
timezone: Europe/Berlin
tables: {items: {path: /items, key: [id]}, out: {path: /out}}
events: {told: {signal: {k: bigint}}}
rules:
  r: {per: k, on: told}
"""


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("2026-03-02T10:00:20", 20),  # nine in UTC
        ("2026-03-02 10:00:20", 20),
        ("2026-03-02T09:00:20Z", 20),
        ("2026-03-02T04:00:20-05:00", 20),
        (str(BEGIN // SECOND + 20), 20),
        ("20 s", 80),
        (datetime(2026, 3, 2, 10, 0, 20), 20),
        (datetime(2026, 3, 2, 9, 0, 20, tzinfo=UTC), 20),
        (BEGIN + 20 * SECOND, 20),
    ],
)
def test_a_time_is_in_the_rulebooks_zone(
    store: SqlStore, said: int | str | datetime, seconds: int
) -> None:
    run = Stored(store, TEXT)
    run.signal(10, "told", k=7).at(100)
    now = BEGIN + 100 * SECOND
    question = Question("r", {"k": 7}, said, "2026-03-02T10:00:05")
    answer = asked(store.of("shop"), question, None, now)  # type: ignore[arg-type]
    assert answer.at == BEGIN + seconds * SECOND
    assert answer.since == BEGIN + 5 * SECOND
    first = next(answer.lines())
    assert "2026-03-02 10:00:05 to 2026-03-02 10:0" in first
    assert first.endswith("(Europe/Berlin)")
    assert answer.as_json()["timezone"] == "Europe/Berlin"
    assert answer.as_json()["at"] == json_text.instant(answer.at)


def test_the_command_for_later_firings_can_be_typed(store: SqlStore) -> None:
    run = Stored(store, TEXT)
    run.signal(10, "told", k=7).at(15)
    answer = run.at(100).why_not("r", {"k": 7}, 100)
    said = "Later ones: `tidegate why-not r --key k=7 --since 2026-03-02T10:00:10.000001`"
    assert f"    {said}" in [*answer.lines()]
    question = Question("r", {"k": 7}, None, "2026-03-02T10:00:10.000001")
    run.signal(150, "told", k=7).at(200)
    now = BEGIN + 200 * SECOND
    later = asked(store.of("shop"), question, None, now)  # type: ignore[arg-type]
    assert later.since == BEGIN + 10 * SECOND + 1
    assert later.fired not in (None, answer.fired)


def test_times_in_commands_are_exact_in_the_hour_that_is_there_twice() -> None:
    words = Words(load(TEXT), {}, BEGIN)
    first = int(datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp()) * SECOND
    said = [words.option(first + n * 3600 * SECOND) for n in (-1, 0, 1, 2)]
    assert said == [
        "2026-10-25T01:30:00", "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00",
        "2026-10-25T03:30:00",
    ]  # fmt: skip
    assert words.option(first + 998).endswith(".000998+02:00")


def test_keys_in_commands_are_quoted() -> None:
    key = {"card": 7, "name": "a b", "region": None, "open": True}
    assert key_options(key) == " --key card=7 --key 'name=a b' --null region --key open=true"


def test_texts_that_look_like_something_else_are_quoted() -> None:
    for text in ("null", "true", "false", "7", "2.5", "", "a b", "2026-03-02"):
        assert quoted(text) == f"'{text}'"
    assert [quoted(each) for each in ("eu", "Null", None, True, 7)] == [
        "eu", "Null", "null", "true", "7",
    ]  # fmt: skip


@pytest.mark.parametrize("said", ["soon", "", "nan", "1e99", "0 h ago", "9999999 d", 2**70, "-1 h"])
def test_what_is_no_time_is_refused_with_what_can_be_written(
    store: SqlStore, said: int | str
) -> None:
    run = Stored(store, TEXT).at(10)
    with pytest.raises(InputError, match="is neither a time nor how long ago it was") as found:
        run.asked("r", {"k": 7}, said)
    assert "without an offset it is in Europe/Berlin" in str(found.value)
    with pytest.raises(InputError, match="--since"):
        run.asked("r", {"k": 7}, None, said)


def test_a_span_that_ends_before_it_begins_is_refused(store: SqlStore) -> None:
    run = Stored(store, TEXT).at(10)
    with pytest.raises(InputError, match="--since is later than --at"):
        run.why_not("r", {"k": 7}, 5, 6)


def test_a_time_that_the_clock_shows_twice_is_the_first() -> None:
    zone = "Europe/Berlin"
    for local, instant in (("2026-10-25T02:30", "00:30Z"), ("2026-03-29T02:30", "01:30Z")):
        day = local.partition("T")[0]
        assert of_question(local, zone, 0) == of_question(f"{day}T{instant}", "UTC", 0)
