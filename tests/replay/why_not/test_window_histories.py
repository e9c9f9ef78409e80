"""Histories of windows: `why-not` says what the reference finds, and agrees with the detector."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.evaluate import Line as Timed
from tests.reference.examples import example_count
from tests.reference.hits import detecting, drawn_for
from tests.reference.values import Occurrence
from tests.reference.windows.holding import Alert, Fate, alerts
from tests.replay.why_not.runs import at, run
from tests.replay.why_not.test_random import agree
from tests.replay.why_not.window_rules import HOLDS, OVER, book, lines
from tests.support.windows import Windows, books, histories, lengths
from tidegate.engine.replay.why_not.evidence import Rung
from tidegate.engine.replay.why_not.ladder import ladder


def planted(draw: Random) -> tuple[str, str, float, dict[str, Any]]:
    """A rule, its history, the instant that is asked for, and what is to be told."""
    first, held = draw.randint(0, 500), draw.randint(1, 300)
    match draw.randint(0, 2):
        case 0:
            figures: dict[str, Any] = {
                "from": at(first),
                "to": at(first + held),
                "held_micros": held * 1_000_000,
            }
            return HOLDS, f"over@{first} ok@{first + held}", first + held + 900, figures
        case 1:
            value = draw.randint(-50, 10)
            figures = {"instant": at(first), "values": {"avg(v)": float(value)}}
            return OVER, f"over@{first}({value})", first + 900, figures
        case _:
            due = first - first % 300 + 300
            return "{window: 5 min, of: over}", f"over@{first}", due - 0.001, {"due": at(due)}


def test_planted_misses_are_told_by_their_figures() -> None:
    for number in range(60):
        on, history, until, figures = planted(Random(number))
        evidence = run(book(on), lines(history), 9_000)
        last: Rung = ladder(evidence, "r", {"k": 7}, at(until))[-1]
        assert {name: last.evidence.get(name) for name in figures} == figures, last


def test_what_is_said_of_a_holds_is_what_the_reference_finds() -> None:
    """Of random histories, asked for at an instant at which it does not fire."""
    told = Counter[str]()
    for number in range(60):
        draw = Random(number)
        keep, until = draw.choice([0, 2]), draw.randint(8, 24)
        history = [(draw.choice(["over", "over", "ok"]), draw.randint(0, until)) for _ in range(7)]
        on = f"{{holds: over, until: ok, for: 5 s, keep: {keep} s}}"
        evidence = run(book(on), [(e, t, {"k": 7, "v": 0.0}) for e, t in history], until)
        last = ladder(evidence, "r", {"k": 7}, at(until), at(until))[-1]
        if last.name != "parts":
            continue
        seen = {
            name: [Occurrence(name, name, at(t), at(t)) for e, t in history if e == name]
            for name in ("over", "ok")
        }
        lasts, keeps = lambda t: t + at(5) - at(0), lambda u, keep=keep: u + at(keep) - at(0)
        *before, alert = alerts(seen["over"], seen["ok"], lasts, keeps)
        state, figures = expected(alert, at(until))
        told[state] += 1
        if state == "cut short":
            ends = [o.end for o in seen["ok"]]
            each = [a.start for a in (*before, alert) if a.fate is Fate.CUT_SHORT]
            start = last.evidence["from"]
            assert start in each
            figures = {"from": start, "to": min(end for end in ends if end > start)}
            figures["held_micros"] = figures["to"] - start
        found = {name: last.evidence.get(name) for name in figures}
        assert found == figures, (history, until, last)
    assert min(told[name] for name in ("cut short", "pending", "fired", "clearing", "over")) > 1


def expected(alert: Alert, until: int) -> tuple[str, dict[str, int | None]]:
    """The state in which the last alert leaves a key, and what is to be told of it."""
    if alert.fate is Fate.CUT_SHORT:
        return "cut short", {}
    assert alert.fired is not None
    if alert.fired > until:
        return "pending", {"from": alert.start, "due": alert.fired}
    if alert.resolved is None:
        return "fired", {"fired": alert.fired}
    if alert.resolved > until:
        return "clearing", {"fired": alert.fired, "due": alert.resolved}
    return "over", {"over": alert.resolved}


def tumbling(draw: st.DrawFn, of: Any) -> str:
    return f"{{window: {draw(lengths())}, of: {of()}}}"


def sliding(draw: st.DrawFn, of: Any) -> str:
    return f"{{window: {draw(lengths())}, every: {draw(lengths())}, of: {of()}}}"


def session(draw: st.DrawFn, of: Any) -> str:
    return f"{{session: {draw(lengths(1, 3))}, of: {of()}}}"


def over(draw: st.DrawFn, of: Any) -> str:
    fire = draw(st.sampled_from(["count(*) > 1", "count(*) > 0 and count(*) < 3"]))
    rearm = draw(st.sampled_from(["", ", rearm: count(*) = 0"]))
    return f"{{over: {{window: {draw(lengths())}, of: {of()}, fire: {fire}{rearm}}}}}"


def holds(draw: st.DrawFn, of: Any) -> str:
    keep = draw(st.sampled_from(["", ", keep: 1 s", ", keep: 2 s"]))
    return f"{{holds: {of()}, until: {of()}, for: {draw(lengths(1, 3))}{keep}}}"


@pytest.mark.parametrize("kind", [tumbling, sliding, session, over, holds])
def test_fired_is_what_was_detected_of_windows(kind: Windows) -> None:
    @drawn_for(kind.__name__)
    @detecting
    @given(case=st.tuples(books(kind), histories()), data=st.data())
    @example_count(40, least=10)
    def some(case: tuple[Any, list[Timed]], data: st.DataObject) -> None:
        agree(*case, data)

    some()
