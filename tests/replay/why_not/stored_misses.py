"""Planted misses that only a run of the loop can have: rules that were stopped, rows that were
rejected, updates that `of` drops, entries that are stuck.

Each maker runs a loop with times, keys and noise of its own. Times are seconds after BEGIN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import numpy as np

from tests.replay.why_not.stored import Stored
from tests.support.make import BEGIN, SECOND
from tidegate.engine.core.instants import floor_millisecond
from tidegate.engine.replay.memory.tables import Edit
from tidegate.engine.store import SqlStore

KEY = 7
OTHER = 99


@dataclass(frozen=True)
class Planted:
    """A question whose first no is known. `says`: words of its sentence."""

    run: Stored
    key: Mapping[str, Any]
    at: float | None = None
    since: float | None = None
    says: tuple[str, ...] = ()


Maker = Callable[[SqlStore, str, Random], Planted]


def text(name: str, rules: str, settings: str = "{}") -> str:
    """A rulebook over the signals a and b, and the table items."""
    signals = "\n".join(f"  {each}: {{signal: {{k: bigint, v: bigint}}}}" for each in "ab")
    return (
        f"rulebook: {name}\ntimezone: UTC\nsettings: {settings}\n"
        "tables: {items: {path: /items, key: [id]}, out: {path: /out}}\n"
        f"events:\n{signals}\n"
        "  new: {on: insert, table: items}\n"
        "  changed: {on: update, table: items, of: [note]}\n"
        "  timed: {on: insert, table: visits, time: at, lateness: 10 min, ahead: 1 h}\n"
        f"rules:\n{rules}\n"
    ).replace("out: {path: /out}}", "out: {path: /out}, visits: {path: /visits}}")


TABLES = {
    "items": {"id": "bigint", "amount": "bigint", "note": "string"},
    "visits": {"k": "bigint", "at": "timestamp", "owner": "string"},
}


def opened(store: SqlStore, name: str, rules: str, settings: str = "{}") -> Stored:
    return Stored(store, text(name, rules, settings), TABLES)


def pair(run: Stored, first: float, then: float, k: int = KEY) -> Stored:
    """An a and a b, taken each by itself."""
    run.signal(first, "a", k=k, v=1).at(first + 0.5)
    return run.signal(then, "b", k=k, v=1).at(then + 0.5)


def noise(draw: Random, run: Stored, upto: float) -> Stored:
    for _ in range(draw.randint(0, 3)):
        run.signal(draw.uniform(1, upto), draw.choice("ab"), k=OTHER, v=draw.randint(1, 9))
    return run


# -- active, seen -----------------------------------------------------------------------------

PAIR = "  r: {per: k, on: a ; b}"


def disabled(store: SqlStore, name: str, draw: Random) -> Planted:
    run = opened(store, name, PAIR)
    off = draw.randint(20, 60)
    noise(draw, run, off).at(off)
    run.ledger.controls.ask("disable", "r", asked_by="ada@box")
    run.at(off + 1)
    first = off + draw.randint(5, 50)
    pair(run, first, first + draw.randint(2, 50))
    asked = first + 100
    run.at(asked + 5)
    if draw.random() < 0.5:
        return Planted(run, {"k": KEY}, asked, first, ("was disabled", "ada@box"))
    run.ledger.controls.ask("enable", "r")
    run.at(asked + 20)
    pair(run, asked + 30, asked + 40)
    said = ("was not active after", "It was active again from")
    return Planted(run, {"k": KEY}, asked, first, said)


def used_rule_disabled(store: SqlStore, name: str, draw: Random) -> Planted:
    run = opened(store, name, "  r: {per: k, on: part ; b}\n  part: {per: k, on: a}")
    off = draw.randint(20, 60)
    run.at(off)
    run.ledger.controls.ask("disable", "part")
    run.at(off + 1)
    pair(run, off + 10, off + 20)
    at = off + draw.randint(25, 60)
    return Planted(run.at(at + 1), {"k": KEY}, at, off + 5, ("part, which it uses, was disabled",))


def added_later(store: SqlStore, name: str, draw: Random) -> Planted:
    run = opened(store, name, "  other: {per: k, on: b ; a}")
    first = draw.randint(10, 60)
    pair(run, first, first + 10)
    at = first + 10 + draw.uniform(0.1, 0.4)
    run.at(first + 40).again(text(name, PAIR)).at(first + 60)
    pair(run, first + 70, first + 80)
    return Planted(run, {"k": KEY}, at, None, ("became active only at",))


def switched_off(store: SqlStore, name: str, draw: Random) -> Planted:
    run = opened(store, name, PAIR).at(5)
    run.again(text(name, "  r: {per: k, on: a ; b, enabled: false}"))
    first = draw.randint(10, 60)
    pair(run, first, first + 10)
    at = first + draw.randint(20, 60)
    return Planted(run.at(at), {"k": KEY}, at, first, ("says `enabled: false`",))


def parked(store: SqlStore, name: str, draw: Random) -> Planted:
    limit = draw.randint(2, 4)
    run = opened(
        store, name, "  r: {per: k, on: a}", f"{{firings_per_rule_per_minute_max: {limit}}}"
    )
    first = draw.randint(5, 20)
    for n in range(limit + 2):
        run.signal(first + n / 10, "a", k=OTHER, v=1)
    run.at(first + 5)
    later = first + draw.randint(100, 300)
    run.signal(later, "a", k=KEY, v=1).at(later + 10)
    return Planted(run, {"k": KEY}, later + 1, later - 1, ("parked: ", str(limit)))


def not_seen(store: SqlStore, name: str, draw: Random) -> Planted:
    run = opened(store, name, PAIR)
    last = draw.randint(10, 100)
    run.signal(last, "a", k=KEY, v=1).at(last + 1)
    return Planted(run, {"k": KEY}, last + draw.randint(10, 500), None, ("is later",))


def behind(store: SqlStore, name: str, draw: Random) -> Planted:
    """A rule over event time runs behind."""
    run = opened(store, name, "  r: {per: k, on: timed ; a}")
    last = draw.randint(700, 900)
    run.signal(5, "a", k=KEY, v=1).at(last)
    return Planted(run, {"k": KEY}, last - draw.randint(10, 500), None, ("10 min behind",))


# -- rejected, where --------------------------------------------------------------------------


def visit(run: Stored, seconds: float, at: float | None, k: int = KEY) -> None:
    stamp = None
    if at is not None:
        stamp = datetime.fromtimestamp(BEGIN // SECOND, UTC) + timedelta(seconds=at)
    run.insert(seconds, {"k": k, "at": stamp}, table="visits")


def late(store: SqlStore, name: str, draw: Random) -> Planted:
    run = opened(store, name, "  r: {per: k, on: a ; timed}")
    run.signal(5, "a", k=KEY, v=1).at(10)
    own = draw.randint(20, 200)
    visit(run, own + 600 + draw.randint(5, 200), own)
    visit(run, 1_100, 1_090, OTHER)
    return Planted(run.at(3_000), {"k": KEY}, None, None, ("A `timed`", "late: "))


def without_time(store: SqlStore, name: str, draw: Random) -> Planted:
    run = opened(store, name, "  r: {per: k, on: a ; timed}")
    run.signal(5, "a", k=KEY, v=1).at(10)
    visit(run, draw.randint(20, 500), None)
    return Planted(run.at(2_000), {"k": KEY}, None, None, ("was rejected: `time: at` is null",))


def ahead(store: SqlStore, name: str, draw: Random) -> Planted:
    run = opened(store, name, '  r: {per: k, on: "any(3, timed*)"}')
    for n in range(3):
        visit(run, 20 + 10 * n, 20 + 10 * n if n != 1 else 5_000 + draw.randint(1, 900))
    return Planted(run.at(9_000), {"k": KEY}, None, None, ("1 h after its commit",))


def signal_of_another_type(store: SqlStore, name: str, draw: Random) -> Planted:
    run = opened(store, name, PAIR)
    run.signal(5, "a", k=KEY, v=1).at(6)
    run.signal(draw.randint(10, 50), "b", k=KEY, v="many").at(60)
    return Planted(run, {"k": KEY}, None, None, ("A `b` for k 7", "was rejected"))


def nothing_of(store: SqlStore, name: str, draw: Random) -> Planted:
    run = opened(store, name, "  r: {per: id, on: new ; changed}")
    run.insert(5, {"id": KEY, "amount": 1, "note": "open"}, {"id": OTHER, "note": "open"}).at(6)
    table = run.tables["items"]
    mask = np.array([one == KEY for one in table.rows["id"].to_pylist()])
    at = BEGIN + draw.randint(10, 60) * SECOND
    table.commit(
        floor_millisecond(at), run.schemas["items"].empty_table(),
        [Edit(mask, {"amount": draw.randint(2, 90)})], None,
    )  # fmt: skip
    said = ("it changes none of note", "note is open")
    return Planted(run.at(100), {"id": KEY}, None, None, said)


# -- held -------------------------------------------------------------------------------------


def acting(more: str = "") -> str:
    sql = "do: [{sql: INSERT INTO out SELECT k AS id FROM event}]"
    return f"  r: {{per: k, on: a ; b, retry: {{attempts: 2}}, {more}{sql}}}"


def dead(store: SqlStore, name: str, draw: Random) -> Planted:
    run = opened(store, name, acting())
    run.actions.failing["r"] = 9
    first = draw.randint(5, 50)
    pair(run, first, first + draw.randint(1, 50))
    return Planted(run.at(900), {"k": KEY}, None, None, ("is dead after 2 attempts",))


def held_up(store: SqlStore, name: str, draw: Random) -> Planted:
    run = opened(store, name, acting("on_dead: hold, "))
    run.actions.failing["r"] = 2
    first = draw.randint(5, 50)
    pair(run, first, first + 10)
    run.at(400)
    if draw.random() < 0.5:
        return Planted(run, {"k": KEY}, None, None, ("is held",))
    pair(run, 410, 420, 8)
    return Planted(run.at(430), {"k": 8}, None, None, ("waits behind entry",))


def skipped(store: SqlStore, name: str, draw: Random) -> Planted:
    run = opened(store, name, acting("on_dead: hold, "))
    run.actions.failing["r"] = 2
    first = draw.randint(5, 50)
    pair(run, first, first + 10)
    run.at(400)
    (entry,) = run.ledger.outbox.open_entries()
    run.ledger.controls.ask("skip", str(entry.number))
    return Planted(run.at(410), {"k": KEY}, None, None, ("is skipped",))


def raising(store: SqlStore, name: str, draw: Random) -> Planted:
    """Its condition raises on the last row."""
    run = opened(store, name, "  r: {per: k, on: a ; b, if: 10 / (sum(v) - 2) > 1}")
    first = draw.randint(5, 50)
    pair(run, first, first + 10)
    return Planted(run.at(500), {"k": KEY}, None, None, ("its condition could not be asked",))


MAKERS: Mapping[str, Sequence[Maker]] = {
    "active": (disabled, used_rule_disabled, added_later, switched_off, parked),
    "seen": (not_seen, behind),
    "rejected": (late, without_time, ahead, signal_of_another_type),
    "where": (nothing_of,),
    "held": (dead, held_up, skipped, raising),
}
