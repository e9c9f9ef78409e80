"""Rules that are switched off and on: by operators, and by rules (G24)."""

from __future__ import annotations

from collections import Counter

import pytest
import sqlalchemy as sa

from tests.support.bench import Bench
from tests.support.make import outcome, signal
from tidegate.engine.control.requests import ask_for_rule
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.suspect import Strikes, Suspect
from tidegate.engine.store import SqlStore
from tidegate.engine.store.tables import controls
from tidegate.rules.errors import InputError

TABLES = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}, s: {signal: {id: bigint}}}
rules:
"""
OUT = "do: [{sql: INSERT INTO out SELECT id FROM event}]"
RULES = f"""\
  a: {{on: row, {OUT}}}
  b: {{on: row, {OUT}}}
  off: {{on: row, enabled: false}}
"""
PAIRS = f"""\
  pair: {{on: row ; row, context: chronicle, {OUT}}}
  user: {{on: pair, {OUT}}}
"""


def bench_of(store: SqlStore, rules: str, commits: int = 0) -> Bench:
    return Bench(store, commits=commits, text=TABLES + rules)


def commit(bench: Bench, commits: int) -> None:
    """So many commits more, a second after the other."""
    for version in range(bench.feed.commits, bench.feed.commits + commits):
        bench.clock.later(1)
        bench.feed.instants[version] = bench.clock.at
    bench.feed.commits += commits
    bench.clock.later(1)


def go(bench: Bench, commits: int) -> Counter[tuple[str, int]]:
    """So many commits more; what was written for them."""
    before = Counter(bench.sink.effects)
    commit(bench, commits)
    bench.drain()
    return bench.sink.effects - before


def ask(bench: Bench, kind: str, rule: str) -> None:
    """Ask for it now, by the clock of the bench."""
    bench.store.of("loop").controls.ask(kind, rule)
    bench.clock.later(1)
    asked = bench.store.of("loop").controls.pending()[-1].id
    with bench.store.database.write() as connection:
        one = controls.c.id == asked
        connection.execute(sa.update(controls).where(one).values(asked_at=bench.clock.at))


def states(bench: Bench) -> dict[str, str]:
    return {row["rule"]: row["state"] for row in bench.store.of("loop").status.shown()["rules"]}


def answers(store: SqlStore) -> list[str]:
    return [row["answer"] for row in store.of("loop").status.shown()["answered"]]


def test_g24_a_disabled_rule_detects_nothing_until_it_is_enabled(store: SqlStore) -> None:
    bench = bench_of(store, RULES)
    assert go(bench, 1) == Counter({("a", 0): 1, ("b", 0): 1})
    store.of("loop").controls.ask("disable", "a")
    assert go(bench, 2) == Counter({("b", 1): 1, ("b", 2): 1})
    assert states(bench) == {"a": "disabled", "b": "active"}
    [shown] = store.of("loop").status.shown()["disabled_rules"]
    assert (shown["rule"], shown["commands"]) == ("a", ["tidegate enable a"])
    bench.restart()  # a new run changes nothing
    assert go(bench, 1) == Counter({("b", 3): 1})
    assert not store.of("loop").rule_states.obstacles()
    ask(bench, "enable", "a")
    assert go(bench, 1) == Counter({("a", 4): 1, ("b", 4): 1})
    assert states(bench) == {"a": "active", "b": "active"}
    bench.restart()
    assert go(bench, 1) == Counter({("a", 5): 1, ("b", 5): 1})
    assert answers(store) == ["done", "done"]


def test_g24_it_goes_on_as_a_new_activation_and_so_does_who_uses_it(store: SqlStore) -> None:
    bench = bench_of(store, PAIRS)
    go(bench, 1)
    store.of("loop").controls.ask("disable", "pair")
    assert go(bench, 1) == Counter()
    before = store.of("loop").buckets.load().activations
    ask(bench, "enable", "pair")
    # The row of before, 0, opens nothing any more: the pair is 2 and 3.
    assert go(bench, 1) == Counter()
    assert go(bench, 1) == Counter((rule, n) for rule in ("pair", "user") for n in (2, 3))
    after = store.of("loop").buckets.load().activations
    assert [rule for rule in after if after[rule] == before[rule]] == []
    bench.restart()
    assert go(bench, 2) == Counter((rule, n) for rule in ("pair", "user") for n in (4, 5))


@pytest.mark.parametrize("cut", [False, True])
def test_g24_what_was_committed_before_enable_is_passed_over_bucket_or_not(
    store: SqlStore, *, cut: bool
) -> None:
    bench = bench_of(store, RULES + PAIRS)
    go(bench, 1)
    ask(bench, "disable", "a")
    ask(bench, "disable", "pair")
    commit(bench, 3)  # 1 to 3
    if cut:
        bench.drain()
    ask(bench, "enable", "a")
    commit(bench, 1)  # 4
    ask(bench, "enable", "pair")  # it has gathered 0, and forgets it
    go(bench, 2)  # 5 and 6
    found = bench.sink.effects
    assert [n for rule, n in sorted(found) if rule == "b"] == [*range(7)]
    assert [n for rule, n in sorted(found) if rule == "a"] == [0, 4, 5, 6]
    for rule in ("pair", "user"):
        assert [n for name, n in sorted(found) if name == rule] == [5, 6]
    assert answers(store) == ["done"] * 4


def test_g24_disable_holds_for_all_that_is_not_taken_yet(store: SqlStore) -> None:
    """Also for what came between two that let it go on."""
    bench = bench_of(store, RULES)
    go(bench, 1)
    commit(bench, 1)
    for kind in ("disable", "enable", "disable", "enable"):
        ask(bench, kind, "a")
        commit(bench, 1)
    bench.drain()
    assert [n for rule, n in sorted(bench.sink.effects) if rule == "a"] == [0, 5]


def test_g24_signals_before_enable_are_passed_over_and_timers_forgotten(store: SqlStore) -> None:
    late = f"  late: {{on: 's + [10 s]', {OUT}}}\n  heard: {{on: s, {OUT}}}\n"
    bench = bench_of(store, late)
    bench.drain()

    def tell(number: int) -> None:
        bench.clock.later(1)
        store.of("loop").signals.raise_signal(
            signal(str(number), bench.clock.at, event="s", fields={"id": number})
        )
        bench.clock.later(1)

    tell(1)
    bench.drain()
    for rule in ("late", "heard"):
        ask(bench, "disable", rule)
    tell(2)
    for rule in ("late", "heard"):
        ask(bench, "enable", rule)
    tell(3)
    bench.clock.later(20)
    bench.drain()
    told = [
        (f["rule"], [c.get("event") for c in f["constituents"]])
        for f in store.of("loop").firings.listed()
    ]
    assert Counter(rule for rule, _ in told) == Counter(heard=2, late=1)


def test_g24_what_a_reset_after_enable_reads_again_is_seen(store: SqlStore) -> None:
    bench = bench_of(store, RULES)
    go(bench, 3)
    ask(bench, "disable", "a")
    ask(bench, "enable", "a")
    store.of("loop").controls.ask("reset", "t", version=0)
    bench.clock.later(1)
    bench.drain()
    assert bench.sink.effects == Counter({(rule, n): 2 for rule in "ab" for n in range(3)})


def test_g24_what_changes_nothing_is_answered_and_the_last_one_holds(store: SqlStore) -> None:
    bench = bench_of(store, RULES)
    go(bench, 1)
    for kind, rule in [
        ("enable", "a"), ("disable", "a"), ("disable", "a"), ("enable", "off"), ("disable", "gone"),
        ("disable", "b"), ("enable", "b"),
    ]:  # fmt: skip
        ask(bench, kind, rule)
    seen = bench.loop.visible()
    assert go(bench, 1) == Counter({("b", 1): 1})
    assert bench.loop.done(seen)
    assert answers(store) == [
        "rule a is not parked, and not disabled",
        "done",
        "rule a is disabled already",
        "rule off is disabled in the rulebook: enabled: false",
        "rule gone is not in the rulebook",
        "done",
        "done",
    ]


def test_g24_a_disabled_rule_that_leaves_the_rulebook_is_forgotten(store: SqlStore) -> None:
    bench = bench_of(store, RULES)
    store.of("loop").controls.ask("disable", "a")
    go(bench, 1)
    bench.write(TABLES + RULES.replace("  a:", "  c:"))
    bench.restart()
    go(bench, 1)
    assert store.of("loop").rule_states.disabled() == frozenset()


def test_g24_rules_switch_rules_from_the_next_plan_on(store: SqlStore) -> None:
    once = "do: [{sql: INSERT INTO out SELECT id FROM event}, {disable: once}]"
    rules = f"  once: {{on: row, {once}}}\n  again: {{on: s, do: {{enable: once}}}}\n"
    bench = bench_of(store, rules)
    assert go(bench, 2) == Counter({("once", 0): 1, ("once", 1): 1})  # of one bucket
    assert states(bench)["once"] == "disabled"
    assert go(bench, 1) == Counter()
    store.of("loop").signals.raise_signal(signal(event="s", fields={"id": 1}, at=bench.clock.at))
    bench.clock.later(1)
    bench.drain()
    assert states(bench)["once"] == "active"
    assert go(bench, 1) == Counter({("once", 3): 1})


def test_g24_a_switch_is_asked_for_once_with_its_entrys_outcome(store: SqlStore) -> None:
    bench = bench_of(store, "  x: {on: row, do: {disable: x}}\n")
    bench.feed.commits = 1
    bench.drain()
    entry = store.of("loop").outbox.entry(1)
    assert entry is not None
    assert entry.state == "done"
    before = len(answers(store))
    bench.ledger.outbox.settle([outcome(entry, "done", 1, asks=("disable", "x"))])
    assert not store.of("loop").controls.pending()  # what is finished stays so
    assert len(answers(store)) == before == 1


def test_g24_purged_entries_can_land_no_more(store: SqlStore) -> None:
    bench = bench_of(store, RULES)
    bench.sink.fails = lambda entry: SinkError("no") if entry.rule == "a" else None
    go(bench, 1)
    go(bench, 1)
    assert [state for _, state in bench.states()] == ["pending", "pending"]
    first, second = (number for number, _ in bench.states())
    bench.sink.fails = lambda _: None
    ask_for_rule(store, bench.book, "disable", "a", purge=True)
    assert go(bench, 1) == Counter({("b", 2): 1})
    assert bench.states() == [(first, "dead"), (second, "dead")]
    app_id = store.of("loop").outbox.entry(first).app_id  # type: ignore[union-attr]
    assert [(n, ids) for a, n, ids in bench.sink.commits if a == app_id] == [(first, None)]
    assert answers(store) == ["done"]
    bench.clock.later(99)
    bench.drain()
    assert ("a", 0) not in bench.sink.effects

    ask_for_rule(store, bench.book, "disable", "a", purge=True)  # what came since, nothing here
    bench.drain()
    assert answers(store)[-1] == "rule a is disabled already"


def test_g24_what_an_earlier_run_may_have_begun_is_sealed_by_a_purge(store: SqlStore) -> None:
    bench = bench_of(store, RULES)
    bench.loop.ports.stopped = lambda: bool(
        store.of("loop").buckets.load().bucket
    )  # it ends before it acts
    go(bench, 1)
    bench.restart()
    store.of("loop").controls.ask("disable", "a", option="purge")
    go(bench, 0)
    assert [(n, ids) for _, n, ids in bench.sink.commits if ids is None] == [(1, None)]
    assert ("a", 0) not in bench.sink.effects


def test_what_cannot_be_sealed_is_not_purged(store: SqlStore) -> None:
    bench = bench_of(store, RULES)
    bench.sink.fails = lambda entry: SinkError("no") if entry.rule == "a" else None
    go(bench, 1)
    store.of("loop").controls.ask("disable", "a", option="purge")
    go(bench, 1)
    assert [state for _, state in bench.states()] == ["pending"]
    assert states(bench)["a"] == "disabled"


def test_what_cannot_change_anything_is_refused(store: SqlStore) -> None:
    bench = bench_of(store, RULES)
    go(bench, 1)

    def refused(kind: str, rule: str) -> str:
        with pytest.raises(InputError) as caught:
            ask_for_rule(store, bench.book, kind, rule)
        return str(caught.value)

    assert "has no rule or script `c`" in refused("disable", "c")
    assert "rule `a` is not parked, and not disabled" in refused("enable", "a")
    ledger = store.of(bench.book.name, bench.epoch)
    suspect = Suspect("action", "a/0", "digest", "12", told="action 1 of rule a")
    ledger.suspects.strike([Strikes(suspect, deaths=1)], [])
    refused("enable", "a")  # it is in quarantine after two
    ledger.suspects.strike([Strikes(suspect, deaths=2)], [])
    ask_for_rule(store, bench.book, "enable", "a")
    [asked] = ledger.controls.pending()
    ledger.controls.answer(asked.id, "done")
    said = refused("enable", "off")
    assert "rule `off` is disabled in the rulebook" in said
    assert "write `enabled: true` there" in said
    ask_for_rule(store, bench.book, "disable", "a")
    ask_for_rule(store, bench.book, "enable", "a")  # before any bucket carried out the first
    go(bench, 1)
    ask_for_rule(store, bench.book, "disable", "a")
    go(bench, 1)
    assert "`tidegate enable a` ends it" in refused("disable", "a")
