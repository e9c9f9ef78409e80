"""What executors do in a step, and what they find of a step that was not theirs, or not of the same
rulebook (G26)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.detect.events.step.test_apart import identified
from tests.detect.events.step.test_component_detector import rows
from tests.detect.events.step.test_component_step import AsGiven, held
from tests.support.executors import InProcess
from tests.support.rulebooks import loaded
from tidegate.engine.core.values import Carried, Unread
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.step import component_task
from tidegate.engine.detect.events.step.component_step import ComponentStep
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.engine.store import shelf as shelves
from tidegate.engine.store.shelf import FileShelf


def test_g26_rows_that_the_driver_lets_wait_are_let_go_where_executors_detect() -> None:
    """What the driver's rules and those of executors refer to is divided first."""
    rules = {
        "r": "on: a ; b, per: k",
        "s": "on: a ; b, per: k, context: chronicle",
        "q": "on: a ; c",
    }
    book, since, late = loaded("abc", **rules), dict.fromkeys(rules, 0), {"s": 3_000}
    driver = Partitioned(Detector(book, since, lateness=late), 4)
    apart = ComponentStep(book, since, late, InProcess(), 4)
    carried = driver.step(Carried(), rows("a", 1, k=[7]) | rows("b", 2, k=[7]), 1_000).carried
    assert len([*held(carried)]) == 2
    made, carried, _ = apart.step(carried, rows("c", 2_000, k=[7]), 4_000)
    assert [d.rule for d in made] == ["s", "q"]
    assert not held(carried)


def test_g26_rows_that_executors_read_are_cut_into_as_many_tasks_as_they_are_said_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(component_task, "WORKER_ROWS", 50)
    book, beside = loaded("ab", r="on: a ; b, per: k"), InProcess(2)
    arriving = identified(rows("a", 1, k=[*range(40)]), 0)
    unread = Unread((pa.table({"at": [*range(40)]}),), AsGiven(("a",), arriving), 400)
    step = ComponentStep(book, {"r": 0}, {}, beside, 64)
    assert step.step_unread(Carried(), {}, 1, (), None, unread).rows == 40
    assert beside.tasks == [8]


def test_g26_a_step_in_which_nothing_is_for_executors_leaves_what_they_carry_as_it_is() -> None:
    book = loaded("abc", r="on: a ; b, per: k", s="on: c")
    step = ComponentStep(book, {"r": 0, "s": 0}, {}, beside := InProcess(8), 16)
    carried = step.step(Carried(), rows("a", 1, k=[*range(40)]), 1).carried
    found, left, _ = step.step(carried, rows("c", 2, k=[0]), 2)
    assert [d.rule for d in found] == ["s"]
    assert len(beside.tasks) == 1
    assert (Parts.of(left.tables).count, left.changed) == (16, frozenset())


def test_g26_what_one_component_left_in_files_is_found_after_a_reload_that_makes_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelves, "BYTES_MIN", 1)  # every part is a file
    filed = FileShelf("", str(tmp_path), "one")
    texts = {"r": "on: a ; b, per: k", "s": "on: a ; c, per: v"}
    one = ComponentStep(loaded("abc", r=texts["r"]), {"r": 0}, {}, InProcess(), 16)
    arriving = rows("a", 1, k=[1, 2], v=[3, 4])
    left = one.step_unread(Carried(), arriving, 1, (), None, None, filed).stepped.carried
    assert Parts.of(left.tables).files
    two = ComponentStep(loaded("abc", **texts), {"r": 0, "s": 1}, {}, InProcess(), 16)
    made = two.step_unread(left, rows("b", 2, k=[1], v=[0]), 2, (), None, None, filed).stepped
    assert [d.rule for d in made.detections] == ["r"]
    arriving = rows("a", 3, k=[1], v=[3]) | rows("c", 4, k=[0], v=[3])
    made = two.step_unread(made.carried, arriving, 4, (), None, None, filed).stepped
    assert [d.rule for d in made.detections] == ["s"]
