"""A rulebook of every kind of action over memory, and what must hold of it in the end."""

# ruff: noqa: ARG002, ARG005 - fakes take what the ports give

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from tests.support.analysts import EveryIdAnalyst
from tests.support.memory import MemorySink, numbers
from tests.support.memorystore import MemoryStore
from tidegate.engine.act.attempt import firings_of_entry
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.values import Answers, Firings, Question, Reading
from tidegate.engine.store import SqlStore
from tidegate.engine.store.outbox import to_entry
from tidegate.engine.store.tables import outbox
from tidegate.rules.errors import Place
from tidegate.rules.model import Rule

BOOK = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}, told: {signal: {id: bigint}}}
rules:
  a: {on: row, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  twice:
    on: row
    do: [{sql: INSERT INTO out SELECT id FROM event}, {sql: INSERT INTO out SELECT id FROM event}]
  single: {on: row, for_each: firing, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  asked: {on: row, if: id > 0, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  tells: {on: row, per: id, do: [{signal: {told: {id: id}}}]}
  heard: {on: told, do: [{sql: INSERT INTO out SELECT id FROM event}]}
"""
AnyStore = SqlStore | MemoryStore
EFFECTS = {"a": 1, "twice": 2, "single": 1, "asked": 1, "heard": 1}  # of one row


class Analyst(EveryIdAnalyst):
    """Signals read `id`, too; a condition of ticks their samples. Statements only append."""

    def action(self, *given: Any, **more: Any) -> Reading:
        return replace(super().action(*given, **more), appends=True)

    def condition(self, rule: Rule, *given: object, **more: object) -> Reading:
        return Reading(frozenset({"sample" if rule.name == "sampled" else "id"}))

    def fields(self, *given: object) -> Reading:
        return Reading(frozenset({"id"}))

    def sample(self, text: str, place: Place) -> tuple[Reading, pa.DataType]:
        """Also of a table without events, whose commits no bucket has placed."""
        return Reading(frozenset(), tables=frozenset({"t", "out"})), pa.int64()


class AllHold:
    """Conditions that hold for every firing."""

    def hold(self, questions: Sequence[Question]) -> Answers:
        ids = (one for q in questions for one in q.firing_ids.to_pylist())
        return Answers(held=frozenset(ids))

    def sample(self, text: str, pinned: Mapping[str, int]) -> pa.Scalar:
        """The version."""
        return pa.scalar(pinned["t"])


def fields_of(firings: Firings) -> pa.Table:
    """The fields of `told`, where each firing has one row."""
    return pa.table({"firing_id": firings.hex_ids(), "id": firings.rows["id"]})


def judge(
    store: AnyStore,
    sink: MemorySink,
    commits: int,
    rulebook: str = "loop",
    effects: Mapping[str, int] = EFFECTS,
    raises: Callable[[str, int], bool] = lambda rule, version: True,
) -> dict[str, int]:
    """How many effects are lost, duplicates, out of order, corrupt (nothing may have them); and how
    many entries are left, after `commits` of a row each. `effects`: of one row, by rule, if the
    commit `raises` an event of that rule."""
    entries = every_entry(store, rulebook)
    passed = passed_over(store, entries)
    told = [n for n in range(commits) if not passed["tells", n]]
    wanted = Counter(
        {
            (rule, n): times - passed[rule, n]
            for rule, times in effects.items()
            for n in (told if rule == "heard" else range(commits))
            if raises(rule, n)
        }
    )
    found = sink.effects
    return {
        "lost": sum(max(0, n - found[one]) for one, n in wanted.items()),
        "duplicate": sum(max(0, n - wanted[one]) for one, n in found.items() if wanted[one] > 0),
        "out of order": out_of_order(sink, entries),
        "corrupt": sum(n for one, n in found.items() if wanted[one] <= 0),
        "stuck": sum(entry.state in ("pending", "held") for entry in entries),
    }


def every_entry(store: AnyStore, rulebook: str = "loop") -> list[Entry]:
    """All entries that the store has of a rulebook, by number."""
    if isinstance(store, MemoryStore):
        return [entry for _, entry in sorted(store.entries.items())]
    c = outbox.c
    query = sa.select(outbox).where(c.rulebook == rulebook).order_by(c.number)
    with store.database.read() as connection:
        return [to_entry(row) for row in connection.execute(query)]


def passed_over(store: AnyStore, entries: Sequence[Entry]) -> Counter[tuple[str, int]]:
    """The (rule, id) of entries that an operator skipped, or whose condition failed for good."""
    found: Counter[tuple[str, int]] = Counter()
    for entry in entries:
        if entry.state in ("skipped", "dead"):
            found.update((entry.rule, n) for n in ids_of(store, entry))
    return found


def ids_of(store: AnyStore, entry: Entry, rulebook: str = "loop") -> list[int]:
    """The ids of the rows that an entry is for."""
    firings = store.of(rulebook).outbox.firings(entry.bucket, entry.rule)
    whole = entry.kind == "condition" and entry.firing_ids is None
    of_entry = firings if whole else firings_of_entry(entry, firings)
    return numbers(of_entry.rows)


def out_of_order(sink: MemorySink, entries: Sequence[Entry]) -> int:
    """Statements that landed before one with an earlier place in the queue of their rule."""
    places = {entry.number: entry.turn.place for entry in entries}
    wrong, last = 0, Counter[str]()
    for rule, number in sink.entries:
        if rule != "asked":  # what is dead is passed by, and may be redriven after later ones
            wrong += places[number] < last[rule]
            last[rule] = places[number]
    return wrong
