"""Components that are stepped apart, by partition, find what one step finds (G26)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.detect.events.step.test_apart import differing, identified, lines_of, unexpired
from tests.reference.cuts import cuts
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import detecting, noted, noting, saw
from tests.reference.planted import planted
from tests.reference.strategies import EVERYTHING, SECOND, rulebooks
from tests.support.executors import InProcess
from tests.support.history import batches, buckets, through_ipc
from tests.support.rulebooks import loaded
from tidegate.engine.core.clocks import clock_batches
from tidegate.engine.core.columns.ids import constituent_ids, firing_ids
from tidegate.engine.core.values import Batch, Carried, Detections
from tidegate.engine.detect.events.graph.search_limits import RuleLimitError
from tidegate.engine.detect.events.step.component_detector import (
    ComponentDetector,
    Done,
    Shares,
    Task,
)
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.expressions.nodes import Name
from tidegate.rules.model import Context, Rule, Rulebook, SignalEvent

EXAMPLES, LEAST = 100, 15
BOOKS = 12  # that are drawn in vain, at most
COUNTS, KEYS = (1, 3, 4, 16), (1, 2, None)

Batches = dict[str, Batch]


in_process = InProcess().map


def by_keys(draw: st.DrawFn, rulebook: Rulebook) -> Rulebook:
    """The rulebook with a second key column `m` of each keyed event type, by which some of its
    rules count in place of `k`."""
    events = {
        name: replace(event, fields={**event.fields, "m": "bigint"})
        if isinstance(event, SignalEvent) and "k" in event.fields
        else event
        for name, event in rulebook.events.items()
    }
    rules = {}
    for name, rule in rulebook.rules.items():
        per = rule.pattern.per
        if draw(st.booleans()) and per.keys() <= events.keys():
            per = {e: tuple("m" if c == "k" else c for c in cs) for e, cs in per.items()}
            names = tuple("m" if n == "k" else n for n in rule.pattern.key_names)
            rule = replace(rule, pattern=replace(rule.pattern, per=per, key_names=names))
        if all(set(per.get(used, rules[used].pattern.key_names)) <= {*rules[used].pattern.key_names}
               for used in per.keys() & rules.keys()):  # fmt: skip
            rules[name] = rule
    return replace(rulebook, events=events, rules=rules or rulebook.rules)


def hears(rule: Rule) -> bool:
    """Whether a rule has a key, and a broadcast in its expression."""
    named = {node.name for node in rule.pattern.on.walk() if isinstance(node, Name)}
    return bool(rule.pattern.per) and not named <= rule.pattern.per.keys()


@st.composite
def of_two_keys(draw: st.DrawFn) -> tuple[Rulebook, list[Line]]:
    """A rulebook whose rules count by k, by m or by nothing, some of them by a key, and a history
    of it in which each line happens to each key."""
    for _ in range(BOOKS):
        drawn = rulebooks(
            operators=EVERYTHING, contexts=list(Context), depth=2, rules_max=3, broadcasts_min=1
        )
        rulebook = draw(drawn)
        if any(map(hears, rulebook.rules.values())):
            break
    history = draw(planted(rulebook, 8))
    book = by_keys(draw, rulebook)
    other, later = st.sampled_from([None, None, 1, 2]), draw(st.sampled_from([0, 2_000]))

    def keyed(fields: dict[str, Any], key: int | None) -> dict[str, Any]:
        m = draw(other)
        return fields | {"k": key, "m": key if m is None else m} if "k" in fields else fields

    lines = [
        (name, time + later * KEYS.index(key), keyed(fields, key))
        for name, time, fields in history
        for key in (KEYS if "k" in fields else KEYS[:1])
    ]
    return book, lines


def ids_of(found: Detections) -> list[str]:
    """The firing ids of a rule's detections, in order."""
    ids = constituent_ids(found, {})
    of = firing_ids("b", found.rule, found.keys, found.start, found.end, found.offsets, ids)
    return [f"{high:x}{low:x}" for high, low in of.tolist()]


def told(found: Sequence[Detections]) -> list[tuple[str, list[str], list[str]]]:
    """Of each rule its detections, in order, and their ids."""
    return [(d.rule, lines_in_order(d), ids_of(d)) for d in found]


def lines_in_order(found: Detections) -> list[str]:
    one = [(i, lines_of([_only(found, i)])[0]) for i in range(len(found))]
    return [line for _, line in sorted(one)]


def _only(found: Detections, i: int) -> Detections:
    return replace(
        found,
        keys=found.keys.slice(i, 1),
        start=found.start[i : i + 1],
        end=found.end[i : i + 1],
        offsets=found.offsets[i : i + 2],
    )


