"""Rules by a clock of their own: what arrives out of order is detected as if it had not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.cuts import spans, watermarks
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import planted
from tests.support.history import batches, canonical, printed, through_ipc
from tests.support.rulebooks import loaded
from tidegate.engine.core.event_names import EventKey
from tidegate.engine.core.values import Batch, Carried
from tidegate.engine.detect.events.graph.operators.holding import Holding
from tidegate.engine.detect.events.occurrences.concatenation import no_parameters
from tidegate.engine.detect.events.state.held_back import released
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.rules import load
from tidegate.rules.checks.gaps import all_features
from tidegate.rules.model import Rulebook

SECOND = 1_000_000
LATENESS = 3 * SECOND
EXPRESSIONS = [
    "a ; b",
    "a ; c within 4 s",
    "not(b)[a, [2 s]]",
    "a and b and c",
    "r ; a",
    "a - (b ; c)",
]
USING = ["x ; a", "x + [1 s]", "not(b)[x, [2 s]]", "x or y", "a ; x"]


def book(draw: st.DrawFn) -> Rulebook:
    """Rules by a clock, over a and b, which have event times, and c, and one that uses them; two
    without, over c."""
    first, second = (draw(st.sampled_from(EXPRESSIONS)) for _ in range(2))
    context = draw(st.sampled_from(["restricted", "chronicle", "continuous"]))
    per = draw(st.sampled_from(["", ", per: k"]))
    return loaded(
        "abc",
        r=f"on: 'c ; c'{per}",
        s=f"on: c{per}",
        x=f"on: '{first}', context: {context}{per}",
        y=f"on: '{second}'{per}",
        z=f"on: '{draw(st.sampled_from(USING))}', context: restricted{per}",
    )


@detecting
@given(data=st.data())
@example_count(60)
def test_g05_what_comes_late_is_detected_in_its_place(data: st.DataObject) -> None:
    own = data.draw(st.composite(book)())
    in_its_place(own, data.draw(planted(own, 12)), data)


@detecting
@given(data=st.data())
@example_count(60)
def test_g05_what_holds_and_is_resolved_waits_for_late_rows(data: st.DataObject) -> None:
    """x and its end run behind; z, which uses both, perhaps further."""
    own = loaded(
        "abc",
        x="on: {holds: a, until: b, for: 2 s, keep: 1 s}, per: k",
        y="on: resolved x, per: k",
        z=f"on: '{data.draw(st.sampled_from(['x ; resolved x', 'resolved x ; c']))}', per: k",
    )
    names, seconds = st.sampled_from("aaabbbc"), st.integers(0, 12)
    lines = data.draw(st.lists(st.tuples(names, seconds), min_size=4, max_size=12))
    history = [("a", 0, {"k": 1, "v": 0})]
    history += [(name, second * SECOND, {"k": 1, "v": second}) for name, second in lines]
    in_its_place(own, history, data)


def test_an_end_that_runs_behind_has_the_state_of_its_rule() -> None:
    own = loaded("ab", x="on: {holds: a, until: b, for: 2 s}", y="on: resolved x")
    graph = Detector(own, {"x": 0, "y": 0}, lateness={"x": 3, "y": 3}).graph
    assert [type(node.shape) for node in graph.nodes.values()].count(Holding) == 1


def in_its_place(own: Rulebook, history: list[Line], data: st.DataObject) -> None:
    """What arrives up to `LATENESS` late is detected as if it had not. The events a and b have
    event times, and so have the rules x, y and z."""
    lines = sorted(history, key=lambda line: line[1])
    whole, _, _ = Detector(own, dict.fromkeys(own.rules, 0)).step(
        Carried(), batches(own, lines), lines[-1][1] + 24 * SECOND
    )
    seen = [  # an a or b is committed later than it happened
        (line[1] if line[0] == "c" else line[1] + data.draw(st.integers(0, LATENESS)), line)
        for line in lines
    ]
    own_lateness = data.draw(st.sampled_from([LATENESS, 2 * LATENESS]))
    lateness = {"x": LATENESS, "y": LATENESS, "z": own_lateness}
    detector = Detector(own, dict.fromkeys(own.rules, -SECOND), lateness=lateness)
    partitioned = Partitioned(detector, 4)
    carried, found = Carried(), list[Any]()
    times = {line[1] for line in lines}.union(commit for commit, _ in seen)
    lengths = spans(own).union(lateness.values())
    cut = sorted({*data.draw(watermarks(times, lengths)), max(times)})
    before = -1
    for watermark in (*cut, cut[-1] + 30 * SECOND):
        arrived = batches(own, [line for commit, line in seen if before < commit <= watermark])
        detected, carried, _ = partitioned.step(through_ipc(carried), arrived, watermark)
        found += [line for detections in detected for line in printed(detections)]
        before = watermark
    assert canonical(found) == canonical([line for d in saw(whole) for line in printed(d)])
    assert not any(name.startswith("held:") for name in carried.tables)


def test_a_clock_holds_back_its_own_rules_alone() -> None:
    own = loaded("ab", r="on: a", s="on: a ; b")
    detector = Partitioned(Detector(own, {"r": 0, "s": 0}, lateness={"s": 3}), 4)
    lines = batches(own, [("a", 5, {"k": 1, "v": 1}), ("b", 7, {"k": 1, "v": 1})])
    found, carried, _ = detector.step(Carried(), lines, 8)
    assert [d.rule for d in found] == ["r"]
    assert [name for name in carried.tables if name.startswith("held:")] == ["held:b by 3"]
    assert detector.next_due(carried, ()) == 10
    found, after, _ = detector.step(carried, {}, 9)
    assert found == ()
    assert after.changed == frozenset()
    found, carried, _ = detector.step(after, {}, 10)
    assert [d.rule for d in found] == ["s"]
    assert [c["event"] for c in printed(found[0])[0]["constituents"]] == ["a", "b"]
    assert "held:b by 3" in carried.changed - carried.tables.keys()


def test_s10_a_beginning_that_was_held_back_is_called_as_if_it_was_not() -> None:
    own = """
