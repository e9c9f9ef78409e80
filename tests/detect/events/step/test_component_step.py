"""A bucket that executors step may follow one that the driver has stepped, and the other way round
(G26)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.detect.events.step.test_apart import (
    differing,
    identified,
    lacking,
    lines_of,
    of_keys,
    unexpired,
)
from tests.detect.events.step.test_component_detector import of_two_keys, rows, told
from tests.reference.cuts import cuts
from tests.reference.examples import example_count
from tests.reference.hits import detecting, noted, noting, saw
from tests.reference.strategies import SECOND
from tests.support.executors import InProcess
from tests.support.history import batches, buckets, through_ipc
from tests.support.rulebooks import loaded
from tidegate.engine.core.clocks import clock_batches
from tidegate.engine.core.ports import TooManyError
from tidegate.engine.core.state_parts import FilePart, Shelf
from tidegate.engine.core.state_parts import loaded as loaded_parts
from tidegate.engine.core.values import (
    Batch,
    Captured,
    Carried,
    Detections,
    Firings,
    Unread,
    hex_ids,
)
from tidegate.engine.detect.events.graph.components import components, keyed_everywhere
from tidegate.engine.detect.events.state import partitions
from tidegate.engine.detect.events.state import parts as all_parts
from tidegate.engine.detect.events.state.held_back import is_held
from tidegate.engine.detect.events.state.loads import Loads, tables_of
from tidegate.engine.detect.events.state.partitions import place
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.state.shares import reunited
from tidegate.engine.detect.events.step import component_detector, component_task
from tidegate.engine.detect.events.step.component_step import ComponentStep
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.engine.store import shelf as shelves
from tidegate.engine.store.shelf import FileShelf
from tidegate.rules.errors import EngineError

EXAMPLES, LEAST = 40, 10
LATE = 2 * SECOND
MOST = 4  # partitions


def unheld(carried: Carried) -> Carried:
    """Without what is held back."""
    return Carried({n: t for n, t in carried.tables.items() if not is_held(n)})


def held(carried: Carried) -> dict[str, list[Any]]:
    return {n: t.to_pylist() for n, t in carried.tables.items() if is_held(n)}


class AsGiven(NamedTuple):
    """Captures what was given: a row says where its occurrence stands in the batch."""

    events: tuple[str, ...]
    batches: dict[str, Batch]

    def __call__(self, table: int, first: int, rows: pa.Table) -> Captured:  # noqa: ARG002
        event, at = self.events[table], rows.column("at").to_numpy()
        return Captured({event: self.batches[event].take(at)}, len(at))


@st.composite
def apart_of(
    draw: st.DrawFn, given_: dict[str, Batch], keyed: frozenset[str]
) -> tuple[Unread | None, dict[str, Batch]]:
    """Some of the batches as rows that executors read, and the others."""
    events = tuple(event for event in sorted(keyed & given_.keys()) if draw(st.integers(0, 3)))
    here = {event: batch for event, batch in given_.items() if event not in events}
    if not events:
        return None, here
    rows = tuple(pa.table({"at": np.arange(len(given_[event]))}) for event in events)
    return Unread(rows, AsGiven(events, given_), draw(st.sampled_from([1, 3_000_000]))), here


def in_memory(carried: Carried, shelf: FileShelf) -> Carried:
    return Carried(loaded_parts(carried.tables, shelf), carried.changed)


def met(carried: Carried) -> Carried:
    """What components keep apart, together."""
    return unheld(Carried(reunited(Parts.of(carried.tables), None)))


@noting(
    mode_changes=3, both_ways=6, some_held_back=20, parked=12, read_apart=8, in_files=20, idle=3
)
@detecting
def test_g26_driver_and_executors_in_turn_are_the_driver_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Detections, their order, ids, and what is carried; through the store's bytes, or in files
    that tasks write and read. Some rules wait for late rows. One may be parked for a bucket."""
    monkeypatch.setattr(partitions, "ROWS_MAX", 3)  # the state is cut further as it grows
    shelf = FileShelf("", str(tmp_path), "one")

    @given(data=st.data())
    @example_count(EXAMPLES, LEAST)
    def some(data: st.DataObject) -> None:
        rulebook, history = data.draw(of_two_keys())
        names = [*rulebook.rules]
        late = dict.fromkeys(data.draw(st.sampled_from([(), (), (names[0],)])), LATE)
        assume(history)
        first = min(time for _, time, _ in history)
        since = dict.fromkeys(names, first)
        detector = Detector(rulebook, since, lateness=late)
        one, driver, whole = (Partitioned(detector, most) for most in (1, MOST, MOST))
        executors = InProcess(data.draw(st.sampled_from([1, 2, 3])))
        apart = ComponentStep(rulebook, since, late, executors, MOST)
        keyed = keyed_everywhere(components(rulebook, detector.graph, late), detector.graph)
        lines = sorted(history, key=lambda line: line[1])
        end = lines[-1][1]
        ends = {*data.draw(cuts(rulebook, lines)), end, end + 5 * SECOND}
        in_one, expected, carried = Carried(), Carried(), Carried()
        sites, found, waited, stops, read, idle = list[bool](), list[Any](), False, 0, 0, 0
        filed, counting, counted = (
            False,
            Loads(tables_of(detector.graph)),
            Loads(tables_of(detector.graph)),
        )
        unlike, watermark = differing(carried, carried), first - 1
        for number, (until, bucket) in enumerate(buckets(lines, ends)):
            clocks = clock_batches(rulebook, watermark + 1, until)
            given_ = identified(batches(rulebook, bucket) | clocks, number)
            parked = data.draw(st.sets(st.sampled_from(names), max_size=1))
            parked = parked if data.draw(st.integers(0, 3)) == 0 else set()
            stops += bool(parked)
            of_whole, in_one, _ = one.step(in_one, given_, until, parked=parked)
            expected = whole.step(expected, given_, until, parked=parked).carried
            sites.append(data.draw(st.sampled_from([True, True, False])))
            if sites[-1]:
                unread, here = data.draw(apart_of(given_, keyed))
                read += unread is not None
                least = data.draw(st.sampled_from([1, 1, 1, 10**9]))
                monkeypatch.setattr(shelves, "BYTES_MIN", least)
                (made, left, reached), there, loads, _, busy = apart.step_unread(
                    carried, here, until, parked, None, unread, shelf
                )
                assert there + sum(map(len, here.values())) == sum(map(len, given_.values()))
                idle += not busy
            else:
                made, left, reached = driver.step(
                    carried, given_, until, parked=parked, shelf=shelf
                )
                loads = {}
            whole_left = in_memory(left, shelf)
            assert counted.of(left.tables, loads) == counting.of(whole_left.tables)
            assert reached == until
            assert told(made) == told(of_whole)
            before, after = in_memory(carried, shelf).tables, whole_left.tables
            changed = {
                name
                for name in {*before, *after}
                if name not in after
                or name not in before
                or not after[name].equals(before[name], check_metadata=True)
            }
            assert changed <= left.changed
            filed |= bool(in_files := Parts.of(left.tables).files)
            carried = left if in_files or data.draw(st.booleans()) else through_ipc(left)
            assert held(carried) == held(expected)
            waited |= bool(held(carried))
            apart_, alone, cut = (
                unexpired(detector.cut_anew(met(each), 1), detector, until)
                for each in (whole_left, in_one, expected)
            )
            assert not lacking(apart_, alone, detector.graph)
            gone, unlike = unlike, differing(*(of_keys(e, detector.graph) for e in (apart_, cut)))
            assert parked or not gone & unlike  # of a parked rule nothing changes
            found += lines_of(of_whole)
            watermark = until
        noted("mode changes", len({*sites}) == 2)
        noted("both ways", (True, False) in {*pairwise(sites)})
        noted("some held back", waited)
        noted("parked", stops > 0)
        noted("read apart", read > 0)
        noted("idle", idle > 0)
        noted("in files", filed)
        saw(found)

    some()


