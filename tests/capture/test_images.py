"""G11: pre- and post-images paired by key, and captured events, over a feed made by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest

from tests.support.capture import id_list, needs, rows
from tests.support.rulebooks import event, rulebook, signal, table
from tidegate.engine.capture.read import Capture
from tidegate.engine.core.event_names import beginning
from tidegate.engine.core.parameters import SIGNAL_OF, VERSION_OF
from tidegate.engine.core.ports import FEED_KINDS, KIND, SAME_1, SAME_2, VERSION, ReadRequest
from tidegate.engine.core.values import Bucket, Cursor, Needs, Plan, Signal, TableRange
from tidegate.rules.errors import EngineError
from tidegate.rules.model import EventType, Table

Row = tuple[str, int, int | None, int | None, str]  # change, version, id, n, s
TYPES = {"id": ("integer", pa.int32()), "n": ("integer", pa.int32()), "s": ("string", pa.string())}
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [{"name": n, "type": t[0], "nullable": True} for n, t in TYPES.items()],
    }
)


class HandFeed:
    """Gives the rows it was made with; predicates beyond Arrow are answered from `answers`."""

    def __init__(self, data: Sequence[Row], answers: Mapping[str, Sequence[bool | None]]) -> None:
        self.data, self.answers, self.requests = data, answers, list[ReadRequest]()

    def read(self, _: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        self.requests.append(request)
        wanted = [r for r in self.data if r[0] in request.changes and r[1] not in span.skipped]
        columns = dict(zip((KIND, VERSION, *TYPES), zip(*wanted, strict=True), strict=True))
        found = {
            KIND: pa.array([FEED_KINDS[name] for name in columns[KIND]], pa.int8()),
            VERSION: pa.array(columns[VERSION]),
        }
        for name in request.columns:
            found[name] = pa.array(columns[name], TYPES[name][1])
        for name, text in request.where.items():
            found[name] = pa.array(self.answers[text], pa.bool_())
        if request.same:
            hashes = [crc32(repr(row[2:]).encode()) for row in wanted]
            found[SAME_1], found[SAME_2] = pa.array(hashes), pa.array(hashes)
        return pa.table(found)

    def decide(
        self,
        rows: pa.Table,
        where: Mapping[str, str],
        source: str,  # noqa: ARG002
    ) -> pa.Table:
        of_images = any("old." in text for text in where.values())
        assert {"old", "new"} <= set(rows.column_names) or not of_images
        return pa.table(
            {name: pa.array(self.answers[text], pa.bool_()) for name, text in where.items()}
        )


def captured(
    events: Sequence[EventType],
    data: Sequence[Row],
    columns: Sequence[str] = ("id", "n"),
    answers: Mapping[str, Sequence[bool | None]] | None = None,
    signals: Sequence[Signal] = (),
    depths: Mapping[int, int] | None = None,
    writers: Mapping[int, tuple[str, str]] | None = None,
    **options: object,
) -> Bucket:
    options.setdefault("key", ("id",))
    book = rulebook(tables=[table("t", "/t", **options)], events=())
    book = replace(book, events={event.name: event for event in events})
    versions = [row[1] for row in data] or [0]
    instants = {v: v * 1_000_000 for v in range(min(versions), max(versions) + 1)}
    span = TableRange(
        "t",
        min(versions),
        max(versions),
        instants,
        Cursor("t", "id", 0, 0, SCHEMA),
        depths or {},
        writers=writers or {},
    )
    plan = Plan("test", 1, 0, 10**12, 10**12, (span,) if data else (), tuple(signals))
    read = Needs(
        carry={e.name: tuple(columns) if e.name != "s" else ("x",) for e in events},
        ids={("r", e.name): tuple(columns) for e in events},
    )
    return Capture(book, read).capture(plan, HandFeed(data, answers or {}))  # type: ignore[arg-type]


UPDATES: list[Row] = [
    ("update_preimage", 3, 1, 10, "a"),
    ("update_postimage", 3, 1, 11, "a"),
    ("update_postimage", 3, 2, 20, "b"),  # changes nothing
    ("update_preimage", 3, 2, 20, "b"),
    ("update_postimage", 2, 1, 10, "a"),
    ("update_preimage", 2, 1, None, "a"),
    ("update_preimage", 3, None, 5, "n"),
    ("update_postimage", 3, None, 5, "m"),
    ("insert", 2, 7, 70, "i"),
    ("delete", 3, 8, 80, "d"),
]


def test_g11_images_are_paired_and_no_ops_dropped() -> None:
    found = captured([event("u", "t", "update")], UPDATES, ("id", "n", "old.n"))
    assert rows(found, "u") == Counter(
        [(1, 10, (("n", None),)), (1, 11, (("n", 10),)), (None, 5, (("n", 5),))]
    )
    batch = found.batches["u"]
    assert batch.time.tolist() == [2_000_000, 3_000_000, 3_000_000]


def test_g11_of_is_null_safe_and_where_sees_both_images() -> None:
    of_n = event("of_n", "t", "update", of=("n",))
    grown = event("grown", "t", "update", where="new.n > old.n")
    wide = event("wide", "t", "update", of=("n", "s"))
    found = captured([of_n, grown, wide], UPDATES)
    assert rows(found, "of_n") == Counter([(1, 10), (1, 11)])
    assert rows(found, "grown") == Counter([(1, 11)])
    assert rows(found, "wide") == Counter([(1, 10), (1, 11), (None, 5)])


def test_change_events_say_which_change_and_keep_the_pre_image() -> None:
    found = captured([event("c", "t", "change")], UPDATES, ("id", "_change_type", "old"))
    assert rows(found, "c") == Counter(
        [
            (7, "insert", None),
            (8, "delete", None),
            (1, "update", (("id", 1), ("n", None), ("s", "a"))),
            (1, "update", (("id", 1), ("n", 10), ("s", "a"))),
            (None, "update", (("id", None), ("n", 5), ("s", "n"))),
        ]
    )


def test_without_a_key_every_post_image_is_an_update() -> None:
    found = captured([event("u", "t", "update")], UPDATES, key=())
    assert rows(found, "u") == Counter([(1, 10), (1, 11), (2, 20), (None, 5)])


@pytest.mark.parametrize(
    "images",
    [
        [  # not unique
            ("update_preimage", 3, 1, 10, "a"),
            ("update_preimage", 3, 1, 20, "a"),
            ("update_postimage", 3, 1, 11, "a"),
            ("update_postimage", 3, 1, 21, "a"),
        ],
        [  # the key was changed
            ("update_preimage", 3, 1, 10, "a"),
            ("update_postimage", 3, 9, 10, "a"),
        ],
    ],
)
def test_g11_images_that_cannot_be_paired_stop_or_are_delete_and_insert(images: list[Row]) -> None:
    events = [event("i", "t", "insert"), event("d", "t", "delete"), event("u", "t", "update")]
    with pytest.raises(EngineError, match=r"table `t`: version 3: .*key \(id\)") as stop:
        captured(events, images)
    assert stop.value.code == "unpaired-update"
    assert "on_unpaired: delete_insert" in str(stop.value)
    found = captured(events, images, on_unpaired="delete_insert")
    assert rows(found, "u") == Counter()
    assert rows(found, "d") == Counter(r[2:4] for r in images if r[0] == "update_preimage")
    assert rows(found, "i") == Counter(r[2:4] for r in images if r[0] == "update_postimage")


def test_g25_a_row_on_which_where_raises_is_rejected() -> None:
    text = "1 / n > 0"
    data: list[Row] = [
        ("insert", 2, 1, 1, "a"),
        ("insert", 2, 2, 0, "b"),
        ("insert", 3, 3, None, "c"),
    ]
    found = captured(
        [event("i", "t", "insert", where=text)], data, answers={text: [True, None, False]}
    )
    assert rows(found, "i") == Counter([(1, 1)])
    (wrong,) = found.rejected
    assert (wrong.event, wrong.source, wrong.row["id"]) == ("i", "t@2", 2)


def test_g25_a_row_whose_beginning_alone_is_asked_for_is_rejected_too() -> None:
    text = "1 / old.n > 0"
    whole = event("u", "t", "update", where=text)
    begun = replace(whole, name=beginning("u"))
    grown: list[Row] = [("update_preimage", 3, 1, 0, "a"), ("update_postimage", 3, 1, 11, "a")]
    for events in ([whole], [begun], [whole, begun]):
        found = captured(events, grown, answers={text: [None]})
        (wrong,) = found.rejected
        assert (wrong.event, wrong.source) == ("u", "t@3")


def test_g30_rows_go_to_spark_only_where_arrow_cannot_decide_them() -> None:
    text = "n <> 0 AND 10 / n > 1 AND lower(s) <> 'x'"
    plain: list[Row] = [
        ("insert", 2, 1, 5, "A"),
        ("insert", 2, 2, 0, "b"),
        ("insert", 2, 3, 4, "X"),
    ]
    odd: list[Row] = [*plain, ("insert", 3, 4, 3, "É")]  # Java and Arrow may differ on its letter
    events = [event("i", "t", "insert", where=text), event("c", "t", "change", where=text)]
    assert rows(captured(events, plain), "i") == Counter([(1, 5)])
    answers = {text: [True, False, None, True]}
    found = captured(events, odd, answers=answers)
    assert rows(found, "i") == rows(found, "c") == Counter([(1, 5), (4, 3)])
    assert [(wrong.event, wrong.row["id"]) for wrong in found.rejected] == [("i", 3), ("c", 3)]


def test_a_where_over_images_beyond_arrow_is_decided_after_pairing() -> None:
    text = "greatest(new.n, old.n) = 11"
    data = [row for row in UPDATES if row[1] == 3]
    found = captured([event("u", "t", "update", where=text)], data, answers={text: [True, None]})
    assert rows(found, "u") == Counter([(1, 11)])
    assert [wrong.row["id"] for wrong in found.rejected] == [None]


def test_s05_equal_rows_are_two_occurrences_with_two_ids() -> None:
    data: list[Row] = [("insert", 2, 1, 1, "a")] * 2
    found = captured([event("i", "t", "insert")], data)
    assert rows(found, "i") == Counter({(1, 1): 2})
    assert len(set(id_list(found, "i"))) == 2


def test_g06_ids_do_not_depend_on_the_bucket() -> None:
    events = [event("i", "t", "insert")]
    data: list[Row] = [("insert", v, n, n, "a") for v in (2, 3, 4) for n in range(5)]
    whole = id_list(captured(events, data), "i")
    parts = [captured(events, [row for row in data if row[1] == v]) for v in (2, 3, 4)]
    assert sorted(one for part in parts for one in id_list(part, "i")) == whole
    assert len(set(whole)) == 15


def test_occurrences_are_in_order_of_time_with_their_depth() -> None:
    data: list[Row] = [("insert", v, v, v, "a") for v in (4, 2, 3, 2)]
    found = captured([event("i", "t", "insert")], data, depths={3: 2})
    batch = found.batches["i"]
    assert batch.time.tolist() == [2_000_000, 2_000_000, 3_000_000, 4_000_000]
    assert batch.depth is not None
    assert batch.depth.tolist() == [0, 0, 2, 0]
    assert captured([event("i", "t", "insert")], data).batches["i"].depth is None


def test_parameters_are_renamed_by_columns() -> None:
    renamed = event("i", "t", "insert", columns={"number": "n"})
    found = captured([renamed], [("insert", 2, 1, 5, "a")], ("number",))
    assert found.batches["i"].table.to_pylist() == [{"number": 5, VERSION_OF: 2}]


def test_events_that_no_rule_reads_cost_nothing() -> None:
    book = rulebook(tables=[table("t")], events=[event("i", "t")])
    span = TableRange("t", 1, 1, {1: 1_000}, Cursor("t", "id", 1, 1_000, SCHEMA))
    feed = HandFeed([("insert", 1, 1, 1, "a")], {})
    found = Capture(book, Needs({})).capture(Plan("test", 1, 0, 9, 9, (span,)), feed)  # type: ignore[arg-type]
    assert (found.batches, feed.requests) == ({}, [])
    skipped = TableRange("t", 1, 1, {1: 1_000}, span.cursor, skipped=frozenset({1}))
    found = Capture(book, needs(book, "id")).capture(Plan("test", 1, 0, 9, 9, (skipped,)), feed)  # type: ignore[arg-type]
    assert (found.batches, feed.requests) == ({}, [])


def test_signals_become_occurrences() -> None:
    raised = [
        Signal("b", "s", {"x": 2}, 5, depth=3, instant=9),
        Signal("a", "s", {"x": 1}, 5, instant=7),
    ]
    found = captured([signal("s", x="bigint")], [], signals=raised)
    batch = found.batches["s"]
    assert batch.table.column("x").to_pylist() == [1, 2]
    assert batch.table.schema.field("x").type == pa.int64()
    assert (batch.time.tolist(), batch.depth is not None and batch.depth.tolist()) == (
        [7, 9],
        [0, 3],
    )
    assert len({tuple(row) for row in np.asarray(next(iter(batch.ids.values())))}) == 2


def test_g04_a_signal_that_is_not_of_the_types_declared_now_is_rejected_alone() -> None:
    fields: list[dict[str, Any]] = [
        {"x": 1, "y": "a"},
        {"x": "secret", "y": "a"},
        {"x": 3},
        {"x": 4, "y": "\ud800"},
        {"x": 5, "z": None},
    ]
    raised = [Signal(str(n), "s", given, 5, instant=7 + n) for n, given in enumerate(fields)]
    found = captured([signal("s", x="bigint", y="string")], [], signals=raised)
    kept = [{**fields[0], SIGNAL_OF: "client/0"}, {"x": 3, "y": None, SIGNAL_OF: "client/2"}]
    assert found.batches["s"].table.to_pylist() == kept
    assert found.batches["s"].time.tolist() == [7, 9]
    assert [(r.event, r.source, r.reason, r.row) for r in found.rejected] == [
        ("s", "signal 1", "field `x` is not of type bigint, as `s` is declared now", fields[1]),
        ("s", "signal 3", "field `y` is not of type string, as `s` is declared now", fields[3]),
        ("s", "signal 4", "`s` is declared without field `z` now", fields[4]),
    ]
    none_fit = captured([signal("s", x="date")], [], signals=raised[:1])
    assert (none_fit.batches, len(none_fit.rejected)) == ({}, 1)


def test_s10_the_beginning_of_an_update_has_the_pre_image_and_an_id_of_its_own() -> None:
    grown = event("grown", "t", "update", where="n > old.n", columns={"k": "id", "v": "n"})
    begins = replace(grown, name=beginning("grown"))
    found = captured([grown, begins], UPDATES, ("k", "v"))
    assert rows(found, "grown") == Counter([(1, 11)])
    assert rows(found, beginning("grown")) == Counter([(1, 10)])
    before, after = found.batches[beginning("grown")], found.batches["grown"]
    assert before.time.tolist() == after.time.tolist() == [3_000_000]
    assert before.event == after.event == "grown"
    assert id_list(found, beginning("grown")) != id_list(found, "grown")


def test_s10_the_beginning_alone_reads_both_images() -> None:
    begins = event(beginning("u"), "t", "update", of=("n",))
    found = captured([begins], UPDATES, ("id", "n"))
    assert rows(found, beginning("u")) == Counter([(1, None), (1, 10)])


def test_g22_what_a_rule_sees_without_its_own_writing_has_the_same_ids() -> None:
    data: list[Row] = [("insert", v, v, v, "a") for v in (1, 2, 3, 4)]
    public = event("u", "t", "insert", where="n > f(0)")
    kinds = [replace(public, name=f"u{of}") for of in (" but of r", "", " but of q")]
    writers = {2: ("test", "r"), 3: ("elsewhere", "r")}
    answers = {"n > f(0)": [True, True, True, None]}
    found = captured(kinds, data, answers=answers, writers=writers)
    assert {batch.event for batch in found.batches.values()} == {"u"}
    every = id_list(found, "u")
    assert id_list(found, "u but of q") == every
    assert found.batches["u but of r"].time.tolist() == [1_000_000, 3_000_000]
    assert Counter(id_list(found, "u but of r")) < Counter(every)
    assert [(r.event, r.source) for r in found.rejected] == [("u", "t@4")]  # once
