"""What is asked of the rows of windows: as the evaluator of `if` answers, and as Spark does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tests.reference.windows.texts import conditions
from tidegate.engine.core.evaluator.firings import compile_condition
from tidegate.engine.core.evaluator.nodes import UndecidedError
from tidegate.engine.core.types.spark import spark_type
from tidegate.engine.core.values import Batch
from tidegate.engine.detect.events.graph import double_sums
from tidegate.engine.detect.events.graph.moving_aggregates import Condition, Windows, values_of_step
from tidegate.engine.detect.events.kernels.moving_windows import Spans
from tidegate.engine.detect.events.occurrences.instances import Moment, Numbering
from tidegate.rules.analysis.aggregate_types import over_rows
from tidegate.rules.analysis.predicate_types import faults
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions.aggregate_parser import parse_aggregates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "v": pa.int64(),
    "i": pa.int32(),
    "x": pa.float64(),
    "m": pa.decimal128(6, 2),
    "n": pa.decimal128(18, 3),
}
COLUMNS = [*TYPES]
VALUES: dict[str, list[Any]] = {
    "v": [0, 1, -3, 2**62, None],
    "i": [0, 1, 7, -(2**31), None],
    "x": [0.1, 0.2, 0.7, -0.0, 1e16, float("nan"), float("inf"), None],
    "m": [Decimal("0.05"), Decimal("1.25"), Decimal("-9999.99"), None],
    "n": [Decimal("0.001"), Decimal("999999999999999.999"), Decimal("1.500"), None],
}


class _Rows:
    """The rows of one table as the occurrences of a step."""

    def __init__(self, table: pa.Table) -> None:
        count = len(table)
        self._batch = Batch("e", np.zeros(count, np.int64), np.arange(count), table)

    def shown(self, row: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, Batch]]:
        return np.zeros(len(row), np.int16), row, {"e": self._batch}


def asked(text: str, table: pa.Table, windows: Sequence[tuple[int, int]]) -> list[bool]:
    """Of which windows low:high over a table's rows a condition is true."""
    low, high = (np.array([w[n] for w in windows], dtype=np.int64) for n in (0, 1))
    nothing = np.zeros(len(windows), np.int64)
    spans = Spans(nothing.astype(np.int32), nothing, low, high)
    numbering = cast(Numbering, _Rows(table))
    moment = Moment(numbering, 0, np.empty(0, np.int32), 0, 0, None)  # type: ignore[arg-type]
    order = np.arange(len(table))[::-1].copy()  # the rows come in another order
    found = Windows(spans, order, values_of_step(order.copy(), moment))
    held: list[bool] = found.true(Condition(parse_aggregates(text), ("e",))).tolist()
    return held


@st.composite
def cases(draw: st.DrawFn) -> tuple[pa.Table, list[tuple[int, int]]]:
    """Rows, and windows over them, none of them empty, of which neither bound falls."""
    count = draw(st.integers(1, 8))
    columns = {
        name: pa.array([draw(st.sampled_from(VALUES[name])) for _ in range(count)], kind)
        for name, kind in TYPES.items()
    }
    bounds = [sorted(draw(st.lists(st.integers(0, count), min_size=4, max_size=4))) for _ in "lh"]
    windows = [(low, high) for low, high in zip(*bounds, strict=True) if low < high]
    return pa.table(columns), windows


def fits(text: str) -> bool:
    """Whether a rulebook with this condition over the columns is accepted."""
    tree, types = parse_aggregates(text), dict[p.Column, str | None]()
    columns: list[dict[str, str | None]] = [{n: spark_type(kind) for n, kind in TYPES.items()}]
    found = [fault for one in p.aggregates(tree) for fault in over_rows(one, columns, types)]
    return not found and not [*faults(tree, types.get)]


def by_window(table: pa.Table, windows: Sequence[tuple[int, int]]) -> pa.Table:
    """The rows of each window as those of a firing."""
    rows = [row for low, high in windows for row in range(low, high)]
    ids = [str(n) for n, (low, high) in enumerate(windows) for _ in range(low, high)]
    return table.take(pa.array(rows, pa.int64())).append_column("firing_id", pa.array(ids))


