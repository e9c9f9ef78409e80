"""A step on several threads detects, and carries, what it does on one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.detect.events.step.test_chains import as_sets
from tests.reference.cuts import cuts
from tests.reference.hits import detecting, saw
from tests.reference.planted import planted
from tests.reference.strategies import UNTIMED, rulebooks
from tests.support.history import batches, buckets, printed
from tests.support.rulebooks import loaded
from tidegate.engine.core.values import Carried
from tidegate.engine.detect.events.graph.limits import RuleLimitError
from tidegate.engine.detect.events.step import detector as stepping
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.expressions.nodes import Own, Periodic, PeriodicStar, Plus
from tidegate.rules.model import Context, Rulebook

END = 100_000_000  # us: timers that are due until then, or so long after, are seen
OPERATORS = (*UNTIMED, Own, Plus, Periodic, PeriodicStar)


@pytest.fixture(autouse=True, scope="module")
def _on_threads_however_little_arrives() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stepping, "ARRIVALS_MIN", 0)
        yield


def stepped(
    book: Rulebook, lines: list[Any], ends: list[int], threads: int
) -> tuple[list[Any], list[Any]]:
    """What buckets that end there give, and what each leaves behind."""
    detector = Detector(book, dict.fromkeys(book.rules, 0), threads=threads)
    carried, found, kept = Carried(), list[Any](), list[Any]()
    for watermark, bucket in buckets(lines, ends):
        detections, carried, _ = detector.step(carried, batches(book, bucket), watermark)
        found += [(d.rule, printed(d)) for d in detections]
        kept.append(as_sets(carried))
    return found, kept


@detecting
@given(data=st.data(), threads=st.integers(2, 5))
@settings(max_examples=40, deadline=None)
def test_any_number_of_threads_detects_the_same(data: st.DataObject, threads: int) -> None:
    book = data.draw(rulebooks(OPERATORS, [*Context], rules_max=3))
    lines = sorted(data.draw(planted(book, 12)), key=lambda line: line[1])
    ends = [*data.draw(cuts(book, lines)), lines[-1][1] + END]
    alone = stepped(book, lines, ends, 1)
    assert stepped(book, lines, ends, threads) == alone
    saw(alone[0])


def test_a_limit_that_a_thread_meets_is_told_as_if_there_was_one_thread() -> None:
    book = loaded("ab", r="on: a ; b, context: chronicle", s="on: a and b", t="on: b ; a")
    lines = [("a", n, {"k": 1, "v": n}) for n in range(12_000)]
    for threads in (1, 3):
        with pytest.raises(RuleLimitError) as limit:
            stepped(book, lines, [6_000, END], threads)
        assert limit.value.rule == "r"


def test_a_node_for_each_known_key_waits_for_the_rule_that_makes_keys_known() -> None:
    book = loaded("abc", "t", pair="on: a ; b, per: k", both="on: '(t - c) ; pair', per: k")
    events = [("a", 1), ("t", None), ("b", 1), ("a", 2), ("b", 2), ("t", None), ("t", None)]
    lines = [(event, n, {"k": k, "v": 0}) for n, (event, k) in enumerate(events)]
    alone = stepped(book, lines, [3, END], 1)
    assert [rule for rule, _ in alone[0]].count("both") == 1
    assert stepped(book, lines, [3, END], 2) == alone