def test_g26_what_executors_leave_is_written_where_it_differs() -> None:
    """Of a thousand keys one has something new."""
    book = loaded("ab", r="on: a ; b, per: k, context: chronicle")
    apart = ComponentStep(book, {"r": 0}, {}, InProcess(8), 256)
    _, carried, _ = apart.step(Carried(), rows("a", 1, k=[*range(1_000)]), 1)
    assert carried.changed == carried.tables.keys()
    parts = {name.rpartition("/")[2] for name in carried.tables if "/" in name}
    assert len(parts) >= 8  # a slot has one at least
    made, carried, _ = apart.step(carried, rows("b", 2, k=[7]), 2)
    assert [len(d) for d in made] == [1]
    assert {name.rpartition("/")[2] for name in carried.changed} <= {
        str(partitions.partitions([pa.chunked_array([[7]])], len(parts))[0]), "every"
    }  # fmt: skip


def test_g26_executors_cut_finer_than_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """As large as a part may be at the driver, it is cut for executors."""
    monkeypatch.setattr(partitions, "ROWS_MAX", 40)
    book = loaded("ab", r="on: a ; b, per: k")
    driver, apart = (
        Partitioned(Detector(book, {"r": 0}), 64),
        ComponentStep(book, {"r": 0}, {}, InProcess(1), 64),
    )
    carried = driver.step(Carried(), rows("a", 1, k=[*range(40)]), 1).carried
    carried = driver.step(carried, rows("a", 2, k=[1]), 2).carried
    assert Parts.of(carried.tables).count == 1
    carried = apart.step(carried, rows("a", 3, k=[2]), 3).carried
    assert Parts.of(carried.tables).count > 1
    assert sum(len(t) for n, t in carried.tables.items() if n.startswith("node:")) == 40


