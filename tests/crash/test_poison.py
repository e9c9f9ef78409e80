"""Twenty poisonous texts at once: whatever they do to Spark's Java, healthy rulebooks in the same
process go on, exactly once, and `status` names each poison with its way past (G7, G13)."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.crash.conftest import ROOT
from tests.support.lake import Lake
from tidegate.engine.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.long, pytest.mark.timeout(7_200)]

DEADLINE_SECONDS = 10
# On rows whose id is 7; others are decided at once. A row's text is 40 times the letter a.
OVERFLOW = r"concat({0}, repeat('b', 100000)) rlike '^(.|\\n)*x$'"
BACKTRACK = "concat({0}, 'c') rlike '(.*a){{30}}b'"
MEMORY = (
    "length(array_join(transform(sequence(1, 60000), x -> concat({0}, repeat('m', 50000))), 'x'))"
    " > 0"
)
BUSY = "aggregate(sequence(1, 400), 0L, (a, x) -> a + length({0}), a -> a) > 0 AND " + BACKTRACK
CROSS = " CROSS JOIN p b CROSS JOIN p c CROSS JOIN p d CROSS JOIN p e CROSS JOIN p f"
WHERES = (OVERFLOW, BACKTRACK, MEMORY, BUSY)
IFS = (OVERFLOW, BACKTRACK, MEMORY, BUSY)
QUERIES = (
    f"SELECT DISTINCT firing_id FROM event{CROSS} WHERE b.id + c.id + d.id + e.id + f.id < 0",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 90 AND "
    "NOT repeat('a', 35 + n) rlike '(.*a){30}b') SELECT firing_id FROM event, r",
    f"SELECT firing_id FROM event WHERE {BACKTRACK.format('s')}",
    f"SELECT firing_id FROM event WHERE {MEMORY.format('s')}",
)
SAMPLES = (
    f"SELECT max(a.id) FROM p a{CROSS} WHERE b.id + c.id + d.id + e.id + f.id < 0",
    f"SELECT max(id) FROM p WHERE {MEMORY.format('s')}",
)
ACTIONS = (
    f"INSERT INTO bad SELECT event.id FROM event{CROSS} WHERE b.id + c.id + d.id + e.id + f.id < 0",
    f"INSERT INTO bad SELECT id FROM event WHERE {BACKTRACK.format('s')}",
    f"INSERT INTO bad SELECT id FROM event WHERE {MEMORY.format('s')}",
    f"INSERT INTO bad SELECT id FROM event WHERE {OVERFLOW.format('s')}",
    "MERGE INTO bad USING (SELECT DISTINCT id, s FROM event) e ON bad.id = e.id "
    f"WHEN NOT MATCHED AND {BACKTRACK.format('e.s')} THEN INSERT (id) VALUES (e.id)",
    "INSERT INTO strict SELECT id, s FROM event",
)
OVERFLOWS = "a3"  # under on_dead: hold
TEXTS = len(WHERES) + len(IFS) + len(QUERIES) + len(SAMPLES) + len(ACTIONS)
HEALTHY = """\
rulebook: {name}
tables: {{{table}: {{path: ./{table}, start: earliest}}, {out}: {{path: ./{out}}}}}
events:
  odd: {{on: insert, table: {table}, where: 'pmod(id, 2) = 1'}}
  each: {{on: insert, table: {table}}}
rules:
  asked:
    on: odd
    if: sum(id) > -1
    do: [{{sql: "INSERT INTO {out} SELECT id, 'a' FROM event"}}]
  plain:
    on: each
    do: [{{sql: "INSERT INTO {out} SELECT id, 'p' FROM event"}}]
