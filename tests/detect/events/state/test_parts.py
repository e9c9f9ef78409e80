"""All parts that are carried, held as arrays, are what a mapping of single ones is (G26)."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tidegate.engine.core.state_parts import FilePart, metadata_of
from tidegate.engine.core.values import FOREVER
from tidegate.engine.detect.events.state.partitions import EVERY, due_of, marked, part_name, place
from tidegate.engine.detect.events.state.parts import Parts, stacked

WHOLES = ("node:1f", "occ:a", "apart:2e:occ:a", "keys:3d", "script:4c")
REST = ("held:a by 3", "script:s:fed:node:1f/0")
COUNT, INSTANTS = 8, 9

Model = dict[str, pa.Table]


@st.composite
def parts_(draw: st.DrawFn, partition: int) -> pa.Table:
    """A part in memory, or in a file, where it may have been moved to."""
    due, old = (draw(st.sampled_from([FOREVER, *range(INSTANTS)])) for _ in "ab")
    kind = {b"tidegate.carried": draw(st.sampled_from([b"2", b"3"]))}
    rows = pa.table({"n": draw(st.lists(st.integers(0, 2), max_size=2))}).cast(
        pa.schema([("n", pa.int64())])
    )
    table = marked(rows.replace_schema_metadata(kind), COUNT, due, draw(st.integers(0, 3)), old)
    if partition == EVERY or draw(st.booleans()):
        return table
    first = draw(st.sampled_from([None, ("w", 0), ("x", 1)]))
    file, group = draw(st.sampled_from("xyz")), draw(st.integers(0, 2))
    first = None if first == (file, group) else first
    size = draw(st.integers(0, 9))
    return FilePart(file, group, len(table), metadata_of(table), size, 100 + ord(file), first)


def told(part: pa.Table) -> Any:
    """What there is of a part."""
    if not isinstance(part, FilePart):
        return part.to_pydict(), part.schema.metadata
    own = (part.file, part.group, part.rows, part.bytes, part.written)
    return own, dict(part.metadata)


def all_told(tables: Any) -> dict[str, Any]:
    return {name: told(part) for name, part in tables.items()}


def old_of(name: str, part: pa.Table) -> int:
    return FOREVER if place(name)[1] == EVERY else int(metadata_of(part)[b"old"])


def differs(one: pa.Table | None, other: pa.Table | None, *, moved: bool) -> bool:
    """Whether two parts are not alike. `moved`: also if only their place is another."""
    if one is None or other is None or isinstance(one, FilePart) != isinstance(other, FilePart):
        return one is not other
    if not isinstance(one, FilePart):
        return told(one) != told(other)
    if moved:
        return (one.file, one.group) != (other.file, other.group)
    return bool(one.written != other.written)


def check(parts: Parts, model: Model) -> None:
    assert all_told(parts) == all_told(model)
    assert len(parts) == len(model)
    cut = {name: part for name, part in model.items() if name not in REST}
    for through in (parts, pickle.loads(pickle.dumps(parts, protocol=5))):
        assert all_told(through.named()) == all_told(cut)
    assert parts.files == {part.file for part in cut.values() if isinstance(part, FilePart)}
    nodes = {name: part for name, part in cut.items() if name.startswith(("node:", "script:"))}
    assert parts.instances == sum(map(len, nodes.values()))
    of_keys = (len(part) for name, part in nodes.items() if place(name)[1] != EVERY)
    assert parts.largest == max(of_keys, default=0)
    assert parts.count == (COUNT if cut else 1)
    awake = {name: part for name, part in cut.items() if place(name)[0] != "node:1f"}
    assert parts.due({"node:1f"}) == min(map(due_of, awake.values()), default=FOREVER)
    for watermark in range(INSTANTS):
        assert parts.waiting(watermark, {"node:1f"}) == {
            place(name)[1]
            for name, part in awake.items()
            if min(due_of(part), old_of(name, part)) <= watermark
        }


@given(data=st.data())
@example_count(60, least=20)
def test_g26_parts_are_a_mapping_of_single_ones(data: st.DataObject) -> None:
    parts, model = Parts(), Model()
    for _ in range(data.draw(st.integers(1, 5))):
        before, then = parts, dict(model)
        places = st.tuples(st.sampled_from(WHOLES), st.integers(EVERY, COUNT - 1))
        at = data.draw(st.sets(places, max_size=6))
        written = {part_name(*one): data.draw(parts_(one[1])) for one in at}
        written |= {name: pa.table({"n": [1]}) for name in REST if data.draw(st.booleans())}
        gone = [name for name in model if data.draw(st.integers(0, 3)) == 0]
        model = {n: p for n, p in model.items() if n not in gone} | written
        if data.draw(st.booleans()):
            parts = Parts.of(written).over(parts.with_({}, gone))
        elif data.draw(st.booleans()):
            parts = parts.with_(written, gone)
        else:
            parts = Parts.of(dict(model), parts)
        check(parts, model)
        check(before, then)  # it is as it was
        names = model.keys() | then.keys()
        for found, moved in ((parts.differing(before), True), (parts.written_since(before), False)):
            assert found == {n for n in names if differs(model.get(n), then.get(n), moved=moved)}
        task = data.draw(st.integers(0, 2))
        assert all_told(parts.of_task(task, 3)) == all_told(
            {n: p for n, p in parts.named().items() if place(n)[1] % 3 == task or place(n)[1] < 0}
        )
        every = [before, parts, before, *(parts.of_task(n, 3) for n in range(3))]
        some_of_them = data.draw(st.lists(st.sampled_from(every), min_size=2, max_size=5))
        one_by_one = dict[str, Any]()
        for one in some_of_them:
            one_by_one |= all_told(one)
        assert all_told(stacked(some_of_them)) == one_by_one
        some = data.draw(st.sets(st.integers(EVERY, COUNT - 1)))
        assert all_told(parts.named(some)) == all_told(
            {n: p for n, p in parts.named().items() if place(n)[1] in some}
        )
