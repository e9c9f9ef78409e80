"""`simulate` with event scripts: emissions among detections."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.detect.scripts.test_detect import STRATA
from tidegate.engine.detect import pipeline
from tidegate.engine.detect.scripts import run as script_run
from tidegate.engine.replay import simulate as replay
from tidegate.engine.replay.simulate import simulate
from tidegate.rules.errors import InputError

BOOK = """
rulebook: fridge
events:
  reading: {signal: {room: string, celsius: double}}
  page: {signal: {}}
scripts:
  heating:
    text: |
      in {string room; double celsius;} reading group(room)
          case {celsius > 40 ? Hot : celsius < 35 ? Cold : Middle}
      out {} warm, double cold
      ({!> warm();} (Middle() | Hot())* Cold(x) {!> cold(x.celsius);} (Middle() | Cold())* Hot())*
  twice:
    text: |
      in double cold out double twice_cold
      (cold() cold(x) {!> twice_cold(x);})*
    in: {cold: {value: value}}
rules:
  again: {on: warm ; cold, per: room, context: chronicle, do: [{signal: page}]}
"""


def run(folder: Path, text: str, lines: list[dict[str, Any]], **options: Any) -> list[Any]:
    name = "book.yaml" if text.startswith("\nrulebook") else "book.es"
    (folder / name).write_text(text)
    (folder / "trace.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    out = io.BytesIO()
    simulate(folder / name, folder / "trace.jsonl", out=out, **options)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def reading(time: float, room: str, celsius: float) -> dict[str, Any]:
    return {"event": "reading", "time": time, "room": room, "celsius": celsius}


HISTORY = [
    *(reading(1, "b", 50), reading(1, "a", 30), reading(2, "b", 30.5)),
    *(reading(3, "a", 41), reading(3, "b", 45), reading(4, "a", 12)),
]


def said(lines: list[Any]) -> list[Any]:
    return [
        (each["rule"], each["key"], each["end"])
        if "rule" in each
        else (each["event"], each["key"], each["time"], each["value"])
        for each in lines
    ]


def test_emissions_stand_among_detections_and_feed_scripts_and_rules(tmp_path: Path) -> None:
    a, b = {"room": "a"}, {"room": "b"}
    assert said(run(tmp_path, BOOK, HISTORY)) == [
        *(("warm", a, 1, {}), ("cold", a, 1, 30.0), ("warm", b, 1, {})),
        ("cold", b, 2, 30.5),
        ("twice_cold", {}, 2, 30.5),
        ("again", b, 2),
        ("warm", a, 3, {}),
        ("warm", b, 3, {}),
        ("cold", a, 4, 12.0),
        ("again", a, 4),
    ]


@pytest.mark.parametrize("bucket", [1, 2])
def test_a_trace_may_be_cut_anywhere(tmp_path: Path, bucket: int) -> None:
    assert run(tmp_path, BOOK, HISTORY, bucket=bucket) == run(tmp_path, BOOK, HISTORY)


@pytest.mark.parametrize(
    "text",
    [
        "\nrulebook: b\nevents: {a: {signal: {}}, b: {signal: {}}}\nrules: {r: {on: a ; b}}\n",
        "in {} a, {} b out {} z (a() b() {!> z();})*",
    ],
)
def test_what_is_carried_between_buckets_is_what_bytes_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """By rules and by scripts alike, as by the store."""
    lines = [{"event": name, "time": at} for at, name in enumerate("ab")]
    went, whole = list[int](), replay._through_bytes

    def through(table: pa.Table) -> pa.Table:
        went.append(len(table))
        return whole(table)

    monkeypatch.setattr(replay, "_through_bytes", through)
    assert run(tmp_path, text, lines, bucket=1)
    assert any(went)


ELAPSE = "in {} A out time Z\nA() (elapse[5 minutes](t) {!> Z(t);})*"


def test_a_pending_elapse_runs_out_once_and_with_until_as_often_as_it_is_due(
    tmp_path: Path,
) -> None:
    lines = [{"event": "A", "time": 100}]
    assert [each["value"] for each in run(tmp_path, ELAPSE, lines)] == [400]
    found = run(tmp_path, ELAPSE, lines, until="1000")
    assert [each["value"] for each in found] == [400, 700, 1000]


def test_what_is_not_expected_is_an_error(tmp_path: Path) -> None:
    (line,) = run(tmp_path, "in {} A, {} B out {} Z\nA()", [{"event": "B", "time": 7}])
    assert line["event"] == "$error"
    assert {**line["value"], "message": ""} == {
        "kind": "unexpected",
        "event": "B",
        "message": "",
        "place": "",
        "at": 7,
    }


def test_times_are_written_as_in_the_trace(tmp_path: Path) -> None:
    text = "in time A out time Z\n(A(x) {!> Z(x);})*"
    lines = [{"event": "A", "time": "2026-01-01T00:00:01Z", "value": "2026-01-01T00:00:00.5Z"}]
    (line,) = run(tmp_path, text, lines)
    assert (line["time"], line["value"]) == ("2026-01-01T00:00:01Z", "2026-01-01T00:00:00.500000Z")


def test_a_value_of_another_type_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"value of input A is no long: .*2.5"):
        run(tmp_path, "in long A out long Z\nA()", [{"event": "A", "time": 1, "value": 2.5}])


def test_a_clock_event_is_an_input_that_carries_nothing(tmp_path: Path) -> None:
    text = """