@noting(
    broadcasts=4, some_keyed=2, some_the_drivers=20, two_components=150, timers_stopped=60,
    modes_changed=4, partitions_changed=4,
)  # fmt: skip
@detecting
def test_g26_components_stepped_apart_are_the_rulebook_stepped_whole() -> None:
    """Detections, their order, ids and what is carried: through bytes, over any number of
    partitions and tasks, and with the mode changing from bucket to bucket."""

    @given(data=st.data())
    @example_count(EXAMPLES, LEAST)
    def some(data: st.DataObject) -> None:
        rulebook, history = data.draw(of_two_keys())
        assume(history)
        first = min(time for _, time, _ in history)
        since = dict.fromkeys(rulebook.rules, first)
        whole = Detector(rulebook, since)
        apart = ComponentDetector(rulebook, since, in_process, 4)
        keyed, rest = apart.components.keyed, apart.components.rest
        noted("some keyed", bool(keyed))
        noted("some the drivers", bool(rest) and bool(keyed))
        noted("two components", len(keyed) > 1)
        heard = {e for c in keyed for e, columns in c.events.items() if columns is None}
        lines = sorted(history, key=lambda line: line[1])
        ends = {*data.draw(cuts(rulebook, lines)), lines[-1][1], lines[-1][1] + 5 * SECOND}
        carried, shares = Carried(), Shares()
        count, mode, stopped, found = 1, data.draw(st.booleans()), False, list[Any]()
        changes, recuts, watermark = 0, 0, first - 1
        for number, (until, bucket) in enumerate(buckets(lines, ends)):
            clocks = clock_batches(rulebook, watermark + 1, until)
            given_ = identified(batches(rulebook, bucket) | clocks, number)
            of_whole, carried, _ = whole.step(carried, given_, until, partitions=count)
            limit = data.draw(st.sampled_from([1, None, 1]))
            if mode != (mode := data.draw(st.booleans())):
                changes += 1
            steps, reached = list[Sequence[Detections]](), watermark
            while reached < until:
                left = {e: b.take(np.flatnonzero(b.time > reached)) for e, b in given_.items()}
                if mode:
                    last, count = count, data.draw(st.sampled_from(COUNTS))
                    recuts += last != count
                    tasks = data.draw(st.integers(1, 4))
                    of_apart, shares, reached, *_ = apart.step(
                        shares, left, until, limit=limit, partitions=count, tasks=tasks
                    )
                else:
                    both = through_ipc(apart.united(shares, count)) if shares.each else Carried()
                    of_apart, both, reached = whole.step(
                        both, left, until, limit=limit, partitions=count
                    )
                    shares = apart.divided(through_ipc(both))
                stopped |= mode and reached < until
                steps.append(of_apart)
            if len(steps) == 1:
                assert told(steps[0]) == told(of_whole)
            assert sorted(line for step in steps for line in lines_of(step)) == lines_of(of_whole)
            carried = whole.cut_anew(through_ipc(carried), count)
            either = (
                whole.step(one, {}, until)[1] for one in (apart.united(shares, count), carried)
            )  # what has expired is dropped where something happens
            assert not differing(*(unexpired(one, whole, until) for one in either))
            found += of_whole
            watermark = until
        noted("broadcasts", bool(heard & {name for name, _, _ in lines}))
        noted("timers stopped", stopped)
        noted("modes changed", changes > 0)
        noted("partitions changed", recuts > 0)
        saw(found)

    some()


def rows(event: str, at: int, **columns: list[Any]) -> Batches:
    """Occurrences at one instant."""
    table = pa.table(columns)
    number = np.arange(len(table))
    ids = np.stack([number, np.full(len(table), at)], axis=1).astype(np.uint64)
    return {event: Batch(event, np.full(len(table), at), number, table, {"set": ids})}


def apart(book: Rulebook) -> ComponentDetector:
    return ComponentDetector(book, dict.fromkeys(book.rules, 0), in_process, 16)


def test_g26_one_row_is_of_a_partition_for_each_of_two_keys() -> None:
    book = loaded("abc", r="on: a ; b, per: k", s="on: a ; c, per: v", q="on: c", p="on: a, per: k")
    given_ = apart(book)
    assert [c.events for c in given_.components.keyed] == [
        {"a": ("k",), "b": ("k",)},
        {"a": ("v",), "c": ("v",)},
    ]
    keys = [*range(40)]
    shares, found = Shares(), list[Detections]()
    for at, event in enumerate("abc", start=1):
        arrivals = rows(event, at, k=keys, v=keys[::-1])
        made, shares, *_ = given_.step(shares, arrivals, at, partitions=16, tasks=3)
        found += made
    assert [(d.rule, len(d)) for d in found] == [("p", 40), ("r", 40), ("s", 40), ("q", 40)]
    assert [d.keys.column(0).to_pylist() for d in found if d.rule != "q"] == [keys] * 3
    whole = given_.united(shares, 16)
    (a,) = {n.rsplit("/")[0] for n in whole.tables if n.startswith("occ:a")}
    parts = [table for name, table in whole.tables.items() if name.startswith(a + "/")]
    assert sum(map(len, parts)) > 2 * len(keys) - 16  # of r by its k, of s by its v
    ranks = {(row["p:k"], row["rank"]) for part in parts for row in part.to_pylist()}
    assert ranks == {(key, key) for key in keys}  # where they meet, among all of that instant


