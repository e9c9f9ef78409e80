"""`on: transaction` and `on: commit` over every kind of commit that Delta writes (G10)."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.support.lake import Lake
from tidegate import Engine
from tidegate.engine.control.firings import list_firings
from tidegate.engine.control.status import all_status

EVENTS = """\
tables:
  t: {path: ./t, start: earliest, on_restore: skip}
  seen: {path: ./seen}
events:
  load: {on: transaction, table: t}
  landed: {on: commit, table: t}
  drift: {on: commit, table: t, where: operation = 'ADD COLUMNS' and not changes_rows}
  row: {on: insert, table: t}
  told: {signal: {word: string}}
"""
SEEN = "do: \"INSERT INTO seen (rule, version, operation, rows) SELECT '{0}', {1}\""
COLUMNS = "version, operation, changes_rows FROM event"
COUNT = "count(event_type), NULL, NULL FROM event GROUP BY firing_id"
WRITES = """
  writes:
    on: told
    retry: {attempts: 1}
    do: |
      MERGE INTO t USING (SELECT cast(word AS BIGINT) AS id FROM event) e ON t.id = e.id
      WHEN NOT MATCHED AND e.id > 5 THEN INSERT (id) VALUES (e.id)
"""
BOOKS = {
    "watch": f"""\
{EVENTS}
rules:
  loads: {{on: load, {SEEN.format("load", "version, operation, true FROM event")}}}
  begins: {{on: begin_of landed, {SEEN.format("begun", COLUMNS)}}}
  lands: {{on: end_of landed, {SEEN.format("landed", COLUMNS)}}}
  drifts: {{on: drift, {SEEN.format("drift", COLUMNS)}}}
  gate:
    on: A*(begin_of landed, row, end_of landed)
    {SEEN.format("gate", COUNT)}
{WRITES}""",
    "other": f"{EVENTS}\nrules:{WRITES}",
    "late": EVENTS.replace("earliest", "{version: 5}") + "rules: {lands: {on: landed}}",
}
WITHOUT_ROWS = (
    "INSERT INTO {t} SELECT * FROM {t} WHERE false",
    "OPTIMIZE {t}",
    "VACUUM {t}",
    "ALTER TABLE {t} SET TBLPROPERTIES ('a.b' = 'c')",
    "ALTER TABLE {t} ADD COLUMNS (more STRING)",
    "ALTER TABLE {t} UNSET TBLPROPERTIES ('a.b')",
)


class Watched:
    """A table, and two engines with stores of their own that know of it."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        lake.create("t", "id BIGINT")
        lake.create("seen", "rule STRING, version BIGINT, operation STRING, rows BOOLEAN")
        for name, text in BOOKS.items():
            (lake.folder / f"{name}.yaml").write_text(f"rulebook: {name}\n{text}")

    def run(self, name: str, *words: str) -> None:
        """One run after each word that is told; without any, two."""
        with Engine(
            self.lake.folder / f"{name}.yaml", spark=self.lake.spark, store=self.store(name)
        ) as engine:
            for word in words or (None, None):
                if word is not None:
                    engine.signal("told", word=word)
                engine.run_once()

    def store(self, name: str) -> str:
        return f"sqlite:///{self.lake.folder}/{name}.db"

    def history(self) -> dict[int, str]:
        """The operations of all commits but for seals, by version."""
        rows = self.lake.sql("DESCRIBE HISTORY {t}")
        return {row.version: row.operation for row in rows if not is_seal(row.userMetadata)}

    def seals(self) -> Counter[str]:
        """How many seals there are, by the rulebook that wrote them."""
        rows = self.lake.sql("DESCRIBE HISTORY {t}")
        noted = [json.loads(r.userMetadata)["tidegate"] for r in rows if is_seal(r.userMetadata)]
        return Counter(note["rulebook"] for note in noted)

    def seen(self, rule: str) -> list[tuple[Any, ...]]:
        return sorted(row[1:] for row in self.lake.rows("seen").elements() if row[0] == rule)


def is_seal(user_metadata: str | None) -> bool:
    return user_metadata is not None and '"sealed": true' in user_metadata


@pytest.mark.long
def test_g10_commits_are_seen_whether_they_change_rows_or_not(lake: Lake) -> None:
    """What an action wrote and what a RESTORE brought among them; no engine's seals."""
    table = Watched(lake)
    for n in (1, 2):
        lake.append("t", (n,))
    for statement in WITHOUT_ROWS[:3]:
        lake.sql(statement)
    table.run("watch", "7", "3", "none")
    table.run("other", "none")
    lake.sql("RESTORE {t} TO VERSION AS OF 1")
    for statement in WITHOUT_ROWS[3:]:
        lake.sql(statement)
    table.run("watch")
    history = table.history()
    (restored,) = (v for v, operation in history.items() if operation == "RESTORE")
    merged, empty = sorted(v for v, operation in history.items() if operation == "MERGE")
    changed = {1, 2, merged, restored}
    assert table.seals() == Counter(watch=1, other=1)
    assert {"OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES"} < {*history.values()}
    expected = [(v, operation, v in changed) for v, operation in sorted(history.items())]
    assert table.seen("landed") == expected
    assert table.seen("begun") == expected
    assert (empty, "MERGE", False) in expected
    assert table.seen("load") == [(v, history[v], True) for v in sorted(changed - {restored})]
    assert [operation for _, operation, _ in table.seen("drift")] == ["ADD COLUMNS"]
    assert Counter(count for count, *_ in table.seen("gate")) == Counter(
        {1: 3, 0: len(expected) - 3}
    )
    table.run("late")
    assert len([*list_firings(table.store("late"), "late")]) == len([v for v in history if v >= 5])
    status = all_status(table.store("watch"), "watch")[0]
    (watched,) = (row for row in status["tables"] if row["table"] == "t")
    assert (watched["commits_behind"], status["lag"]["commits"]) == (0, 0)
