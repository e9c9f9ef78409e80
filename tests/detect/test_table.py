"""`tidegate.detect`: a table in, a table out (`language.md` 5)."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import cases
from tests.reference.strategies import FIRST_SLICE, answered
from tests.reference.values import Occurrence
from tests.support.rulebooks import loaded
from tidegate import detect
from tidegate.rules.errors import InputError
from tidegate.rules.model import SignalEvent

BOOK = """
rulebook: bank
events:
  withdrawal: {signal: {account: bigint}}
  alarm: {signal: {account: bigint}}
rules:
  pair: {on: withdrawal ; alarm, per: account}
  alarms: {on: alarm}
"""


def table(**columns: object) -> pa.Table:
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def test_detections_name_rows_of_the_table_as_it_was_given() -> None:
    occurrences = table(
        time=[5_000_000, 1_000_000, 2_000_000],
        event=["alarm", "withdrawal", "withdrawal"],
        account=[7, 7, 8],
    )
    found = detect(BOOK, occurrences)
    assert found.column_names == ["rule", "account", "start", "end", "constituents", "ticks"]
    assert found.to_pylist() == [
        {
            "rule": rule,
            "account": account,
            "start": datetime(1970, 1, 1, 0, 0, start, tzinfo=UTC),
            "end": datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC),
            "constituents": rows,
            "ticks": [],
        }
        for rule, account, start, rows in [("alarms", None, 5, [0]), ("pair", 7, 1, [1, 0])]
    ]


def test_constituents_are_values_of_the_column_that_is_named() -> None:
    occurrences = table(
        time=[5, 1, 2], event=["alarm", "withdrawal", "alarm"], account=[7, 7, 7], key=[*"xyz"]
    )
    found = detect(BOOK, occurrences, id="key")
    assert found.column("constituents").to_pylist() == [["z"], ["y", "z"], ["x"], ["y", "x"]]
    with pytest.raises(InputError, match="lack the column kez"):
        detect(BOOK, occurrences, id="kez")


@pytest.mark.parametrize(
    ("on", "context", "rows"),
    [
        ("withdrawal ; alarm", "continuous", [[0, 3], [1, 3], [2, 3]]),
        ("withdrawal ; alarm", "chronicle", [[0, 3]]),
        ("withdrawal ; (alarm or (alarm ; alarm))", "unrestricted", [[0, 3], [1, 3], [2, 3]]),
        ("withdrawal ; withdrawal", "continuous", []),
    ],
)
def test_s05_detections_of_equal_values_are_in_order_of_their_rows(
    on: str, context: str, rows: list[list[int]]
) -> None:
    book = BOOK.split("rules")[0] + f"rules: {{r: {{on: '{on}', context: {context}}}}}"
    occurrences = table(event=["withdrawal"] * 3 + ["alarm"], time=[1, 1, 1, 2], account=[7] * 4)
    assert detect(book, occurrences).column("constituents").to_pylist() == rows


def test_constituents_come_before_a_list_that_continues_them() -> None:
    book = """
rulebook: b
events: {a: {signal: {}}, B: {signal: {}}, c: {signal: {}}}
rules: {r: {on: '(a ; B) or (a ; [2 s]) or (a ; c)', context: unrestricted}}
"""
    found = detect(book, table(event=["a", "B", "c"], time=[0, 2_000_000, 2_000_000]))
    assert found.column("constituents").to_pylist() == [[0], [0, 1], [0, 2]]


def test_s10_a_transaction_is_its_beginning_and_its_end() -> None:
    book = """
rulebook: loads
tables: {t: {path: /t}}
events:
  row: {signal: {}}
  load: {on: transaction, table: t}
rules: {loaded: {on: "A*(begin_of load, row, load)"}}
"""
    found = detect(book, table(time=[1_000_000] * 3, event=["row", "load", "row"]))
    assert found.column("constituents").to_pylist() == [[0, 2]]
    edges = [found.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end")]
    assert edges == [[999_999], [1_000_001]]


@detecting
@given(data=st.data())
@example_count(60)
def test_detect_finds_what_the_reference_finds_in_its_order(data: st.DataObject) -> None:
    book, history = data.draw(cases(operators=FIRST_SLICE, depth=3))
    expected = saw(answered(book, history))
    names = sorted(
        {f for e in book.events.values() if isinstance(e, SignalEvent) for f in e.fields}
    )
    occurrences = pa.table(
        {
            "event": pa.array([event for event, _, _ in history], pa.string()),
            "time": pa.array([time for _, time, _ in history], pa.int64()),
            **{n: pa.array([f.get(n) for _, _, f in history], pa.int64()) for n in names},
        }
    )
    found = detect(book, occurrences)
    shown = [
        [(history[row][0], history[row][1], history[row][2]) for row in rows]
        for rows in found.column("constituents").to_pylist()
    ]
    assert shown == [
        [(c.event, c.end, dict(c.fields)) for c in d.constituents if isinstance(c, Occurrence)]
        for d in expected
    ]
    assert found.column("start").cast(pa.int64()).to_pylist() == [d.start for d in expected]


def test_rules_whose_keys_never_meet_read_one_column() -> None:
    book = """
