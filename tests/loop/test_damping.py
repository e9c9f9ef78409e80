"""What a rule remembers of its firings outlives buckets, crashes, restarts and edits."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.evaluate.damping.reference import Firing, Memory, damped
from tests.replay.traces import simulated
from tests.support import live as live_module
from tests.support.live import All, Live
from tests.support.make import BEGIN, SECOND
from tidegate import rules
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.failpoints import FailpointError, arm
from tidegate.engine.core.values import Answers, Failure, Question
from tidegate.engine.store import SqlStore
from tidegate.engine.store.tables import damping as remembered
from tidegate.rules.model import DAMPINGS, Damping, Dedupe, Rulebook, Settings, Throttle

BOOK = """\
rulebook: hot
tables: {out: {path: /out}}
events: {temp: {signal: {id: bigint, device: string, level: bigint, note: string}}}
rules:
  now: {on: temp, per: device, DAMPINGS, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  later: {on: temp, per: device, DAMPINGS, coupling: detached, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  uses: {on: now, per: device}
"""  # noqa: E501
LEVELS = "hysteresis: {fire: level >= 7, rearm: level <= 3}"
REFUSED = 5  # by `if`
SEEDS = 8


class Told(All):
    """Conditions on the level of a firing's rows; a rule's own `if` refuses one level."""

    fails: Failure | None = None

    def hold(self, questions: Sequence[Question]) -> Answers:
        if self.fails is not None:
            return Answers(failed={q.asked: self.fails for q in questions})
        found: dict[str, set[str]] = {"if": set(), "fire": set(), "rearm": set()}
        for q in questions:
            relation = q.relation.select(["firing_id", "level"]).to_pylist()
            for row in relation:
                holds = {
                    "all": row["level"] != REFUSED,
                    "level >= 7": row["level"] >= 7,
                    "level <= 3": row["level"] <= 3,
                }
                found[q.asks] |= {row["firing_id"]} if holds[q.condition.text] else set()
        held, fires, rearms = map(frozenset, found.values())
        return Answers(held, {}, fires, rearms)


@pytest.fixture(autouse=True)
def _told(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(live_module, "All", Told)
    yield
    arm("")
    Told.fails = None


def book(keys: str) -> Rulebook:
    return rules.load(BOOK.replace("DAMPINGS", keys))


def temp(number: int, at: int, device: str = "a", level: int = 9, note: str = "x") -> Any:
    return (
        "temp",
        BEGIN + at * SECOND,
        {"id": number, "device": device, "level": level, "note": note},
    )


def fates(live: Live, rule: str) -> list[str | None]:
    return [f.get("damped") for f in live.store.of(live.book.name).firings.listed(rule=rule)]


def acted_on(live: Live, rule: str) -> list[str]:
    """The ids of firings that have an action."""
    found = [
        f for f in live.store.of(live.book.name).firings.listed(rule=rule) if "damped" not in f
    ]
    return [f["firing_id"] for f in found if any(e["state"] == "done" for e in f["entries"])]


def drawn(chance: random.Random) -> tuple[Damping, list[Any]]:
    levels = book(LEVELS).rules["now"].damping
    damping = Damping(
        levels.hysteresis if levels and chance.random() < 0.3 else None,
        Dedupe(("note",), chance.randint(5, 25) * SECOND) if chance.random() < 0.7 else None,
        chance.randint(1, 5) * SECOND if chance.random() < 0.5 else None,
        Throttle(chance.randint(1, 3), chance.randint(1, 20) * SECOND),
    )
    at, history = 0, []
    for number in range(60):
        at += chance.choice((0, 1, 1, 2, 4))
        level = chance.randint(0, 9)
        history.append(temp(number, at, chance.choice("ab"), level, chance.choice("xy")))
    return damping, history


def live_through(live: Live, history: list[Any], chance: random.Random) -> None:
    """The history in buckets, of which some crash before or after their transaction."""
    while history:
        some = history[: chance.randint(1, 25)]
        history = history[len(some) :]
        while history and history[0][1] == some[-1][1]:
            some.append(history.pop(0))
        live.signal(some)
        if chance.random() < 0.4:
            points = ("commit.before", "commit.after", "settle.before", "action.between")
            arm(f"{chance.choice(points)}=raise")
        for _ in range(2):
            try:
                live.drain(some[-1][1] + 1_000)
                live.loop.work()
            except FailpointError:
                live.loop.recover()
        arm("")
        if chance.random() < 0.3:
            live.restart()
            live.loop.ports.ledger.retention.purge(0, 0, 1_000)
    live.drain(live.at + 1_000)
    live.loop.work()


def right(damping: Damping, fired: Sequence[dict[str, Any]]) -> list[str | None]:
    """What the reference drops, of firings that `if` let through."""
    rows = [(f["key"]["device"], f["end"], f["constituents"][0]) for f in fired]
    through = [
        Firing(device, micros(end), row["note"], row["level"] >= 7, row["level"] <= 3)
        for device, end, row in rows
        if row["level"] != REFUSED
    ]
    found = damped(damping, through, Memory())
    return [next(found) if row["level"] != REFUSED else None for *_, row in rows]


def micros(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * SECOND)


def test_firings_are_damped_as_the_reference_says_whatever_crashes(
    store: SqlStore, tmp_path: Path
) -> None:
    kinds, in_simulation = Counter[str | None](), 0
    for seed in range(SEEDS):
        chance = random.Random(seed)
        damping, history = drawn(chance)
        whole = book("cooldown: 1 s")
        damped_rules = {
            name: replace(rule, damping=damping if name != "uses" else None)
            for name, rule in whole.rules.items()
        }
        whole = replace(whole, rules=damped_rules)
        live = Live(store, whole, f"hot{seed}", BEGIN - SECOND)
        live_through(live, list(history), chance)
        for rule in ("now", "later"):
            fired = [*store.of(live.book.name).firings.listed(rule=rule)]
            assert len(fired) == len(history)
            expected = right(damping, fired)
            assert [f.get("damped") for f in fired] == expected, (seed, rule, damping)
            kinds.update(expected)
            passed = [
                f["firing_id"] for f in fired if f["condition"] == "held" and "damped" not in f
            ]
            assert acted_on(live, rule) == passed
            (shown,) = [
                r for r in store.of(live.book.name).status.shown()["rules"] if r["rule"] == rule
            ]
            assert shown["damped_by"] == dict(sorted(Counter(filter(None, expected)).items()))
        assert len([*store.of(live.book.name).firings.listed(rule="uses")]) == len(
            history
        )  # detects
        if damping.hysteresis is None and in_simulation < 50:
            in_simulation += compare_with_simulation(live, whole, history, tmp_path)
    assert kinds.keys() == {None, *DAMPINGS}
    assert min(kinds.values()) > 20, kinds
    assert in_simulation > 50


def compare_with_simulation(live: Live, whole: Rulebook, history: list[Any], folder: Path) -> int:
    """What is damped of a history all of which `if` lets through; how much that is."""
    history = [(e, at, f) for e, at, f in history if f["level"] != REFUSED]
    other = Live(live.store, whole, f"{live.book.name}s", BEGIN - SECOND)
    other.signal(history)
    other.drain(history[-1][1] + 1_000)
    lines = [simulated(whole, history, folder, cut) for cut in (None, 2)]
    assert lines[0] == lines[1]
    marks = [line.get("damped") for line in lines[0] if line["rule"] == "now"]
    assert marks == fates(other, "now")
    assert all([*line][-1] == "damped" for line in lines[0] if "damped" in line)
    return sum(mark is not None for mark in marks)


def test_an_edited_rule_keeps_what_it_remembers_while_its_key_is_the_same(store: SqlStore) -> None:
    live = Live(store, book("cooldown: 100 s"), "edited", BEGIN - SECOND)
    live.signal([temp(1, 0)])
    live.drain(BEGIN + SECOND)
    live.edit(book("cooldown: 50 s, priority: 3"))
    live.signal([temp(2, 49), temp(3, 50)])
    live.drain(BEGIN + 60 * SECOND)
    assert fates(live, "now") == [None, "cooldown", None]
    live.edit(
        rules.load(BOOK.replace("DAMPINGS", "cooldown: 50 s").replace("per: device", "per: note"))
    )
    live.signal([temp(4, 70)])
    live.drain(BEGIN + 80 * SECOND)
    assert fates(live, "now")[3:] == [None]


def test_firings_that_were_stored_without_a_column_are_judged_without_it(store: SqlStore) -> None:
    live = Live(store, book("cooldown: 100 s"), "narrow", BEGIN - SECOND)
    live.reads = frozenset({"level"})
    live.restart()
    Told.fails = Failure("[NO] not now")
    live.signal([temp(1, 0)])
    live.drain(BEGIN + SECOND)
    Told.fails = None
    live.edit(book("dedupe: {by: note, within: 100 s}"))
    live.signal([temp(2, 5), temp(3, 6)])
    live.drain(BEGIN + 90 * SECOND)
    live.loop.work()
    assert fates(live, "later") == [None, None, "dedupe"]
    assert len(acted_on(live, "later")) == 2


def test_firings_of_a_condition_that_failed_are_judged_when_it_is_redriven(
    store: SqlStore,
) -> None:
    """Then a later one has fired, and they are as late as that."""
    live = Live(store, book("cooldown: 10 s"), "dead", BEGIN - SECOND)
    Told.fails = Failure("[NO] never", lasting=True)
    live.signal([temp(1, 0)])
    live.drain(BEGIN + SECOND)
    assert fates(live, "now") == [None]
    assert acted_on(live, "now") == []
    Told.fails = None
    live.signal([temp(2, 5)])
    live.drain(BEGIN + 6 * SECOND)
    assert fates(live, "now") == [None, None]
    for entry in store.of("dead").rule_states.obstacles():
        assert isinstance(entry, Entry)
        if entry.rule == "now":
            store.of("dead").controls.ask("redrive", str(entry.number))
    live.drain(BEGIN + 7 * SECOND)
    live.loop.work()
    assert fates(live, "now") == ["cooldown", None]
    assert len(acted_on(live, "now")) == 1


def test_damped_firings_count_for_no_limit_and_are_reported(store: SqlStore) -> None:
    """Of 30 firings in a minute two pass: less than the limit of 5."""
    limited = replace(book("cooldown: 20 s"), settings=Settings(firings_per_rule_per_minute_max=5))
    limited = replace(limited, rules={"now": limited.rules["now"]})
    live = Live(store, limited, "often", BEGIN - SECOND)
    live.signal([temp(n, n) for n in range(30)])
    live.at = BEGIN + 30 * SECOND
    reports = []
    while (report := live.loop.bucket()) is not None:
        reports.append((report.firings, report.damped, report.entries))
    assert [sum(column) for column in zip(*reports, strict=True)] == [30, 28, len(reports)]
    live.restart()
    live.signal([temp(99, 31)])
    live.drain(BEGIN + 32 * SECOND)
    assert store.of("often").status.shown()["parked_rules"] == []
    shown = store.of("often").status.shown()["rules"][0]["damped_by"]
    assert shown == {"cooldown": 29}


def test_g13_a_dedupe_that_remembers_too_much_parks_its_rule_until_it_has_forgotten(
    store: SqlStore,
) -> None:
    limited = replace(
        book("dedupe: {by: [note, level], within: 60 s}"), settings=Settings(dedupe_keys_max=3)
    )
    limited = replace(limited, rules={name: limited.rules[name] for name in ("now", "uses")})
    live = Live(store, limited, "much", BEGIN - SECOND)
    live.signal([temp(n, 0, note=str(n)) for n in range(3)])
    live.drain(BEGIN + SECOND)
    live.signal([temp(3, 10, note="0"), temp(4, 10, note="3")])
    live.drain(BEGIN + 11 * SECOND)
    assert fates(live, "now") == [None, None, None, "dedupe", None]
    now, uses = store.of("much").status.shown()["parked_rules"]
    assert "its dedupe remembers 4 firings, at most 3 (dedupe_keys_max)" in now["reason"]
    assert uses["reason"] == "it uses now"
    store.of("much").controls.ask("enable", "now")
    live.signal([temp(6, 90, note="5")])  # the others are behind by now
    live.drain(BEGIN + 91 * SECOND)
    live.signal([temp(7, 92, note="6")])
    live.drain(BEGIN + 93 * SECOND)
    assert [p["rule"] for p in store.of("much").status.shown()["parked_rules"]] == ["uses"]
    with store.database.read() as connection:
        count = sa.select(sa.func.count()).select_from(remembered)
        before = connection.execute(count).scalar_one()
        live.loop.ports.ledger.retention.purge(0, 0, 1_000)
    with store.database.read() as connection:
        assert connection.execute(count).scalar_one() == 2 < before


def test_g13_a_rule_is_parked_once_by_two_limits_and_goes_on_once_it_has_forgotten(
    store: SqlStore,
) -> None:
    limits = Settings(dedupe_keys_max=1, firings_per_rule_per_minute_max=1)
    whole = book("dedupe: {by: note, within: 60 s}")
    whole = replace(whole, rules={"now": whole.rules["now"]}, settings=limits)
    live = Live(store, whole, "both", BEGIN - SECOND)
    live.signal([temp(n, 0, note=str(n)) for n in range(2)])
    live.drain(BEGIN + SECOND)
    for n in (2, 3):
        live.signal([temp(n, n)])
        live.drain(BEGIN + (n + 1) * SECOND)
    (parked,) = store.of("both").status.shown()["parked_rules"]
    assert parked["passed_over"] == 2
    assert "(firings_per_rule_per_minute_max)" in parked["reason"]
    store.of("both").controls.ask("enable", "now")
    live.drain(BEGIN + 130 * SECOND)  # a bucket without a firing
    assert store.of("both").status.shown()["parked_rules"] == []
