"""What a bucket costs beside its reading: many rules that act, one rule that acts firing by firing,
and none that fires; and what a marker costs."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from benchmarks import lake
from benchmarks.figure import Figure, rulebook
from tidegate import Engine
from tidegate.connectors.delta.catalog import latest_snapshot
from tidegate.connectors.delta.markers import prepare
from tidegate.connectors.delta.session import new_session

RULES, TARGETS, ROUNDS = 50, 5, 2
EACH = 10
WARM, INSERTS, SEARCHES = 10, 20, 10
SEARCHING = {
    "a MERGE": "MERGE INTO {t} t USING (SELECT {n}L AS id) e ON t.id = e.id "
    "WHEN MATCHED THEN UPDATE SET n = t.n + 1 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (id, 1)",
    "an UPDATE": "UPDATE {t} SET n = n + 1 WHERE id = {n}",
}
READING = ("plan", "capture")


def book(folder: Path, changes: Path, together: int, shared: int = 1) -> Path:
    """A rulebook of 50 rules over 5 tables. `together`: entries at a time; `shared`: in a
    commit."""
    tables = "".join(f'  t{n}: {{path: "{folder / f"t{n}"}"}}\n' for n in range(TARGETS))
    rules = "".join(
        f"  r{n}: {{on: row, do: [{{sql: INSERT INTO t{n % TARGETS} SELECT id FROM event}}]}}\n"
        for n in range(RULES)
    )
    return rulebook(
        folder,
        f"actions_{together}",
        f"settings: {{actions_in_parallel_max: {together}, entries_per_commit_max: {shared}}}\n"
        f'tables:\n  changes: {{path: "{changes}"}}\n{tables}'
        f"events:\n  row: {{on: insert, table: changes}}\nrules:\n{rules}",
    )


def side_by_side(spark: SparkSession, folder: Path) -> Figure:
    """The seconds of the act stage of a bucket, side by side (0: one a core) and one by one."""
    changes = folder / "changes"
    lake.create(spark, changes, "id BIGINT")
    for n in range(TARGETS):
        lake.create(spark, folder / f"t{n}", "id BIGINT")
    seconds: dict[int, list[float]] = {0: [], 1: []}
    with ExitStack() as open_ones:
        engines = {}
        for together in seconds:
            file = book(folder, changes, together)
            store = f"sqlite:///{file.with_suffix('.db')}"
            engines[together] = open_ones.enter_context(Engine(file, spark=spark, store=store))
            engines[together].run_once()
        for round_ in range(ROUNDS + 1):
            spark.range(10).write.format("delta").mode("append").save(str(changes))
            for together, engine in engines.items():
                (report,) = engine.run_once()
                if round_:
                    seconds[together].append(report.seconds["act"])
    side, one = (median(seconds[n]) for n in (0, 1))
    return Figure(
        "a bucket of 50 rules over 5 tables, side by side against one after another",
        side / one,
        0.5,
        {"side_by_side_seconds": side, "one_by_one_seconds": one},
    )


def shared(spark: SparkSession, folder: Path) -> Figure:
    """The act stage of a bucket of 50 rules over 5 tables, whose INSERTs share commits, against the
    same 50 INSERTs by hand, each with its marker, one after another."""
    changes = folder / "changes"
    lake.create(spark, changes, "id BIGINT")
    targets = [folder / f"t{n}" for n in range(TARGETS)]
    by_hand = [folder / f"hand{n}" for n in range(TARGETS)]
    for table in (*targets, *by_hand):
        lake.create(spark, table, "id BIGINT")
    file = book(folder, changes, 0, RULES)
    engine_seconds, hand_seconds = [], []
    with Engine(file, spark=spark, store=f"sqlite:///{file.with_suffix('.db')}") as engine:
        engine.run_once()
        for round_ in range(ROUNDS + 1):
            rows = spark.range(10)
            rows.write.format("delta").mode("append").save(str(changes))
            (report,) = engine.run_once()
            begun = time.perf_counter()
            for n in range(RULES):
                session = new_session(spark)
                session.conf.set("spark.databricks.delta.write.txnAppId", f"rule {n}")
                session.conf.set("spark.databricks.delta.write.txnVersion", str(round_ + 1))
                session.sql(f"INSERT INTO delta.`{by_hand[n % TARGETS]}` SELECT id FROM range(10)")
            if round_:
                hand_seconds.append(time.perf_counter() - begun)
                engine_seconds.append(report.seconds["act"])
    own, hand = median(engine_seconds), median(hand_seconds)
    return Figure(
        "a bucket of 50 rules over 5 tables / the same 50 marked INSERTs by hand",
        own / hand,
        0.25,
        {"bucket_seconds": own, "by_hand_seconds": hand},
    )


def single(spark: SparkSession, folder: Path) -> list[Figure]:
    """One rule that acts firing by firing, against the same INSERTs written by hand; and buckets in
    which nothing fires."""
    changes, out, hand = folder / "changes", folder / "out", folder / "hand"
    for table in (changes, out, hand):
        lake.create(spark, table, "id BIGINT")
    file = rulebook(
        folder,
        "single",
        f"""tables:
  changes: {{path: "{changes}"}}
  out: {{path: "{out}"}}
