"""Event scripts in the loop: what they emit is what `simulate` has them emit."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.loop.test_live import as_fired, without_key
from tests.reference.cuts import watermarks
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.strategies import SECOND
from tests.replay.traces import simulated
from tests.support.executors import InProcess
from tests.support.history import buckets
from tests.support.live import Live
from tidegate import rules
from tidegate.engine.detect.events.state import partitions
from tidegate.engine.store import SqlStore, open_store, shelf
from tidegate.rules.model import Rulebook

NUMBERS = itertools.count()
BEGIN = 100 * SECOND
BOOK = """
rulebook: loop
events:
  a: {signal: {k: bigint, v: bigint}}
  b: {signal: {k: bigint, v: bigint}}
  c: {signal: {}}
settings: {script_errors_kept_max: 2}
scripts:
SCRIPTS
rules:
  both: {on: "up ; a", context: chronicle, per: k}
  ups: {on: up}
  downs: {on: down}
  faults: {on: fault}
"""
SCRIPTS = {
    "one script a key, a timer, faults, a second script of its outputs": """
  first:
    text: |
      in {long k; long v;} a group(a.k), {long k; long v;} b group(b.k), {} c
      out {long v; long n;} up
      (a(x) {n = n + x.v; !> up({v: x.v, n: n});}
       (b(x) {!> up({v: 6 / x.v, n: 0});} | elapse[3 seconds]() {!> up({v: 0, n: -n});}))*
    out: {$error: fault}
  second:
    text: |
      in {long v; long n;} up
      out long down
      (up() up(x) {!> down(x.n);})*
""",
    "one instance, all events, alternatives": """
  first:
    text: |
      in {long k; long v;} a case {a.v > 1 ? Big : Small}, {long k; long v;} b, {} c
      out {long k;} up, long down
      (Big(x) {!> up({k: x.k});} | Small() | b(y) {last = y.v;} | c() {!> down(last);}
       (elapse[2 seconds]() {!> down(99);})?)*
    out: {$error: fault}
""",
    "outputs of one script in the order of emission": """
  first:
    text: |
      in {long k; long v;} a, {long k; long v;} b
      out {long v;} z, {} y
      (a(x) {!> z({v: x.v}); !> y(); x.v > 1 ? !> z({v: 9});} | b() {!> y(); !> z({v: 5});})*
  second:
    text: |
      in {} y, {} c, {long v;} z
      out {long k; long v;} up, long down
      (z(x) {!> up({k: 1, v: x.v});} y() {!> down(x.v);} | y() c())*
    out: {$error: fault}
""",
    "what a rule detects": """
  first:
    text: |
      in {long k; time detected_at;} met group(met.k)
      out {long k; time at;} up, time down
      (met(x) {!> up({k: x.k, at: x.detected_at});}
       met(y) {!> down(y.detected_at);})*
    out: {$error: fault}
""",
    "what rules detect of what is emitted of what rules detect": """
  first:
    text: |
      in {long k;} met group(met.k)
      out {long k; long n;} up
      (met(x) {n = n + 1; !> up({k: x.k, n: n});} | elapse[2 seconds]() {n = 0;})*
    out: {$error: fault}
  second:
    text: |
      in {long k;} both
      out long down
      (both(x) {!> down(x.k);})*
""",
}


def book(scripts: str, **more: Any) -> Rulebook:
    text = BOOK.replace("SCRIPTS", scripts.strip("\n"))
    if "met" in scripts:
        text += "  met: {on: a ; b, per: k, context: recent}\n"
    if "both" in scripts:
        text += '  again: {on: "(met ; up) + [2 s]", per: k, context: continuous}\n'
        text += '  slow: {on: "a + [3 s]", per: k, context: chronicle}\n'
    own = rules.load(text)
    return replace(own, settings=replace(own.settings, **more))


@st.composite
def histories(draw: st.DrawFn) -> list[Line]:
    """Signals at a few instants of two keys, some of them at once."""
    found: list[Line] = []
    for _ in range(draw(st.integers(4, 14))):
        event = draw(st.sampled_from("aaabbc"))
        fields = {"k": draw(st.integers(1, 2)), "v": draw(st.integers(0, 3))}
        at = BEGIN + draw(st.integers(0, 12)) * SECOND
        found.append((event, at, fields if event != "c" else {}))
    return sorted(found, key=lambda line: line[1])


def plain(found: dict[str, Any]) -> str:
    """A firing as text, without what the two print in their own ways: a fault's fields `event` and
    `at`, times in constituents."""
    shown = without_key(found)
    names = {"event", "at", "value"} if found["rule"] == "faults" else {"at"}
    parts = [{k: v for k, v in each.items() if k not in names} for each in shown["constituents"]]
    return repr({**shown, "constituents": parts}).replace("+00:00'", "Z'")


@pytest.mark.parametrize("name", SCRIPTS)
@detecting
def test_run_emits_what_simulate_does(
    name: str, store: SqlStore, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs them, wherever what they carry lies."""

    @given(data=st.data())
    @example_count(12, least=5)
    def some(data: st.DataObject) -> None:
        own = book(SCRIPTS[name], timers_per_bucket_max=data.draw(st.sampled_from([1, 100])))
        history = data.draw(histories())
        beside = InProcess() if data.draw(st.booleans()) else None
        monkeypatch.setattr(partitions, "ROWS_MAX", data.draw(st.sampled_from([1, 4_000])))
        monkeypatch.setattr(shelf, "BYTES_MIN", data.draw(st.sampled_from([1, 65_536])))
        live = lived(store, own, history, data, beside=beside)
        end = history[-1][1] + 100 * SECOND + 998
        lines = simulated(own, history, tmp_path, until=end)
        expected = saw([line for line in lines if "rule" in line])
        assert sorted(map(plain, live.found())) == sorted(plain(as_fired(f)) for f in expected)

    some()


