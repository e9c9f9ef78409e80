"""One step of a script: groups, time, limits, what is carried."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.detect.scripts.compared import SECOND, Out, batches, emissions, outs, script_of
from tests.reference.eventscript.evaluate import Event
from tests.reference.eventscript.evaluate import run as evaluated
from tests.reference.eventscript.reading import program
from tidegate.engine.core.values import Batch, Carried
from tidegate.engine.detect.scripts import column_expressions, run
from tidegate.engine.detect.scripts.inputs import Source
from tidegate.engine.detect.scripts.program import Limits
from tidegate.engine.detect.scripts.run import ScriptRunner
from tidegate.engine.detect.scripts.value_types import values_of
from tidegate.rules.errors import EngineError, InputError
from tidegate.rules.eventscript.types import Basic

COUNT = """
in {long id; long v;} A group(id), {} Reset
out long n
(A(x) {c = c + x.v; !> n(c);} | Reset() {c = 0;})*
"""


@pytest.fixture(autouse=True, params=[0, 10**9], ids=["compiled", "interpreted"])
def _smallest_compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs twice: with all buckets compiled that can be, and with none."""
    monkeypatch.setattr(run, "COMPILED_MIN", request.param)
    monkeypatch.setattr(column_expressions, "COMPILED_AFTER", request.param)


def at(second: float, name: str, value: Any = None) -> Event:
    return Event(round(second * SECOND), name, {} if value is None else value)


def keyed(second: float, key: int | None, v: int = 1) -> Event:
    return at(second, "A", {"id": key, "v": v})


def said(found: list[Out]) -> list[tuple[Any, ...]]:
    return [(out.time / SECOND, *out.key, out.output, _short(out)) for out in found]


def _short(out: Out) -> Any:
    return out.value["kind"] if out.output == "$error" else out.value


def test_each_key_has_variables_of_its_own_and_an_input_without_group_goes_to_all() -> None:
    history = [keyed(1, 7), at(2, "Reset"), keyed(3, 7), keyed(3, 8), keyed(3, 7), keyed(4, None)]
    for cuts in ([], [SECOND, 2 * SECOND, 3 * SECOND]):
        assert said(emissions(COUNT, history, cuts=cuts)) == [
            *((1, 7, "n", 1), (3, 7, "n", 1), (3, 7, "n", 2), (3, 8, "n", 1)),
            (4, None, "n", 1),
        ]


def test_simultaneous_events_go_by_declaration_then_order_by_then_value() -> None:
    text = "in {long s; long v;} A, long B out long z (A(x) {!> z(x.v);} | B(y) {!> z(y);})*"
    history = [at(1, "B", 9), *(at(1, "A", {"s": s, "v": v}) for s, v in ((2, 1), (1, 5), (2, 0)))]
    assert [out.value for out in emissions(text, history)] == [5, 0, 1, 9]
    sources = {"A": Source(order_by=("v",))}
    assert [out.value for out in emissions(text, history, sources=sources)] == [0, 1, 5, 9]


def test_what_another_script_emits_stays_as_it_was_emitted() -> None:
    text = "in long A out long z (A(x) {!> z(x);})*"
    history = [at(1, "A", value) for value in (3, 1, 2)]
    assert [out.value for out in emissions(text, history)] == [1, 2, 3]
    sources = {"A": Source(script="other")}
    assert [out.value for out in emissions(text, history, sources=sources)] == [3, 1, 2]


def test_at_one_instant_arrive_comes_first_and_elapse_last() -> None:
    text = (
        "in {} A out string z "
        '(arrive[.:.:10]() {!> z("arrive");} | A() {!> z("A");}'
        ' | elapse[10 seconds]() {!> z("elapse");})*'
    )
    found = emissions(text, [at(10, "A")], start=0, until=20 * SECOND)
    assert said(found) == [(10, "z", "arrive"), (10, "z", "A"), (20, "z", "elapse")]


@pytest.mark.parametrize("night", ["2026-03-28", "2026-10-24"])
@pytest.mark.parametrize("clock", ["02:30", ".:30", "02:.", ".::00", ".-.-. .:00:00", "03:00"])
def test_arrive_where_the_clock_of_a_zone_is_changed(night: str, clock: str) -> None:
    """As the reference, which enumerates local times."""
    text = f"in {{}} A out time z\nA() (arrive[{clock}](t) {{ !> z(t); }})*"
    begin = int(datetime.fromisoformat(f"{night}T23:00:00+00:00").timestamp()) * SECOND
    end = begin + (3 * 3600 + 60) * SECOND
    found = emissions(text, [Event(begin, "A", {})], until=end, zone="Europe/Berlin")
    wanted = evaluated(program(text), [Event(begin, "A", {})], until=end, zone="Europe/Berlin")
    assert [out.value for out in found] == [each.value for each in wanted] != []


