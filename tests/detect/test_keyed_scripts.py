"""A script whose keys are stepped apart emits what it emits as a whole (G26)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.detect.scripts.compared import SECOND, batches, outs, script_of
from tests.detect.scripts.test_reference import ALL_INTERPRETED, text_of
from tests.reference.eventscript.evaluate import Event
from tests.reference.eventscript.scripts import STEPS_MAX, Example, examples
from tests.reference.examples import example_count
from tests.reference.hits import detecting, noted, noting, resuming, saw, stepped
from tests.support.executors import sent
from tidegate.engine.core.instants import ceil_watermark
from tidegate.engine.core.ports import LeftToDriverError
from tidegate.engine.core.state_parts import FilePart
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import Batch, Carried
from tidegate.engine.detect import keyed_scripts
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.keyed_scripts import Given, KeyedScript
from tidegate.engine.detect.pipeline import Span
from tidegate.engine.detect.scripts import run
from tidegate.engine.detect.scripts.program import Limits, Script
from tidegate.engine.detect.scripts.run import ScriptRunner, ScriptStepped
from tidegate.engine.detect.scripts.task import ScriptTask, Sent
from tidegate.engine.store import shelf as shelves
from tidegate.engine.store.shelf import FileShelf
from tidegate.rules.errors import EngineError, InputError

MOST = 16


class AsGiven:
    """Takes occurrences as they are."""

    def take(self, script: Any, read: Any, batch: Batch) -> Batch:  # noqa: ARG002
        return batch


def of_tasks(
    script: Script,
    start: int,
    carried: Carried,
    given_: Mapping[str, Batch],
    until: int,
    tasks: int,
    count: int,
    shelf: FileShelf | None = None,
    splits: int = 0,
    limit: int | None = None,
    before: int | None = None,
) -> ScriptStepped | None:
    """A step of so many tasks. `splits`: inputs with a group are read apart, in so many parts."""
    packed = Sent(script, start, {}, MOST)
    inputs = {name: SimpleNamespace(event=name) for name in given_}
    inputs |= {read.name: SimpleNamespace(event=read.name) for read in script.program.inputs}
    of = SimpleNamespace(name="it", program=script.program, inputs=inputs)
    keyed = KeyedScript(of, packed, AsGiven())  # type: ignore[arg-type]
    grouped = {read.name for read in script.program.inputs if read.group}
    apart = {n: b for n, b in given_.items() if splits and n in grouped}
    unread = SimpleNamespace(estimate=0, found_max=None) if apart else None
    bucket = Given(
        Parts.of(carried.tables),
        {n: b for n, b in given_.items() if n not in apart},
        Span(until, start - 1 if before is None else before, limit=limit),
        tasks,
        unread,  # type: ignore[arg-type]
        shelf,
    )
    with patch.object(keyed_scripts, "division", lambda *_, **__: (tasks, count)):
        made = keyed.tasks(bucket)
    read: list[list[Any]] = [[] for _ in range(tasks)]
    for n in reversed(range(splits)):
        part = {name: _numbered(b).take(np.arange(n, len(b), splits)) for name, b in apart.items()}
        for task, own in sent(made.cut)(part):
            read[task].append(sent(own))
    done = [sent(sent(task)(parts)) for task, parts in zip(made.tasks, read, strict=True)]
    return keyed_scripts.stepped([made], done, bucket.span, shelf, unread=bool(apart)).get("it")


def _numbered(batch: Batch) -> Batch:
    return Batch(
        batch.event, batch.time, batch.row, batch.table, batch.ids, batch.depth, batch.place,
        np.arange(len(batch)),
    )  # fmt: skip


@pytest.fixture
def filed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileShelf:
    """Every part is a file."""
    monkeypatch.setattr(shelves, "BYTES_MIN", 1)
    return FileShelf("", str(tmp_path), "one")


@noting(apart=3, of_several_tasks=3, cut_anew=6)
@resuming
@detecting
@example_count(500, least=24)
@given(examples(grouped=True), st.data())
def test_g26_a_script_stepped_apart_emits_what_it_emits_as_a_whole(
    example: Example, data: st.DataObject
) -> None:
    """Emissions, their order, causes and numbers, and what is carried: through bytes, over any
    number of partitions and tasks, whoever steps from bucket to bucket."""
    script = script_of(example.text, limits=Limits(steps=STEPS_MAX))
    assert script.program.key_names
    times = [event.time for event in example.events]
    start, last = min(times), max(times) if example.until is None else example.until
    ends = [start - 1, *sorted({c for c in example.cuts if start <= c < last}), max(start, last)]
    least = data.draw(st.sampled_from([0, ALL_INTERPRETED]))
    whole = ScriptRunner(script, start, partitions_max=MOST)
    carried = one = Carried()
    with patch.object(run, "COMPILED_MIN", least), patch.object(run, "COMPILED_AFTER", 0):
        found, wanted, counts = [], [], set[int]()
        for after, until in pairwise(ends):
            part = batches(script.program, [e for e in example.events if after < e.time <= until])
            of_whole = whole.step(one, part, until)
            one = of_whole.carried
            wanted += outs(script.program, of_whole.emissions)
            apart = data.draw(st.sampled_from([True, True, False]))
            tasks, count = data.draw(st.sampled_from([(3, 16), (2, 4), (1, 4), (4, 1), (3, 4)]))
            made: ScriptStepped | None = None
            if apart:
                splits = data.draw(st.integers(0, 3))
                with suppress(LeftToDriverError):
                    made = of_tasks(script, start, carried, part, until, tasks, count, None, splits)
                assert (made is None) == of_whole.parked
                noted("of several tasks", tasks > 1 and count > 1)
            noted("apart", made is not None)
            if made is None:
                made = ScriptRunner(script, start, partitions_max=MOST).step(carried, part, until)
            if part or len(made.emissions):
                stepped(carried.tables.values())
            found += outs(script.program, made.emissions)
            carried = sent(made.carried)
            counts.add(Parts.of(carried.tables).count)
            if of_whole.parked:
                break
        noted("cut anew", len(counts) > 1)
    saw(wanted)
    assert [repr(out) for out in found] == [repr(out) for out in wanted]
    assert instances(carried) == instances(one)


def instances(carried: Carried) -> list[str]:
    """All that are carried, in any order. Python cannot hold each of their times."""
    tables = [*carried.tables.values()]
    return sorted(map(repr, python_rows(pa.concat_tables(tables)))) if tables else []


COUNT = """
in {long id; long v;} A group(id)
out long n
(A(x) {c = c + x.v; !> n(c);} | elapse[5 seconds]() {!> n(-c);})*
"""


def row(at: float, *ids: int) -> dict[str, Batch]:
    events = [Event(round(at * SECOND), "A", {"id": key, "v": 1}) for key in ids]
    return batches(script_of(COUNT).program, events)


def test_g26_tasks_write_files_of_which_the_next_ones_read_what_they_touch(
    filed: FileShelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver reads none, and takes over what it touches."""
    script, ids = script_of(COUNT), range(100)
    first = of_tasks(script, 0, Carried(), row(1, *ids), SECOND, 2, 16, filed)
    assert first is not None
    assert len(first.emissions) == 100
    parts = Parts.of(first.carried.tables)
    assert (parts.instances, parts.count, len(parts.files)) == (100, 16, 2)
    assert all(isinstance(part, FilePart) for part in parts.values())
    read: list[str] = []
    monkeypatch.setattr(
        FileShelf, "read", lambda s, some, own=FileShelf.read: (read.extend(some), own(s, some))[1]
    )
    second = of_tasks(script, 0, sent(first.carried), row(2, 7, 7), 2 * SECOND, 2, 16, filed, 2)
    assert second is not None
    values = [(out.key, out.value) for out in outs(script.program, second.emissions)]
    assert values == [((7,), 2), ((7,), 3)]
    assert (len(read), len(second.carried.changed)) == (1, 1)
    alone = ScriptRunner(script, 0, partitions_max=MOST)
    third = alone.step(second.carried, row(3, 7), 3 * SECOND, shelf=filed)
    assert [out.value for out in outs(script.program, third.emissions)] == [4]
    assert (len(read), len(third.carried.changed)) == (2, 1)
    assert alone.next_due(third.carried) == 6 * SECOND
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    with pytest.raises(EngineError, match=r"state file .* is gone"):
        of_tasks(script, 0, second.carried, row(3, 7), 3 * SECOND, 2, 16, filed)


