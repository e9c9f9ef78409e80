"""Cases over real Delta tables: what needs Spark, and that all else is as in memory."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.replay.memory.told import HEAD, ITEMS, PLACE, Told, row
from tidegate import rules
from tidegate.engine.app import spark_worlds
from tidegate.engine.app.case_tables import CaseTables
from tidegate.engine.app.trial import SparkWorlds
from tidegate.engine.core.types.spark import arrow_type
from tidegate.engine.replay.cases.model import CaseFile, TableChange, Update
from tidegate.engine.replay.cases.world import Observation
from tidegate.engine.replay.memory.worlds import MemoryWorlds
from tidegate.rules.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Story = Callable[[Told], None]
Rows = Sequence[Mapping[str, Any]]
LOG = {"rule": "string", "id": "bigint"}
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
  logged: {on: insert, table: log}
  told: {signal: {id: bigint}}
rules:
"""


def file(text: str, **tables: Mapping[str, str]) -> CaseFile:
    """A test file without cases. `tables`: the types of columns."""
    book = rules.load(text, file="/books/shop.yaml")
    known = {"items": ITEMS, "out": {"id": "bigint"}, **tables}
    schemas = {
        name: pa.schema([(column, arrow_type(ddl)) for column, ddl in columns.items()])
        for name, columns in known.items()
        if name in book.tables
    }
    return CaseFile(Path("a.test.yaml"), book, schemas, {}, ())


def bank(rules: str) -> CaseFile:
    return file(BANK + rules, log=LOG)


@contextmanager
def told(spark: SparkSession, given: CaseFile, **before: Rows) -> Iterator[Told]:
    """A world with Spark."""
    with ExitStack() as stack:
        made = SparkWorlds(given.book, given.schemas, given.defaults, spark, stack)
        yield Told(made, **before)


def plain(seen: Observation) -> dict[str, Any]:
    """What was observed, as values that compare; tables and what stands at one instant have no
    order."""
    found = {field.name: getattr(seen, field.name) for field in fields(seen)}
    tables = {name: Counter(map(str, rows)) for name, rows in seen.tables.items()}
    return {**found, "tables": tables, "rejected": Counter(map(str, seen.rejected))}


def both(spark: SparkSession, given: CaseFile, story: Story, **before: Rows) -> Observation:
    """What a story leaves in memory, once it has left the same with Spark. What actions write is
    not compared: in memory nobody writes it."""
    fast = Told(MemoryWorlds(given.book, given.schemas), **before)
    story(fast)
    with told(spark, given, **before) as slow:
        story(slow)
        real, wanted = plain(slow.seen), plain(fast.seen)
    for tables in (real["tables"], wanted["tables"]):
        tables.pop("out", None)
    assert real == wanted
    return fast.seen


def test_inserts_updates_and_deletes_are_events_and_one_step_is_one_commit(
    spark: SparkSession,
) -> None:
    rules = "  a: {on: new, per: id}\n  b: {on: changed, per: id}\n  c: {on: gone, per: id}\n"
    rules += "  d: {on: new and changed and gone, if: count(*) = 3}"

    def story(told: Told) -> None:
        told.insert(1, {"id": 4, "amount": "1.25", "note": "it's \\ ${new}"})
        told.change(2, updates=[("id = 1", {"note": "b"})])
        told.change(3, deletes=["id = 4", "note = 'none'"])
        told.change(
            4,
            inserts=[{"id": 5}],
            updates=[("id = 1", {"amount": 2}), ("id < 3", {"note": None})],
            deletes=["id in (1, 3, 5)"],
        )
        told.change(5, updates=[("id = 99", {"note": "z"})])
        told.change(6, deletes=["id = 99"])

    rows: Rows = [{"id": 1, "note": "a"}, {"id": 2, "note": "a"}, {"id": 3}]
    seen = both(spark, bank(rules), story, items=rows)
    assert [one["key"]["id"] for one in seen.firings["a"]] == [4, 5]
    assert [one["key"]["id"] for one in seen.firings["b"]] == [1, 1, 2]
    assert [one["key"]["id"] for one in seen.firings["c"]] == [4, 3]
    assert sorted(one["id"] for one in seen.tables["items"]) == [1, 2, 5]