def test_g26_rows_that_wait_for_late_ones_stay_with_the_driver() -> None:
    """What its rules carry is cut into as many partitions as what executors have."""
    rules = {
        "r": "on: a ; b, per: k",
        "s": "on: a ; b, per: k, context: chronicle",
        "q": "on: c ; c",
    }
    apart = ComponentStep(
        loaded("abc", **rules), dict.fromkeys(rules, 0), {"s": 3_000}, InProcess(), 4
    )
    given_ = {
        event: replace(rows(event, at, k=[7])[event], number=np.zeros(1, np.int64))
        for at, event in enumerate("abc", start=1)
    }
    made, carried, _ = apart.step(Carried(), given_, 1_000)
    assert [d.rule for d in made] == ["r"]
    assert Parts.of(carried.tables).count > 1
    assert sorted(n for n in carried.tables if is_held(n)) == ["held:a by 3000", "held:b by 3000"]
    made, carried, _ = apart.step(carried, {}, 4_000)
    assert [d.rule for d in made] == ["s"]
    assert not any(map(is_held, carried.tables))


def test_g26_executors_have_nothing_to_do_once_what_was_too_old_is_gone() -> None:
    """Nothing arrives for rule `r` any more. Nor have they while it is parked."""
    book = loaded("ab", "t", r="on: 'a ; b within 80 us', per: k", s="on: t")
    executors = InProcess(2)
    apart, left = ComponentStep(book, {"r": 0, "s": 0}, {}, executors, 16), Carried()
    for event, at, parked, mapped in (
        ("a", 1, (), 1),
        ("t", 95, ("r",), 1),
        ("t", 96, (), 2),
        ("t", 97, (), 2),
    ):
        left = apart.step(left, rows(event, at, k=[*range(40)]), at, parked).carried
        assert len(executors.tasks) == mapped
        assert any(name.startswith("node:") for name in left.tables) == (mapped == 1)


@pytest.fixture
def filed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileShelf:
    """Every part is a file."""
    monkeypatch.setattr(shelves, "BYTES_MIN", 1)
    return FileShelf("", str(tmp_path), "one")


def taken(apart: ComponentStep, carried: Carried, at: int, shelf: FileShelf, **rows_: Any) -> Any:
    """The detections of one event's rows at an instant, and what is carried then."""
    ((event, keys),) = rows_.items()
    made = apart.step_unread(carried, rows(event, at, k=keys), at, (), None, None, shelf)
    return sum(map(len, made.stepped.detections)), made.stepped.carried


def test_g26_executors_read_no_file_of_a_partition_that_nothing_touches(filed: FileShelf) -> None:
    book = loaded("ab", r="on: a ; b, per: k, context: chronicle")
    apart = ComponentStep(book, {"r": 0}, {}, InProcess(8), 256)
    _, carried = taken(apart, Carried(), 1, filed, a=[*range(1_000)])
    before = Parts.of(carried.tables).files
    assert len(before) == 8
    _, carried = taken(apart, carried, 2, filed, a=[7])
    for file in before:
        Path(file).unlink()
    found, left = taken(apart, carried, 3, filed, b=[7])
    assert found == 1
    with pytest.raises(EngineError, match="is gone") as error:
        taken(apart, left, 4, filed, b=[8])
    assert error.value.code == "state-file"
    anew = ComponentStep(book, {"r": 0}, {}, InProcess(8), 256)
    with pytest.raises(EngineError, match="is gone"):  # it may be of another rulebook
        taken(anew, left, 4, filed, b=[7])