def test_g26_partitions_are_cut_by_tasks_or_before_them(filed: FileShelf) -> None:
    script, carried = script_of(COUNT), Carried()
    for at, (tasks, count) in enumerate([(2, 4), (3, 4), (2, 16), (3, 16), (3, 4), (1, 1)], 1):
        made = of_tasks(script, 0, carried, row(at / 10, *range(40)), 10**5 * at, tasks, count,
                        filed)  # fmt: skip
        assert made is not None
        assert [out.value for out in outs(script.program, made.emissions)] == [at] * 40
        carried = made.carried
        parts = Parts.of(carried.tables)
        assert (parts.count, parts.instances) == (count, 40)
    last = of_tasks(script, 0, carried, {}, 9 * SECOND, 2, 4, filed)
    assert last is not None
    assert [out.value for out in outs(script.program, last.emissions)] == [-6] * 40


def test_g08_the_least_that_a_task_reaches_holds_for_the_script() -> None:
    """Each task may fire five timers; the step is cut where the first of them stops."""
    script = script_of(COUNT)
    first = of_tasks(script, 0, Carried(), row(1, *range(20)), SECOND, 2, 4)
    later = ScriptRunner(script, 0, partitions_max=MOST).step(
        first.carried,
        row(2, 1),
        2 * SECOND,  # type: ignore[union-attr]
    )
    made = of_tasks(script, 0, later.carried, {}, 9 * SECOND, 2, 4, limit=5)
    assert made is not None
    assert made.reached == ceil_watermark(6 * SECOND)


