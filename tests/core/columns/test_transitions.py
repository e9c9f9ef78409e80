"""Transition tables: the net effect of a firing's constituents, by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tests.support.rulebooks import SCHEMAS, event, rule, rulebook, signal, table
from tidegate.engine.core.columns.transitions import transition_table, transitions_of
from tidegate.engine.evaluate.shape import shape_of
from tidegate.rules.model import TRANSITION_TABLES, EventType

ACCOUNTS = pa.schema([("k", pa.int64()), ("v", pa.float64()), ("s", pa.list_(pa.string()))])
EVENTS = (
    event("came", "accounts"),
    event("left", "accounts", "delete"),
    event("grown", "accounts", "update"),
    event("touched", "accounts", "change"),
    signal("told", k="bigint"),
)
Row = tuple[int, float | None]
Change = tuple[str, str, Row | None, Row | None]  # firing, event type, row before, row after


def relation(
    changes: Sequence[Change], on: str = "came or left or grown or touched", net: str = "firing"
) -> pa.Table:
    """Of a rule over accounts; each change a second after the one before."""
    of = rule(on, per={name: ["k"] for name in on.split(" or ")}, net=net)
    book = rulebook(of, tables=[table("accounts", key=("k",))], events=EVENTS)
    schema = shape_of(book, of, {"accounts": ACCOUNTS}).schema
    rows = [_row(n, *change) for n, change in enumerate(changes)]
    return pa.Table.from_pylist(rows, schema)


def _row(n: int, firing: str, name: str, old: Row | None, new: Row | None) -> dict[str, Any]:
    kind = {(True, False): "insert", (False, True): "delete"}.get((old is None, new is None))
    image = old if new is None else new
    found: dict[str, Any] = {"firing_id": firing, "event_type": name, "occurred_at": n * 1_000_000}
    if image is not None:
        found |= {"k": image[0], "v": image[1], "s": told_of(image[1])}
    if old is not None and new is not None:
        found["old"] = {"k": old[0], "v": old[1], "s": told_of(old[1])}
    if name == "touched":
        found["_change_type"] = kind or "update"
    return found


def told_of(value: float | None) -> list[str | None]:
    """A column that goes with the value."""
    return [None if value is None else f"{value:.1f}", None]


def net(changes: pa.Table, prefix: str = "") -> dict[str, Counter[tuple[Any, ...]]]:
    found = {}
    for name in TRANSITION_TABLES:
        rows = transition_table(changes, prefix + name).to_pylist()
        assert all(row["s"] == told_of(row["v"]) for row in rows)
        shown = Counter((row["firing_id"], row["k"], row["v"]) for row in rows)
        found |= {name: shown} if shown else {}
    return found


def slowly(changes: Sequence[Change]) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rulings one change after the other."""
    begun: dict[tuple[str, int], Row | None] = {}
    state: dict[tuple[str, int], Row | None] = {}
    for firing, name, old, new in changes:
        image = old or new
        if image is not None and not (name == "grown" and old is None):
            begun.setdefault((firing, image[0]), old)
            state[firing, image[0]] = new
    found: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name in TRANSITION_TABLES}
    for (firing, key), last in state.items():
        first = begun[firing, key]
        if first == last:
            continue
        if first is not None:
            found["deleted" if last is None else "old_updated"][firing, *first] += 1
        if last is not None:
            found["inserted" if first is None else "new_updated"][firing, *last] += 1
    return {name: rows for name, rows in found.items() if rows}


def test_the_example_of_each_ruling() -> None:
    changes: list[Change] = [
        ("a", "came", None, (1, 5)), ("a", "grown", (1, 5), (1, 6)),
        ("a", "came", None, (2, 5)), ("a", "left", (2, 5), None),
        ("a", "grown", (3, 5), (3, 6)), ("a", "touched", (3, 6), (3, 7)),
        ("a", "left", (4, 5), None), ("a", "touched", None, (4, 5)),
        ("a", "left", (5, 1), None), ("a", "came", None, (5, None)),
        ("a", "grown", (6, 1), (6, 2)), ("a", "touched", (6, 2), None),
        ("b", "left", (1, 6), None),
        ("b", "grown", None, (9, 9)),  # the beginning of an update
        ("b", "told", None, (8, 8)),
    ]  # fmt: skip
    assert net(relation(changes, "came or left or grown or touched or told")) == {
        "inserted": Counter([("a", 1, 6)]),
        "deleted": Counter([("a", 6, 1), ("b", 1, 6)]),
        "old_updated": Counter([("a", 3, 5), ("a", 5, 1)]),
        "new_updated": Counter([("a", 3, 7), ("a", 5, None)]),
    }


