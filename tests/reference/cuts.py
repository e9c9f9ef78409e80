"""Where histories are cut into buckets: at which watermarks.

What happens at a bound (an occurrence, a timer that is due, the end of a window) is decided right
there. So most watermarks stand at a bound or a microsecond beside it, as those of `run` do, which
are whole milliseconds + 998 us. Example: of an a at 3 s and `not(b)[a, [5 s]]`, watermarks are
2.999999, 3, 3.000001, 7.999999, 8 and 8.000001 s, and some anywhere between.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import add

from hypothesis import strategies as st

from tests.reference.evaluate import Line
from tidegate.rules.expressions.nodes import Duration
from tidegate.rules.expressions.windows import Sliding, Tumbling
from tidegate.rules.model import Rulebook

Watermarks = list[int]
_BESIDE = (-1, 0, 1)
_LENGTHS = ("duration", "period", "length", "every", "gap", "keep")


def spans(rulebook: Rulebook) -> set[int]:
    """The lengths of time that the rules of a rulebook name, microseconds; without months."""
    nodes = (node for rule in rulebook.rules.values() for node in rule.pattern.on.walk())
    named = (getattr(node, name, None) for node in nodes for name in _LENGTHS)
    return {each.micros for each in named if isinstance(each, Duration)}


def _marked(rulebook: Rulebook, times: list[int]) -> list[int]:
    """Some times, and the multiples around each of the lengths of windows, microseconds."""
    nodes = (node for rule in rulebook.rules.values() for node in rule.pattern.on.walk())
    grids = {
        getattr(node, "every", node.length).micros
        for node in nodes
        if isinstance(node, Tumbling | Sliding)
    }
    multiples = (time - time % grid + grid for time in times for grid in grids - {0})
    return sorted({*times, *multiples})


def bounds(times: Iterable[int], lengths: Iterable[int] = ()) -> Watermarks:
    """The instants at which something may happen: some times, so long after them, and so long
    after that."""
    each = {0, *lengths}
    after = {first + second for first in each for second in each}
    return sorted({time + length for time in times for length in after})


def everywhere(rulebook: Rulebook, history: Iterable[Line]) -> tuple[Watermarks, Watermarks]:
    """Two ways to cut a history: at each bound, and a microsecond before each. Not both at once:
    what a rule keeps is looked at where something arrives, which then is at the bound before."""
    found = bounds(_marked(rulebook, _times(history)), spans(rulebook))
    return found, [bound - 1 for bound in found]


def cuts(
    rulebook: Rulebook, history: Iterable[Line], **options: int
) -> st.SearchStrategy[Watermarks]:
    """`watermarks` of a history."""
    times = _times(history)
    return watermarks(_marked(rulebook, times), spans(rulebook), **options)


@st.composite
def watermarks(
    draw: st.DrawFn,
    times: Iterable[int],
    lengths: Iterable[int] = (),
    *,
    least: int = 2,
    most: int = 6,
) -> Watermarks:
    """Some watermarks in order: at times and bounds, beside them, and anywhere between."""
    own = sorted({*times})
    if not own:
        return []
    known = bounds(own, lengths)
    beside = st.sampled_from(_BESIDE)
    near = st.builds(add, st.sampled_from(own), beside)
    bound = st.builds(add, st.sampled_from(known), beside)
    chosen = st.one_of(near, near, bound, st.integers(own[0], own[-1] + 1))
    return sorted(draw(st.sets(chosen, min_size=least, max_size=most)))


def _times(history: Iterable[Line]) -> list[int]:
    return [time for _, time, _ in history]