def test_a_length_of_time_above_nothing_is_a_microsecond_at_least() -> None:
    text = "in {} A out time z\nA() {d = 1e-9;} elapse[d seconds](t) { !> z(t); }"
    assert [out.value for out in emissions(text, [at(1, "A")])] == [SECOND + 1]
    assert [out.value for out in evaluated(program(text), [at(1, "A")])] == [SECOND + 1]


def test_markers_that_are_due_together_are_one_event() -> None:
    text = (
        "in {} A out long z"
        " (elapse[1 second](t) {!> z(1);} | elapse[1000 milliseconds]() {!> z(2);})"
    )
    found = emissions(text, [at(0, "A")], until=SECOND)
    assert said(found) == [(0, "$error", "unexpected"), (1, "z", 1), (1, "z", 2)]


@pytest.mark.parametrize("partitions_max", [pytest.param(1, marks=pytest.mark.long), 64])
def test_thousands_of_keys_are_carried_in_partitions_of_which_only_some_are_written(
    partitions_max: int,
) -> None:
    script = script_of(COUNT.replace(", {} Reset", "").replace(" | Reset() {c = 0;}", ""))
    runner = ScriptRunner(script, 0, partitions_max=partitions_max)
    keys = np.arange(20_000)
    carried, found = Carried(), 0
    for bucket in range(3):
        time = np.full(len(keys), (bucket + 1) * SECOND)
        table = pa.table({"id": keys, "v": np.ones(len(keys), np.int64)})
        step = runner.step(carried, {"A": Batch("A", time, np.arange(len(keys)), table)}, time[0])
        carried, found = step.carried, found + len(step.emissions)
    assert found == 60_000
    assert len(carried.tables) == min(partitions_max, 16)
    step = runner.step(carried, batches(script.program, [keyed(4, 17)]), 4 * SECOND)
    assert said(outs(script.program, step.emissions)) == [(4, 17, "n", 4)]
    assert len(step.carried.changed) == 1
    assert sum(map(len, step.carried.tables.values())) == 20_000


def test_the_next_due_instant_is_told_and_fires_without_an_arrival() -> None:
    script = script_of("in long A group(A) out {} z (A() elapse[5 seconds]() {!> z();})*")
    runner = ScriptRunner(script, 0)
    step = runner.step(Carried(), batches(script.program, [at(1, "A", 4)]), 2 * SECOND)
    assert runner.next_due(step.carried) == 6 * SECOND
    step = runner.step(step.carried, {}, 6 * SECOND)
    assert said(outs(script.program, step.emissions)) == [(6, 4, "z", {})]


@pytest.mark.parametrize("least", [0, 10**9], ids=["compiled", "interpreted"])
def test_no_more_timers_fire_than_a_bucket_may_have(
    least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "COMPILED_MIN", least)
    script = script_of("in long A group(A) out {} z (A() | elapse[1 second]() {!> z();})*")
    runner = ScriptRunner(script, 0)
    arrivals = batches(script.program, [at(0, "A", 1), at(0, "A", 2)])
    carried, reached, found = Carried(), -1, list[Out]()
    while reached < 100 * SECOND:
        given = arrivals if reached < 0 else {}
        step = runner.step(carried, given, 100 * SECOND, limit=30)
        carried, reached = step.carried, step.reached
        assert len(step.emissions) <= 30
        found += outs(script.program, step.emissions)
    assert said(found) == [(n, key, "z", {}) for n in range(1, 101) for key in (1, 2)]


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 2, 3)])
@pytest.mark.parametrize("last", [keyed(3, 7), at(3, "Reset")], ids=["of its key", "of all"])
def test_an_instance_is_as_young_as_what_was_due_before(last: Event, cuts: tuple[int, ...]) -> None:
    """Its time is counted from a timed event, too, wherever the history is cut."""
    text = (
        "in {long id; long v;} A group(id), {} Reset\nout long n\n"
        "(A() {c = c + 1; !> n(c);} | Reset() {!> n(-c);} | elapse[1 second]() {c = c + 10;})*"
    )
    history = [keyed(1, 7), last]
    seconds = [cut * SECOND for cut in cuts]
    found = emissions(text, history, cuts=seconds, expire_micros=SECOND)
    assert said(found) == [(1, 7, "n", 1), (3, 7, "n", 12 if last.input == "A" else -11)]


@pytest.mark.parametrize("cuts", [(), (1, 5)])
def test_a_script_without_keys_does_not_expire(cuts: tuple[int, ...]) -> None:
    text = "in {} A out long n\n(A() {c = c + 1; !> n(c);})*"
    seconds = [cut * SECOND for cut in cuts]
    found = emissions(text, [at(1, "A"), at(9, "A")], cuts=seconds, expire_micros=SECOND)
    assert said(found) == [(1, "n", 1), (9, "n", 2)]


