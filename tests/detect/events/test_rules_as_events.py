"""S8: the detections of a rule as occurrences for another, whatever the levels, contexts, cuts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.load import read
from tests.reference.cuts import cuts, everywhere
from tests.reference.evaluate import Line, reference
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import cases, untils
from tests.reference.strategies import EVERYTHING, UNTIMED, expected, of_last
from tests.support.history import run, through_ipc
from tests.support.rulebooks import altered, loaded
from tidegate import detect
from tidegate.engine.core.values import Batch, Carried
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.model import Context, Rulebook


def book(text: str) -> Rulebook:
    return read(f"title: x\n{text}\nhistory:").rulebook


def lines(text: str) -> list[Line]:
    return list(read(f"title: x\nhistory: {text}").history)


@detecting
@given(data=st.data())
@example_count(80)
def test_s08_rules_as_events_are_those_of_the_reference_for_any_cut(data: st.DataObject) -> None:
    rulebook, history = data.draw(
        cases(operators=UNTIMED, depth=2, rules_max=3, contexts=[*Context])
    )
    answer = expected(rulebook, history)
    saw(of_last(rulebook, answer))
    assert run(rulebook, history) == answer
    assert run(rulebook, history, data.draw(cuts(rulebook, history))) == answer


@detecting
@given(data=st.data())
@example_count(50)
def test_s08_with_timers_below_too(data: st.DataObject) -> None:
    rulebook, history = data.draw(cases(operators=EVERYTHING, depth=2, rules_max=3))
    until = data.draw(untils(history))
    answer = expected(rulebook, history, until=until)
    saw(of_last(rulebook, answer))
    assert run(rulebook, history, until=until) == answer
    assert run(rulebook, history, data.draw(cuts(rulebook, history)), until) == answer


def in_steps(rulebook: Rulebook, text: str) -> list[str]:
    """Every instant a bucket of its own."""
    history = lines(text)
    assert run(rulebook, history) == reference(rulebook, history)
    at, before = (run(rulebook, history, cut) for cut in everywhere(rulebook, history))
    assert at == before
    return at


def test_s01_what_starts_later_is_chosen_though_it_ends_earlier() -> None:
    rulebook = book("events: a b\nrule p: b ; b\nrule q: a or p\nrule r: any(2, q, p)")
    found = in_steps(rulebook, "b@0 a@1 b@2")
    assert found == reference(rulebook, lines("b@0 a@1 b@2"))
    assert '"event": "a"' in next(line for line in found if '"rule": "r"' in line)


def test_s07_what_a_key_of_a_used_rule_has_begun_is_kept_before_its_first_detection() -> None:
    rulebook = book(
        "events: a b(k) c(k)\nrule q: A*(b, c, c) within 2\nper q: k\ncontext q: chronicle\n"
        "rule r: A*(a, a, q)\nper: k"
    )
    text = "a@1 b@1(k=1) a@2 b@2(k=1) c@3(k=1) c@4(k=1)"
    found = in_steps(rulebook, text)
    assert found == reference(rulebook, lines(text))
    assert sum('"rule": "r"' in line for line in found) == 1


PAIRS = "events: a(k,j) b(k,j) c(k) d\nrule pair: a ; b\nper pair: k j\n"


def test_s07_a_rule_is_keyed_by_some_of_the_columns_of_its_own_per() -> None:
    text = "a@1(k=1,j=1) c@2(k=1) c@2(k=9) a@2(k=1,j=2) b@3(k=1,j=2) b@4(k=1,j=1) c@5(k=1)"
    rulebook = book(PAIRS + "rule q: pair and c\nper q: k")
    found = in_steps(rulebook, text)
    assert found == reference(rulebook, lines(text))
    assert sum('"rule": "q"' in line for line in found) == 3


def test_s07_a_using_rule_may_turn_the_key_columns_round() -> None:
    rulebook = book(PAIRS + "rule q: pair ; a\nper q: k j")
    turned = altered(rulebook.rules["q"], per={"pair": ("j", "k"), "a": ("k", "j")})
    rulebook = replace(rulebook, rules={**rulebook.rules, "q": turned})
    text = "a@1(k=1,j=2) b@2(k=1,j=2) a@3(k=1,j=2) a@4(k=2,j=1)"
    history = lines(text)
    for cut in ([], *everywhere(rulebook, history)):
        mine = [line for line in run(rulebook, history, cut) if '"rule": "q"' in line]
        assert [line[line.index('"end": ') :][:8] for line in mine] == ['"end": 4']


def test_s07_a_key_is_known_from_the_detection_of_a_used_rule_on() -> None:
    rulebook = book(PAIRS + "rule q: (d ; d - pair) ; pair\nper q: k j")
    text = "d@1 a@2(k=1,j=1) d@3 d@4 b@5(k=1,j=1) d@6 a@6(k=1,j=1) b@7(k=1,j=1)"
    assert in_steps(rulebook, text) == reference(rulebook, lines(text))


def test_s08_what_a_used_rule_has_begun_keeps_what_was_before_it() -> None:
    rulebook = book("events: x(v) a b\nrule pair: a ; b\nrule q: x ; pair")
    found = in_steps(rulebook, "x@0(v=1) a@1 x@3(v=2) b@5")
    assert found == reference(rulebook, lines("x@0(v=1) a@1 x@3(v=2) b@5"))
    assert any('"start": 0' in line for line in found)


def test_s08_carried_detections_outlive_steps_that_do_not_touch_them() -> None:
    rulebook = book("rule pair: a ; b\nrule q: pair ; c\nrule other: d ; d\nevents: a(v) b(v) c d")
    found = in_steps(rulebook, "a@1(v=1) b@2(v=2) d@3 d@4 d@5 c@6")
    assert found == reference(rulebook, lines("a@1(v=1) b@2(v=2) d@3 d@4 d@5 c@6"))


def test_s08_rank_of_simultaneous_detections_is_by_start_key_and_constituents() -> None:
    rulebook = book(
        "events: a(k) b c\nrule pair: a ; b\nper pair: k\nrule q: every(2, pair)\nrule s: pair ; c"
    )
    text = "a@1(k=2) a@1(k=1) a@0(k=3) b@4 c@5"
    assert in_steps(rulebook, text) == reference(rulebook, lines(text))


def test_s08_a_disabled_rule_has_no_detections() -> None:
    rulebook = book("rule pair: a ; b\nrule q: pair or c\nevents: a b c")
    rulebook = replace(
        rulebook,
        rules={**rulebook.rules, "pair": replace(rulebook.rules["pair"], enabled=False)},
    )
    found = in_steps(rulebook, "a@1 b@2 c@3")
    assert len(found) == 1


def test_s08_an_edited_rule_is_another_event_type() -> None:
    before = book("rule pair: a ; b\nrule q: pair ; c\nevents: a b c")
    after = book("rule pair: b ; a\nrule q: pair ; c\nevents: a b c")

    def batch(name: str, time: int) -> dict[str, Batch]:
        table = pa.table({"": pa.nulls(1)}).select([])
        return {name: Batch(name, np.array([time]), np.array([0]), table)}

    active = {"pair": 0, "q": 0}
    carried = Carried()
    for name, time in (("a", 1), ("b", 2)):
        _, carried, _ = Detector(before, active).step(carried, batch(name, time), time)
        carried = through_ipc(carried)
    for edited, count in ((before, 1), (after, 0)):
        found, left, _ = Detector(edited, active).step(carried, batch("c", 3), 3)
        assert sum(len(d) for d in found) == count
        assert ("occ:pair/0" in left.tables) == bool(count)


def test_s08_a_rule_of_which_nothing_was_seen_yet_is_used_by_other_keys() -> None:
    rulebook = loaded("abc", pair="on: 'a ; b', per: [k, v]", both="on: 'c ; pair', per: k")
    history = [(event, second * 10**6, {"k": 1, "v": 2}) for second, event in enumerate("cab")]
    found = [line["rule"] for line in map(json.loads, run(rulebook, history, [0]))]
    assert found == ["pair", "both"]


def test_s06_ticks_of_two_keys_at_one_instant_are_one_where_another_rule_meets_them() -> None:
    used = loaded("abcd", p="on: 'P(a, [10 us], b)', per: k", q="on: 'A*(c, p, d)'")
    seen = [("c", 0, 0), ("a", 1, 1), ("a", 1, 2), ("d", 15, 0)]
    history = [(event, time, {"k": k, "v": 0}) for event, time, k in seen]
    for cut in ([], *everywhere(used, history)):
        (whole,) = [d for d in map(json.loads, run(used, history, cut, 15)) if d["rule"] == "q"]
        assert whole["constituents"] == [{"event": "tick", "time": 11e-6}]


def test_s01_occurrences_of_several_keys_of_a_used_rule_are_in_order_of_their_parameters() -> None:
    """Whatever their keys are: k comes before v."""
    rulebook = loaded("abc", pair="on: 'a ; b', per: v", both="on: 'any(2, pair*) ; c'")
    for v in ([1, 2, 1, 2, 0], [2, 1, 2, 1, 0]):
        given = pa.table({"event": [*"aabbc"], "time": [1, 1, 2, 2, 3], "k": [5, 3] * 2 + [0]})
        found = detect(rulebook, given.append_column("v", pa.array(v))).to_pylist()
        rows = [row["constituents"] for row in found if row["rule"] == "both"]
        assert rows == [[1, 0, 3, 2, 4]]
