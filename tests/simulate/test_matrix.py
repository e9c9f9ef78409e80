"""Every failpoint, raised at, ended at, slept at, or after its commit; at the first and at a later
pass, once and twice: lost = duplicate = out of order = corrupt = 0 (G16b, G21)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest

import tidegate
from tests.reference.examples import in_turn
from tests.simulate.disturbed import POINTS as DISTURBED
from tests.simulate.disturbed import SEEN, Changing, disturb_disk
from tests.simulate.matrix import (
    COUNTERS,
    Apart,
    Clients,
    Dying,
    Kept,
    KeptApart,
    KeptDying,
    Life,
    Matrix,
    Sharing,
)
from tests.simulate.planted import PLANTED, PLANTED_IN_SCRIPTS
from tests.simulate.quick import silence
from tests.support.memorystore import MemoryStore
from tidegate.engine.core.failpoints import KINDS, arm
from tidegate.engine.detect.events.state import partitions
from tidegate.engine.store import open_store, shelf, state_files

CODE = Path(tidegate.__file__).parent
POINTS = {
    name
    for folder in ("engine", "connectors")
    for file in (CODE / folder).rglob("*.py")
    for name in re.findall(r'failpoint\("([\w.]+)"\)', file.read_text(encoding="utf-8"))
}
CELLS = [*product(KINDS, (1, 2), (1, 2))]
SOME_CELLS = [(kind, n % 2 + 1, n % 2 + 1) for n, kind in enumerate(KINDS)]
Cell = tuple[str, int, int]
LIVES: dict[type[Life], str] = {
    Life: """look.after list.before list.table plan.chosen plan.after compile.after read.before
        suspect.begun read.after detect.before detect.after evaluate.after take.after queue.added
        queue.loaded action.before statement.before statement.after signal.made webhook.before
        webhook.sent condition.asked action.after_commit action.between recover.loaded""",
    Sharing: "shared.before shared.after",
    Dying: "otherwise.after seal.before seal.after pass.sealed",
    Kept: """state.middle state.written commit.begun commit.bucket commit.carried commit.middle
        commit.firings commit.before commit.after settle.begun settle.signals settle.before
        settle.after acted.before""",
    Clients: """lease.acquired lease.renewed register.before signal.raised posted.before
        purge.middle purge.before""",
    KeptDying: "tell.before otherwise.stored answer.before",
    Apart: "",
    KeptApart: "rows.middle rows.written compact.before compact.after",
    Changing: "",
}
ALSO = {  # points of another life that mean something else here
    Sharing: """statement.before statement.after action.before action.after_commit action.between
        queue.added queue.loaded recover.loaded suspect.begun""",
    Apart: "plan.after detect.before detect.after take.after recover.loaded",
    KeptApart: "state.middle state.written commit.begun commit.carried commit.before commit.after",
    Changing: f"{DISTURBED} commit.before commit.after compact.after",
}
POINTS_OF = {kind: f"{names} {ALSO.get(kind, '')}".split() for kind, names in LIVES.items()}
ELSEWHERE = {"migrate.before", "adopt.before", "spark.restart"}  # tests/store, tests/crash
ELSEWHERE |= {"strike.before"}  # tests/simulate/test_calls.py
ELSEWHERE |= {"state.deleted"}  # tests/store/test_state_files.py
NOTHING = dict.fromkeys(COUNTERS, 0)


@pytest.fixture(autouse=True)
def _unarmed() -> Iterator[None]:
    with silence():
        yield
    arm("")


def test_every_point_is_somewhere_in_the_matrix() -> None:
    named = [name for names in LIVES.values() for name in names.split()]
    assert sorted([*named, *ELSEWHERE]) == sorted(POINTS)
    assert len(POINTS) >= 29


@pytest.mark.parametrize(
    "cells", [SOME_CELLS, pytest.param(CELLS, marks=pytest.mark.long)], ids=["some", "all"]
)
@pytest.mark.parametrize("kind", LIVES)
def test_g16b_no_failure_at_any_point_loses_doubles_or_disorders_anything(
    kind: type[Life],
    cells: list[Cell],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matrix = Matrix(monkeypatch)
    cells_of = {point: tried(cells, n) for n, point in enumerate(POINTS_OF[kind])}
    if kind in (Life, Sharing, Dying, Apart):
        for point in POINTS_OF[kind]:
            matrix.run(point, kind(MemoryStore()), cells_of[point])
    else:
        for least in ("BYTES_MIN", "ROWS_BYTES_MIN"):  # what is carried, and rows, are in files
            monkeypatch.setattr(shelf, least, 1)
        monkeypatch.setattr(state_files, "SMALL_FILES_MIN", 2)
        if kind is Changing:
            monkeypatch.setattr(partitions, "ROWS_MAX", 1)  # they grow, and are cut
            disturb_disk(monkeypatch)
        with open_store(f"sqlite:///{tmp_path}/store.db", create=True) as store:
            life = kind(store)
            for point in POINTS_OF[kind]:
                matrix.run(point, life, cells_of[point])
            if isinstance(life, Changing):
                print(life.seen)
                assert min(life.seen[what] for what in SEEN) >= 5, life.seen
    found = matrix.outcome
    print({name: found.counters[name] for name in COUNTERS})
    print({point: found.happened[point, "exit"] for point in POINTS_OF[kind]})
    assert (found.wrong, found.untold) == ({}, [])
    wanted = Counter[tuple[str, str]]()
    for point, how_often in cells_of.items():
        for how, _, times in how_often:
            wanted[point, how] += times
    for at in product(POINTS_OF[kind], KINDS):
        assert found.happened[at] == wanted[at], at
    assert {how for _, how in wanted} == {*KINDS}


def tried(cells: Sequence[Cell], number: int) -> list[Cell]:
    """The cells of a point of this number: its process ends, and in the short suite one of the
    other failures, each in its turn."""
    ends = [cell for cell in cells if cell[0] == "exit"]
    others = [cell for cell in cells if cell[0] != "exit"]
    return [*ends, *in_turn(others, number)]


@pytest.mark.parametrize("fault", PLANTED | PLANTED_IN_SCRIPTS)
def test_g16_a_planted_fault_shows(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (PLANTED | PLANTED_IN_SCRIPTS)[fault](monkeypatch)
    matrix = Matrix(monkeypatch)
    for point in ("take.after", "statement.before", "statement.after", "recover.loaded"):
        matrix.life = Life(MemoryStore())
        for cell in CELLS:
            matrix.run(point, matrix.life, [cell])
            counters = matrix.outcome.counters
            if any(counters[name] for name in COUNTERS):
                print(fault, point, cell, {name: counters[name] for name in COUNTERS})
                return
    pytest.fail(f"{fault}: no point shows it")