rulebook: b
tables: {t: {path: /t}}
events: {tx: {on: transaction, table: t}}
rules: {r: {on: begin_of tx ; tx}}
"""
    book = load(own, features=all_features())
    detector = Partitioned(Detector(book, {"r": 0}, lateness={"r": 9}), 4)
    lines = batches(book, [("tx", 5, {})])
    carried = detector.step(Carried(), lines, 9)[1]
    (found,), _, _ = detector.step(carried, {}, 15)
    assert [c["event"] for c in printed(found)[0]["constituents"]] == ["tx", "tx"]


def test_what_is_held_back_is_let_go_in_order_of_time() -> None:
    own = loaded("a", r="on: a")
    detector = Partitioned(Detector(own, {"r": 0}, lateness={"r": 4}), 4)
    carried, ends = Carried(), list[list[int]]()
    for time, watermark in ((9, 9), (7, 10), (8, 12), (20, 30)):
        lines = batches(own, [("a", time, {"k": 1, "v": 1})])
        found, carried, _ = detector.step(carried, lines, watermark)
        ends += [d.end.tolist() for d in found]
    assert ends == [[7, 8], [9, 20]]


def test_g08_timers_of_a_rule_that_is_behind_count_when_the_bucket_passes_them() -> None:
    own = loaded("a", r="on: 'a + [10 s]', context: unrestricted")
    detector = Partitioned(Detector(own, {"r": 0}, lateness={"r": LATENESS}), 4)
    arrived = [("a", n * SECOND, {"k": n, "v": n}) for n in (1, 2, 3)]
    _, carried, _ = detector.step(Carried(), batches(own, arrived), 6 * SECOND)
    due = 11 * SECOND + LATENESS
    assert detector.next_due(carried, ()) == due
    _, _, reached = detector.step(carried, {}, 20 * SECOND, limit=1)
    assert due <= reached < due + 1_000
    ends = list[list[int]]()
    for watermark in (due - 1, reached, 20 * SECOND):
        found, carried, _ = detector.step(carried, {}, watermark)
        ends += [d.end.tolist() for d in found]
    assert ends == [[11 * SECOND], [12 * SECOND, 13 * SECOND]]


def test_what_a_script_emitted_keeps_its_place_while_it_is_held_back() -> None:
    event = str(EventKey("e", behind=LATENESS))
    tables: dict[str, pa.Table] = {}
    found = []
    for step in range(5):
        time = np.array([step * SECOND, step * SECOND])
        place = np.array([2 * step + 1, 7 * step + 3])
        given = {"e": Batch("e", time, np.arange(2), no_parameters(2), place=place)}
        seen, tables = released(tables, given, frozenset([event]), step * SECOND)
        tables = dict(through_ipc(Carried(tables)).tables)
        if event in seen:
            found += zip(seen[event].time.tolist(), seen[event].place.tolist(), strict=True)
    assert found == [(0, 1), (0, 3), (SECOND, 3), (SECOND, 10)]


def test_s01_what_a_rule_sees_by_two_clocks_is_in_the_order_of_its_parameters() -> None:
    """`late` runs 2 s behind. `both` sees the two c's at 10 s, and once more as `late` has detected
    them. Those at 5 s came in one bucket with them, but `late` saw them in another one."""
    book = loaded("c", late="on: c", both="on: 'any(1, c*) and late', context: cumulative")
    detector = Detector(book, {"late": 0, "both": 0}, lateness={"late": 2 * SECOND})
    lines = [("c", t * SECOND, {"k": 0, "v": v}) for t in (5, 10) for v in (1, 0)]
    carried, shown = Carried(), list[Any]()
    for number, until in enumerate((10, 11, 20)):
        given_ = batches(book, lines if not number else [])
        found, carried, _ = Partitioned(detector, 1).step(carried, given_, until * SECOND)
        for d in found:
            rows = [d.batches[d.events[code]] for code in d.event_code.tolist()]
            shown.append((d.rule, [
                (int(batch.time[at]) // SECOND, batch.table["v"][int(batch.row[at])].as_py())
                for batch, at in zip(rows, d.event_row.tolist(), strict=True)
            ]))  # fmt: skip
    assert [rows for rule, rows in shown if rule == "both"] == [
        [(second, v) for v in (0, 0, 1, 1)] for second in (5, 10)
    ]
