"""The work of the scans over assignments grows no faster than the assignments, or is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.history import run
from tidegate import rules
from tidegate.engine.detect.events.graph.flat import assignment_choice
from tidegate.engine.detect.events.graph.flat.assignment_choice import CHRONICLE, Line
from tidegate.engine.detect.events.graph.search_limits import RuleLimitError
from tidegate.rules.model import Settings

PLAIN = ("_chronicle", "_free", "_older", "_oldest_first", "_together")


def simultaneous(count: int) -> tuple[Line, np.ndarray[Any, Any]]:
    """As many b at 2 as a at 1, of one key, and every pair of them."""
    a, b = np.divmod(np.arange(count * count), count)
    source = np.repeat(np.array([0, 1], dtype=np.int16), count)
    code, row = np.zeros(2 * count, dtype=np.int32), np.arange(2 * count)
    line = Line(source, code, source.astype(np.int64) + 1, row, 0, 1, 0)
    return line, np.stack([count - 1 - a, count + b], axis=1)


def test_chronicle_compares_simultaneous_assignments_as_a_sort_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: Counter[str] = Counter()

    def plain(name: str) -> Any:
        """The kernel in Python, counted."""
        kernel = getattr(assignment_choice, name).py_func

        def counted(*given: Any) -> Any:
            calls[name] += 1
            return kernel(*given)

        return counted

    count = 32
    line, left = simultaneous(count)
    rank = np.zeros(2 * count, dtype=np.int64)
    given = (CHRONICLE, line, np.array([0, 1]), left, rank, line.row)
    compiled = assignment_choice.choose(*given)
    for name in PLAIN:
        monkeypatch.setattr(assignment_choice, name, plain(name))
    chosen, used = assignment_choice.choose.py_func(*given)
    assert compiled[0].tolist() == chosen.tolist()
    assert left[chosen].tolist() == [[n, count + n] for n in range(count)]
    assert used.all()
    assert calls["_free"] <= 2 * len(left)
    assert 0 < calls["_older"] <= len(left) * 10  # the logarithm of 1024


CHAIN = """
rulebook: r
events: {{a: {{signal: {{v: bigint}}}}, b: {{signal: {{v: bigint}}}}, c: {{signal: {{v: bigint}}}}}}
rules: {{r: {{on: a ; b ; c within 3 h, where: a.v < c.v, context: {}}}}}
"""


def test_what_a_stage_looks_at_are_steps() -> None:
    """Of one c, 200 b and two a, which both come too late to fit: the c looks at each b, and each b
    after an a at that. What is of another stage is not looked at."""
    book = rules.load(CHAIN.format("chronicle"))
    lines = [("b", n, {"v": 1}) for n in range(200)] + [("c", 200, {"v": 2})]
    lines[150:150] = [("a", 150, {"v": 3}), ("a", 150, {"v": 3})]
    lines = sorted(lines, key=lambda line: line[1])
    steps = 200 + 2 * 49
    assert run(replace(book, settings=Settings(search_steps_max=steps)), lines, []) == []
    with pytest.raises(RuleLimitError, match=f"more than {steps - 1} steps"):
        run(replace(book, settings=Settings(search_steps_max=steps - 1)), lines, [])


@pytest.mark.parametrize(("context", "found"), [("chronicle", 1), ("cumulative", 1)])
def test_a_window_may_hold_thousands_in_the_midst(context: str, found: int) -> None:
    """5,000 b of one key between an a and a c, under the settings as they are."""
    book = rules.load(CHAIN.format(context))
    lines = [("a", 0, {"v": 1})]
    lines += [("b", 1 + n, {"v": 1}) for n in range(5_000)]
    lines += [("c", 5_001, {"v": 2})]
    assert len(run(book, lines, [])) == found


@pytest.mark.parametrize(("late", "found"), [(-1, 1), (0, 1), (1, 0)])
def test_a_span_is_as_long_as_the_within_at_most(late: int, found: int) -> None:
    """To the microsecond."""
    lines = [("a", 0, {"v": 1}), ("b", 1, {"v": 1}), ("c", 3 * 3_600_000_000 + late, {"v": 2})]
    assert len(run(rules.load(CHAIN.format("chronicle")), lines, [])) == found