rulebook: clocked
events:
  noon: {at: "<(12:00:00)*/*/*>", timezone: UTC}
scripts:
  count:
    text: |
      in {} noon, long A out long n
      (noon() {!> n(c); c = 0;} | A(x) {c = c + x;})*
"""
    lines = [{"event": "A", "time": hour * 3600, "value": 2} for hour in (1, 10, 13, 40)]
    found = run(tmp_path, text, lines)
    assert [(each["time"], each["value"]) for each in found] == [(43200, 4), (129600, 2)]


def test_a_script_with_too_many_states_goes_on_and_says_so(tmp_path: Path) -> None:
    text = "\nrulebook: many\nsettings: {script_states_max: 9}\nscripts:\n  last:\n    text: |\n"
    text += "      in {} A, {} B out {} z (.* A() .{5} {!> z();} .*)\n"
    history = [{"event": each, "time": n} for n, each in enumerate("ABBABAABABBBAABA")]
    told: list[str] = []
    found = run(tmp_path, text, history, tell=told.append)
    assert [each["time"] for each in found][:3] == [5, 8, 10]
    assert "script last has more than 9 states" in told[0]


def test_what_a_script_emits_is_no_line_of_a_trace(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Z is what a script emits"):
        run(tmp_path, "in long A out long Z\nA()", [{"event": "Z", "time": 1, "value": 2}])


def test_outputs_that_carry_nothing_feed_scripts_and_rules(tmp_path: Path) -> None:
    """Neither fields nor a key: a table without columns still has rows."""
    book = """
rulebook: b
events: {page: {signal: {}}}
scripts:
  first: {text: "in {} A out {} B (A() { !> B(); } elapse[1 minute]() { !> B(); })*"}
  second: {text: "in {} B, {} C out {} D (B() { !> D(); })*"}
rules:
  told: {on: D, do: [{signal: page}], context: chronicle}
"""
    found = run(tmp_path, book, [{"event": "A", "time": 1}, {"event": "A", "time": 100}])
    emitted = [(each["event"], each["time"]) for each in found if "script" in each]
    assert emitted == [(name, time) for time in (1, 61, 100, 160) for name in "BD"]
    assert [each["end"] for each in found if "rule" in each] == [1, 61, 100, 160]


def test_a_structure_without_fields_in_another(tmp_path: Path) -> None:
    text = "type P = {long k; {} nothing;} in P A out P B (A(x) { !> B(x); })*"
    lines = [{"event": "A", "time": t, "k": t, "nothing": {}} for t in (1, 2)]
    found = run(tmp_path, text, lines)
    assert [each["value"] for each in found] == [{"k": t, "nothing": {}} for t in (1, 2)]


def test_a_dfa_that_is_too_large_is_refused(tmp_path: Path) -> None:
    book = "\nrulebook: b\nscripts:\n  s: {machine: dfa, text: 'in {} A, {} B .* A() .{16}'}\n"
    with pytest.raises(InputError, match=r"more than 40,000 states"):
        run(tmp_path, book, [{"event": "A", "time": 1}])


def test_a_script_whose_timers_are_too_many_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two lines, up to --until, and where a rule lets time go on after the last line."""
    monkeypatch.setattr(pipeline, "TIMERS_MAX", 100)
    text = "in {} A, {} B A() ((elapse[1 second]())* B())*"
    lines = [{"event": "A", "time": 0}, {"event": "B", "time": 100}, {"event": "B", "time": 200}]
    assert run(tmp_path, text, lines, bucket=1) == []
    wrong = r"script book: more than 100 timers are due at once"
    with pytest.raises(InputError, match=wrong):
        run(tmp_path, text, lines)
    with pytest.raises(InputError, match=wrong):
        run(tmp_path, text, lines[:1], until="1000")
    late = """
rulebook: late
events: {a: {signal: {}}}
rules: {later: {on: "a + [1 h]"}}
scripts: {s: {text: "in {} a, {time detected_at;} l a() (elapse[1 second]())* l()",
    in: {l: {event: later}}}}
"""
    with pytest.raises(InputError, match=r"script s: more than 100 timers"):
        run(tmp_path, late, [{"event": "a", "time": 0}])