def test_g26_what_two_keys_refer_to_lies_in_files_and_meets_at_the_driver(
    filed: FileShelf,
) -> None:
    book = loaded("abc", r="on: a ; b, per: k", s="on: a ; c, per: v")
    since = {"r": 0, "s": 0}
    apart = ComponentStep(book, since, {}, InProcess(), 16)
    driver = Partitioned(Detector(book, since), 16)
    arriving = rows("a", 1, k=[1, 2], v=[3, 4])
    left = apart.step_unread(Carried(), arriving, 1, (), None, None, filed).stepped.carried
    kept = {place(name)[0] for name in Parts.of(left.tables).named() if name[:5] != "node:"}
    assert len(kept) == 2
    assert all(name.startswith("apart:") for name in kept)
    assert len(Parts.of(left.tables).files) == 4  # of each component two tasks
    arriving = rows("b", 2, k=[1], v=[0])
    made = apart.step_unread(left, arriving, 2, (), None, None, filed).stepped
    assert [d.rule for d in made.detections] == ["r"]
    late = driver.step(made.carried, rows("c", 3, k=[0], v=[3]), 3, shelf=filed)
    assert [d.rule for d in late.detections] == ["s"]
    assert not any(name.startswith("apart:") for name in late.carried.tables)
    assert late.carried.changed >= made.carried.tables.keys() - late.carried.tables.keys()
    more = apart.step_unread(late.carried, rows("b", 4, k=[2], v=[0]), 4, (), None, None, filed)
    assert [d.rule for d in more.stepped.detections] == ["r"]


def placed(carried: Carried) -> dict[str, tuple[str, int]]:
    """In which file each part is, and where."""
    return {
        name: (part.file, part.group)
        for name, part in carried.tables.items()
        if isinstance(part, FilePart)
    }


def test_g26_files_with_little_left_are_put_together(
    filed: FileShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_parts, "FILES_MAX", 4)
    book = loaded("ab", r="on: a ; b, per: k, context: chronicle")
    apart = ComponentStep(book, {"r": 0}, {}, InProcess(8), 256)
    loads = Loads(tables_of(Detector(book, {"r": 0}).graph))
    carried, most = Carried(), 0
    for at in range(1, 30):
        made = apart.step_unread(carried, rows("a", at, k=[at]), at, (), None, None, filed)
        before, carried = placed(carried), made.stepped.carried
        assert {n for n, at_ in placed(carried).items() if before.get(n) != at_} <= carried.changed
        most = max(most, len(Parts.of(carried.tables).files))
        assert loads.of(carried.tables, made.counted)["r"] == (at, at)
    assert most == 4
    assert taken(apart, carried, 30, filed, b=[*range(1, 30)])[0] == 29


def test_g26_what_executors_consume_is_gone(filed: FileShelf) -> None:
    book = loaded("ab", r="on: a ; b, per: k, context: chronicle")
    apart = ComponentStep(book, {"r": 0}, {}, InProcess(8), 256)
    _, carried = taken(apart, Carried(), 1, filed, a=[7])
    assert carried.tables
    found, left = taken(apart, carried, 2, filed, b=[7])
    assert (found, left.tables, left.changed) == (1, {}, carried.tables.keys())
    assert taken(apart, left, 3, filed, b=[7])[0] == 0


def test_g26_a_task_with_too_many_detections_leaves_nothing(filed: FileShelf) -> None:
    book = loaded("ab", r="on: a, per: k", s="on: a ; b, per: k")
    apart = ComponentStep(book, {"r": 0, "s": 0}, {}, InProcess(2), 16)
    arriving = identified(rows("a", 1, k=[*range(100)]), 0)
    there = pa.table({"at": [*range(100)]})
    unread = Unread((there,), AsGiven(("a",), arriving), 100, 30)
    with pytest.raises(TooManyError) as error:
        apart.step_unread(Carried(), {}, 1, (), None, unread, filed)
    assert error.value.found == 100
    assert [*Path(filed.folder or "").iterdir()] == []
    few = unread._replace(found_max=100)
    alone = ComponentStep(book, {"r": 0, "s": 0}, {}, InProcess(1), 16)
    for step in (apart, alone):  # of one task there are as many as may be
        made = step.step_unread(Carried(), {}, 1, (), None, few, filed)
        assert sum(map(len, made.stepped.detections)) == 100


