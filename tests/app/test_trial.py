"""Cases over real Delta tables: what needs Spark, and that all else is as in memory."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.replay.memory.told import HEAD, PLACE, Told, row, worlds
from tidegate.engine.app import spark_worlds
from tidegate.engine.app.trial import SparkWorlds
from tidegate.engine.replay.cases.model import CaseFile, TableChange, Update
from tidegate.engine.replay.cases.world import Observation
from tidegate.engine.replay.memory.worlds import MemoryWorlds
from tidegate.rules.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Story = Callable[[Told], Any]
BANK = """\
rulebook: bank
tables:
  items: {path: /items, key: [id]}
  out: {path: /out, key: [id]}
  log: {path: /log}
events:
  new: {on: insert, table: items}
  changed: {on: update, table: items, of: [note]}
  gone: {on: delete, table: items}
  out_new: {on: insert, table: out}
  told: {signal: {id: bigint}}
rules:
"""
LOG = {"rule": "string", "id": "bigint"}


@contextmanager
def over_spark(spark: SparkSession, made: MemoryWorlds) -> Iterator[SparkWorlds]:
    """The worlds of the same file with Spark."""
    with ExitStack() as stack:
        yield SparkWorlds(made.given, made.schemas, made.defaults, spark, stack)


@contextmanager
def told(spark: SparkSession, rules: str, **before: Sequence[Mapping[str, Any]]) -> Iterator[Told]:
    with over_spark(spark, worlds(BANK + rules, log=LOG)) as made:
        yield Told(made, **before)


def plain(seen: Observation) -> dict[str, Any]:
    """What was observed, as values that compare; tables and what stands at one instant have no
    order."""
    found = {field.name: getattr(seen, field.name) for field in fields(seen)}
    tables = {name: Counter(map(str, rows)) for name, rows in seen.tables.items()}
    return {**found, "tables": tables, "rejected": Counter(map(str, seen.rejected))}


def both(
    spark: SparkSession, made: MemoryWorlds, story: Story, **before: Sequence[Mapping[str, Any]]
) -> Observation:
    """What a story leaves in memory, once it has left the same with Spark."""
    fast = Told(made, **before)
    story(fast)
    with over_spark(spark, made) as real:
        slow = Told(real, **before)
        story(slow)
        assert plain(slow.seen) == plain(fast.seen)
    return fast.seen


def test_inserts_updates_and_deletes_are_events_and_one_step_is_one_commit(
    spark: SparkSession,
) -> None:
    rules = "  a: {on: new, per: id}\n  b: {on: changed, per: id}\n  c: {on: gone, per: id}\n"
    rules += "  d: {on: new & changed & gone, if: count(*) = 3}"

    def story(told: Told) -> None:
        told.insert(1, {"id": 4, "amount": "1.25", "note": "it's \\ ${new}"})
        told.change(2, updates=[("id = 1 -- one", {"note": "b"})])
        told.change(3, deletes=["id = 4", "note = 'none'"])
        told.change(
            4,
            inserts=[{"id": 5}],
            updates=[("id = 1", {"amount": 2}), ("id < 3", {"note": None})],
            deletes=["id in (1, 3, 5)"],
        )
        told.change(5, updates=[("id = 99", {"note": "z"})])
        told.change(6, deletes=["id = 99"])

    rows = [{"id": 1, "note": "a"}, {"id": 2, "note": "a"}, {"id": 3}]
    seen = both(spark, worlds(BANK + rules, log=LOG), story, items=rows)
    assert [one["key"]["id"] for one in seen.firings["a"]] == [4, 5]
    assert [one["key"]["id"] for one in seen.firings["b"]] == [1, 1, 2]
    assert [one["key"]["id"] for one in seen.firings["c"]] == [4, 3]
    assert sorted(one["id"] for one in seen.tables["items"]) == [1, 2, 5]


def test_values_of_all_types_are_written_alike(spark: SparkSession) -> None:
    types = {
        "id": "bigint", "b": "boolean", "i": "int", "s": "smallint", "t": "tinyint",
        "f": "float", "d": "double", "c": "decimal(38,5)", "x": "string", "y": "binary",
        "day": "date", "at": "timestamp", "local": "timestamp_ntz", "l": "array<int>",
        "m": "map<string, bigint>", "r": "struct<a: int, b: timestamp_ntz>",
    }  # fmt: skip
    value = {
        "id": 1, "b": True, "i": 2, "s": 3, "t": 4, "f": 1.5, "d": -0.5, "c": "123.45678",
        "x": "'\\n", "y": "AAE=", "day": "2026-03-02", "at": "2026-03-02T10:00:00+02:00",
        "local": "2026-03-02T10:00:00", "l": [1, None], "m": {"a": 1},
        "r": {"a": 1, "b": "2026-03-02T10:00:00"},
    }  # fmt: skip

    def story(told: Told) -> None:
        told.insert(1, value, {"id": 2})
        told.change(2, updates=[("id = 2", value), ("id = 1", dict.fromkeys([*value][1:]))])

    seen = both(spark, worlds(HEAD + "  a: {on: changed}", items=types), story)
    assert len(seen.tables["items"]) == 2


def test_what_an_action_writes_is_an_event_a_millisecond_later(spark: SparkSession) -> None:
    rules = "  a: {on: new, do: [{sql: INSERT INTO out SELECT id FROM event}]}\n"
    rules += (
        "  b: {on: out_new, per: id, do: [{sql: \"INSERT INTO log SELECT 'b', id FROM event\"}]}"
    )
    with told(spark, rules, out=[{"id": 9}]) as case:
        case.insert(1, {"id": 1}).insert(2, {"id": 2}, {"id": 3})
        seen = case.seen
        assert case.fired("a") == [1, 2, 2]
        assert case.fired("b") == [1.001, 2.001, 2.001]
        assert [one["depth"] for one in seen.firings["b"]] == [2, 2, 2]
        assert sorted(one["id"] for one in seen.tables["out"]) == [1, 2, 3, 9]
        assert Counter(one["id"] for one in seen.tables["log"]) == Counter([1, 2, 3])


def test_g14_a_query_sees_the_tables_as_of_the_detection(spark: SparkSession) -> None:
    """Both timers are over in one step; the row that takes the condition away came between."""
    rules = '  a: {on: "not(gone)[told, [5 s]]", per: id, if: {sql: SELECT firing_id FROM event '
    rules += "WHERE NOT EXISTS (SELECT 1 FROM out)}}"
    with told(spark, rules) as case:
        case.signal(1, "told", id=1).insert(6.5, {"id": 7}, table="out")
        case.signal(6.5, "told", id=2).change(12, "out", deletes=["true"]).at(20)
        assert case.outcomes("a") == [("held", None), ("failed", None)]
        case.signal(21, "told", id=3).at(60)
        assert case.outcomes("a")[2] == ("held", None)


def test_retries_wait_for_the_clock_and_the_effect_lands_once(spark: SparkSession) -> None:
    rules = "  a: {on: new, per: id, retry: {attempts: 3, backoff: 10s..40s}, "
    rules += "do: [{sql: INSERT INTO out SELECT id FROM event}]}\n  b: {on: out_new}"
    with told(spark, rules) as case:
        case.fail("a", 2).insert(1, {"id": 1}).at(8)
        assert list(case.seen.tables["out"]) == []
        case.at(60)
        assert case.seen.tables["out"] == [{"id": 1}]
        [fired] = case.fired("b")
        assert 1 + 7.5 + 15 < fired < 1 + 10 + 20.01
        case.fail("a", 3).insert(61, {"id": 2}).at(1000)
        [dead] = case.seen.dead
        assert (dead["rule"], dead["attempts"]) == ("a", 3)
        assert case.seen.tables["out"] == [{"id": 1}]


def test_worlds_of_one_file_begin_with_new_tables(spark: SparkSession) -> None:
    rules = "  a: {on: new, per: id, do: [{sql: INSERT INTO out SELECT id FROM event}]}"
    with over_spark(spark, worlds(BANK + rules, log=LOG)) as made:
        for first in (1, 2):
            case = Told(made, out=[{"id": first}]).insert(1, {"id": 7})
            assert sorted(one["id"] for one in case.seen.tables["out"]) == [first, 7]
            assert case.fired("a") == [1]


def test_a_wrong_value_or_predicate_is_refused_with_its_place(spark: SparkSession) -> None:
    with told(spark, "  a: {on: new}", items=[{"id": 0}]) as case:
        wrong = TableChange(PLACE, (), (Update("true", PLACE, row(amount="much")),))
        with pytest.raises(InputError) as raised:
            case.world.commit({"out": TableChange(PLACE, (row(id=1),)), "items": wrong})
        assert raised.value.problems[0].place == PLACE
        assert list(case.seen.tables["out"]) == []
        with pytest.raises(InputError, match="DIVIDE_BY_ZERO") as raised:
            case.change(1, deletes=["1 / id > 0"])
        assert raised.value.problems[0].place == PLACE
        with pytest.raises(InputError, match="UNRESOLVED_COLUMN"):
            case.change(2, updates=[("nowhere = 1", {"note": "x"})])


def test_files_share_a_session_and_wrong_sql_is_said_at_once(spark: SparkSession) -> None:
    def file(rules: str) -> CaseFile:
        made = worlds(BANK + rules, log=LOG)
        return CaseFile(Path("a.test.yaml"), made.given, made.schemas, {}, ())

    with spark_worlds(spark) as made:
        Told(made(file("  a: {on: new}"))).insert(1, {"id": 1})
        Told(made(file("  a: {on: gone}"))).insert(1, {"id": 1})
        with pytest.raises(InputError, match="UNRESOLVED_COLUMN"):
            made(file("  a: {on: new, do: [{sql: INSERT INTO out SELECT nothing FROM event}]}"))
    assert spark.sql("SELECT 1").collect()


RANDOM = """\
rulebook: drawn
tables: {items: {path: /items, key: [id]}, other: {path: /other, key: [id]}, out: {path: /out}}
events:
  new: {on: insert, table: items, where: amount > 1}
  changed: {on: update, table: items, of: [note]}
  gone: {on: delete, table: items}
  other: {on: change, table: other}
  told: {signal: {id: bigint}}
  raised: {signal: {id: bigint, total: "decimal(20,2)"}}