events:
  row: {{on: insert, table: changes, where: id >= 0}}
rules:
  r: {{on: row, per: id, for_each: firing, do: [INSERT INTO out SELECT id FROM event]}}
""",
    )
    each, by_hand, beside = [], [], []
    with Engine(file, spark=spark, store=f"sqlite:///{file.with_suffix('.db')}") as engine:
        engine.run_once()
        for round_ in range(ROUNDS + 1):
            spark.range(EACH).write.format("delta").mode("append").save(str(changes))
            (report,) = engine.run_once()
            begun = time.perf_counter()
            for n in range(EACH):
                spark.conf.set("spark.databricks.delta.write.txnAppId", "hand")
                spark.conf.set("spark.databricks.delta.write.txnVersion", str(round_ * EACH + n))
                spark.sql(f"INSERT INTO delta.`{hand}` SELECT {n}")
            if round_:
                by_hand.append(time.perf_counter() - begun)
                each.append(report.seconds["act"])
        spark.conf.unset("spark.databricks.delta.write.txnAppId")
        spark.conf.unset("spark.databricks.delta.write.txnVersion")
        for _ in range(5 * ROUNDS):
            spark.range(-10, 0).write.format("delta").mode("append").save(str(changes))
            (report,) = engine.run_once()
            beside.append(sum(s for stage, s in report.seconds.items() if stage not in READING))
    middle, own = median(each), median(by_hand)
    idle = median(beside)
    return [
        Figure(
            f"for_each: {EACH} firings / as many INSERTs by hand",
            middle / own,
            1.2,
            {"for_each_seconds": middle, "by_hand_seconds": own},
        ),
        Figure("a bucket without firings, beside its reading / 30 ms", idle / 0.030, 1.0),
    ]


def marker(spark: SparkSession, folder: Path) -> Figure:
    """One INSERT with a marker as the engine writes it, one without, and one for which Delta
    computes the markers."""
    seconds: dict[str, list[float]] = {"prepared": [], "plain": [], "computed": []}
    for table in seconds:
        lake.create(spark, folder / table, "id BIGINT")
    for number in range(1, WARM + INSERTS + 1):
        for table, taken in seconds.items():
            begun = time.perf_counter()
            session = new_session(spark)
            if table != "plain":
                session.conf.set("spark.databricks.delta.write.txnAppId", "one")
                session.conf.set("spark.databricks.delta.write.txnVersion", str(number))
            if table == "prepared":
                prepare(spark, latest_snapshot(spark, str(folder / table)))
            session.sql(f"INSERT INTO delta.`{folder / table}` SELECT {number}")
            if number > WARM:
                taken.append(time.perf_counter() - begun)
    medians = {f"{table}_seconds": median(taken) for table, taken in seconds.items()}
    return Figure(
        "an INSERT with a marker / one without",
        medians["prepared_seconds"] / medians["plain_seconds"],
        1.3,
        medians,
    )


def searching(spark: SparkSession, folder: Path) -> list[Figure]:
    """A MERGE and an UPDATE with a marker as the engine writes it, and without."""
    found = []
    for name, text in SEARCHING.items():
        seconds: dict[str, list[float]] = {"marked": [], "plain": []}
        for table in seconds:
            at = folder / name / table
            lake.create(spark, at, "id BIGINT, n BIGINT")
            spark.range(lake.KEYS).selectExpr("id", "0L AS n").write.format("delta").mode(
                "append"
            ).save(str(at))
        for number in range(1, WARM + SEARCHES + 1):
            for table, taken in seconds.items():
                at = folder / name / table
                begun = time.perf_counter()
                session = new_session(spark)
                if table == "marked":
                    session.conf.set("spark.databricks.delta.write.txnAppId", "one")
                    session.conf.set("spark.databricks.delta.write.txnVersion", str(number))
                    prepare(spark, latest_snapshot(spark, str(at)))
                session.sql(text.format(t=f"delta.`{at}`", n=number))
                if number > WARM:
                    taken.append(time.perf_counter() - begun)
        medians = {f"{table}_seconds": median(taken) for table, taken in seconds.items()}
        ratio = medians["marked_seconds"] / medians["plain_seconds"]
        found.append(Figure(f"{name} with a marker / one without", ratio, 1.3, medians))
    return found
