"""What a store knows of the past is repeated: signals, and what switched rules; for another
rulebook, too."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from tests.replay.backtest.live import Live, outcomes, tables_of, tried_again
from tests.replay.backtest.test_trial import BOOK
from tests.support.make import BEGIN, SECOND
from tidegate.engine.core.entries import Control
from tidegate.engine.replay.backtest.against import compared
from tidegate.engine.replay.backtest.switches import Switching, switches_text, switchings
from tidegate.engine.replay.backtest.trial import Asked, tried
from tidegate.engine.replay.memory.observation import moment
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store.placed import Placed, PlacedSignal, PlacedSwitch

TEXT = BOOK + (
    "  one: {on: a, per: k}\n"
    "  two: {on: every(2, a)}\n"
    "  warn: {on: a, per: k, do: [{signal: {hot: {k: k}}}]}\n"
    "  heard: {on: hot ; b, per: k}\n"
).replace("every(2, a)", '"every(2, a)"')


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    url = f"sqlite:///{tmp_path_factory.mktemp('store') / 'past.db'}"
    with open_store(url, create=True) as opened:
        yield opened


def insert(live: Live, v: int, seconds: float = 9.5, take: float = 0.5) -> None:
    """A commit so many seconds later, which is taken yet a while later."""
    live.clock.at += int(seconds * SECOND)
    live.commit("t", [{"id": live.clock.at, "k": 7, "v": v}])
    live.clock.at += int(take * SECOND)
    live.take()


def ends(found: Any, rule: str) -> list[float]:
    rows = [row for row in found.firings.to_pylist() if row["rule"] == rule]
    return [round((row["end"] - moment(BEGIN)).total_seconds(), 1) for row in rows]


def test_what_an_operator_switched_is_switched_at_its_time_and_said(store: SqlStore) -> None:
    live = Live(TEXT, store)
    insert(live, 1)
    live.switch("disable", "one")
    insert(live, 1)
    insert(live, 1)
    live.switch("enable", "one")
    live.clock.at += SECOND
    live.take()
    insert(live, 1)
    live.settle()
    found = tried_again(live, BEGIN, live.clock.at)
    assert ends(found, "one") == [9.5, 40.5]
    assert outcomes(found) == live.fired()
    (said,) = [note for note in found.notes if "switched" in note]
    assert said.startswith("Rules were switched as they were in the past: one off at 2026-03-02 09")
    later = tried_again(live, BEGIN + 25 * SECOND, live.clock.at)
    assert ends(later, "one") == [40.5], "it is off when the backtest begins"
    without = tried(
        [tables_of(TEXT, live.feed, None)],
        Asked(moment(BEGIN), moment(live.clock.at)),
        live.clock.at,
        lambda *_: None,
    )
    assert ends(without, "one") == [9.5, 19.5, 29.5, 40.5]
    assert any("what operators switched off, are not known here" in n for n in without.notes)


def test_of_switches_before_the_beginning_only_what_is_off_counts() -> None:
    def placed(at: int, kind: str, rule: str, asked_at: int) -> PlacedSwitch:
        return PlacedSwitch(at, Control(at, kind, rule, asked_at=asked_at))

    off, gone = placed(10, "disable", "off", 11), placed(20, "disable", "gone", 20)
    back, soon = placed(30, "enable", "gone", 30), placed(40, "disable", "soon", 40)
    spans = placed(50, "enable", "soon", 120)
    within, late = placed(150, "disable", "gone", 151), placed(400, "enable", "off", 400)
    found = switchings([off, gone, back, soon, spans, within, late], 100, 300)
    assert found == [
        Switching(100, (off.control, soon.control, spans.control)),
        Switching(150, (within.control,)),
    ]
    assert found[0].asked_at == 120


def test_a_report_names_the_first_switches_of_the_rules_that_run() -> None:
    controls = [Control(n, "disable" if n % 2 else "enable", "one", asked_at=n) for n in range(8)]
    found = [Switching(n, (one, Control(9, "enable", "gone"))) for n, one in enumerate(controls)]
    (said,) = switches_text(found, {"one"}, "Europe/Berlin")
    assert said.count("one o") == 5
    assert said.endswith("one on at 1970-01-01 01:00:00, and 3 more times.")
    assert [*switches_text(found, {"two"}, "UTC")] == []


def test_a_rule_that_is_off_still_when_its_request_is_forgotten_is_off(store: SqlStore) -> None:
    live = Live(TEXT, store)
    insert(live, 1)
    live.switch("disable", "one")
    insert(live, 1)
    ledger = store.of("past", 1)
    while ledger.retention.purge(0, 2**62, 1_000):
        pass
    (switch,) = store.of("past").placed.switches()
    assert (switch.control.kind, switch.control.subject) == ("disable", "one")
    assert BEGIN + 9 * SECOND < switch.watermark < BEGIN + 19 * SECOND


def test_a_rule_was_off_until_it_was_enabled_though_who_disabled_it_is_forgotten(
    store: SqlStore,
) -> None:
    live = Live(TEXT, store)
    insert(live, 1)
    live.switch("disable", "one")
    insert(live, 1)
    ledger = store.of("past", 1)
    while ledger.retention.purge(0, 2**62, 1_000):
        pass
    insert(live, 1)
    live.switch("enable", "one")
    live.switch("enable", "two")  # which was on
    live.clock.at += SECOND
    live.take()
    insert(live, 1)
    live.settle()
    found = tried_again(live, BEGIN + 15 * SECOND, live.clock.at)
    assert ends(found, "one") == [40.5]
    assert ends(found, "two") == [29.5]
    (said,) = [note for note in found.notes if "switched" in note]
    assert "one off from the beginning on, " in said


def test_what_a_limit_parked_live_is_said_and_not_repeated(store: SqlStore) -> None:
    live = Live(f"{TEXT}settings: {{firings_per_rule_per_minute_max: 3}}\n", store)
    for _ in range(4):
        insert(live, 1)
    assert store.of("past").rule_states.parked() == {"one", "warn"}
    insert(live, 1)
    live.switch("enable", "one")
    live.clock.at += SECOND
    live.take()
    insert(live, 1)
    live.settle()
    assert len(live.fired()["one"]) == 5, "it was parked once"
    found = tried_again(live, BEGIN, live.clock.at)
    assert ends(found, "one") == [9.5, 19.5, 29.5, 39.5, 49.5, 60.5], "it is not parked here"
    assert not any("switched" in note and "one off" in note for note in found.notes)
    why = "which is not repeated: it fired 4 times within a minute, at most 3 are let"
    one, warn = [note for note in found.notes if "parked live" in note]
    begin = "was parked live from 2026-03-02 09:00:40.00"
    assert one.startswith(f"Rule one {begin}")
    assert " to 2026-03-02 09:00:50." in one
    assert warn.startswith(f"Rule warn {begin}")
    assert warn.index(" on, which") < warn.index("it fired")
    assert why in one
    assert why in warn
    before = tried_again(live, BEGIN, BEGIN + 30 * SECOND)
    assert not any("parked live" in note for note in before.notes)
    after = tried_again(live, live.clock.at - SECOND, live.clock.at)
    assert [note[:9] for note in after.notes if "parked live" in note] == ["Rule warn"]
    assert store.of("past", 1).retention.purge(0, 2**62, 100)
    assert [one.rule for one in store.of("past").placed.parkings(0, 2**62)] == ["warn"]


def test_another_text_that_ran_meanwhile_is_said(store: SqlStore) -> None:
    live = Live(TEXT, store)
    insert(live, 1)
    versions = store.of("past").versions
    for n in range(1, 8):
        versions.register(f"{TEXT}# {n}\n", None)
        insert(live, 1)
    live.settle()

    def said(begin: int, end: int) -> list[str]:
        return [note for note in tried_again(live, begin, end).notes if "changed" in note]

    (note,) = said(BEGIN, BEGIN + 25 * SECOND)
    assert note.startswith("The rulebook was changed live: version 2 from 2026-03-02 09:00:")
    assert note.endswith(" on. One text is tried here throughout.")
    assert said(BEGIN, BEGIN + 9 * SECOND) == []
    (note,) = said(BEGIN, live.clock.at)
    assert note.count("version ") == 5
    assert "and 2 more versions." in note


def test_signals_of_the_store_cut_no_bucket_and_new_ones_do(store: SqlStore) -> None:
    live = Live(TEXT, store)
    for _ in range(12):
        insert(live, 1)
        insert(live, 2)
    live.settle()

    def buckets(text: str) -> tuple[int, Any]:
        told: list[tuple[int, int]] = []
        asked = Asked(moment(BEGIN), moment(live.clock.at), warm_up=0)
        tables = [tables_of(text, live.feed, store)]
        found = tried(tables, asked, live.clock.at, lambda *said: told.append(said))
        return len(told), found

    few, found = buckets(TEXT)
    assert outcomes(found) == live.fired()
    assert len(outcomes(found)["heard"]) == 12
    many, found = buckets(TEXT.replace("}}}]}", "}}}, {signal: {hot: {k: k}}}]}"))
    assert few <= 2 < 12 <= many
    assert len(outcomes(found)["warn"]) == 12


def test_what_an_engine_writes_meanwhile_is_not_seen_in_part(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule is enabled after the past's commits were read, before its switches are."""
    live = Live(TEXT, store)
    insert(live, 1)
    live.switch("disable", "one")
    insert(live, 1)
    read, threads = Placed.signals, []

    def meanwhile(self: Placed, *span: int) -> list[PlacedSignal]:
        if not threads:
            threads.append(Thread(target=enable))
            threads[0].start()
            threads[0].join()
        return read(self, *span)

    def enable() -> None:
        live.switch("enable", "one")
        insert(live, 1)

    monkeypatch.setattr(Placed, "signals", meanwhile)
    end = live.clock.at + 20 * SECOND
    (said,) = [note for note in tried_again(live, BEGIN, end).notes if "switched" in note]
    assert "one off" in said
    assert "one on" not in said
    (said,) = [note for note in tried_again(live, BEGIN, end).notes if "switched" in note]
    assert "one on" in said


