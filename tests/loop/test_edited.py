"""G9: a rulebook is edited between two runs; what is half matched stays in the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tests.support.bench import Bench
from tests.support.make import BEGIN, signal
from tests.support.rulebooks import loaded
from tidegate.engine.store import SqlStore
from tidegate.rules.model import Rulebook


def book(on: Mapping[str, str]) -> Rulebook:
    return loaded("abcd", **{name: f"on: '{text}', per: k" for name, text in on.items()})


class Edited(Bench):
    """A loop whose rulebook is edited; signals are raised one by one."""

    def __init__(self, store: SqlStore, **on: str) -> None:
        self.raised, self.edited = 0, book(on)
        super().__init__(store, commits=0)

    def edit(self, **on: str) -> None:
        """Run on with these rules."""
        self.edited = book(on)
        self.restart()

    def restart(self) -> None:
        self.book = self.edited
        super().restart()

    def happens(self, *events: str) -> Counter[str]:
        """Firings of each rule so far, after these events, a bucket each."""
        for event in events:
            self.raised += 1
            raised = signal(f"s{self.raised}", BEGIN, event=event, fields={"k": 1})
            self.store.of("loop").signals.raise_signal(raised)
            self.drain()
        return Counter(firing["rule"] for firing in self.store.of("loop").firings.listed())

    def nodes(self) -> dict[str, list[object]]:
        tables = self.store.of("loop").buckets.load().carried.tables
        return {name: t.to_pylist() for name, t in tables.items() if name.startswith("node:")}


def test_g09_editing_one_rule_leaves_the_others_where_they_were(store: SqlStore) -> None:
    engine = Edited(store, r="(a and b) ; c", q="d ; c", gone="b ; d")
    assert engine.happens("a", "b", "d") == {"gone": 1}
    before = engine.nodes()
    engine.edit(r="(a and b) ; c", q="(b and a) ; d")
    assert engine.happens("c") == {"gone": 1, "r": 1}
    after = engine.nodes()
    assert len(before) == 4  # the conjunction, and one for each rule
    assert {name for name in before if after.get(name) == before[name]} == before.keys() & after
    assert len(before.keys() & after) == 2


def test_g09_words_and_plain_names_change_nothing_that_is_half_matched(store: SqlStore) -> None:
    """A rule's description, labels and severity, and the names it is written with, are in no
    digest: what it has half matched goes on."""
    engine = Edited(store, r="not(b)[a ; d, c]")
    assert engine.happens("a", "d") == {}
    before = engine.nodes()
    said = "description: late, severity: error, labels: {team: x}, context: latest"
    engine.edited = loaded("abcd", r=f"on: 'not(b)[a ; d, c]', per: k, {said}")
    engine.restart()
    assert engine.nodes() == before
    assert engine.happens("c") == {"r": 1}
    [fired] = engine.store.of("loop").firings.listed()
    assert (fired["severity"], fired["labels"], fired["description"]) == (
        "error",
        {"team": "x"},
        "late",
    )


def test_g09_an_edited_rule_finds_the_nodes_that_stay(store: SqlStore) -> None:
    """The conjunction is kept; the new sequence starts empty, so that it sees a and b together
    only when one of them comes again."""
    engine = Edited(store, r="(a and b) ; c")
    engine.happens("a", "b")
    engine.edit(r="(b and a) ; (c or d)")
    assert engine.happens("d") == {}
    assert engine.happens("a", "d") == {"r": 1}


def test_g09_a_new_rule_sees_nothing_of_what_was_before_it(store: SqlStore) -> None:
    engine = Edited(store, r="(a and b) ; c")
    engine.happens("a", "b")
    engine.edit(r="(a and b) ; c", new="(a and b) ; d")
    assert engine.happens("d") == {}
    assert engine.happens("c") == {"r": 1}
    assert engine.happens("a", "d") == {"r": 1}
    assert engine.happens("b", "d") == {"r": 1, "new": 1}


def test_g09_rules_that_begin_together_share_what_is_equal(store: SqlStore) -> None:
    engine = Edited(store, r="(a and b) ; c", q="(b and a) ; d")
    engine.happens("a", "b")
    shared = engine.nodes()
    assert len(shared) == 3
    engine.edit(q="(b and a) ; d")
    assert engine.happens("d") == {"q": 1}
    assert engine.nodes().keys() < shared.keys()


def test_g24_what_was_seen_of_a_table_that_is_gone_is_not_waited_for(store: SqlStore) -> None:
    """As in the middle of `run --once`, whose rulebook is changed between two buckets."""
    engine = Bench(store, commits=1)
    engine.drain()
    engine.feed.commits = 3
    seen = engine.loop.visible()
    assert not engine.loop.done(seen)
    engine.write("rulebook: loop\nevents: {rung: {signal: {}}}\nrules: {heard: {on: rung}}\n")
    engine.restart()
    engine.drain()
    assert engine.loop.done(seen)
