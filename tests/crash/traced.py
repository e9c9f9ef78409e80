"""A reader from outside: it reads the tables' logs and files, and asks the store of each commit
that it finds there which firings are behind it, and of each firing what it did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from tests.crash.lake import BOOK, Lake
from tests.support.lake import notes_of
from tidegate.engine.replay.why.ask import why, why_commit
from tidegate.engine.replay.why.model import Story
from tidegate.engine.store import SqlStore, open_store

TABLES = ("totals", "effects")
Rows = list[dict[str, Any]]


def untraced(lake: Lake) -> list[str]:
    """What does not lead to a firing and back: commits of the engine, and rows of `effects`."""
    with open_store(lake.store, create=False) as store:
        return [said for table in TABLES for said in _of_table(lake, store, table)]


def _of_table(lake: Lake, store: SqlStore, table: str) -> Iterator[str]:
    for version, noted, rows in _commits(lake, table):
        commit = f"{table}@{version}"
        entries = why_commit(store, BOOK, commit)["entries"]
        if sorted(e["number"] for e in entries) != sorted(note["entry"] for note in noted):
            yield f"{commit} is of entries {noted}, the store says {entries}"
            continue
        stories = [why(store, BOOK, one) for entry in entries for one in entry["firings"]]
        if not stories:
            yield f"{commit} has no firing"
        for story in stories:
            if (table, version) not in {(e.table, e.version) for e in story.entries}:
                yield f"firing {story.firing_id} does not lead back to {commit}"
        if table == "effects":
            yield from (f"{commit}: {row}" for row in rows if not _made(row, stories))


def _made(row: dict[str, Any], stories: list[Story]) -> bool:
    """Whether one of the firings has the row's rule, account, and number or sum."""
    for story in stories:
        parts = [one.row for one in story.constituents]
        same = all(part.get("account") == row["account"] for part in parts)
        ids = {part.get("id") for part in parts}
        amount = sum(part.get("amount") or 0 for part in parts)
        told = row["id"] in ids or (row["id"] == 0 and amount == row["amount"])
        if story.rule == row["rule"] and same and told:
            return True
    return False


def _commits(lake: Lake, table: str) -> Iterator[tuple[int, Rows, Rows]]:
    """The commits of the engine that are no seals: version, notes, and the rows of their files."""
    folder = lake.folder / "lake" / table
    for file in sorted((folder / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
        said = json.loads(info.get("userMetadata") or "{}")
        if "why" not in said:
            continue
        rows = [
            row
            for action in actions
            if table == "effects" and "add" in action
            for row in pq.read_table(folder / unquote(action["add"]["path"])).to_pylist()
        ]
        yield int(file.stem), notes_of(info), rows
