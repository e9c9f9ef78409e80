"""A small lake with a rulebook of every kind of action, and what must stand in it in the end."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import written
from tests.support.lake import WATCHED, notes_of
from tests.support.table import rows_of
from tidegate.engine.store import open_store

HERE = Path(__file__).parent
BOOK = "crash"
Rows = Counter[tuple[Any, ...]]

_TABLES = {
    "moves": "id BIGINT, account BIGINT, amount BIGINT",
    "totals": "account BIGINT, total BIGINT, moves BIGINT",
    "effects": "rule STRING, account BIGINT, id BIGINT, amount BIGINT",
}


SCRIPTS = """
scripts:
  tally:
    text: |
      in {long account;} moved group(moved.account)
      out {long account; long amount;} tallied
      (moved(x) {n = n + 1; !> tallied({account: x.account, amount: n});})*
  back: # takes what a rule detects
    text: |
      in {long account;} returned group(returned.account)
      out {long account; long amount;} came_back
      (returned(x) {!> came_back({account: x.account, amount: 1});})*

rules:
  counted:
    on: tallied
    do:
      - sql: INSERT INTO effects SELECT 'counted', account, 0, amount FROM event
  backed:
    on: came_back
    do:
      - sql: INSERT INTO effects SELECT 'backed', account, 0, amount FROM event
"""


@dataclass(frozen=True)
class Lake:
    """A folder with `crash.yaml`, its tables and its store, unless that has a `url` elsewhere."""

    folder: Path
    url: str = ""

    @property
    def rulebook(self) -> Path:
        return self.folder / f"{BOOK}.yaml"

    @property
    def store(self) -> str:
        return self.url or f"sqlite:///{self.folder / 'crash.db'}"

    @property
    def scripted(self) -> bool:
        """Whether the rulebook has SCRIPTS."""
        return "\nscripts:" in self.rulebook.read_text()

    def table(self, name: str) -> str:
        return f"delta.`{self.folder / 'lake' / name}`"

    def build(self, detect: str = "driver", scripts: str = "") -> None:
        text = (HERE / "crash.yaml").read_text()
        if scripts:
            text = text.replace("\nrules:\n", scripts)
        self.rulebook.write_text(text.replace("settings: {", f"settings: {{detect: {detect}, "))
        for name, columns in _TABLES.items():
            only = "true" if name == "effects" else "false"
            made = {**WATCHED, "delta.appendOnly": only}
            assert written.create(self.folder / "lake" / name, columns, made)

    def copy(self, folder: Path) -> Lake:
        """Delta tables may be moved; in-commit timestamps keep every instant as it was."""
        return Lake(Path(shutil.copytree(self.folder, folder)))

    def move(self, *rows: tuple[int, int, int]) -> None:
        """One commit of (id, account, amount)."""
        written.append(self.folder / "lake" / "moves", rows)

    def rows(self, name: str) -> Rows:
        """A table as a multiset."""
        return Counter(rows_of(self.folder / "lake" / name))

    def effect_commits(self, name: str) -> Iterator[dict[str, Any]]:
        """What the engine noted of each entry in its commits to a table, in order. `marker`: the
        markers of its app id, and those of nobody. `last`: the greatest number of the app id."""
        for file in sorted((self.folder / "lake" / name / "_delta_log").glob("*.json")):
            actions = [json.loads(line) for line in file.read_text().splitlines()]
            info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
            if "userMetadata" in info:
                markers = [action["txn"] for action in actions if "txn" in action]
                last: dict[str, int] = {}
                for note in notes_of(info):
                    last[note["app_id"]] = max(note["entry"], last.get(note["app_id"], 0))
                for note in notes_of(info):
                    own = note["app_id"]
                    mine = [m for m in markers if m["appId"] == own or m["appId"] not in last]
                    yield {**note, "marker": mine, "last": last[own]}

    def kept(self) -> dict[str, Any]:
        """What the store has of cursors, signals and entries."""
        status = self.status()
        names = ("bucket", "tables", "active_rules", "unplaced_signals", "rejected_rows")
        return {
            **{name: status[name] for name in names},
            "unfinished": (status["entries_pending"], status["entries_dead"]),
        }

    def status(self) -> dict[str, Any]:
        with open_store(self.store, create=False) as store:
            return store.of(BOOK).status.shown()

    def firings(self) -> list[dict[str, Any]]:
        with open_store(self.store, create=False) as store:
            return list(store.of(BOOK).firings.listed())


def expected(moves: Rows, *, scripts: bool = False) -> tuple[Rows, Rows]:
    """(totals, effects) that a history of moves must lead to, by hand: each account is paid in
    once, then out once. `scripts`: the rulebook has SCRIPTS."""
    totals: dict[int, tuple[int, int]] = {}
    effects: Rows = Counter()
    paid_in: dict[int, int] = {}
    for number, account, amount in sorted(moves.elements()):
        total, count = totals.get(account, (0, 0))
        totals[account] = total + amount, count + 1
        effects["copied", account, number, amount] += 1
        if amount >= 100:
            effects["singled", account, number, amount] += 1
        if amount > 0:
            paid_in[account] = amount
        elif account in paid_in:
            rest = paid_in.pop(account) + amount
            effects["returned", account, number, rest] += 1
            effects["noted", account, 0, rest] += 1
    if scripts:
        for account, (_, count) in totals.items():
            effects.update(("counted", account, 0, n) for n in range(1, count + 1))
        for rule, account, *_ in [*effects]:
            effects["backed", account, 0, 1] += rule == "returned"
        effects = +effects
    return Counter((account, *found) for account, found in totals.items()), effects