def without_firing(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter([row[1:] for row in rows.elements()])


@st.composite
def histories(draw: st.DrawFn) -> list[Change]:
    """Some of the changes of a few keys, as some firings have them as constituents."""
    rows: dict[int, float | None] = {}
    found: list[Change] = []
    values = st.sampled_from([None, 0.0, 1.5, 2.0])
    for _ in range(draw(st.integers(0, 25))):
        key, value = draw(st.integers(0, 3)), draw(values)
        old = (key, rows[key]) if key in rows else None
        gone = old is not None and draw(st.booleans())
        new = None if gone else (key, value)
        name = "came" if old is None else "left" if gone else "grown"
        if gone:
            del rows[key]
        else:
            rows[key] = value
        name = draw(st.sampled_from([name, "touched"]))
        found += [(firing, name, old, new) for firing in draw(st.sets(st.sampled_from("ab")))]
    return found


@example_count(150)
@given(histories(), st.randoms())
def test_the_net_effect_is_that_of_the_changes_one_by_one(
    changes: list[Change], order: Any
) -> None:
    summed = net(relation(changes, net="bucket"))
    together = slowly([("all", *change) for _, *change in changes])
    assert {kind: without_firing(rows) for kind, rows in summed.items()} == {
        kind: without_firing(rows) for kind, rows in together.items()
    }
    assert {firing for rows in summed.values() for firing, _, _ in rows} <= {"a", "b"}
    expected = slowly(changes)
    found = relation(changes)
    shuffled = [*range(len(changes))]
    order.shuffle(shuffled)
    assert net(found) == net(found.take(pa.array(shuffled, pa.int64()))) == expected


MOVES = (event("moved", "moves"), event("removed", "moves", "delete"))


def told(on: str, *events: EventType, **tables: Mapping[str, Any]) -> dict[str, str]:
    """Why there is none, by prefix; empty where there is."""
    named = [table(name, **{"key": ("id",), **given}) for name, given in tables.items()]
    of = rule(on)
    book = rulebook(of, tables=named, events=events)
    return {t.prefix: t.refused for t in transitions_of(shape_of(book, of, SCHEMAS).schema)}


@pytest.mark.parametrize(
    ("on", "events", "key", "said"),
    [
        ("moved", MOVES, ("id",), {"": ""}),
        ("moved ; changed", (*MOVES, event("changed", "accounts", "update")), ("id",),
         {"moves_": "", "accounts_": ""}),
        ("moved", MOVES, (), {"": "the net effect on moves is by its key, and it declares none"}),
        ("late", (event("late", "moves", time="at"),), ("id",),
         {"": "late tells not in which order the rows of moves changed"}),
        ("some ; removed", (*MOVES, event("some", "moves", columns={"a": "amount"})), ("id",),
         {"": "not all event types over moves have its key id in one column"}),
        ("tx", (event("tx", "moves", "transaction"),), ("id",), {}),
    ],
)  # fmt: skip
def test_tables_without_transition_tables_say_why(
    on: str, events: Sequence[EventType], key: tuple[str, ...], said: dict[str, str]
) -> None:
    assert told(on, *events, moves={"key": key}, accounts={"key": ("account",)}) == said


def test_columns_are_called_as_in_the_table_and_stand_where_the_relation_has_them() -> None:
    renamed = event("moved", "moves", columns={"number": "id", "worth": "amount"})
    of = rule("moved", per={"moved": ["number"]})
    book = rulebook(of, tables=[table("moves", key=("id",))], events=(renamed,))
    (found,) = transitions_of(shape_of(book, of, SCHEMAS).schema)
    assert found.columns == {"id": "number", "amount": "worth"}
    assert found.reads == {"event_type", "occurred_at", "number", "worth"}