rulebook: b
events: {a: {signal: {k: bigint}}, b: {signal: {k: bigint}}, c: {signal: {k: bigint}}}
rules: {r: {on: a and b, per: k}, s: {on: "A(c, c, c) or c", per: k}}
"""
    found = detect(book, table(event=["a", "b", "c", "c"], time=[1, 2, 3, 4], k=[7, 7, 7, 8]))
    assert found.select(["rule", "k", "constituents"]).to_pylist() == [
        {"rule": "r", "k": 7, "constituents": [0, 1]},
        {"rule": "s", "k": 7, "constituents": [2]},
        {"rule": "s", "k": 8, "constituents": [3]},
    ]


def test_rules_over_the_lesser_part_of_a_table_read_their_rows_alone() -> None:
    events = pa.table({"event": [*"cccccab"], "time": [*range(7)], "k": [1] * 7, "v": [0] * 7})
    found = detect(loaded("abc", r="on: a ; b, per: k"), events)
    assert found.column("constituents").to_pylist() == [[5, 6]]


def test_nothing_given_nothing_found() -> None:
    found = detect(BOOK, table(time=np.array([], np.int64), event=pa.array([], pa.string())))
    assert found.num_rows == 0
    assert found.schema.field("constituents").type == pa.list_(pa.int64())


def test_a_key_of_another_type_than_is_declared_is_refused_as_signal_does() -> None:
    given = pa.table({"event": ["withdrawal"], "time": [1], "account": ["7"]})
    with pytest.raises(InputError) as refused:
        detect(BOOK, given)
    assert "account of withdrawal is string, and declared as bigint" in str(refused.value)
    assert len(detect(BOOK, given.set_column(2, "account", pa.nulls(1)))) == 0


@pytest.mark.parametrize(
    ("key", "declared"),
    [
        (pa.int32(), "bigint"),
        (pa.string(), "string"),
        (pa.decimal128(14, 2), "bigint"),
        (pa.date32(), "date"),
    ],
)
def test_keys_of_any_type_keep_it(key: pa.DataType, declared: str) -> None:
    account = pa.array([1, 2, 1, None, None], pa.int32())
    account = (
        pa.array([None if v is None else str(v) for v in account.to_pylist()])
        if pa.types.is_string(key)
        else account.cast(key)
    )
    event = ["withdrawal", "withdrawal", "alarm", "withdrawal", "alarm"]
    book = BOOK.replace("account: bigint", f"account: {declared}")
    found = detect(book, pa.table({"time": range(5), "event": event, "account": account}))
    pairs = found.filter(pa.compute.equal(found.column("rule"), "pair"))
    assert pairs.column("account").type == key
    assert pairs.column("account").to_pylist() == [account[0].as_py(), None]


MAPPED = """
rulebook: b
events: {a: {signal: {k: bigint}}, b: {signal: {x: bigint}}}
rules:
  r: {on: a and b, per: {a: k, b: x}}
  s: {on: a ; b, per: {a: k, b: x}}
  t: {on: a or b, per: {a: k, b: x}}
