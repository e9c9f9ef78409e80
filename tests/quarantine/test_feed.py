"""Rows that end Spark's Java, outlast their deadline or fail their job are found and rejected."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.quarantine.poison import Engine, PoisonFeed, Spark
from tests.reference.examples import example_count
from tests.support.make import a_range
from tests.support.memorystore import MemoryLedger, MemoryStore
from tests.support.rulebooks import event, rulebook, table
from tidegate.engine.core.ports import KIND, VERSION, WHY, OutageError, ReadRequest
from tidegate.engine.core.suspect import text_digest
from tidegate.engine.quarantine.feed import FAILURES_MAX, FANOUT, WatchedFeed
from tidegate.engine.replay.memory.opening import Healthy
from tidegate.rules.errors import EngineError

SCHEMA = (
    '{"type": "struct", "fields": ['
    '{"name": "id", "type": "long", "nullable": true, "metadata": {}}, '
    '{"name": "kind", "type": "string", "nullable": true, "metadata": {}}]}'
)
BOOK = rulebook(
    tables=[table("t", "/t")],
    events=[event("good", "t", where="good"), event("other", "t", where="harmless")],
)
POISON = ("death", "overrun", "failure")
Rows = Sequence[tuple[int, str]]


def span_of(versions: Mapping[int, Rows]) -> Any:
    found = a_range("t", min(versions), max(versions))
    return replace(found, cursor=replace(found.cursor, schema=SCHEMA))


def read(
    engine: Engine,
    spark: Spark,
    versions: Mapping[int, Rows],
    *,
    only: bool = False,
    restarts: bool = False,
) -> list[tuple[int, int, bool | None, bool | None, str | None]]:
    """(version, id, what `good` says, what `harmless` says, why not) of each row."""
    request = ReadRequest(
        ("id",), frozenset({"insert"}), {"w": "good", "h": "harmless"}, ("good",) if only else ()
    )

    def call() -> Any:
        watched = WatchedFeed(PoisonFeed(spark, versions), engine.quarantine, BOOK)
        return watched.read(BOOK.tables["t"], span_of(versions), request)

    rows = engine.through(call, restarts=restarts)
    assert KIND in rows.column_names
    none = [None] * rows.num_rows
    why = rows["w" + WHY].to_pylist() if "w" + WHY in rows.column_names else none
    columns = (rows[name].to_pylist() for name in (VERSION, "id", "w", "h"))
    return sorted(zip(*columns, why, strict=True))


def test_g13_a_row_that_ends_java_is_rejected_and_no_other() -> None:
    rows = [(n, "good" if n % 3 else "bad") for n in range(10_000)]
    rows[7_777] = (7_777, "death")
    engine, spark = Engine(), Spark()
    found = read(engine, spark, {1: [(1, "good")], 2: rows})
    undecided = [one for one in found if one[2] is None]
    assert [one[:2] for one in undecided] == [(2, 7_777)]
    assert undecided[0][4] == "it ended Spark's Java once"
    assert len(found) == 10_001
    held = {(v, i) for v, i, w, _, _ in found if w}
    assert held == {(1, 1)} | {(2, n) for n, kind in rows if kind == "good"}
    assert spark.deaths == 5  # all texts; this one; 157 rows, 3 rows, 1 row
    assert all(h is False for _, _, _, h, _ in found)


def test_what_one_text_does_is_never_the_other_ones_fault() -> None:
    engine, spark = Engine(), Spark()
    read(engine, spark, {1: [(1, "good"), (2, "death")]})
    struck = {one.suspect.text: one for one in engine.quarantine._known.values()}
    assert text_digest("harmless") not in struck
    assert struck[text_digest("good")].deaths


@pytest.mark.parametrize("kind", POISON)
def test_the_next_bucket_is_asked_at_once_again_after_a_clean_one(kind: str) -> None:
    engine, spark = Engine(), Spark()
    read(engine, spark, {1: [(n, "good") for n in range(9)] + [(9, kind)]})
    asked = spark.asked["good"]
    assert [one[2] for one in read(engine, spark, {2: [(20, "good")]})] == [True]
    clean = spark.asked["good"] - asked
    assert [one[2] for one in read(engine, spark, {3: [(30, "good")]})] == [True]
    assert clean == 1
    assert spark.asked["good"] == asked + 2
    assert not engine.quarantine.parts(engine_suspect(engine))
    assert not engine.store.struck


def engine_suspect(engine: Engine) -> Any:
    watched = WatchedFeed(PoisonFeed(Spark(), {}), engine.quarantine, BOOK)
    return watched._where("good", "t", "")


def test_a_text_that_always_ends_java_is_given_up_and_released() -> None:
    engine, spark = Engine(most=6), Spark()
    rows = [(n, "death") for n in range(300)]
    found = read(engine, spark, {1: rows})
    assert len(found) == 300
    assert all(one[2] is None for one in found)
    assert spark.deaths == 6
    assert "in quarantine" in (found[-1][4] or "") or "in quarantine" in (found[0][4] or "")
    assert [one[2] for one in read(engine, spark, {2: [(1, "good")]})] == [None]
    assert spark.deaths == 6
    assert engine.quarantine.rules(["a"]) == {"a"}
    engine.quarantine.release(["a"])
    assert [one[2] for one in read(engine, spark, {3: [(1, "good")]})] == [True]


def test_what_only_rows_are_wanted_for_is_found_carefully_too() -> None:
    engine, spark = Engine(), Spark()
    rows = [(0, "good"), (1, "bad"), (2, "death"), (3, "raises"), (4, "good")]
    found = read(engine, spark, {1: rows}, only=True)
    assert [(i, w) for _, i, w, _, _ in found] == [(0, True), (2, None), (3, None), (4, True)]
    assert [one[4] is None for one in found] == [True, False, True, True]


def test_reading_without_a_text_counts_against_the_versions_and_stops_by_name() -> None:
    class Ends(PoisonFeed):
        def read(self, *given: Any) -> Any:  # noqa: ARG002
            raise self.spark.end()

    engine, spark = Engine(), Spark()
    watched = WatchedFeed(Ends(spark, {}), engine.quarantine, BOOK)
    request = ReadRequest(("id",), frozenset({"insert"}))
    span = span_of({1: (), 2: ()})
    with pytest.raises(Exception, match="versions 1 to 2 of table `t` ended Spark's Java 2 times"):
        engine.through(lambda: watched.read(BOOK.tables["t"], span, request))
    assert spark.deaths == 2
    engine.begin()  # another process: the table may be mended
    mended = WatchedFeed(PoisonFeed(spark, {1: (), 2: ()}), engine.quarantine, BOOK)
    assert mended.read(BOOK.tables["t"], span, request).num_rows == 0


def test_a_text_that_fails_whatever_it_is_asked_of_is_not_asked_row_by_row() -> None:
    engine, spark = Engine(), Spark()
    feed = PoisonFeed(spark, {1: [(n, "good") for n in range(500)]})
    watched = WatchedFeed(feed, engine.quarantine, BOOK)
    request = ReadRequest(("id",), frozenset({"insert"}), {"w": "broken"})
    found = watched.read(BOOK.tables["t"], span_of({1: ()}), request)
    assert found["w"].null_count == 500
    assert set(found["w" + WHY].to_pylist()) == {"[StackOverflowError] failed"}
    assert spark.asked["broken"] == 4  # with the read, of its rows, of none, in the table


def test_a_where_that_only_the_table_can_answer_rejects_no_row_for_what_another_did() -> None:
    """Rows at hand lack columns that Arrow has no type for; both texts ran when Java ended."""
    engine, spark = Engine(), Spark()
    request = ReadRequest(("id",), frozenset({"insert"}), {"w": "good", "v": "variant"})
    rows = [(0, "variant"), (1, "good"), (2, "death"), (3, "variant"), (3, "variant")]

    def call() -> Any:
        watched = WatchedFeed(PoisonFeed(spark, {1: rows}), engine.quarantine, BOOK)
        return watched.read(BOOK.tables["t"], span_of({1: rows}), request)

    found = engine.through(call)
    said = sorted(zip(*(found[name].to_pylist() for name in ("id", "w", "v")), strict=True))
    assert said == [
        (0, False, True),
        (1, True, False),
        (2, None, False),
        (3, False, True),
        (3, False, True),
    ]
    assert "v" + WHY not in found.column_names


def test_each_row_is_in_one_slice_and_asked_alone_where_that_fails() -> None:
    class Measured(PoisonFeed):
        def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:
            sizes.append(rows.num_rows)
            return super().decide(rows, where, source)

    count, sizes = 8 * FANOUT, list[int]()
    feed = Measured(Spark(), {1: [*((n, "good") for n in range(count - 1)), (count, "failure")]})
    request = ReadRequest(("id",), frozenset({"insert"}), {"w": "good"})
    watched = WatchedFeed(feed, Engine().quarantine, BOOK)
    found = watched.read(BOOK.tables["t"], span_of({1: ()}), request)
    assert found["w"].null_count == 1
    assert Counter(sizes) == {count: 1, 0: 1, 8: FANOUT, 1: 8}


def test_a_bucket_that_is_taken_again_knows_its_poison() -> None:
    """The engine ended after it was read, and before it was stored."""
    engine, spark = Engine(), Spark()
    versions = {1: [*((n, "good") for n in range(500)), (500, "death")]}
    found = read(engine, spark, versions)
    deaths = spark.deaths
    engine.begin()
    assert read(engine, spark, versions) == found
    assert spark.deaths == deaths


def test_rows_that_come_in_another_order_are_in_the_slices_that_they_were_in() -> None:
    class Shuffled(PoisonFeed):
        def read(self, *given: Any) -> pa.Table:
            rows = super().read(*given)
            return rows.take(random.Random(self.spark.deaths).sample(range(len(rows)), len(rows)))

    engine, spark = Engine(), Spark()
    feed = Shuffled(spark, {1: [*((n, "good") for n in range(5_000)), (5_000, "death")]})
    request = ReadRequest(("id",), frozenset({"insert"}), {"w": "good"})

    def call() -> pa.Table:
        watched = WatchedFeed(feed, engine.quarantine, BOOK)
        return watched.read(BOOK.tables["t"], span_of({1: ()}), request)

    rows = engine.through(call)
    assert rows.filter(pc.field("w").is_null())["id"].to_pylist() == [5_000]
    assert spark.deaths == 5


@pytest.mark.parametrize("away_at", [1, 3, 5, 7, 9])  # between them are ends
def test_g07_a_store_that_is_away_while_rows_are_asked_about_rejects_none(away_at: int) -> None:
    left = [0]

    class AwayLedger(MemoryLedger):
        def begin(self, *given: Any) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise OutageError("store-unreachable", "the store is away", "wait")
            super().begin(*given)

    class Away(MemoryStore):
        def of(self, rulebook: str, epoch: int = 0) -> MemoryLedger:  # noqa: ARG002
            return AwayLedger(self, epoch)

    engine, spark = Engine(Away()), Spark()
    versions = {1: [*((n, "good") for n in range(70)), (70, "failure")]}
    left[0] = away_at
    with pytest.raises(OutageError):
        read(engine, spark, versions)
    assert [one[1] for one in read(engine, spark, versions) if one[2] is None] == [70]


@pytest.mark.parametrize(
    ("kind", "holding"),
    [
        (pa.float64(), lambda x: x),
        (pa.float32(), lambda x: x),
        (pa.list_(pa.struct({"y": pa.float64()})), lambda x: [{"y": x}]),
        (pa.map_(pa.string(), pa.float64()), lambda x: [("y", x)]),
        (pa.map_(pa.float32(), pa.string()), lambda x: [(x, "y")]),
    ],
    ids=["double", "float", "list of structs", "value of a map", "key of a map"],
)
def test_a_negative_zero_is_not_taken_for_the_other_one(
    kind: pa.DataType, holding: Callable[[float], Any]
) -> None:
    """The rows come in another order whenever Spark was started again."""

    def negative(x: pa.ChunkedArray) -> bool:
        return "-0.0" in str(x.to_pylist())

    class Negative(PoisonFeed):
        def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:  # noqa: ARG002
            if negative(rows["x"]):
                raise self.spark.end()
            return pa.table({name: [True] * rows.num_rows for name in where})

    engine, spark = Engine(), Spark()
    values = [holding(x) for x in (-0.0, 0.0)]

    def call() -> list[tuple[bool, bool | None]]:
        rows = pa.table({"x": pa.array(values[:: 1 if spark.deaths % 2 else -1], kind)})
        watched = WatchedFeed(Negative(spark, {}), engine.quarantine, BOOK)
        said = watched.decide(rows, {"w": "good"}, "signal s")
        return [(negative(rows["x"].slice(n, 1)), said["w"][n].as_py()) for n in range(2)]

    assert sorted(engine.through(call), key=str) == [(False, True), (True, None)]


def test_whoever_kills_the_process_rejects_no_row() -> None:
    class Killed(BaseException):
        """The process ends here."""

    class Kill(PoisonFeed):
        killed = False

        def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:
            if not self.killed and rows["kind"].to_pylist() == ["good"]:
                self.killed = True
                raise Killed
            return super().decide(rows, where, source)

    engine = Engine()
    rows = [*((n, "good") for n in range(2 * FANOUT)), (2 * FANOUT, "failure")]
    feed = Kill(Spark(), {1: rows})
    request = ReadRequest(("id",), frozenset({"insert"}), {"w": "good"})

    def call() -> pa.Table:
        watched = WatchedFeed(feed, engine.quarantine, BOOK)
        return watched.read(BOOK.tables["t"], span_of({1: ()}), request)

    with pytest.raises(Killed):
        call()
    engine.begin()
    assert call().filter(pc.field("w").is_null())["id"].to_pylist() == [2 * FANOUT]


def test_a_where_that_fails_for_too_many_rows_is_asked_no_more_in_this_read() -> None:
    engine, spark = Engine(), Spark()
    found = read(engine, spark, {1: [(n, "failure") for n in range(3 * FAILURES_MAX)]})
    assert [one[2] for one in found] == [None] * 3 * FAILURES_MAX
    said = Counter("fails too often" in (one[4] or "") for one in found)
    assert said[True] > FAILURES_MAX < said[False] + FANOUT + 2
    assert spark.asked["good"] == FAILURES_MAX + 2  # with the read, and of no row


def test_rows_that_one_of_several_predicates_wants_are_there() -> None:
    engine, spark = Engine(), Spark()
    rows = [(0, "good"), (1, "bad"), (2, "death"), (3, "harmless")]
    feed = PoisonFeed(spark, {1: rows})
    request = ReadRequest(("id",), frozenset({"insert"}), only=("good", "harmless"))
    watched = WatchedFeed(feed, engine.quarantine, BOOK)
    found = engine.through(lambda: watched.read(BOOK.tables["t"], span_of({1: ()}), request))
    assert found["id"].to_pylist() == [0, 2, 3]


def test_versions_that_raise_nothing_are_not_read() -> None:
    engine, spark = Engine(), Spark()
    feed = PoisonFeed(spark, {1: [(1, "good")], 3: [(3, "failure")]})
    span = replace(span_of({1: (), 3: ()}), skipped=frozenset({2}))
    request = ReadRequest(("id",), frozenset({"insert"}), {"w": "good"})
    found = WatchedFeed(feed, engine.quarantine, BOOK).read(BOOK.tables["t"], span, request)
    assert found["w"].to_pylist() == [True, None]


def test_a_read_that_holds_every_slot_is_left_at_once() -> None:
    """Each further question would hold one more."""

    class Held(Healthy):
        def overrun(self) -> tuple[bool, EngineError | None]:
            return False, EngineError("spark-lost", "no slot is left", "start it")

    engine, spark = Engine(health=Held()), Spark()
    watched = WatchedFeed(PoisonFeed(spark, {1: [(1, "overrun")]}), engine.quarantine, BOOK)
    request = ReadRequest(("id",), frozenset({"insert"}), {"w": "good"})
    with pytest.raises(EngineError, match="no slot is left"):
        watched.read(BOOK.tables["t"], span_of({1: ()}), request)
    assert spark.overruns == 1


@pytest.mark.parametrize("times", [1, 2])
def test_a_read_without_a_text_that_is_late_twice_is_waited_for(times: int) -> None:
    class Late(PoisonFeed):
        def read(self, *given: Any) -> pa.Table:
            if self.spark.overruns < times:
                raise self.spark.overrun()
            return super().read(*given)

    engine, spark = Engine(), Spark()
    watched = WatchedFeed(Late(spark, {1: [(1, "good")]}), engine.quarantine, BOOK)
    request, span = ReadRequest(("id",), frozenset({"insert"})), span_of({1: ()})
    if times == 1:
        assert watched.read(BOOK.tables["t"], span, request).num_rows == 1
        assert not engine.store.struck
        return
    with pytest.raises(OutageError, match="outlasted statement_seconds_max 2 times") as waited:
        watched.read(BOOK.tables["t"], span, request)
    assert waited.value.code == "read-overrun"
    assert watched.read(BOOK.tables["t"], span, request).num_rows == 1


def decided(engine: Engine, spark: Spark, kinds: Sequence[str]) -> list[bool | None]:
    """What `good` says of signals of these kinds."""
    rows = pa.table({"n": range(len(kinds)), "kind": pa.array(kinds, pa.string())})

    def call() -> pa.Table:
        watched = WatchedFeed(PoisonFeed(spark, {}), engine.quarantine, BOOK)
        return watched.decide(rows, {"w": "good"}, "signal s")

    said = engine.through(call)
    why = said["w" + WHY].to_pylist() if "w" + WHY in said.column_names else [None] * len(kinds)
    found = said["w"].to_pylist()
    assert [one is None for one in found] == [one is not None for one in why]
    return found


@pytest.mark.parametrize("kind", POISON)
def test_g13_a_signal_that_harms_spark_is_rejected_and_none_of_the_next_bucket(kind: str) -> None:
    engine, spark = Engine(), Spark()
    for at in (1, 150):
        kinds = ["good"] * 200
        kinds[at] = kind
        assert decided(engine, spark, kinds) == [None if n == at else True for n in range(200)]
    assert decided(engine, spark, ["good"] * 200) == [True] * 200
    assert not engine.store.struck


HIT: Counter[str] = Counter()


@example_count(300, least=37)
@given(seed=st.integers(0, 2**32), restarts=st.sampled_from([True, True, True, False]))
def check_random_poison(seed: int, restarts: bool) -> None:
    draw = random.Random(seed)
    share = draw.choice([0.002, 0.01])
    kinds = draw.choices(["death", "death", "overrun", "failure"], k=draw.randint(1, 3))
    versions: dict[int, list[tuple[int, str]]] = {}
    for version in range(1, draw.randint(2, 4)):
        count = draw.choice([0, 1, 2, FANOUT, FANOUT + 1, 500, 500, 500])
        versions[version] = [
            (n, draw.choice(kinds) if draw.random() < share else draw.choice(["good", "bad"]))
            for n in range(count)
        ]
    engine, spark = Engine(most=10_000), Spark()
    found = read(engine, spark, versions, restarts=restarts)
    want = sorted(
        (version, n, None if kind in POISON else kind == "good", False)
        for version, rows in versions.items()
        for n, kind in rows
    )
    assert [one[:4] for one in found] == want
    assert all((one[2] is None) == (one[4] is not None) for one in found)
    bad = Counter(kind for rows in versions.values() for _, kind in rows if kind in POISON)
    for kind in POISON:
        HIT[kind] += bad[kind]
    HIT["restarted"] += restarts and spark.deaths > 0
    HIT["several"] += bad.total() > 1


def test_random_poison_is_found_row_by_row_whatever_ends_meanwhile() -> None:
    HIT.clear()
    check_random_poison()
    assert min(HIT[kind] for kind in POISON) >= 20, HIT
    assert HIT["restarted"] >= 10, HIT
    assert HIT["several"] >= 10, HIT
