"""A process that ends while entries share a commit, and what the next one finds and is asked (G16,
G16b): nothing is lost, and nothing is done twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.simulate.judge import Analyst, every_entry
from tests.simulate.matrix import ROUNDS_MAX
from tests.simulate.quick import silence
from tests.simulate.simulation import Killed
from tests.support.bench import Bench, NoConditions
from tests.support.memory import Clock, MemoryFeed, MemorySink
from tests.support.memorystore import MemoryStore
from tidegate.engine.core.entries import Control, Entry
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.values import Firings
from tidegate.engine.replay.memory.store import Asked

SQL = "{sql: INSERT INTO out SELECT id FROM event}"
BOOK = f"""\
rulebook: loop
tables: {{t: {{path: /t, key: [id], start: earliest}}, out: {{path: /out}}}}
events: {{row: {{on: insert, table: t}}}}
rules:
  a: {{on: row, do: [{SQL}, {SQL}, {SQL}]}}
  b: {{on: row, do: [{SQL}]}}
"""
OTHER = f"""\
rulebook: loop
tables: {{t: {{path: /t, key: [id], start: earliest}}, out: {{path: /out}}}}
events: {{row: {{on: insert, table: t}}, written: {{on: insert, table: out}}}}
rules:
  b: {{on: row, enabled: false, do: [{SQL}]}}
  c: {{on: row, do: [{SQL}]}}
"""
EFFECTS = Counter({("a", 0): 3, ("b", 0): 1})
Given = Sequence[tuple[Entry, Firings]]


class Target(MemorySink):
    """`meanwhile` happens to the next shared commit, instead of it."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[Given], None] | None = None
        self.late: list[Given] = []

    def run_together(self, entries: Given) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is None:
            super().run_together(entries)
        else:
            meanwhile(entries)

    def landed(self, entries: Given) -> None:
        """It lands, and the process ends before it knows."""
        MemorySink.run_together(self, entries)
        raise Killed

    def in_part(self, entries: Given) -> None:
        """The first two land, and the process ends."""
        self.landed(entries[:2])

    def under_way(self, entries: Given) -> None:
        """The process ends, and its Spark goes on."""
        self.late.append(entries)
        raise Killed

    def land(self) -> None:
        for entries in self.late:
            MemorySink.run_together(self, entries)
        self.late.clear()


class Shop(Bench):
    """A bucket of four entries that share a commit, in which the process ends."""

    sink: Target

    def __init__(self, ending: str) -> None:
        self.store = MemoryStore()  # type: ignore[assignment]
        self.feed, self.sink, self.clock = MemoryFeed(1), Target(), Clock()
        self.conditions = NoConditions()
        self.unfit = ""
        self.write(BOOK)
        self.restart()
        self.sink.meanwhile = getattr(self.sink, ending)
        with pytest.raises(Killed):
            self.drain()

    def analyst(self) -> Analyst:
        return Analyst()

    def restart(self) -> None:
        super().restart()
        self.share()

    def rest(self) -> None:
        for _ in range(ROUNDS_MAX):
            self.drain()
            self.clock.later(1_000)

    def entries(self, rule: str) -> list[Entry]:
        return [entry for entry in every_entry(self.store) if entry.rule == rule]

    def ask(self, kind: str, entry: Entry) -> None:
        self.store.of("loop").controls.ask(kind, str(entry.number))

    def states(self) -> list[str]:
        return [entry.state for entry in every_entry(self.store)]


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    with silence():
        yield


@pytest.mark.parametrize("ending", ["landed", "in_part", "under_way"])
@pytest.mark.parametrize("text", [BOOK, OTHER])
def test_g16b_each_entry_is_known_by_its_own_note_whatever_the_rulebook_says_then(
    ending: str, text: str
) -> None:
    """The next engine's rulebook lacks one of the rules, the other is disabled."""
    shop = Shop(ending)
    shop.write(text)
    shop.restart()
    shop.sink.land()
    shop.rest()
    assert {one: n for one, n in shop.sink.effects.items() if one[0] != "c"} == EFFECTS
    assert set(shop.states()) == {"done"}
    assert shop.sink.entries == sorted(shop.sink.entries, key=lambda one: one[1])


@pytest.mark.parametrize("kind", ["skip", "redrive"])
@pytest.mark.parametrize("at", range(3))
def test_g16b_an_entry_of_a_shared_commit_that_landed_is_done_whatever_an_operator_asks(
    kind: str, at: int
) -> None:
    shop = Shop("landed")
    shop.restart()
    shop.ask(kind, shop.entries("a")[at])
    shop.rest()
    assert shop.store.asked[-1].answer == "done"
    assert shop.sink.effects == EFFECTS
    assert set(shop.states()) == {"done"}


def test_g18_what_may_still_land_in_a_shared_commit_is_not_passed_over_before_the_first() -> None:
    """An engine has ended, its Spark goes on; the next one cannot run the first entry, and is asked
    to redrive the second: its seal would pass over the first, and without it both would land."""
    shop = Shop("under_way")
    shop.restart()
    first, second, _ = shop.entries("a")
    shop.sink.fails = lambda _: SinkError("[NO] not now")
    shop.ask("redrive", second)
    shop.drain()
    assert f"in one commit with entry {first.number}" in str(shop.store.asked[-1].answer)
    shop.sink.fails = lambda _: None
    shop.sink.land()
    shop.rest()
    assert shop.sink.effects == EFFECTS
    assert set(shop.states()) == {"done"}


def test_g18_the_first_of_a_shared_commit_is_sealed_and_with_it_the_commit_of_all() -> None:
    shop = Shop("under_way")
    shop.restart()
    first, second, third = shop.entries("a")
    shop.ask("skip", first)
    shop.ask("redrive", second)
    shop.drain()
    shop.sink.land()
    shop.rest()
    assert shop.sink.effects == Counter({("a", 0): 2, ("b", 0): 1})
    assert sorted(set(shop.states())) == ["done", "redriven", "skipped"]
    assert [e.state for e in shop.entries("a") if e.number == third.number] == ["done"]


@pytest.mark.parametrize("ending", ["landed", "under_way"])
def test_g24_a_purge_seals_the_entries_of_a_shared_commit_in_their_order(ending: str) -> None:
    shop = Shop(ending)
    shop.restart()
    shop.store.asked.append(Asked(Control(1, "disable", "a", option="purge")))
    shop.drain()
    shop.sink.land()
    shop.rest()
    landed = ending == "landed"
    assert shop.sink.effects == (EFFECTS if landed else Counter({("b", 0): 1}))
    assert {e.state for e in shop.entries("a")} == {"done" if landed else "dead"}