def test_an_instance_is_dropped_after_its_time_and_begins_anew() -> None:
    script = script_of(COUNT, expire_micros=10 * SECOND)
    runner = ScriptRunner(script, 0)
    step = runner.step(Carried(), batches(script.program, [keyed(1, 7)]), 30 * SECOND)
    assert not step.carried.tables
    history = [keyed(1, 7), keyed(11, 7), keyed(22, 7)]
    for cuts in ([], [11 * SECOND], [15 * SECOND, 21 * SECOND]):
        found = emissions(COUNT, history, cuts=cuts, expire_micros=10 * SECOND)
        assert [out.value for out in found] == [1, 2, 1]


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("in long A out long z (A(x) {!> z(x); while (x > 1) {y = y + 1;}})*", Limits(steps=99)),
        (
            'in long A out long z {s = "";} (A(x) {!> z(x); for (i: 2, x * 10) s = concat(s, s, s);'
            " s = concat(s, string(x));})*",
            Limits(state_bytes=500),
        ),
        ("in long A out long z (A(x) {!> z(x);} .*){1,9}", Limits(paths=3)),
    ],
    ids=["statements", "bytes", "paths"],
)
def test_a_transition_that_runs_away_is_undone_and_parks_the_script(
    text: str, limits: Limits
) -> None:
    history = [at(n, "A", n) for n in range(1, 6)]
    for cuts in ([], [SECOND, 2 * SECOND]):
        found = emissions(text, history, cuts=cuts, limits=limits)
        assert found[-1].output == "$error"
        assert found[-1].value["kind"] == "runaway"
        assert [out.output for out in found[:-1]] == ["z"] * (len(found) - 1)
        assert found[-1].time < 4 * SECOND


def test_elements_that_a_runaway_has_written_are_as_before() -> None:
    text = (
        "in long A out long z {a = new long[2];}"
        " (A(x) {a[0] = x; !> z(a[0]); while (x == 2) a[1] = a[1] + 1;})*"
    )
    script = script_of(text, limits=Limits(steps=50))
    history = [at(n, "A", n) for n in (1, 2)]
    step = ScriptRunner(script, 0).step(Carried(), batches(script.program, history), 9 * SECOND)
    assert step.parked
    assert step.reached == 2 * SECOND
    (table,) = step.carried.tables.values()
    assert table.column("v0").to_pylist() == [[1, 0]]


def test_a_machine_with_too_many_states_goes_on_without_or_is_refused() -> None:
    text = "in {} A, {} B out {} z (.* A() .{6} {!> z();} .*)"
    history = [at(n, letter) for n, letter in enumerate("ABBABAABBABABBAAABAB" * 4)]
    expected = emissions(text, history)
    assert len(expected) > 20
    assert emissions(text, history, limits=Limits(states=9)) == expected
    with pytest.raises(EngineError, match="more than 9 states"):
        emissions(text, history, machine="dfa", limits=Limits(states=9))


@pytest.mark.parametrize(
    "column",
    [pa.array(["x"]), pa.array([1.5]), pa.array([True]), pa.array([[1]])],
    ids=["text", "double", "boolean", "list"],
)
def test_a_column_that_does_not_fit_is_refused(column: pa.Array) -> None:
    runner = ScriptRunner(script_of("in long A out long z (A(x) {!> z(x);})*"), 0)
    batch = Batch("A", np.zeros(1, np.int64), np.zeros(1, np.int64), pa.table({"value": column}))
    with pytest.raises(InputError, match="do not fit input A"):
        runner.step(Carried(), {"A": batch}, 1)


def test_layout_and_comments_keep_the_state_and_anything_else_does_not() -> None:
    laid_out = COUNT.replace("(A(x)", "( // each\n  A(x)").replace("c = c + x.v", "c = c  +  x.v")
    assert script_of(laid_out).digest == script_of(COUNT).digest
    assert script_of(COUNT.replace("c = 0", "c = 1")).digest != script_of(COUNT).digest


def test_values_of_all_types_are_carried_exactly() -> None:
    text = (
        "in {boolean b; long n; double d; string s; time t; long[] a; object o;} A\n"
        "out {boolean b; long n; double d; string s; time t; long[] a; object o;} z\n"
        "(A(x) A() {!> z(x);})*"
    )
    script = script_of(text)
    value = pa.table(
        {
            "b": [True, None],
            "n": [-(2**63), 1],
            "d": [-0.0, 1.0],
            "s": ["é", ""],
            "t": pa.array([2**60, 0], pa.timestamp("us", "UTC")),
            "a": [[1, None], []],
            "o": pa.array([7, 8], pa.int16()),
        }
    )
    batch = Batch("A", np.array([1, 2]), np.arange(2), value)
    runner = ScriptRunner(script, 0)
    first = runner.step(Carried(), {"A": batch.until(1)}, 1)
    second = ScriptRunner(script, 0).step(first.carried, {"A": batch.take(np.array([1]))}, 2)
    found = second.emissions.batch("z", "z")
    assert found is not None
    whole = value.slice(0, 1).combine_chunks()
    assert found.table.drop_columns(["o"]).equals(whole.drop_columns(["o"]))
    (opaque,) = values_of(found.table.column("o").combine_chunks().storage, Basic.OBJECT)
    assert opaque.equals(pa.scalar(7, pa.int16()))
