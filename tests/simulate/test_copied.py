"""Engines on two copies of one store, at work on the same tables."""

from __future__ import annotations

import copy
import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.simulate.judge import BOOK, EFFECTS, AllHold, Analyst, every_entry, ids_of
from tests.simulate.scenario import SinkMarkers
from tests.support.bench import Bench
from tidegate.engine.app.adopt import check_store
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.values import Signal
from tidegate.engine.store import SqlStore, open_store, shelf
from tidegate.rules.errors import EngineError

STEPS = 40
DAY = 24 * 3_600_000_000
SIGNAL = 1_000  # the first id of a signal; rows have smaller ones


class Twin(Bench):
    """One of two engines that start as an engine does. The other one may go on just before a
    statement of this one runs, and an answer may be lost."""

    other: Twin | None = None
    refused = ""  # why it started no more
    busy = False

    def __init__(self, store: SqlStore, chance: random.Random, book: str, *, shares: bool) -> None:
        self.chance, self.shares = chance, shares
        super().__init__(store, 1, book)
        self.conditions = AllHold()
        self.restart()
        self.hook()

    def copied(self, store: SqlStore) -> Twin:
        """Another engine on a copy of the store, with the same tables."""
        made = copy.copy(self)
        made.store, made.sink, made.other = store, copy.copy(self.sink), self
        self.other = made
        made.restart()
        made.hook()
        return made

    def hook(self) -> None:
        self.sink.fails, self.sink.lost = self.overtaken, self.unheard

    def overtaken(self, entry: Entry) -> Exception | None:  # noqa: ARG002
        if self.other is not None and self.chance.random() < 0.2:
            self.other.step()
        return None

    def unheard(self, entry: Entry) -> Exception | None:  # noqa: ARG002
        return SinkError("[IO] no answer") if self.chance.random() < 0.05 else None

    def analyst(self) -> Analyst:
        return Analyst()

    def restart(self) -> None:
        try:
            check_store(self.book, self.store, SinkMarkers(self.sink), {"out"})
        except EngineError as error:
            self.refused = error.code
            return
        super().restart()
        if self.shares:
            self.share()

    def step(self) -> None:
        if self.refused or self.busy:
            return
        self.busy = True
        if self.chance.random() < 0.2:
            self.skip()
        if self.chance.random() < 0.05:
            self.restart()
        else:
            self.loop.bucket()
        self.busy = False

    def skip(self) -> None:
        """The operator passes over what the other one has done."""
        for entry in every_entry(self.store):
            if entry.state == "held" and entry.progress.fate == "passed":
                self.store.of("loop").controls.ask("skip", str(entry.number))

    def open(self) -> Counter[tuple[str, int]]:
        """The (rule, id) of entries that are held, or wait behind one that is, or were skipped."""
        found = Counter[tuple[str, int]]()
        for entry in every_entry(self.store):
            if entry.state in ("pending", "held", "skipped"):
                found.update((entry.rule, n) for n in ids_of(self.store, entry))
        return found

    def passed(self) -> int:
        return sum(entry.progress.fate == "passed" for entry in every_entry(self.store))


def lives(folder: Path, seed: int) -> tuple[Twin, Twin, Counter[tuple[str, int]]]:
    """Two twins at their end, and what was to be done. Entries share commits with odd seeds. The
    files of both states are in one folder."""
    chance = random.Random(seed)
    waits = "  waits: {on: row ; told}\n"
    book = BOOK + waits + f"settings: {{state_path: {folder}/state, state_unused_hours: 1}}\n"
    with closing(open_store(f"sqlite:///{folder}/one.db", create=True)) as store:
        store.of("loop").versions.register(book, None)
        first = Twin(store, chance, book, shares=seed % 2 == 1)
        first.drain()
        with (
            closing(sqlite3.connect(folder / "one.db")) as one,
            closing(sqlite3.connect(folder / "two.db")) as two,
        ):
            one.backup(two)
    second = first.copied(open_store(f"sqlite:///{folder}/two.db", create=False))
    wanted = Counter[tuple[str, int]]()
    for number in range(STEPS):
        first.feed.commits += chance.random() < 0.3
        first.clock.later(chance.choice((0.1, 2, 70)))
        one = chance.choice((first, second))
        if chance.random() < 0.1:  # it reaches one store alone
            told = Signal(f"s{number}", "told", {"id": SIGNAL + number}, first.clock())
            one.store.of("loop").signals.raise_signal(told)
            wanted["heard", SIGNAL + number] += 1
        one.step()
    for _ in range(4):
        first.clock.later(5_000)
        for one in (first, second):
            one.sink.lost = lambda entry: None  # noqa: ARG005
            if not one.refused:
                one.drain()
    for row in range(first.feed.commits):
        wanted.update({(rule, row): times for rule, times in EFFECTS.items()})
    return first, second, wanted


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 100), marks=pytest.mark.long)])
def test_g16b_two_copies_of_a_store_double_nothing_and_lose_nothing_unsaid(
    tmp_path: Path, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "BYTES_MIN", 1)
    seen = Counter[str]()
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        first, second, wanted = lives(folder, seed)
        effects = first.sink.effects
        assert not effects - wanted, f"seed {seed}: done twice"
        for one in (first, second):
            told = one.open()
            unsaid = {at for at in wanted - effects if at[1] < SIGNAL and not told[at]}
            assert one.refused or not unsaid, f"seed {seed}: lost"
        seen["skipped"] += any(
            e.state == "skipped" for one in (first, second) for e in every_entry(one.store)
        )
        seen["passed"] += bool(first.passed() or second.passed())
        seen["refused"] += bool(first.refused or second.refused)
        for one in (first, second):
            retention, later = one.loop.ports.ledger.retention, first.clock() + 10 * DAY
            seen["removed"] += retention.remove_files(one.book.settings, later)
        for one in (first, second):
            assert one.store.of("loop").buckets.load().carried.tables, f"seed {seed}: G26"
    assert 2 * seen["passed"] >= len(seeds), seen
    assert min(seen["refused"], seen["skipped"], seen["removed"]) > 0, seen