def test_g08_too_many_timers_of_a_bucket_that_cannot_be_shorter_are_left_to_the_driver() -> None:
    """They were due before it: of a script that had been parked, for example."""
    script, last = script_of(COUNT), 9 * SECOND
    first = of_tasks(script, 0, Carried(), row(1, *range(20)), SECOND, 2, 4)
    assert first is not None
    carried = first.carried
    assert of_tasks(script, 0, carried, {}, last, 2, 4, limit=5, before=last) is None
    enough = of_tasks(script, 0, carried, {}, last, 2, 4, limit=20, before=last)
    assert enough is not None
    assert len(enough.emissions) == 20
    late = row(9, 1)
    with pytest.raises(LeftToDriverError, match="its timers are many"):
        of_tasks(script, 0, carried, late, last, 2, 4, splits=1, limit=5, before=last)


def test_g26_emissions_of_tasks_keep_their_values_of_any_type() -> None:
    text = """
    in {long id; long v;} A group(id)
    out object o, {long[] l; string s;} z
    A(x) {
      x.v > 1 ? !> o(x.v); x.v < 2 ? !> o("a");
      l = new long[2]; l[0] = x.v; !> z({l: l, s: "s"});
    }
    """
    script = script_of(text)
    given_ = batches(
        script.program, [Event(1, "A", {"id": n, "v": n % 4}) for n in reversed(range(20))]
    )
    whole = ScriptRunner(script, 0).step(Carried(), given_, 1)
    made = of_tasks(script, 0, Carried(), given_, 1, 3, 16)
    assert made is not None
    assert text_of(outs(script.program, made.emissions)) == text_of(
        outs(script.program, whole.emissions)
    )
    assert len(made.emissions) == 40


def test_g26_emissions_of_tasks_keep_what_they_are_caused_by() -> None:
    """And how deep that is: actions wrote some rows."""
    script, depths = script_of(COUNT), np.arange(20, dtype=np.int32)
    arriving = {"A": replace(row(1, *reversed(range(20)))["A"], depth=depths)}
    whole = ScriptRunner(script, 0).step(Carried(), arriving, SECOND).emissions
    made = of_tasks(script, 0, Carried(), arriving, SECOND, 3, 16)
    assert made is not None
    assert whole.depth.tolist() == [*reversed(range(20))]
    assert made.emissions.depth.tolist() == whole.depth.tolist()
    assert made.emissions.cause.tolist() == whole.cause.tolist()


def test_g26_a_task_that_emits_more_than_is_taken_leaves_nothing(
    filed: FileShelf, tmp_path: Path
) -> None:
    task = ScriptTask(
        Sent(script_of(COUNT), 0, {}, MOST).packed, Parts(), row(1, *range(4)), SECOND, None, 4,
        filed, 3,
    )  # fmt: skip
    done = task()
    assert (done.emissions, len(done.tables), done.emitted) == (None, 0, 4)
    assert not [*tmp_path.iterdir()]
    enough = task._replace(found_max=4)()
    assert enough.emissions is not None
    assert len(enough.emissions) == 4


def test_g26_keys_expire_though_their_partitions_were_cut_meanwhile() -> None:
    """None of theirs was touched since."""
    text = COUNT.replace(" | elapse[5 seconds]() {!> n(-c);}", "")
    script, carried = script_of(text, expire_micros=5 * SECOND), Carried()
    for second, ids, (tasks, count) in ((1, range(40), (3, 4)), (2, [7], (3, 16))):
        made = of_tasks(script, 0, carried, row(second, *ids), second * SECOND, tasks, count)
        assert made is not None
        carried = made.carried
    assert Parts.of(carried.tables).instances == 40
    made = of_tasks(script, 0, carried, {}, 3_600 * SECOND, 2, 16)
    assert made is not None
    assert not Parts.of(made.carried.tables).instances


def test_an_occurrence_that_does_not_fit_is_told_as_by_the_driver() -> None:
    script = script_of(COUNT)
    table = pa.table({"id": [1], "v": ["x"]})
    wrong = {"A": Batch("A", np.array([1]), np.array([0]), table)}
    with pytest.raises(InputError) as told:
        ScriptRunner(script, 0).step(Carried(), wrong, 1)
    with pytest.raises(InputError) as told_apart:
        of_tasks(script, 0, Carried(), wrong, 1, 2, 4)
    assert str(told_apart.value) == str(told.value)
