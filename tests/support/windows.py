"""Rulebooks with a window, and histories of its boundaries.

The events a, b and c are keyed, or not. The rule `x` is of a and b, the rule `r` is the window, the
rule `s` uses it. Instants are whole seconds, where lengths of time begin and end, and those a
microsecond beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise, product
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.reference.cuts import cuts
from tests.reference.evaluate import Line, canonical, evaluate
from tests.reference.hits import noted, saw
from tests.reference.planted import untils
from tests.reference.windows.histories import by_case
from tests.support.history import batches, printed, run, through_ipc
from tests.support.rulebooks import loaded
from tidegate.engine.core.values import Carried
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.rules.model import Rulebook

SECOND = 1_000_000
EVENTS = "abc"
_OF = ("a", "b", "[a, b]", "[a, b, c]", "x", "[a, x]", "[x, c, b]")
_X = ("a ; b", "a and b within 3 s", "a or b", "not(b)[a, [2 s]]")
_USES = ("r", "r ; c", "c ; r", "r or c", "not(c)[r, [3 s]]", "any(2, r*)")

Windows = Callable[[st.DrawFn, Callable[[], str]], str]
"""Draws the text of a window; the function draws the text of an `of:`."""


def lengths(least: int = 1, most: int = 5) -> st.SearchStrategy[str]:
    """A few seconds, or a microsecond more or less."""
    seconds = st.integers(least, most)
    near = st.builds(lambda n, by: f"{n * SECOND + by} us", seconds, st.sampled_from([-1, 1]))
    return st.one_of(seconds.map("{} s".format), seconds.map("{} s".format), near)


@st.composite
def books(draw: st.DrawFn, windows: Windows) -> Rulebook:
    per = draw(st.sampled_from([", per: k", ", per: k", ""]))
    window = windows(draw, lambda: draw(st.sampled_from(_OF)))
    rules = {"x": f"on: '{draw(st.sampled_from(_X))}'{per}", "r": f"on: {window}{per}"}
    if draw(st.booleans()):
        context = draw(st.sampled_from(["restricted", "chronicle"]))
        rules["s"] = f"on: '{draw(st.sampled_from(_USES))}'{per}, context: {context}"
    return loaded(EVENTS, **rules)


_INSTANTS = product(range(15), [0, 0, 0, -1, 1, SECOND // 2])
_LINES: list[Line] = [
    (event, second * SECOND + by, {"k": k, "v": v})
    for event, (second, by), k, v in product(EVENTS, [*_INSTANTS], [1, 1, 2, None], range(3))
]


def histories(most: int = 14) -> st.SearchStrategy[list[Line]]:
    return st.lists(st.sampled_from(_LINES), min_size=1, max_size=most)


def check(book: Rulebook, history: list[Line], data: st.DataObject) -> None:
    """The detector finds what the reference finds: in one piece, and cut anywhere, with all its
    state in hand, or in partitions, or late."""
    until, cut = data.draw(untils(history)), data.draw(cuts(book, history))
    found = evaluate(book, history, until=until)
    answer = canonical(d.printed() for d in found)
    for windows in by_case(book, [d for d in found if d.rule == "r"], lambda d: d.key):
        saw(windows)
        noted("windows straddle a cut", any(d.start <= at < d.end for d in windows for at in cut))
        noted("windows have a pause between them", _paused(windows))
    assert run(book, history, until=until) == answer
    how = data.draw(st.sampled_from(["whole", "in partitions", "late"]))
    if how == "late" and until is None:
        assert late(book, history, cut, data) == answer
    else:
        partitions = 4 if how == "in partitions" else None
        assert run(book, history, cut, until, partitions=partitions) == answer


def _paused(windows: list[Any]) -> bool:
    """Whether a window ends, and the next of its key begins later."""
    return any(one.key == other.key and one.end < other.start for one, other in pairwise(windows))


def late(book: Rulebook, history: list[Line], cut: list[int], data: st.DataObject) -> list[str]:
    """What is found of lines that come up to three seconds after they happened, by rules that wait
    as long."""
    lateness = 3 * SECOND
    first = min(time for _, time, _ in history)
    delay = st.integers(0, 3).map(lambda seconds: seconds * SECOND)
    seen = [(line[1] + data.draw(delay), line) for line in history]
    detector = Detector(
        book, dict.fromkeys(book.rules, first), lateness=dict.fromkeys(book.rules, lateness)
    )
    stepper, carried, found = Partitioned(detector, 4), Carried(), list[Any]()
    before, end = first - 1, max(commit for commit, _ in seen)
    for watermark in (*sorted({at for at in cut if first <= at < end} | {end}), end + 60 * SECOND):
        arrived = batches(book, [line for commit, line in seen if before < commit <= watermark])
        detected, carried, _ = stepper.step(through_ipc(carried), arrived, watermark)
        found += [line for detections in detected for line in printed(detections)]
        before = watermark
    assert not _held(carried.tables)
    return canonical(found)


def _held(tables: Mapping[str, pa.Table]) -> list[str]:
    return [name for name in tables if name.startswith("held:")]