def test_g26_a_task_has_no_more_in_memory_than_a_worker_holds(
    filed: FileShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what is carried, too: all of it where partitions are cut further, or a step is the first;
    what rows touch, from then on. Nothing is cut by the driver."""
    monkeypatch.setattr(partitions, "ROWS_MAX", 40)
    monkeypatch.setattr(component_task, "WORKER_ROWS", 50)
    book, beside = loaded("ab", r="on: a ; b, per: k"), InProcess(2)
    step = ComponentStep(book, {"r": 0}, {}, beside, 64)
    _, carried = taken(step, Carried(), 1, filed, a=[*range(400)])
    assert (beside.tasks.pop(), Parts.of(carried.tables).count) == (8, 16)  # 400 rows
    monkeypatch.setattr(component_detector, "loaded", None)
    made, carried = taken(step, carried, 2, filed, b=[7])
    assert (made, beside.tasks.pop(), Parts.of(carried.tables).count) == (1, 16, 64)  # 16 % 9
    made, carried = taken(step, carried, 3, filed, b=[8])
    assert (made, beside.tasks.pop()) == (1, 2)
    made, carried = taken(step, carried, 4, filed, b=[*range(20, 40)])
    assert (made, beside.tasks.pop()) == (20, 3)  # 20 rows, of 398 instances a third
    again = ComponentStep(book, {"r": 0}, {}, beside, 64)
    made, carried = taken(again, carried, 5, filed, b=[9])
    assert (made, beside.tasks.pop()) == (1, 9)


def test_g26_each_slot_has_a_task_though_what_is_carried_is_one_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The driver cuts it then."""
    monkeypatch.setattr(partitions, "ROWS_MAX", 40)
    assert component_task.division(4, 10, 1, 100, 100, 64, adopted=True) == (4, 16)


class OfAnotherMachine(InProcess):
    """Executors that do not see the files of this folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(2)
        self.folder = folder

    def map(self, call: Any, given: Any) -> Any:
        away = self.folder.rename(self.folder.with_name("away"))
        try:
            return super().map(call, given)
        finally:
            away.rename(self.folder)


def test_g26_files_that_executors_do_not_see_are_not_called_gone(filed: FileShelf) -> None:
    book = loaded("ab", r="on: a ; b, per: k")
    folder = Path(filed.folder or "")
    here = ComponentStep(book, {"r": 0}, {}, InProcess(), 16)
    _, carried = taken(here, Carried(), 1, filed, a=[*range(40)])
    there = ComponentStep(book, {"r": 0}, {}, OfAnotherMachine(folder), 16)
    with pytest.raises(EngineError, match="the engine reads it, but in an executor: state file"):
        taken(there, carried, 2, filed, b=[7])
    for file in folder.iterdir():
        file.unlink()
    with pytest.raises(EngineError, match="is gone") as error:
        taken(there, carried, 2, filed, b=[7])
    assert error.value.code == "state-file"


class Fires(NamedTuple):
    """Firings of detections without parameters; the rows of all lie in a file."""

    folder: Path

    def __call__(self, found: Detections, shelf: Shelf) -> Firings:
        count = len(found)
        ids = pa.array([bytes([n]) * 16 for n in range(count)], pa.binary(16))
        at = pa.array(found.end).cast(pa.timestamp("us", "UTC"))
        table = pa.table({"firing_id": ids, "k": found.keys["k"], "detected_at": at})
        rows = pa.table({"firing_id": hex_ids(ids)})
        fired = Firings(found.rule, table, rows).on(shelf, always=True)
        if self.folder != Path():  # the executor has a folder of its own
            Path(shelf.full(fired.files[0].name)).rename(self.folder / f"{fired.rule}.parquet")
        return fired


def test_g26_firings_are_made_where_rules_are_detected(filed: FileShelf) -> None:
    book = loaded("ab", r="on: a, per: k", s="on: a")  # s is the driver's
    step = ComponentStep(book, {"r": 0, "s": 0}, {}, InProcess(2), 16)
    arriving = identified(rows("a", 1, k=[*range(9)]), 0)
    made = step.step_unread(Carried(), arriving, 1, (), None, None, filed, Fires(Path()))
    assert [(found.rule, len(found)) for found in made.stepped.detections] == [("s", 9)]
    (fired,) = made.fired
    assert (fired.rule, fired.firings["k"].to_pylist()) == ("r", [*range(9)])
    assert len(fired.files) == 2
    assert fired.rows["firing_id"].to_pylist() == fired.hex_ids().to_pylist()


def test_g26_rows_that_only_an_executor_sees_are_refused(
    filed: FileShelf, tmp_path_factory: pytest.TempPathFactory
) -> None:
    book = loaded("ab", r="on: a, per: k")
    step = ComponentStep(book, {"r": 0}, {}, InProcess(1), 16)
    arriving = identified(rows("a", 1, k=[*range(9)]), 0)
    elsewhere = Fires(tmp_path_factory.mktemp("executor"))
    with pytest.raises(EngineError, match="and the engine does not see it") as error:
        step.step_unread(Carried(), arriving, 1, (), None, None, filed, elsewhere)
    assert error.value.code == "state-apart"


def test_g26_what_was_kept_apart_is_found_after_a_reload_that_joins_components(
    filed: FileShelf,
) -> None:
    texts = {"r": "on: a ; b, per: k", "s": "on: a ; c, per: v"}
    apart = ComponentStep(loaded("abcd", **texts), {"r": 0, "s": 0}, {}, InProcess(), 16)
    arriving = rows("a", 1, k=[1, 2], v=[3, 4])
    left = apart.step_unread(Carried(), arriving, 1, (), None, None, filed).stepped.carried
    book = loaded("abcd", **texts, q="on: b ; d, per: k")
    anew = ComponentStep(book, dict.fromkeys(book.rules, 0), {}, InProcess(), 16)
    made = anew.step_unread(left, rows("b", 2, k=[1], v=[0]), 2, (), None, None, filed).stepped
    assert [d.rule for d in made.detections] == ["r"]
    made = anew.step_unread(made.carried, rows("c", 3, k=[0], v=[4]), 3, (), None, None, filed)
    assert [d.rule for d in made.stepped.detections] == ["s"]


def test_g26_what_the_keys_of_one_task_need_of_every_key_stays() -> None:
    """An a of key 1 waits, with a c that takes it away. The other task needs no c. It says so once,
    where it has read all: in the first step of an engine."""
    book = loaded("a", "c", r="on: 'A*(a without c, a, [4 s])', per: k, context: chronicle")

    def anew() -> ComponentStep:
        return ComponentStep(book, {"r": 0}, {}, InProcess(2), 4)

    number = partitions.partitions([pa.chunked_array([[*range(1, 9)]])], 2)
    assert number[0] != number[1]
    step = anew()
    first = rows("a", 10, k=[1]) | rows("c", 10, k=[None])
    carried = step.step(Carried(), first, 10).carried
    for at in (20, 30):
        carried = step.step(carried, rows("a", at, k=[2]), at).carried
    found, carried, _ = step.step(carried, rows("c", 40, k=[None]), 40)
    step = anew()
    carried = step.step(carried, rows("a", 50, k=[2]), 50).carried
    found = step.step(carried, {}, 5_000_000).detections
    assert [(d.rule, d.keys["k"].to_pylist()) for d in found] == [("r", [2])]


def test_g26_executors_go_on_where_a_rule_of_the_driver_is_gone() -> None:
    """What it carried refers to an event type of which other rules carry occurrences."""
    rules = {"r": "on: a ; d", "s": "on: a ; b, per: k", "t": "on: a ; b ; c"}
    book, fewer = loaded("abcd", **rules), loaded("abcd", s=rules["s"], t=rules["t"])
    driver = Partitioned(Detector(book, dict.fromkeys(rules, 0)), 16)
    carried = driver.step(Carried(), rows("a", 1, k=[7], v=[0]), 1).carried
    apart = ComponentStep(fewer, {"s": 0, "t": 0}, {}, InProcess(), 16)
    found, carried, _ = apart.step(carried, rows("b", 2, k=[7], v=[0]), 2)
    assert [d.rule for d in found] == ["s"]
    assert [d.rule for d in apart.step(carried, rows("c", 3, k=[7], v=[0]), 3).detections] == ["t"]