rules:
  pairs: {on: new ; changed, per: id, context: chronicle}
  quiet: {on: "not(gone)[new, [20 s]]", per: id, if: max(amount) > 3}
  late: {on: "new ; other within 30 s", per: id, cooldown: 15 s}
  all: {on: "other ; told", context: cumulative, if: count(*) > 2, do: [{webhook: {
    url: "https://x.example.org/a", body: {first: min(id), count: count(*)}}}]}
  raises: {on: changed, per: id, retry: {attempts: 2, backoff: 3s..9s},
    do: [{signal: {raised: {id: id, total: sum(amount)}}}]}
  again: {on: raised ; gone, dedupe: {by: [id], within: 1 min}}
  writes: {on: gone, do: [{sql: INSERT INTO out SELECT id FROM event}]}
"""


def drawn(seed: int) -> Story:
    """Some twenty steps over two tables and a signal."""

    def story(told: Told) -> None:
        drawing, now = random.Random(seed), 0.0

        def one() -> dict[str, Any]:
            amount = drawing.choice([None, 1, "2.50", 9])
            return {"id": drawing.randrange(4), "amount": amount, "note": drawing.choice("ab")}

        for _ in range(20):
            now += drawing.choice([0, 0.001, 1, 5, 20])
            where, table = f"id = {drawing.randrange(4)}", drawing.choice(["items", "other"])
            match drawing.choice("iiiudmsf"):
                case "i":
                    told.insert(now, *(one() for _ in range(drawing.randint(1, 3))), table=table)
                case "u":
                    new = {"note": drawing.choice("abc"), "amount": 4}
                    told.change(now, table, updates=[(where, new)])
                case "d":
                    told.change(now, table, deletes=[where])
                case "m":
                    update = ("id > 1", {"note": "m"})
                    told.change(now, table, inserts=[one()], updates=[update], deletes=[where])
                case "s":
                    told.signal(now, "told", id=1)
                case "f":
                    told.fail(drawing.choice(["raises", "all", "writes"]), drawing.randint(1, 2))
        told.at(now + 300)

    return story


@pytest.mark.parametrize(
    "seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 20))]
)
def test_what_runs_fast_gives_the_same_with_spark(spark: SparkSession, seed: int) -> None:
    items = {"id": "bigint", "amount": "decimal(12,2)", "note": "string"}
    made = worlds(RANDOM, other=items)
    fast = Told(made)
    drawn(seed)(fast)
    with over_spark(spark, made) as real:
        slow = Told(real)
        drawn(seed)(slow)
        told, wanted = plain(slow.seen), plain(fast.seen)
    for found in (told, wanted):  # in memory nobody writes what actions write
        found["tables"].pop("out")
    assert told == wanted
    assert sum(map(len, fast.seen.firings.values())) > 10
