"""Whether Spark has slots left: what its listener says, for one that is not there."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.connectors.delta import slots as module
from tidegate.connectors.delta.slots import Slots
from tidegate.connectors.delta.watchdog import DeltaHealth


@dataclass
class Tracker:
    """As Spark's context and its status tracker. `stages`: by job group, the active and completed
    tasks of each stage of its one running job. `busy`: how many tasks run in all."""

    count: int = 2
    busy: int = 0
    stages: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    @property
    def defaultParallelism(self) -> int:
        return self.count

    @property
    def _jsc(self) -> Any:
        return SimpleNamespace(sc=lambda: SimpleNamespace(statusTracker=lambda: self))

    def getExecutorInfos(self) -> list[Any]:
        return [SimpleNamespace(numRunningTasks=lambda: self.busy)]

    def getJobIdsForGroup(self, group: str) -> list[str]:
        return [group] if group in self.stages else []

    def getActiveJobIds(self) -> list[str]:
        return list(self.stages)

    def getJobInfo(self, job: str) -> Any:
        ids = [(job, n) for n in range(len(self.stages[job]))]
        return _some(SimpleNamespace(status=lambda: "RUNNING", stageIds=lambda: ids))

    def getStageInfo(self, stage: tuple[str, int]) -> Any:
        active, completed = self.stages[stage[0]][stage[1]]
        return _some(
            SimpleNamespace(numActiveTasks=lambda: active, numCompletedTasks=lambda: completed)
        )


def _some(value: Any) -> Any:
    return SimpleNamespace(isDefined=lambda: True, get=lambda: value)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLE_SECONDS", 0.0)


@pytest.mark.parametrize(
    ("count", "held", "ended"),
    [(1, 0, False), (1, 1, True), (2, 0, False), (2, 1, True), (8, 6, False), (8, 7, True)],
)
def test_g13_one_slot_is_left_for_others(count: int, held: int, ended: bool) -> None:
    slots = Slots(tracker := Tracker(count))
    tracker.stages["slow"] = [(held, 3)]
    slots.left("slow")
    stays, lost = DeltaHealth(None, slots, own=True).overrun()  # type: ignore[arg-type]
    assert (stays, lost is not None) == (False, ended)
    stays, lost = DeltaHealth(None, slots, own=False).overrun()  # type: ignore[arg-type]
    assert stays == (held > 0)  # a user's Spark is not ours to end
    assert (lost is not None) == (held >= count)  # nothing can run in it any more


@pytest.mark.parametrize(
    ("busy", "stages", "queues"),
    [
        (2, [(0, 0)], True),
        (2, [(0, 0), (0, 0)], True),
        (1, [(0, 0)], False),  # a slot is free
        (2, [(1, 0)], False),  # it runs
        (2, [(1, 0), (0, 0)], False),
        (2, [(0, 5), (0, 0)], False),  # it has run: its time counts from the first task on
        (2, [], False),  # it plans
    ],
)
def test_g13_a_job_queues_before_its_first_task_while_others_hold_all_slots(
    busy: int, stages: list[tuple[int, int]], queues: bool
) -> None:
    assert Slots(Tracker(2, busy, {"mine": stages})).queues("mine") is queues


def test_g13_a_call_that_goes_on_is_known_until_it_ends() -> None:
    """Between two of its jobs it holds a core, as one that plans does."""
    slots, call = Slots(tracker := Tracker()), Future[None]()
    assert slots.left("slow", call)
    assert slots.lost == 1
    tracker.stages["slow"] = [(1, 0)]
    assert slots.lost == 1
    call.set_result(None)
    assert slots.lost == 1
    tracker.stages.clear()
    assert slots.lost == 0


def test_a_call_whose_tasks_all_end_leaves_nothing() -> None:
    assert not Slots(Tracker()).left("quick")
    assert Slots(Tracker(stages={"slow": [(1, 0)]})).left("slow")
