"""Seeded random faults on the loop over memory: nothing lost, doubled, out of order or stuck."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.simulate.judge import BOOK, judge
from tests.simulate.simulation import FAULTS, SHARED, STOPS, Simulation
from tidegate.engine.store import open_store

COMMITS = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events:
  row: {on: insert, table: t}
  load: {on: transaction, table: t}
  landed: {on: commit, table: t}
rules:
  rows: {on: row, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  loads: {on: load, do: [{sql: INSERT INTO out SELECT version FROM event}]}
  lands: {on: landed, do: [{sql: INSERT INTO out SELECT version FROM event}]}
  begun: {on: begin_of landed, do: [{sql: INSERT INTO out SELECT version FROM event}]}
settings: {bucket_rows_max: 3}
"""
SEEDS, QUIET_SEEDS, SHARING_SEEDS, LONG_SEEDS = 6, 1, 2, 200


def simulate(folder: Path, seeds: range, kind: type[Simulation] = Simulation) -> Counter[str]:
    """The faults that really happened; whatever is wrong fails with its seed."""
    hit: Counter[str] = Counter()
    wrong = {}
    effects = 0
    for seed in seeds:
        with open_store(f"sqlite:///{folder}/{seed}.db", create=True) as store:
            store.of("loop").versions.register(BOOK, None)
            simulation = kind(store, seed, hit)
            simulation.live()
            effects += simulation.sink.effects.total()
            verdict = judge(store, simulation.sink, simulation.feed.commits)
            verdict["moved back"] = simulation.moved_back()
            verdict["begun late"] = simulation.chance.begun_late
            if any(verdict.values()):
                wrong[seed] = verdict
    assert wrong == {}
    assert effects > 100 * len(seeds)
    return hit


class Sharing(Simulation):
    """Entries share commits."""

    sharing = staticmethod(lambda _: True)


class Quiet(Simulation):
    """Of five commits one changes no row, and one is a seal."""

    text = COMMITS

    def begin(self) -> None:
        self.feed.quiet = lambda version: version % 5 == 2
        self.feed.seals = lambda version: version % 5 == 4
        super().begin()

    def raises(self, rule: str, version: int) -> bool:
        if rule in ("lands", "begun"):
            return not self.feed.seals(version)
        return self.feed.changes_rows(version)


def test_g10_random_faults_lose_and_double_no_commit_whether_it_changes_rows_or_not(
    tmp_path: Path,
) -> None:
    hit: Counter[str] = Counter()
    for seed in range(QUIET_SEEDS):
        with open_store(f"sqlite:///{tmp_path}/{seed}.db", create=True) as store:
            store.of("loop").versions.register(COMMITS, None)
            live = Quiet(store, seed, hit)
            live.live()
            effects = dict.fromkeys(("rows", "loads", "lands", "begun"), 1)
            verdict = judge(
                store, live.sink, live.feed.commits, effects=effects, raises=live.raises
            )
            assert not any(verdict.values()), (seed, verdict)
            hit["quiet"] += sum(n for (_, v), n in live.sink.effects.items() if live.feed.quiet(v))
    assert hit["quiet"] > 10 * QUIET_SEEDS


@pytest.mark.long
def test_g16b_random_faults_lose_double_and_disorder_nothing(tmp_path: Path) -> None:
    hit = simulate(tmp_path, range(SEEDS))
    left = {kind for kind in FAULTS if not hit[kind]}
    assert left <= {*STOPS, *SHARED}  # tests/simulate/test_stops.py, and the next


def test_g16b_random_faults_in_shared_commits_lose_double_and_disorder_nothing(
    tmp_path: Path,
) -> None:
    hit = simulate(tmp_path, range(SHARING_SEEDS), Sharing)
    assert sum(hit[kind] for kind in SHARED) > SHARING_SEEDS


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_g16b_many_random_faults_lose_double_and_disorder_nothing(tmp_path: Path) -> None:
    for folder, kind in (("alone", Simulation), ("shared", Sharing)):
        (tmp_path / folder).mkdir()
        hit = simulate(tmp_path / folder, range(LONG_SEEDS // 2), kind)
        wanted = {*FAULTS} - ({*SHARED} if kind is Simulation else set())
        assert {kind: hit[kind] for kind in wanted if hit[kind] < LONG_SEEDS // 8} == {}