"""


def poison() -> str:
    """The rulebook of poisons: an event and a rule for each text."""
    lines = [
        "rulebook: poison",
        f"settings: {{statement_seconds_max: {DEADLINE_SECONDS}}}",
        "tables:",
        "  p: {path: ./p, start: earliest}",
        "  bad: {path: ./bad}",
        "  strict: {path: ./strict}",
        "events:",
        "  seven: {on: insert, table: p, where: id = 7}",
        "  begin: {on: insert, table: p, where: id = 1}",
        "  end: {on: insert, table: p, where: id = 9}",
    ]
    for n, text in enumerate(WHERES):
        where = f"id = 7 AND {text.format('s')} OR id = 8"
        lines.append(f"  where{n}: {{on: insert, table: p, where: {quoted(where)}}}")
    lines.append("rules:")
    note = "INSERT INTO bad SELECT id FROM event"
    for n in range(len(WHERES)):
        lines.append(f"  w{n}: {{on: where{n}, do: [{{sql: {quoted(note)}}}]}}")
    for n, text in enumerate(IFS):
        asked = quoted(text.format("max(s)"))
        lines.append(f"  i{n}: {{on: seven, if: {asked}, do: [{{sql: {quoted(note)}}}]}}")
    for n, text in enumerate(QUERIES):
        lines.append(
            f"  q{n}: {{on: seven, if: {{sql: {quoted(text)}}}, do: [{{sql: {quoted(note)}}}]}}"
        )
    for n, text in enumerate(SAMPLES):
        ticks = quoted(f"P*(begin, [1 s]: '{text.replace(chr(39), chr(39) * 2)}', end)")
        taken = quoted("INSERT INTO bad SELECT CAST(sample AS INT) FROM event")
        lines.append(f"  s{n}: {{on: {ticks}, do: [{{sql: {taken}}}]}}")
    for n, text in enumerate(ACTIONS):
        held = ", on_dead: hold" if n % 2 else ""
        lines.append(f"  a{n}: {{on: seven{held}, do: [{{sql: {quoted(text)}}}]}}")
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def test_g13_twenty_poisons_stop_no_healthy_rulebook(spark: SparkSession, tmp_path: Path) -> None:
    assert TEXTS == 20
    lake = Lake(spark, tmp_path)
    lake.create("p", "id INT, s STRING")
    lake.create("bad", "id INT")
    lake.create("strict", "id INT, s STRING")
    check = BACKTRACK.format("s")
    spark.sql(f"ALTER TABLE delta.`{lake.path('strict')}` ADD CONSTRAINT odd CHECK (NOT {check})")
    values = ", ".join(f"({n}, repeat('a', 40))" for n in (*range(1, 7), *range(10, 400)))
    lake.sql(f"INSERT INTO {{p}} VALUES {values}")
    time.sleep(2)
    lake.sql("INSERT INTO {p} VALUES (7, repeat('a', 40)), (8, 'fine'), (9, 'end')")
    for table, out in (("t", "ts"), ("u", "us")):
        lake.create(table, "id INT")
        lake.create(out, "id INT, what STRING")
    (tmp_path / "poison.yaml").write_text(poison())
    (tmp_path / "first.yaml").write_text(HEALTHY.format(name="first", table="t", out="ts"))
    (tmp_path / "second.yaml").write_text(HEALTHY.format(name="second", table="u", out="us"))
    log = tmp_path / "log.txt"
    with log.open("w") as told:
        command = [sys.executable, "-m", "tests.crash.poisoned", str(tmp_path)]
        running = subprocess.Popen(command, cwd=ROOT, stdout=told, stderr=told)
        count = 0
        while running.poll() is None:
            if count < 60:
                count += 1
                lake.sql(f"INSERT INTO {{t}} VALUES ({count})")
                lake.sql(f"INSERT INTO {{u}} VALUES ({count})")
            time.sleep(5)
        again = subprocess.run(command, cwd=ROOT, stdout=told, stderr=told, check=False)
    said = log.read_text()
    assert running.returncode == 0, said[-5_000:]
    assert again.returncode == 0, said[-5_000:]
    assert said.count("all are idle") == 2
    for out in ("ts", "us"):
        want = Counter((n, "p") for n in range(1, count + 1))
        want += Counter((n, "a") for n in range(1, count + 1) if n % 2)
        assert lake.rows(out) == want
    assert count >= 20
    check_status(tmp_path, said)


def check_status(folder: Path, said: str) -> None:
    """Each poison is named, with its way past, and has done nothing."""
    with open_store(f"sqlite:///{folder}/store.db", create=False) as store:
        status: dict[str, Any] = store.of("poison").status.shown()
        rejected = store.of("poison").rejections.newest(1_000, whole=True)
    assert status["stopped"] is None
    dead = {row["rule"]: row for row in status["entries"]}
    rules = {f"{kind}{n}" for kind, texts in (("i", IFS), ("q", QUERIES), ("a", ACTIONS))
             for n in range(len(texts))} | {f"s{n}" for n in range(len(SAMPLES))}  # fmt: skip
    assert rules - dead.keys() == set()
    # A stack that overflows fails its task, as any error: `on_dead: hold` keeps what comes after.
    states = {rule: "held" if rule == OVERFLOWS else "dead" for rule in rules}
    wrong = [dead[rule] for rule in sorted(rules) if dead[rule]["state"] != states[rule]]
    assert wrong == []
    assert all(dead[rule]["commands"] for rule in rules)
    harmful = [
        row for row in dead.values() if "Java" in row["error"] or "outlasted" in row["error"]
    ]
    assert len(harmful) >= 8, dead
    assert {row["event"] for row in rejected} == {f"where{n}" for n in range(len(WHERES))}
    assert all(row["fields"]["id"] == 7 for row in rejected)
    print({rule: row["error"] for rule, row in dead.items()})
    print(said.count("starting it again"), "starts")