def test_g26_rules_of_one_domain_that_key_an_event_differently_are_two_components() -> None:
    book = loaded(
        "abc",
        r="on: a ; b, per: k",
        s="on: b ; c, per: k",
        q="on: 'a ; c', per: {a: v, c: k}",
    )
    assert [c.rules for c in apart(book).components.keyed] == [("r", "s"), ("q",)]


def test_g26_what_a_rule_has_detected_goes_with_it_and_what_that_stood_for_stays() -> None:
    """`q` has a node of `p`, and keeps its occurrences of `a` and `b`; `t` had those of `p`."""
    book = loaded("abc", p="on: a ; b, per: k", t="on: p ; c, per: k", q="on: (a ; b) ; c, per: k")
    before, shares, keys = apart(book), Shares(), [*range(40)]
    for at, event in enumerate("ab", start=1):
        shares = before.step(shares, rows(event, at, k=keys), at, partitions=4, tasks=2).shares
    carried = before.united(shares, 4)
    assert "occ:p/0" in carried.tables
    after = apart(replace(book, rules={"q": book.rules["q"]}))
    made = after.step(after.divided(carried), rows("c", 3, k=keys), 3, partitions=4, tasks=2)
    assert [(d.rule, len(d)) for d in made.detections] == [("q", 40)]
    left = after.united(made.shares, 4).tables
    assert {name.partition("/")[0] for name in left if name.startswith("occ:")} == {
        "occ:a",
        "occ:b",
    }


def test_g26_what_is_sent_is_no_larger_than_what_it_says() -> None:
    """A detection of one row among a hundred thousand."""
    book = loaded("ab", r="on: a ; b, per: k")
    seen = list[int]()

    def counted(run: Callable[[Task], Done], tasks: Sequence[Task]) -> list[Done]:
        found = in_process(run, tasks)
        seen.extend(len(pickle.dumps(done)) for done in found)
        return found

    given_ = ComponentDetector(book, {"r": 0}, counted, 16)
    shares = given_.step(Shares(), rows("a", 1, k=[7]), 1)[1]
    given_.step(shares, rows("b", 2, k=[*range(100_000)]), 2)
    assert max(seen) < 10_000


def test_g13_a_limit_that_a_rule_reaches_in_a_task_is_the_rules() -> None:
    book = loaded("ab", r="on: a ; b, per: k, context: chronicle", s="on: b, per: v")
    book = replace(book, settings=replace(book.settings, carried_per_key_max=3))
    given_ = apart(book)
    arrivals = rows("a", 1, k=[7] * 4, v=[1] * 4)
    with pytest.raises(RuleLimitError, match="rule r, key k=7: 4 occurrences") as error:
        given_.step(Shares(), arrivals, 1, partitions=16, tasks=2)
    assert error.value.rule == "r"
    made, _, reached, *_ = given_.step(
        Shares(), arrivals | rows("b", 2, k=[1], v=[2]), 2, parked={"r"}, partitions=16
    )
    assert ([d.rule for d in made], reached) == (["s"], 2)


def test_g08_the_least_that_a_partition_reaches_holds_for_all() -> None:
    """Timers of 40 keys, a millisecond apart; each task may fire five."""
    book = loaded("ab", r="on: 'not(b)[a, [1 s]]', per: k", s="on: b, per: k")
    given_ = apart(book)
    shares = Shares()
    for n in range(40):
        at = 1_000 * n + 1
        shares = given_.step(shares, rows("a", at, k=[n]), at, partitions=16)[1]
    found, reached, steps = list[int](), 50_000, 0
    while reached < 2_000_000:
        made, shares, reached, *_ = given_.step(
            shares, {}, 2_000_000, limit=5, partitions=16, tasks=4
        )
        assert all((d.end <= reached).all() for d in made)
        found += [int(end) for d in made for end in d.end]
        steps += 1
    assert found == [1_000_001 + 1_000 * n for n in range(40)]
    assert steps > 2


REASONS = {
    "it has no `per:`": {"r": "on: a ; b"},
    "r uses it by other keys": {"p": "on: 'a ; b', per: k", "r": "on: 'p ; t'"},
    "it uses p by other keys": {
        "p": "on: 'a ; b', per: [k, v]", "r": "on: 'p ; c', per: k",
    },
    "it keys a both by k and by v": {
        "p": "on: 'a ; b', per: k", "r": "on: 'p ; a', per: {p: k, a: v}",
    },
}  # fmt: skip


@pytest.mark.parametrize("reason", REASONS)
def test_what_keeps_a_rule_on_the_driver_is_said(reason: str) -> None:
    found = apart(loaded("abc", "t", **REASONS[reason])).components
    assert found.keyed == ()
    assert reason in found.rest.values()
    assert all(
        why == reason or why.startswith("it shares nodes or detections with") or why in REASONS
        for why in found.rest.values()
    )