STAR = (
    BANK.split("events:")[0]
    + """\
events:
  new: {on: insert, table: items, columns: ["*", amount as total], where: total > 1}
  odd: {on: insert, table: items, columns: ["*", note as said], where: said = 'ab'}
  changed: {on: update, table: items, of: [said], columns: ["*", note as said],
            where: new.said is not null and old.said <> 'ab'}
  ordered: {signal: {total: "decimal(12,2)"}}
rules:
  a:
    on: new
    per: total
    if: count(note) = 1 and sum(total) > 2
    do: {signal: {ordered: {total: total}}}
  b: {on: odd ; changed, per: {odd: said, changed: said}}
  c: {on: new ; ordered, per: total}
"""
)


@pytest.mark.long
def test_columns_under_other_names_are_there_beside_all_others(spark: SparkSession) -> None:
    """In `where`, `of`, `per`, `if` and actions; with filters that Arrow runs and that Spark does.
    What is renamed is not there under its own name."""

    def story(told: Told) -> None:
        told.insert(1, {"id": 4, "amount": "9.5", "note": "ab"}, {"id": 5, "amount": "1"})
        told.change(2, updates=[("id = 4", {"note": "c"}), ("id = 5", {"note": "x"})])
        told.change(3, updates=[("id = 4", {"note": "ab"})])
        told.insert(4, {"id": 6, "amount": "9.5"})

    seen = both(spark, file(STAR, log=LOG), story)
    shown = {
        name: [str(value) for one in fired for value in one["key"].values()]
        for name, fired in seen.firings.items()
    }
    assert shown == {
        "a": ["9.50", "9.50"],
        "b": ["ab"],
        "c": ["9.50"],
    }
    assert [one["condition"] for one in seen.firings["a"]] == ["held", "failed"]
    asked = file(STAR.replace("said = 'ab'", "reverse(said) = 'ba'"), log=LOG)
    with told(spark, asked) as slow:
        story(slow)
        assert [one["key"] for one in slow.seen.firings["b"]] == [{"said": "ab"}]


def by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """All updates and deletes are statements."""
    real = CaseTables._written
    monkeypatch.setattr(
        CaseTables,
        "_written",
        lambda *given: not (given[2].updates or given[2].deletes) and real(*given),
    )