"""


def test_a_decimal_and_a_double_are_no_key_together() -> None:
    doubles = pa.array([1.5, None])
    decimals = pa.array([None, Decimal("1.5")])
    occurrences = pa.table({"event": ["a", "b"], "time": [1, 2], "k": doubles, "x": decimals})
    with pytest.raises(InputError, match="cannot be compared: k of a") as error:
        detect(MAPPED, occurrences)
    assert "a decimal equals a double only as SQL rounds it" in str(error.value)


@pytest.mark.parametrize(
    "seven", [7.0, Decimal("7.00"), pa.scalar(7, pa.uint64()), pa.scalar(7, pa.int8())], ids=str
)
def test_keys_are_compared_by_value(seven: object) -> None:
    """7 and 7.0 are one key; 2**53 as a double is that number and not the next one."""
    value = seven if isinstance(seven, pa.Scalar) else pa.scalar(seven)
    x = pa.array([None, None, value.as_py()], value.type)
    events, times = ["a", "a", "b"], [1, 2, 3]
    occurrences = pa.table({"event": events, "time": times, "k": [2**53 + 1, 7, None], "x": x})
    found = detect(MAPPED, occurrences).select(["rule", "k", "constituents"]).to_pylist()
    pairs = [row for row in found if row["rule"] != "t"]
    assert [(r["rule"], r["k"], r["constituents"]) for r in pairs] == [
        ("r", 7, [1, 2]),
        ("s", 7, [1, 2]),
    ]
    assert [row["k"] for row in found if row["rule"] == "t"] == [2**53 + 1, 7, 7]


@pytest.mark.parametrize(
    ("k", "x", "said"),
    [
        (pa.array([7, None]), pa.array([None, "7"]), ["k of a (int64)", "x of b (string)"]),
        (pa.array([True, None]), pa.array([None, 1]), ["k of a (bool)", "x of b (int64)"]),
        (pa.array([[7], None]), pa.array([None, [7]]), ["k of a (list<item: int64>)"]),
        (
            pa.array([2**53 + 1, None]),
            pa.array([None, 1e300]),
            ["k of a (int64)", "x of b (double)"],
        ),
        (pa.array([1, None], pa.float16()), pa.nulls(2), ["halffloat is no type of a key"]),
        (pa.nulls(2, pa.binary_view()), pa.nulls(2), ["binary_view is no type of a key"]),
    ],
    ids=["a text", "true", "a list", "too far apart", "a half float", "a view"],
)
def test_keys_that_do_not_compare_are_named(k: pa.Array, x: pa.Array, said: list[str]) -> None:
    occurrences = pa.table({"event": ["a", "b"], "time": [1, 2], "k": k, "x": x})
    with pytest.raises(InputError) as caught:
        detect(MAPPED, occurrences)
    assert all(part in str(caught.value) for part in said)


def test_a_key_column_that_is_missing_is_named() -> None:
    with pytest.raises(InputError, match="occurrences of b lack the column x, a key of r"):
        detect(MAPPED, pa.table({"event": ["a", "b"], "time": [1, 2], "k": [7, 7]}))
    only_a = pa.table({"event": ["a"], "time": [1], "k": [7]})
    assert detect(MAPPED, only_a).column("rule").to_pylist() == ["t"]


@pytest.mark.parametrize("micros", [2**62, -(2**63), 253_402_300_800_000_000])
def test_times_out_of_range_are_named(micros: int) -> None:
    with pytest.raises(InputError, match=rf"column time has {micros} us"):
        detect(MAPPED, pa.table({"event": ["a", "a"], "time": [1, micros], "k": [7, 7]}))


def test_keys_of_one_name_in_rules_of_other_types() -> None:
    book = MAPPED + "  u: {on: a, per: k}\n"
    k, x = [2**53 + 1, None], pa.array([None, Decimal("0.5")])
    found = detect(book, pa.table({"event": ["a", "b"], "time": [1, 2], "k": k, "x": x}))
    keys = [(row["rule"], row["k"]) for row in found.to_pylist()]
    assert keys == [("t", 2**53 + 1), ("u", 2**53 + 1), ("t", Decimal("0.5"))]


def test_keys_of_several_columns_and_of_differing_types() -> None:
    book = """
rulebook: b
events: {a: {signal: {k: bigint, j: string}}, b: {signal: {x: int, j: string}}}
rules:
  r: {on: a and b, per: {a: [k, j], b: [x, j]}}
"""
    occurrences = pa.table(
        {
            "event": ["a", "a", "b", "b"],
            "time": [1, 2, 3, 4],
            "k": pa.array([1, 2, None, None], pa.int64()),
            "x": pa.array([None, None, 2, 1], pa.int32()),
            "j": ["p", "q", "q", "q"],
        }
    )
    assert detect(book, occurrences).select(["k", "j", "constituents"]).to_pylist() == [
        {"k": 2, "j": "q", "constituents": [1, 2]}
    ]


@pytest.mark.parametrize(
    "event",
    [
        pa.DictionaryArray.from_arrays([0, 1, 2], ["a", "a", "b"]),
        pa.chunked_array(
            [
                pa.DictionaryArray.from_arrays([0], ["a"]),
                pa.DictionaryArray.from_arrays([1, 0], ["b", "a"]),
            ]
        ),
        pa.array(["a", "a", "b"], pa.string_view()),
        pa.array(["a", "a", "b"], pa.large_string()),
    ],
    ids=["a name twice", "a dictionary a chunk", "views", "large"],
)
def test_event_names_may_come_in_any_form(event: pa.Array | pa.ChunkedArray) -> None:
    book = "rulebook: b\nevents: {a: {signal: {}}, b: {signal: {}}}\nrules: {r: {on: a or b}}\n"
    found = detect(book, pa.table({"event": event, "time": [1, 2, 3]}))
    assert found.column("constituents").to_pylist() == [[0], [1], [2]]


@pytest.mark.parametrize(
    "more", [["b", None], ["b", *map(str, range(100))]], ids=["a null entry", "many entries"]
)
def test_dictionaries_of_chunks_that_do_not_make_one_are_read(more: list[str | None]) -> None:
    """Whatever the column is: Arrow makes no one dictionary of two where one has a null entry, or
    where the indices cannot count the entries of both."""

    def column(first: str, then: list[str | None]) -> pa.ChunkedArray:
        one = [first, *(f"-{n}" for n in range(100))]
        parts = [([0, 0], one), ([0], then)]
        return pa.chunked_array(
            [pa.DictionaryArray.from_arrays(pa.array(i, pa.int8()), d) for i, d in parts]
        )

    book = """
