"""Rules in strata, between which scripts run, are detected as by one detector of all rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.detect.events.step.test_apart import (
    differing,
    identified,
    lacking,
    lines_of,
    of_keys,
    unexpired,
)
from tests.detect.events.step.test_component_detector import of_two_keys, rows, told
from tests.detect.events.step.test_component_step import held, in_memory, met
from tests.reference.cuts import cuts
from tests.reference.examples import example_count
from tests.reference.hits import detecting, noted, noting, saw
from tests.reference.strategies import SECOND
from tests.support.executors import InProcess
from tests.support.history import batches, buckets, through_ipc
from tests.support.rulebooks import loaded
from tidegate.engine.core.clocks import clock_batches
from tidegate.engine.core.values import Carried
from tidegate.engine.detect.events.state import partitions, shares
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.step import stratified_detector
from tidegate.engine.detect.events.step.component_detector import Beside
from tidegate.engine.detect.events.step.component_step import ComponentStep
from tidegate.engine.detect.events.step.component_task import Plan
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.engine.detect.events.step.stratified_detector import Detect, StratifiedDetector
from tidegate.engine.store import shelf as shelves
from tidegate.engine.store.shelf import FileShelf
from tidegate.rules.analysis.graph import Stratum, in_order, makers, reached, uses_of
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook

LATE = 2 * SECOND
MOST = 4  # partitions


@st.composite
def some_strata(draw: st.DrawFn, book: Rulebook) -> tuple[Stratum, ...]:
    """Each rule is of the stratum of the rules that it uses, or of the next one."""

    def used(name: str) -> list[str]:
        return [m.name for m in makers(uses_of(book.rules[name], book.rules), book)]

    level: dict[str, int] = {}
    for rule in in_order(book):
        after = max((level[name] for name in used(rule.name)), default=0)
        level[rule.name] = after + draw(st.integers(0, 1))
    found = []
    for number in sorted({*level.values()}):
        own = tuple(name for name in book.rules if level[name] == number)
        found.append(Stratum((), own, tuple(n for n in book.rules if n in reached(own, used))))
    return tuple(found)


def when_shares_meet(monkeypatch: pytest.MonkeyPatch, call: Callable[[], None]) -> None:
    """Call it whenever what was kept apart meets."""
    met = shares._met

    def meets(tables: Parts, shelf: FileShelf | None) -> Parts:
        call()
        return met(tables, shelf)

    monkeypatch.setattr(shares, "_met", meets)


def asked(count: int, given: Any, detect: Detect) -> None:
    """As scripts ask that emit nothing."""
    for number in range(count):
        detect(number, given)


@noting(
    several=4, shared=10, moved=6, some_held_back=40, parked=30, in_files=80, executors=8,
)  # fmt: skip
@detecting
def test_g26_rules_in_strata_are_the_rulebook_stepped_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Detections, their order, ids, and what is carried, whoever steps from bucket to bucket, and
    though rules are of other strata then. Some wait for late rows. Timers stop some strata earlier
    than others."""
    monkeypatch.setattr(partitions, "ROWS_MAX", 3)
    shelf = FileShelf("", str(tmp_path), "one")

    @given(data=st.data())
    @example_count(200, 25)
    def some(data: st.DataObject) -> None:
        rulebook, history = data.draw(of_two_keys())
        names = [*rulebook.rules]
        late = dict.fromkeys(data.draw(st.sampled_from([(), (), (names[0],)])), LATE)
        assume(history)
        assume(len(names) > 1)
        since = dict.fromkeys(names, min(time for _, time, _ in history))
        detector = Detector(rulebook, since, lateness=late)
        one, alone, whole = (Partitioned(detector, most) for most in (1, MOST, MOST))
        plan = Plan(rulebook, since, late)

        def anew() -> tuple[int, StratifiedDetector, ComponentStep]:
            drawn = data.draw(some_strata(rulebook))
            monkeypatch.setattr(stratified_detector, "strata", lambda _: drawn)
            noted("several", len(drawn) > 1)
            noted("shared", any(one.used != one.rules for one in drawn))
            executors = InProcess(data.draw(st.sampled_from([1, 2])))
            apart = ComponentStep(rulebook, since, late, executors, MOST)
            return len(drawn), StratifiedDetector(plan, MOST), apart

        monkeypatch.setattr(shelves, "BYTES_MIN", data.draw(st.sampled_from([1, 1, 10**9])))
        count, stratified, apart = anew()
        lines = sorted(history, key=lambda line: line[1])
        end = lines[-1][1]
        ends = {*data.draw(cuts(rulebook, lines)), end, end + 5 * SECOND}
        in_one, expected, carried = Carried(), Carried(), Carried()
        found = list[str]()
        unlike, watermark = differing(carried, carried), lines[0][1] - 1
        for number, (until, bucket) in enumerate(buckets(lines, ends)):
            clocks = clock_batches(rulebook, watermark + 1, until)
            left = identified(batches(rulebook, bucket) | clocks, number)
            parked = data.draw(st.sets(st.sampled_from(names), max_size=1))
            parked = parked if data.draw(st.integers(0, 3)) == 0 else set()
            limit = None if late else data.draw(st.sampled_from([None, None, 1, 2]))
            if number and data.draw(st.integers(0, 2)) == 0:
                count, stratified, apart = anew()
                noted("moved", bool(carried.tables))
            way = data.draw(
                st.sampled_from(["alone", "strata", "strata", "executors", "executors"])
            )
            while watermark < until:
                if way == "alone":
                    made = alone.step(carried, left, until, None, parked, limit, shelf)
                elif way == "strata":
                    through = partial(asked, count, left)
                    made = stratified.step(carried, until, None, parked, limit, shelf, through)
                else:
                    beside = Beside((), (), lambda _, detect, n=count: asked(n, {}, detect))
                    made = apart.step_unread(
                        carried, left, until, parked, limit, None, shelf, None, beside
                    ).stepped
                noted("executors", way == "executors")
                watermark = made.watermark
                some_ = {event: batch.until(watermark) for event, batch in left.items()}
                some_ = some_ if watermark < until else left
                of_one = one.step(in_one, some_, watermark, None, parked)
                of_whole = whole.step(expected, some_, watermark, None, parked)
                assert told(made.detections) == told(of_one.detections)
                in_one, expected, kept = of_one.carried, of_whole.carried, made.carried
                noted("in files", bool(Parts.of(kept.tables).files))
                noted("some held back", way != "alone" and bool(held(kept)))
                noted("parked", bool(parked))
                assert held(kept) == held(expected)
                apart_, together, cut = (
                    unexpired(detector.cut_anew(met(each), 1), detector, watermark)
                    for each in (in_memory(kept, shelf), in_one, expected)
                )
                assert not lacking(apart_, together, detector.graph)
                gone, unlike = (
                    unlike,
                    differing(*(of_keys(each, detector.graph) for each in (apart_, cut))),
                )
                assert parked or not gone & unlike
                files = Parts.of(kept.tables).files
                carried = kept if files or data.draw(st.booleans()) else through_ipc(kept)
                found += lines_of(of_one.detections)
                left = {
                    event: batch.take((batch.time > watermark).nonzero()[0])
                    for event, batch in left.items()
                } if watermark < until else left  # fmt: skip
        saw(found)

    some()