MOVED = (
    BOOK[: BOOK.index("  ups")]
    + """
  met: {on: a ; b, per: k, context: recent}
  again: {on: "(met ; up) and a", per: k, context: continuous}
"""
)
BETWEEN = """
  first:
    text: |
      in {long k;} taken group(taken.k)
      out {long k;} up
      (taken(x) {!> up({k: x.k});})*
    in: {taken: TAKEN}
"""


@pytest.mark.parametrize("detect", [["driver"], ["spark"], ["driver", "spark"]])
def test_g09_a_rule_keeps_what_it_carries_though_its_stratum_changes(
    store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, detect: list[str]
) -> None:
    """The script between the rules takes `a`, then `met`, and so on. What is detected is what is
    detected of signals in place of what it emits."""
    monkeypatch.setattr(partitions, "ROWS_MAX", 1)
    monkeypatch.setattr(shelf, "BYTES_MIN", 1)
    text = MOVED.replace("SCRIPTS", BETWEEN.strip("\n"))
    of_a, of_met = (rules.load(text.replace("TAKEN", name)) for name in ("a", "met"))
    live = Live(store, of_a, "moved", BEGIN, beside=InProcess())
    history = list[Line]()
    pieces = [(of_a, "ab"), (of_met, "aa"), (of_met, "ba"), (of_a, "ab"), (of_met, "aba")]
    for number, (own, events) in enumerate(pieces):
        settings = replace(own.settings, detect=detect[number % len(detect)])
        live.book = replace(live.book, settings=settings)
        live.edit(own)
        at = BEGIN + 10 * number * SECOND
        sent = [(event, at + n * SECOND, {"k": k, "v": 0})
                for n, event in enumerate(events) for k in range(1, 9)]  # fmt: skip
        live.signal(sent)
        live.drain(at + 9 * SECOND)
        emitting = "a" if own is of_a else "b"
        history += sent
        history += [("up", at, {"k": f["k"]}) for event, at, f in sent if event == emitting]
    signals = text[: text.index("scripts:")] + text[text.index("rules:") :]
    signals = signals.replace("events:", "events:\n  up: {signal: {k: bigint}}")
    end = BEGIN + 100 * SECOND
    lines = simulated(rules.load(signals), sorted(history, key=lambda line: line[1]), tmp_path,
                      until=end)  # fmt: skip
    assert Counter(line["rule"] for line in lines) == {"met": 32, "both": 32, "again": 64}
    assert sorted(map(plain, live.found())) == sorted(plain(as_fired(line)) for line in lines)


@pytest.mark.parametrize("name", SCRIPTS)
@detecting
def test_g06_firing_ids_are_the_same_however_it_is_cut(name: str, tmp_path: Path) -> None:
    @given(data=st.data())
    @example_count(12)
    def some(data: st.DataObject) -> None:
        own, history, ids = book(SCRIPTS[name]), data.draw(histories()), []
        for how in (None, data):
            with open_store(f"sqlite:///{tmp_path}/{next(NUMBERS)}.db", create=True) as store:
                lived(store, own, history, how, "same")
                ids.append(
                    sorted(firing["firing_id"] for firing in store.of("same").firings.listed())
                )
        assert saw(ids[0]) == ids[1]

    some()


def lived(
    store: SqlStore,
    own: Rulebook,
    history: list[Line],
    data: st.DataObject | None,
    name: str | None = None,
    beside: InProcess | None = None,
) -> Live:
    """A history in one bucket, or cut anywhere, with restarts and pauses. `beside`: executors, who
    take turns with the driver."""
    if beside is not None:
        own = replace(own, settings=replace(own.settings, detect="spark"))
    live = Live(store, own, name or f"g{next(NUMBERS)}", BEGIN, beside=beside)
    times = [time for _, time, _ in history]
    end = times[-1] + 100 * SECOND + 1_000
    ends = set() if data is None else {*data.draw(watermarks(times, [2 * SECOND]))}
    for now, piece in buckets(history, {end, *(now for now in ends if times[0] <= now < end)}):
        live.signal(piece)
        live.drain(now)
        if data is not None and data.draw(st.booleans()):
            detect = data.draw(st.sampled_from(["driver", "spark"])) if beside else "driver"
            live.book = replace(live.book, settings=replace(live.book.settings, detect=detect))
            live.restart()
    return live