rulebook: b
events: {a: {signal: {k: string, v: string}}, b: {signal: {k: string, v: string}}}
rules: {r: {on: a ; b, per: k}}
"""
    same = column("b", more)
    events = column("a", more)
    found = detect(book, pa.table({"event": events, "time": [1, 1, 2], "k": same, "v": same}), "v")
    assert found.select(["k", "constituents"]).to_pylist() == [
        {"k": "b", "constituents": ["b"] * 2}
    ]


def test_a_key_column_has_its_type_where_nothing_is_detected() -> None:
    occurrences = table(time=pa.array([], pa.int64()), event=pa.array([], pa.string()))
    occurrences = occurrences.append_column("account", pa.array([], pa.int32()))
    assert detect(BOOK, occurrences).schema.field("account").type == pa.int32()


@pytest.mark.parametrize(
    ("occurrences", "said"),
    [
        (table(time=[1]), "lack the column event"),
        (table(time=[1.5], event=["alarm"]), "not int64 or a timestamp"),
        (table(time=[None, 1], event=["alarm"] * 2), "cannot be null"),
        (table(time=[1], event=["alrm"]), "did you mean 'alarm'?"),
        (table(time=[1], event=["pair"]), "pair cannot be given"),
        (table(time=[1], event=[7]), "column event is int64"),
        (table(time=pa.array([1], pa.timestamp("ns")), event=["alarm"]), "no instants"),
        (pa.table([["alarm"], [1], [1]], names=["event", "time", "time"]), "several columns time"),
        (
            table(
                time=[1], event=pa.DictionaryArray.from_arrays([0], pa.array([None], pa.string()))
            ),
            "cannot be null",
        ),
    ],
)
def test_wrong_occurrences_are_refused(occurrences: pa.Table, said: str) -> None:
    with pytest.raises(InputError) as error:
        detect(BOOK, occurrences)
    assert said in str(error.value)


def test_what_is_no_table_is_named() -> None:
    batch = table(time=[1], event=["alarm"]).to_batches()[0]
    with pytest.raises(InputError, match="occurrences are a RecordBatch"):
        detect(BOOK, batch)  # type: ignore[arg-type]


def test_a_key_called_like_a_column_of_the_result_is_refused() -> None:
    text = "rulebook: b\nevents: {a: {signal: {start: bigint}}}\nrules: {r: {on: a, per: start}}"
    with pytest.raises(InputError, match="key start of rule r is called as a column of what is"):
        detect(text, pa.table({"event": ["a"], "time": [1], "start": [1]}))


@pytest.mark.parametrize(
    "on", ["A*(a, b, [1 month])", "P*(a, [10 days], [1 month])", "a ; [1 month]"]
)
def test_s11_what_runs_out_a_month_later_is_in_order_though_a_local_time_was_repeated(
    on: str,
) -> None:
    opened = [datetime(2024, 10, 27, 0, 30, tzinfo=UTC), datetime(2024, 10, 27, 1, 10, tzinfo=UTC)]
    book = f"""
rulebook: months
timezone: Europe/Berlin
events:
  a: {{signal: {{k: bigint}}}}
  b: {{signal: {{k: bigint}}}}
rules:
  r: {{on: "{on}", per: k}}
"""
    occurrences = table(
        time=pa.array(opened, pa.timestamp("us", "UTC")), event=["a", "a"], k=[1, 2]
    )
    assert detect(book, occurrences).column("end").to_pylist() == [
        datetime(2024, 11, 27, 1, 10, tzinfo=UTC),  # 02:10 for the second time, then once
        datetime(2024, 11, 27, 1, 30, tzinfo=UTC),  # 02:30 for the first time
    ]