@pytest.mark.parametrize("first", ["late", "soon"])
@pytest.mark.parametrize("way", ["strata", "executors"])
def test_g08_strata_end_where_timers_stop_the_first_of_them(
    monkeypatch: pytest.MonkeyPatch, first: str, way: str
) -> None:
    """What a script emits after that is given again."""
    rules = {"late": "on: 'a + [3 s]'", "soon": "on: 'b or a + [1 s]'"}
    book = loaded("ab", **rules)
    of_both = [Stratum((), (name,), (name,)) for name in sorted(rules, reverse=first == "soon")]
    monkeypatch.setattr(stratified_detector, "strata", lambda _: tuple(of_both))
    plan, end = Plan(book, dict.fromkeys(rules, 0), {}), 10 * SECOND
    whole = Partitioned(plan.detector(None), MOST)
    every = identified(batches(book, [("a", n * 2_000, {"k": n, "v": n}) for n in range(4)]), 0)
    begun = whole.step(Carried(), every, SECOND // 2).carried
    emitted = identified(batches(book, [("b", n * SECOND, {"k": n, "v": n}) for n in (1, 2, 4)]), 1)
    if way == "strata":
        made = StratifiedDetector(plan, MOST).step(
            begun, end, None, (), 2, None, partial(asked, 2, emitted)
        )
    else:
        executors = InProcess(2)
        beside = Beside((len,), (), lambda _, detect: asked(2, emitted, detect))
        apart = ComponentStep(book, plan.activations, {}, executors, MOST)
        made = apart.step_unread(begun, {}, end, (), 2, None, None, None, beside).stepped
        assert sum(executors.tasks) == 1  # what scripts do is done once
    reached = made.watermark
    assert reached < 4 * SECOND
    upto = {event: batch.until(reached) for event, batch in emitted.items()}
    expected = whole.step(begun, upto, reached)
    assert told(made.detections) == told(expected.detections)
    assert not differing(*(
        plan.detector(None).cut_anew(met(one), 1) for one in (made.carried, expected.carried)
    ))  # fmt: skip


SHARED = {
    "strata": {"first": "on: a ; b", "second": "on: (a ; b) ; c"},
    "executors": {
        "first": "on: '(a ; b) ; c', per: {c: k}",
        "second": "on: '(a ; b) ; c', per: {c: v}",
    },
}


@pytest.mark.parametrize("way", SHARED)
@pytest.mark.parametrize("parked", ["first", "second"])
def test_g13_a_node_of_a_parked_rule_goes_on_in_another_share(
    monkeypatch: pytest.MonkeyPatch, parked: str, way: str
) -> None:
    """And the rule finds it there when it is enabled: the second a has met b. Nothing that is kept
    apart has to meet for that."""
    rules, meeting = SHARED[way], list[int]()
    when_shares_meet(monkeypatch, lambda: meeting.append(number))
    book, one_each = loaded("abcx", **rules), [Stratum((), (name,), (name,)) for name in rules]
    if way == "strata":
        monkeypatch.setattr(stratified_detector, "strata", lambda _: tuple(one_each))
    plan = Plan(book, dict.fromkeys(rules, 0), {})
    whole, strata = Partitioned(plan.detector(None), MOST), StratifiedDetector(plan, MOST)
    apart = ComponentStep(book, plan.activations, {}, InProcess(2), MOST)
    expected = carried = Carried()
    number, off = 0, (parked,)
    given_ = [("a", ()), ("a", off), ("x", off), ("x", off), ("b", ()), ("c", ())]
    for number, (event, without) in enumerate(given_):
        at = (number + 1) * SECOND
        arriving = identified(batches(book, [(event, at, {"k": 7, "v": 7})]), number)
        of_whole = whole.step(expected, arriving, at, None, without)
        if way == "strata":
            through = partial(asked, 2, arriving)
            made = strata.step(carried, at, None, without, None, None, through)
        else:
            made = apart.step(carried, arriving, at, without)
        assert told(made.detections) == told(of_whole.detections)
        expected, carried = of_whole.carried, made.carried
    assert "second" in {found.rule for found in of_whole.detections}
    assert not meeting


def test_g13_keys_that_a_parked_rule_would_know_are_known_to_another_stratum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each a is of every known key. The second key comes while the first rule is parked."""
    rules = {
        "first": "on: 'not(b)[c, a]', per: {b: k, c: k}",
        "second": "on: 'A(c, a, b)', per: {b: k, c: k}",
    }
    book, one_each = loaded("abc", **rules), [Stratum((), (name,), (name,)) for name in rules]
    monkeypatch.setattr(stratified_detector, "strata", lambda _: tuple(one_each))
    strata, carried = StratifiedDetector(Plan(book, dict.fromkeys(rules, 0), {}), MOST), Carried()
    given_ = [("c", 7, ()), ("c", 8, ("first",)), ("a", 0, ())]
    for number, (event, key, without) in enumerate(given_):
        at = (number + 1) * SECOND
        arriving = identified(batches(book, [(event, at, {"k": key, "v": 0})]), number)
        through = partial(asked, 2, arriving)
        made = strata.step(carried, at, None, without, None, None, through)
        carried = made.carried
    found = {each.rule: each.keys["k"].to_pylist() for each in made.detections}
    assert found == {"first": [7], "second": [7, 8]}


def test_g26_what_strata_carry_is_cut_as_it_grows_and_detections_are_in_the_order_of_the_rulebook(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever stratum they are of."""
    monkeypatch.setattr(partitions, "ROWS_MAX", 3)
    rules = {"user": "on: used ; b, per: k", "used": "on: a, per: k"}
    used, user = Stratum((), ("used",), ("used",)), Stratum((), ("user",), ("user", "used"))
    monkeypatch.setattr(stratified_detector, "strata", lambda _: (used, user))
    strata = StratifiedDetector(Plan(loaded("ab", **rules), dict.fromkeys(rules, 0), {}), MOST)
    carried, found = Carried(), list[tuple[str, int]]()
    for at in (1, 2, 3):
        arriving = rows("a", at, k=[*range(9)]) | (rows("b", at, k=[7]) if at > 1 else {})
        made = strata.step(carried, at, None, (), None, None, partial(asked, 2, arriving))
        carried = made.carried
        found += [(one.rule, len(one)) for one in made.detections]
    assert found == [("used", 9), ("user", 1), ("used", 9), ("user", 1), ("used", 9)]
    assert Parts.of(carried.tables).count == MOST


@pytest.mark.parametrize("late", ["first", "second", "third"])
def test_g05_rows_that_wait_in_a_stratum_by_a_lateness_that_is_no_more_are_refused(
    monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    """Else they would be lost."""
    rules = {"first": "on: a", "second": "on: b", "third": "on: c"}
    monkeypatch.setattr(
        stratified_detector, "strata", lambda _: [Stratum((), (n,), (n,)) for n in rules]
    )
    plan = Plan(loaded("abc", **rules), dict.fromkeys(rules, 0), {late: 3 * SECOND})
    arriving = {event: rows(event, SECOND, k=[7])[event] for event in "abc"}
    through = partial(asked, 3, arriving)
    made = StratifiedDetector(plan, MOST).step(Carried(), SECOND, None, (), None, None, through)
    assert [*held(made.carried)] == [f"held:{'abc'[[*rules].index(late)]} by {3 * SECOND}"]
    other = StratifiedDetector(plan._replace(lateness={late: 2 * SECOND}), MOST)
    with pytest.raises(EngineError, match="wait for late ones, by a lateness of 3 s"):
        other.step(made.carried, 2 * SECOND, None, (), None, None, partial(asked, 3, {}))