def test_a_signal_that_came_after_the_end_is_not_raised_before_it(store: SqlStore) -> None:
    live = Live(TEXT, store)
    insert(live, 1, take=5)
    live.settle()
    insert(live, 2)
    live.settle()
    assert len(live.fired()["heard"]) == 1
    text = TEXT.replace("hot ; b", "hot")
    found = tried_again(live, BEGIN, BEGIN + 12 * SECOND, text)
    assert (len(found.firings), found.against is not None) == (2, True)
    assert found.against is not None
    assert ends(found.against, "heard") == []
    assert len(ends(tried_again(live, BEGIN, live.clock.at, text).against, "heard")) == 1


def test_another_rulebook_is_judged_over_the_same_past(store: SqlStore) -> None:
    live = Live(TEXT, store)
    for _ in range(3):
        insert(live, 1, take=0.7)
        live.signal("hot", k=7)
        insert(live, 2)
    live.switch("disable", "one")
    insert(live, 1)
    live.settle()
    renamed = TEXT.replace("rulebook: past", "rulebook: other")
    found = tried_again(live, BEGIN, live.clock.at, renamed)
    assert found.against is not None
    difference = compared(found, found.against)
    assert (difference.count, difference.same) == (0, len(found.firings))
    assert outcomes(found.against) == live.fired()


def test_a_table_that_was_reset_is_read_once_and_said(store: SqlStore) -> None:
    live = Live(TEXT, store)
    for _ in range(3):
        insert(live, 1)
    live.reset("t")
    insert(live, 1)
    live.settle()
    assert len(live.fired()["one"]) == 7, "three of them were read again"
    found = tried_again(live, BEGIN, live.clock.at)
    assert ends(found, "one") == [30, 30, 30, 39.5], "where they stood last"
    assert outcomes(found)["one"].items() <= live.fired()["one"].items()
    assert any(note.startswith("t was reset in it: ") for note in found.notes)
    later = tried_again(live, live.clock.at, live.clock.at)
    assert not any("was reset" in note for note in later.notes)