OBJECTS = """
rulebook: objects
scripts:
  echo:
    text: |
      in object given
      out object same, {long n; {object o;} in;} held, object[] both
      (given(x) {!> same(x); !> held({n: 1, in: {o: x}});
       a = new object[2]; a[0] = x; a[1] = now(); !> both(a);})*
  after:
    text: "in object same, string told out object again, string text
      (same(x) {!> again(x);} | told(s) {!> text(s);})*"
    in: {told: {event: same}}
rules:
  seen: {on: same}
"""


@pytest.mark.parametrize("bucket", [None, 1, 2])
def test_an_object_is_what_it_was_wherever_the_trace_is_cut(
    tmp_path: Path, bucket: int | None
) -> None:
    texts = {"5": 5, "5.0": 5.0, "x": "x", '{"a": [1, 2]}': {"a": [1, 2]}, "true": True}
    texts |= {"[]": [], "{}": {}, "later": None}
    lines = [{"event": "given", "time": n, "value": v} for n, v in enumerate(texts.values(), 1)]
    said = run(tmp_path, OBJECTS, lines, bucket=bucket)
    found = {name: [x["value"] for x in said if x.get("event") == name]
             for name in ("same", "held", "both", "again", "text")}  # fmt: skip
    values = [*texts.values()]
    assert [*map(repr, found["same"])] == [*map(repr, found["again"])] == [*map(repr, values)]
    assert found["held"] == [{"n": 1, "in": {"o": value}} for value in values]
    assert found["both"] == [[v, f"1970-01-01T00:00:0{n}Z"] for n, v in enumerate(values, 1)]
    assert found["text"] == [*[*texts][:-1], None]
    assert [x["constituents"][0]["value"] for x in said if "rule" in x] == values


LATE = """in {} A, long n out {} late, long lasted, time due
(A() { t = now(); most = 600 seconds; }
 (n(x) { d = now() - t; d >= most ? !> late(); !> lasted(microseconds(d)); !> due(t + most * x); })*
 elapse[most + 1 minute]() { !> late(); })*
"""


@pytest.mark.parametrize("bucket", [None, 1])
def test_times_are_compared_with_lengths_of_time(tmp_path: Path, bucket: int | None) -> None:
    lines = [
        {"event": "A", "time": 0},
        {"event": "n", "time": 599.999999, "value": 2},
        {"event": "n", "time": 600, "value": 3},
    ]
    found = run(tmp_path, LATE, lines, **({"bucket": bucket} if bucket else {}))
    said = [(each["time"], each["event"], each.get("value")) for each in found]
    assert said == [
        (599.999999, "lasted", 599_999_999),
        (599.999999, "due", 1200),
        (600, "late", {}),
        (600, "lasted", 600_000_000),
        (600, "due", 1800),
        (1260, "late", {}),
    ]


TWO = """
rulebook: two
events: {n: {signal: {value: bigint}}}
scripts:
  one: {text: "in long n out {} o, {} e (n() { !> o(); !> e(); })*"}
  two: {text: "in {} e, {} o out {} good (o() e() { !> good(); })*", machine: MACHINE}
"""


@pytest.mark.parametrize("machine", ["dfa", "hierarchical"])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("bucket", [None, 1, 2])
def test_outputs_of_one_script_reach_the_next_as_they_were_emitted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bucket: int | None,
    compiled: bool,
    machine: str,
) -> None:
    """Not in the order of the next one's `in` declarations."""
    if compiled:
        monkeypatch.setattr(script_run, "COMPILED_MIN", 0)
        monkeypatch.setattr(script_run, "COMPILED_AFTER", 0)
    lines = [{"event": "n", "time": time, "value": 0} for time in (1, 2, 2, 3)]
    options = {"bucket": bucket} if bucket else {}
    found = run(tmp_path, TWO.replace("MACHINE", machine), lines, **options)
    told = [(each["time"], each["event"]) for each in found if each["script"] == "two"]
    assert told == [(1, "good"), (2, "good"), (2, "good"), (3, "good")]


def test_what_rules_before_and_after_a_script_detect_is_told_once(tmp_path: Path) -> None:
    found = run(tmp_path, STRATA, [{"event": "a", "time": 1, "k": 7}])
    assert [each.get("rule", each.get("event")) for each in found] == ["up", "q", "r"]
