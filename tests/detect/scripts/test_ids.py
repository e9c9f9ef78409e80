"""The ids of emissions, by which effects are done once: each its own, however history is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.detect.scripts.compared import SECOND, batches, script_of, through_bytes
from tests.reference.eventscript.evaluate import Event
from tidegate.engine.core.values import Carried
from tidegate.engine.detect.scripts.run import ScriptRunner

TEXT = """
in {long k;} A group(A.k), {} All
out long z
(A() | All() { !> z(1); !> z(1); } | elapse[1 second]() { !> z(1); !> z(1); })*
"""
HISTORY = [*(Event(0, "A", {"k": k}) for k in (1, 2)), Event(SECOND // 2, "All", {})]
LAST = 4 * SECOND


def ids(cuts: list[int], history: list[Event] = HISTORY) -> list[tuple[int, ...]]:
    script, carried, found = script_of(TEXT), Carried(), []
    for after, end in pairwise([-1, *cuts, LAST]):
        part = [event for event in history if after < event.time <= end]
        step = ScriptRunner(script, 0).step(carried, batches(script.program, part), end)
        carried = Carried({n: through_bytes(t) for n, t in step.carried.tables.items()})
        batch = step.emissions.batch("z", "z")
        found += [] if batch is None else [(*row,) for row in batch.ids[""].tolist()]
    return found


def test_two_keys_two_emissions_and_two_instants_have_ids_of_their_own() -> None:
    whole = ids([])
    assert len(whole) == len({*whole}) == 2 * 2 * 4


@pytest.mark.parametrize("cuts", [[0], [SECOND // 2], [SECOND * 2], [0, SECOND // 2, 2 * SECOND]])
def test_the_ids_are_the_same_however_history_is_cut(cuts: list[int]) -> None:
    assert ids(cuts) == ids([])


def test_the_id_of_a_timed_emission_tells_what_came_before_it() -> None:
    again = HISTORY[0]._replace(time=HISTORY[2].time)
    one, other = (ids([], [HISTORY[0], event]) for event in (HISTORY[2], again))
    assert one[-1] != other[-1]
