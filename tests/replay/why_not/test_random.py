"""On random rules and histories the ladder and the detector never disagree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import cases
from tests.reference.strategies import EVERYTHING
from tests.support.history import batches
from tidegate.engine.core.clocks import clock_batches
from tidegate.engine.core.parameters import INSTANT
from tidegate.engine.core.values import Batch, Carried, Detections, Firings
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.replay.why_not.evidence import ActiveSpan, DroppedRow, Evidence
from tidegate.engine.replay.why_not.ladder import RUNGS, ladder
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.model import Context, Rulebook

WAIT = 5_000_000  # how long time goes on after the last line


class Kept:
    """Occurrences of which none was dropped."""

    def __init__(self, batches: dict[str, Batch]) -> None:
        self.batches = batches

    def occurrences(self, event: str) -> Batch | None:
        return self.batches.get(event)

    def dropped(self, event: str, *_: Any) -> list[DroppedRow]:  # noqa: ARG002
        return []


def fired(found: Detections) -> Firings:
    """A firing for each detection, without rows."""
    ids = [np.array([n, n], np.int64).tobytes() for n in range(len(found))]
    table = pa.table(
        {
            "firing_id": pa.array(ids, pa.binary(16)),
            **{name: found.keys[name] for name in found.keys.column_names},
            "started_at": pa.array(found.start).cast(INSTANT),
            "detected_at": pa.array(found.end).cast(INSTANT),
            "condition": pa.array(["none"] * len(found)),
        }
    )
    return Firings(found.rule, table, pa.table({"firing_id": pa.array([], pa.string())}))


def run(book: Rulebook, lines: list[Line]) -> tuple[Evidence, tuple[Detections, ...], int, int]:
    """What is detected up to a while after the last line."""
    first = min(time for _, time, _ in lines)
    last = max(time for _, time, _ in lines) + WAIT
    given = {n: b for n, b in batches(book, lines).items() if len(b)}
    given |= clock_batches(book, first, last)
    found = Detector(book, dict.fromkeys(book.rules, first)).step(
        Carried(), given, last, last
    ).detections  # fmt: skip
    active = {name: [ActiveSpan(first)] for name in book.rules}
    firings = {each.rule: [fired(each)] for each in found}
    return Evidence(book, last, active, Kept(given), (), firings), found, first, last


def agree(book: Rulebook, lines: list[Line], data: Any) -> None:
    evidence, found, first, last = run(book, lines)
    saw(found)
    rule = data.draw(st.sampled_from([*book.rules]))
    names = book.rules[rule].pattern.key_names
    detected = {
        (int(end), tuple(key.values()))
        for each in found
        if each.rule == rule
        for end, key in zip(each.end, each.keys.to_pylist() or [{}] * len(each), strict=True)
    }
    instants = sorted({end for end, _ in detected} | {t for _, t, _ in lines} | {last, first - 1})
    for _ in range(3):
        instant = data.draw(st.sampled_from(instants))
        key = {n: data.draw(st.sampled_from([1, 2, None])) for n in names}
        since = data.draw(st.sampled_from([instant, None]))
        expected = any(
            values == tuple(key.values()) and (end == instant if since else end <= instant)
            for end, values in detected
        )
        rungs = ladder(evidence, rule, key, instant, since)
        assert [rung.name for rung in rungs] == [*RUNGS[: len(rungs)]]
        assert all(rung.ok for rung in rungs[:-1])
        assert rungs[-1].ok == (rungs[-1].name == "fired" and expected) == expected, (
            format_expression(book.rules[rule].pattern.on),
            rungs[-1],
        )
        assert all(rung.sentence.endswith(".") for rung in rungs)
        if not expected:
            assert rungs[-1].name in ("active", "occurrences", "parts", "context")


@detecting
@given(case=cases(operators=EVERYTHING), data=st.data())
@example_count(400, least=33)
def test_fired_is_what_was_detected(case: tuple[Rulebook, list[Line]], data: Any) -> None:
    book, lines = case
    if lines:
        agree(book, lines, data)


@pytest.mark.parametrize("context", Context)
def test_fired_is_what_was_detected_in_each_context(context: Context) -> None:
    @detecting
    @given(case=cases(operators=EVERYTHING, contexts=[context]), data=st.data())
    @example_count(120, least=10)
    def test(case: tuple[Rulebook, list[Line]], data: Any) -> None:
        book, lines = case
        if lines:
            agree(book, lines, data)

    test()


@detecting
@given(case=cases(operators=EVERYTHING, rules_max=3, depth=1), data=st.data())
@example_count(120, least=10)
def test_fired_is_what_was_detected_of_rules_that_use_rules(
    case: tuple[Rulebook, list[Line]], data: Any
) -> None:
    book, lines = case
    if lines:
        agree(book, lines, data)