@pytest.mark.long
def test_commits_are_the_same_whatever_rows_they_meet(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_spark(monkeypatch)
    text = BANK.replace("events:", "events:\n  done: {on: commit, table: items}")
    rules = "  a: {on: done, per: [operation, changes_rows]}\n  b: {on: new, per: id}\n"
    rules += "  c: {on: gone, per: id}\n  d: {on: changed, per: id}"
    given = file(text + rules, log=LOG)

    def story(told: Told) -> None:
        for at, ids in enumerate((99, 1)):
            changed, gone = f"id = {ids}", f"id = {ids + 1}"
            told.change(10 * at + 1, updates=[(changed, {"note": "x"})])
            told.change(10 * at + 2, deletes=[gone])
            told.change(10 * at + 3, updates=[(changed, {"note": "y"})], deletes=[gone])
            told.insert(10 * at + 4)
        told.change(30, deletes=["true"])
        told.change(31, updates=[("id = 1", {"note": "z"})], deletes=["id = 2"])
        told.change(32, inserts=[{"id": 1}], deletes=["id = 2"])

    seen = both(spark, given, story, items=[{"id": 1}, {"id": 2}])
    operations = " ".join(one["key"]["operation"] for one in seen.firings["a"])
    assert operations == "MERGE WRITE UPDATE DELETE MERGE WRITE DELETE MERGE"


@pytest.mark.long
@pytest.mark.parametrize("statements", [False, True])
def test_columns_that_are_added_are_the_same_in_both_worlds(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *, statements: bool
) -> None:
    if statements:
        by_spark(monkeypatch)
    rules = "  a: {on: done, per: [operation, version, changes_rows]}\n  b: {on: new, per: id}\n"
    rules += "  c: {on: changed, per: id}\n  d: {on: new ; gone, per: id}\n"
    rules += "  e: {on: new, do: [{sql: INSERT INTO out (id) SELECT id FROM event}]}"
    text = BANK.replace("events:", "events:\n  done: {on: commit, table: items}") + rules

    def story(told: Told) -> None:
        told.insert(1, {"id": 2}).widen(2, unit="string", at="timestamp_ntz")
        told.widen(3, "out", note="string")
        told.insert(4, {"id": 3, "unit": "C", "at": "2026-03-02T07:00:00"})
        told.change(5, updates=[("unit is null", {"note": "b"})])
        told.change(6, updates=[("unit = 'C'", {"unit": "F"})])
        told.change(7, deletes=["id = 2"]).widen(8, last="array<int>")

    given = file(text, log=LOG)
    seen = both(spark, given, story, items=[{"id": 1, "note": "a"}])
    assert [one["key"]["operation"] for one in seen.firings["a"]] == [
        *("WRITE", "ADD COLUMNS", "WRITE", "UPDATE", "UPDATE", "DELETE", "ADD COLUMNS")
    ]
    assert [len(seen.firings[rule]) for rule in "bcd"] == [2, 2, 1]


@pytest.mark.long
def test_why_a_firing_is_missing_is_told_over_the_tables(spark: SparkSession) -> None:
    text = BANK.replace(
        "  new: {on: insert", "  new: {on: insert, where: amount > 2 and 1 / id < 1"
    )
    rules = "  a: {on: new, per: id}\n  b: {on: changed, per: id}\n"
    rules += "  c: {on: new ; gone within 5 s, per: id}\n"
    rules += "  d: {on: new, per: id, if: sum(amount) > 100}\n"
    given = file(text + rules, log=LOG)

    def story(told: Told) -> None:
        told.insert(1, {"id": 7, "amount": 2.5}, {"id": 8, "amount": 1}, {"id": 0, "amount": 3})
        told.change(2, updates=[("id = 8", {"amount": 9})])
        told.change(9, deletes=["id = 7"])

    asked = [("a", 8), ("a", 0), ("a", 9), ("b", 8), ("b", 7), ("c", 7), ("d", 7), ("a", 7)]
    fast = Told(MemoryWorlds(given.book, given.schemas))
    story(fast)
    with told(spark, given) as slow:
        story(slow)
        said = [slow.world.why_not(rule, {"id": id}, None) for rule, id in asked]
    assert said == [fast.world.why_not(rule, {"id": id}, None) for rule, id in asked]
    parts = [
        "amount is 1.00", "was rejected", "No `new`", "changes none of note", "No `changed`",
        "3 s longer than", "`sum(amount)` is 2.50",
    ]  # fmt: skip
    assert [part in (each or "") for part, each in zip(parts, said, strict=False)] == [True] * 7


@pytest.mark.parametrize("statements", [False, pytest.param(True, marks=pytest.mark.long)])
def test_values_of_all_types_are_written_alike(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *, statements: bool
) -> None:
    if statements:
        by_spark(monkeypatch)
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
        others = {name: value[name] for name in value if name != "id"}
        told.change(2, updates=[("id = 2", others), ("id = 1", dict.fromkeys(others))])

    seen = both(spark, file(HEAD + "  a: {on: changed}", items=types), story)
    assert len(seen.tables["items"]) == 2


@pytest.mark.long
def test_what_actions_write_is_an_event_and_each_stands_a_millisecond_later(
    spark: SparkSession,
) -> None:
    rules = "  a: {on: new, do: [{sql: INSERT INTO out SELECT id FROM event}, "
    rules += "{sql: \"INSERT INTO log SELECT 'a', id FROM event\"}]}\n"
    rules += (
        "  b: {on: out_new, per: id, do: [{sql: \"INSERT INTO log SELECT 'b', id FROM event\"}]}\n"
    )
    rules += "  c: {on: logged}"
    with told(spark, bank(rules), out=[{"id": 9}]) as case:
        case.insert(1, {"id": 1}).insert(2, {"id": 2}, {"id": 3})
        seen = case.seen
        assert case.fired("a") == [1, 2, 2]
        assert case.fired("b") == [1.001, 2.001, 2.001]
        assert case.fired("c")[:2] == [1.002, 1.003]
        assert [one["depth"] for one in seen.firings["b"]] == [2, 2, 2]
        assert sorted(one["id"] for one in seen.tables["out"]) == [1, 2, 3, 9]
        assert Counter(one["rule"] for one in seen.tables["log"]) == {"a": 3, "b": 3}
        case.change(3, "out", deletes=["id < 3"])
        assert sorted(one["id"] for one in case.seen.tables["out"]) == [3, 9]


@pytest.mark.long
def test_g14_a_query_sees_the_tables_as_of_the_detection(spark: SparkSession) -> None:
    """Both timers are over in one step; the row that takes the condition away came between."""
    rules = '  a: {on: "not(gone)[told, [5 s]]", per: id, if: {sql: SELECT firing_id FROM event '
    rules += "WHERE NOT EXISTS (SELECT 1 FROM out)}}"
    with told(spark, bank(rules)) as case:
        case.signal(1, "told", id=1).insert(6.5, {"id": 7}, table="out")
        case.signal(6.5, "told", id=2).change(12, "out", deletes=["true"]).at(20)
        assert case.outcomes("a") == [("held", None), ("failed", None)]
        case.signal(21, "told", id=3).at(60)
        assert case.outcomes("a")[2] == ("held", None)


def test_retries_wait_for_the_clock_and_the_effect_lands_once(spark: SparkSession) -> None:
    rules = "  a: {on: new, per: id, retry: {attempts: 3, backoff: 10s..40s}, "
    rules += "do: [{sql: INSERT INTO out SELECT id FROM event}]}\n  b: {on: out_new}"
    with told(spark, bank(rules)) as case:
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


@pytest.mark.long
def test_worlds_of_one_file_begin_with_new_tables(spark: SparkSession) -> None:
    rules = "  a: {on: new, per: id, do: [{sql: INSERT INTO out SELECT id FROM event}]}"
    with spark_worlds(spark) as opened:
        made = opened(bank(rules))
        for first in (1, 2):
            case = Told(made, out=[{"id": first}]).insert(1, {"id": 7})
            assert sorted(one["id"] for one in case.seen.tables["out"]) == [first, 7]
            assert case.fired("a") == [1]


def test_a_wrong_value_or_predicate_is_refused_with_its_place(spark: SparkSession) -> None:
    with told(spark, bank("  a: {on: new}"), items=[{"id": 0}]) as case:
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


OTHER_SQL = (
    "true) OR (true",
    "true) THEN DELETE WHEN NOT MATCHED BY SOURCE AND (true",
    "true; DROP TABLE items",
    "id IN (SELECT count(*) FROM text.`/etc/passwd`)",
    "java_method('java.lang.System', 'setProperty', 'tidegate.hostile', '1') IS NULL",
    "reflect('java.lang.Runtime', 'getRuntime') IS NOT NULL",
)


def test_a_predicate_is_no_other_sql(spark: SparkSession) -> None:
    """Each leaves the table as it was: one world serves them all."""
    with told(spark, bank("  a: {on: new}"), items=[{"id": 0}]) as case:
        for where in OTHER_SQL:
            for change in ({"deletes": [where]}, {"updates": [(where, {"note": "x"})]}):
                with pytest.raises(InputError) as raised:
                    case.change(1, inserts=[{"id": 1}], **change)
                assert raised.value.problems[0].place == PLACE, where
            left = [(one["id"], one["note"]) for one in case.seen.tables["items"]]
            assert left == [(0, None)], where
        jvm: Any = spark._jvm
        assert jvm.java.lang.System.getProperty("tidegate.hostile") is None


def test_files_share_a_session_and_wrong_sql_is_said_at_once(spark: SparkSession) -> None:
    with spark_worlds(spark) as opened:
        first = opened(bank("  a: {on: new}"))
        Told(first).insert(1, {"id": 1})
        Told(opened(bank("  a: {on: gone}"))).insert(1, {"id": 1})
        assert not first.tables.folder.exists()  # the next file closes the worlds of the one before
        with pytest.raises(InputError, match="UNRESOLVED_COLUMN"):
            opened(bank("  a: {on: new, do: [{sql: INSERT INTO out SELECT nothing FROM event}]}"))
    assert spark.sql("SELECT 1").collect()


RANDOM = """\
rulebook: drawn
tables: {items: {path: /items, key: [id]}, other: {path: /other, key: [id]}, out: {path: /out}}
events:
  new: {on: insert, table: items, where: amount > 1}
  changed: {on: update, table: items, of: [note]}
  gone: {on: delete, table: items}
  other: {on: change, table: other}
  few: {on: insert, table: other, where: 12 / id > 2}
  told: {signal: {id: bigint}}
  raised: {signal: {id: bigint, total: "decimal(20,2)"}}
  minutely: {cron: "* * * * *", timezone: UTC}
scripts:
  counting:
    text: |
      in {long id;} new out {long id; long n;} counted
      (new(x) {n = n + 1; !> counted({id: x.id, n: n});})*
rules:
  pairs: {on: new ; changed, per: id, context: chronicle}
  quiet: {on: "not(gone)[new, [20 s]]", per: id, if: max(amount) > 3}
  late: {on: "new ; other within 30 s", per: id, cooldown: 15 s}
  counts: {on: "other ; told", context: cumulative, if: count(*) > 2, do: [{webhook: {
    url: "https://x.example.org/a", body: {first: min(id), count: count(*)}}}]}
  raises: {on: changed, per: id, retry: {attempts: 2, backoff: 3s..9s},
    do: [{signal: {raised: {id: id, total: sum(amount)}}}]}
  again: {on: raised ; gone, dedupe: {by: [id], within: 1 min}}
  third: {on: counted, if: max(n) % 3 = 0}
  rare: {on: few ; minutely, context: recent}
  writes: {on: gone, do: [{sql: INSERT INTO out SELECT id FROM event}]}
"""


def drawn(seed: int) -> Story:
    """Some twenty steps over two tables and a signal."""

    def story(told: Told) -> None:
        drawing, now, ids = random.Random(seed), 0.0, iter(range(100))

        def one() -> dict[str, Any]:
            amount = drawing.choice([None, "2.50", 4, 9])
            return {"id": next(ids), "amount": amount, "note": drawing.choice("ab")}

        for _ in range(20):
            now += drawing.choice([0, 0.001, 1, 1, 5, 20])
            where, table = (
                f"id % 3 = {drawing.randrange(3)}",
                drawing.choice(["items", "items", "other"]),
            )
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
                    told.fail(drawing.choice(["raises", "counts", "writes"]), drawing.randint(1, 2))
        told.at(now + 300)

    return story


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 20))]
)
def test_what_runs_fast_gives_the_same_with_spark(spark: SparkSession, seed: int) -> None:
    seen = both(spark, file(RANDOM, other=ITEMS), drawn(seed))
    assert sum(map(len, seen.firings.values())) > 9