@pytest.fixture(params=[double_sums.FEW, 0], ids=["added anew", "of two stacks"])
def sums(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of doubles as short windows have them, and as long ones."""
    monkeypatch.setattr(double_sums, "FEW", request.param)


@pytest.mark.usefixtures("sums")
def test_conditions_say_what_the_evaluator_of_if_says() -> None:
    """But where that leaves it to Spark, which may raise: a sum past 64 bits is exact here."""
    seen = Counter[str]()

    @given(case=cases(), text=conditions(COLUMNS).filter(fits))
    @example_count(1_200, least=100)
    def some(case: tuple[pa.Table, list[tuple[int, int]]], text: str) -> None:
        table, windows = case
        seen["cases"] += 1
        held = asked(text, table, windows)
        relation = by_window(table, windows)
        condition = compile_condition(text, relation.schema, ())
        if condition is None or not windows:
            return
        try:
            ids = condition.held(relation)
        except UndecidedError:
            return
        seen["decided"] += 1
        seen["true"] += any(held)
        assert held == [str(n) in ids for n in range(len(windows))]

    some()
    print(dict(seen))
    assert 4 * seen["decided"] > seen["cases"]
    assert 20 * seen["true"] > seen["cases"]


@pytest.mark.usefixtures("sums")
@pytest.mark.parametrize(
    ("text", "values", "kind", "held"),
    [
        ("sum(v) = 27670116110564327421", [2**63 - 1] * 3, pa.int64(), True),
        ("sum(v) = -27670116110564327424", [-(2**63)] * 3, pa.int64(), True),
        ("sum(v) * 2 > sum(v)", [2**63 - 1] * 3, pa.int64(), True),
        ("avg(v) = 333333333333333333.3333", [Decimal(10**18 - 1), 1, 0], pa.decimal128(18), True),
        ("avg(v) = 999999999999999999", [Decimal(10**18 - 1)] * 30, pa.decimal128(18), True),
        ("avg(v) = 0.666667", [Decimal("0.67"), Decimal("0.67"), Decimal("0.66")], None, True),
        ("avg(v) is null and sum(v) is null and count(v) = 0", [None], pa.int64(), True),
        ("max(v) = 1", [None, None], pa.null(), False),
        ("max(v) is null", [None, None], pa.null(), True),
        ("max(v) > 1e300", [1.0, float("nan")], pa.float64(), True),  # NaN is above all
        ("min(v) = 1", [float("nan"), 1.0], pa.float64(), True),
        ("min(v) = max(v)", [0.0, -0.0], pa.float64(), True),
        ("sum(v) = 0.6 and avg(v) < 0.2", [0.1, 0.2, 0.3], pa.float64(), False),
        ("sum(v) = 6.000000000000001e-1", [0.1, 0.2, 0.3], pa.float64(), True),
        ("sum(v) = 6e-1", [0.3, 0.2, 0.1], pa.float64(), True),  # in the order of rows
    ],
)
def test_sums_are_exact_or_in_the_order_of_rows(
    text: str, values: list[Any], kind: pa.DataType | None, held: bool
) -> None:
    column = pa.array([None if v is None else v for v in values], kind)
    assert asked(text, pa.table({"v": column}), [(0, len(values))]) == [held]


def test_dates_and_timestamps_have_a_first_and_a_last() -> None:
    days = pa.table({"v": pa.array([20, 3, None], pa.date32())})
    assert asked("max(v) = date '1970-01-21'", days, [(0, 3), (1, 3)]) == [True, False]
    times = pa.table({"v": pa.array([20, 3], pa.timestamp("us", "UTC"))})
    text = "min(v) < timestamp '1970-01-01 00:00:00.00001Z'"
    assert asked(text, times, [(0, 1), (0, 2)]) == [False, True]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("sum(v) > 1", pa.decimal128(30, 2)),
        ("avg(v) > 1", pa.decimal128(19, 2)),
        ("avg(v) > 1", pa.string()),
        ("min(v) > 1", pa.bool_()),
    ],
)
def test_columns_of_other_types_are_refused(text: str, kind: pa.DataType) -> None:
    table = pa.table({"v": pa.nulls(2, kind)})
    with pytest.raises(EngineError, match="cannot be asked this of columns of these types"):
        asked(text, table, [(0, 2)])


@pytest.mark.long
@pytest.mark.timeout(0)
def test_conditions_say_what_spark_says(spark: SparkSession) -> None:
    """But where Spark raises, because a result does not fit."""
    from pyspark.errors import ArithmeticException

    small = {**VALUES, "v": [0, 1, -3, 2**40, None]}
    random = np.random.default_rng(7)
    rows, size = 400, 4
    table = pa.table(
        {
            name: pa.array([small[name][n] for n in random.integers(0, len(small[name]), rows)], k)
            for name, k in TYPES.items()
        }
    )
    windows = [(low, low + size) for low in range(0, rows, size)]
    relation = by_window(table, windows)
    spark.createDataFrame(relation).coalesce(1).createOrReplaceTempView("event")
    seen = Counter[str]()

    @given(text=conditions(COLUMNS).filter(fits))
    @example_count(300)
    def some(text: str) -> None:
        query = f"SELECT firing_id FROM event GROUP BY firing_id HAVING {text}"
        held = asked(text, table, windows)
        try:
            found = {row["firing_id"] for row in spark.sql(query).collect()}
        except ArithmeticException:  # as of - min(i) in 32 bits, which has room here
            return
        seen[str(any(held))] += 1
        assert held == [str(n) in found for n in range(len(windows))]

    some()
    assert seen["True"] > 50
