"""Why-not over a store: what is planted through the loop is named, and its answer is that of
`firings`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.reference.examples import fewer
from tests.replay.why_not import misses, stored_misses
from tests.replay.why_not.runs import NINE, Line
from tests.replay.why_not.stored import Stored, told
from tests.support.make import BEGIN, SECOND
from tidegate.engine.replay.why_not.ladder import RUNGS
from tidegate.engine.store import SqlStore, open_store

PLANTED = 20
OF_MEMORY = {
    misses.text_for_number,
    misses.number_for_text,
    misses.not_yet_active,
    misses.parked,
    misses.switched_off,
    misses.nothing_stored,
    misses.not_seen,
    misses.dropped_by_of,
}
"""Makers of evidence that no store has: keys of other types, which are typed there; or that others
plant through the loop."""


@pytest.fixture
def store(empty_store: Path, tmp_path: Path) -> Iterator[SqlStore]:
    file = shutil.copy(empty_store, tmp_path / "why.db")
    with open_store(f"sqlite:///{file}", create=False) as opened:
        yield opened


class Replaced:
    """Stands for the evidence of a miss: the loop runs over the same lines, in a few buckets."""

    def __init__(self, store: SqlStore, name: str, draw: Random) -> None:
        self.store, self.name, self.draw = store, name, draw

    def __call__(self, text: str, lines: Any, until: float, **_: Any) -> Stored:
        run = Stored(self.store, text.replace("rulebook: planted", f"rulebook: {self.name}"))
        each: list[Line] = sorted(lines, key=lambda line: line[1])
        cuts = sorted(self.draw.uniform(0, until) for _ in range(2))
        for first, last in zip([-1, *cuts], [*cuts, until], strict=True):
            for event, seconds, fields in each:
                if first < seconds <= last:
                    run.signal(seconds + 1, event, **fields)
            run.at(last + 1)
        return run


def planted(store: SqlStore, rung: str, number: int, patch: pytest.MonkeyPatch) -> Any:
    """A miss, its answer, and what its last rung is to say."""
    draw = Random(f"{rung} {number}")
    makers: list[Any] = [make for make in misses.MAKERS.get(rung, ()) if make not in OF_MEMORY]
    if rung in stored_misses.MAKERS and rung != "where":
        makers = []
    makers += stored_misses.MAKERS.get(rung, ())
    make = makers[number % len(makers)]
    name = f"{rung}_{number}"
    if make in stored_misses.MAKERS.get(rung, ()):
        miss = make(store, name, draw)
        return miss.run.why_not("r", miss.key, miss.at, miss.since), miss.says, {}
    patch.setattr(misses, "run", Replaced(store, name, draw))
    miss = make(draw)
    later = BEGIN - NINE + SECOND  # what is at nine there is a second later here
    since = None if miss.since is None else miss.since + later
    answer = miss.evidence.asked("r", miss.key, miss.instant + later, since)
    return answer, [s for s in miss.says if ":" not in s], {}


@pytest.mark.parametrize("rung", RUNGS[:-1])
def test_planted_misses_are_named_by_the_store(
    rung: str, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(fewer(PLANTED)):
        answer, says, _ = planted(store, rung, number, monkeypatch)
        last = answer.rungs[-1]
        assert (last.name, last.ok) == (rung, False), (number, last)
        assert [one.name for one in answer.rungs] == [*RUNGS[: len(answer.rungs)]]
        assert all(words in last.sentence for words in says), (number, last.sentence, says)
        assert answer.fired is None
        assert answer.as_json()["rungs"][-1]["rung"] == rung


def test_of_a_window_that_fired_no_context_is_told(store: SqlStore) -> None:
    text = """\
rulebook: fired
events: {a: {signal: {k: bigint}}}
rules: {r: {on: {window: 10 s, of: a}, per: k}}
"""
    run = Stored(store, text)
    run.signal(1, "a", k=7)
    run.at(20)
    answer = run.why_not("r", {"k": 7}, 20, 0)
    assert answer.fired is not None
    (context,) = [rung for rung in answer.rungs if rung.name == "context"]
    assert (context.ok, context.sentence) == (True, "A window takes all its rows.")


WINDOWS = """\
rulebook: shop
timezone: UTC
tables: {items: {path: /items, key: [id]}, out: {path: /out}}
events:
  high: {on: insert, table: items, where: amount > 5}
  low: {on: insert, table: items, where: amount <= 5}
rules:
  lasting: {on: {holds: high, until: low, for: 1 min}, per: id}
  ended: {on: resolved lasting, per: id}
  silent: {on: "not(low)[high, [1 min]]", per: id}
  mean: {on: {over: {window: 1 min, of: [high, low], fire: avg(amount) > 20}}, per: id}
"""


def test_what_came_of_a_window_is_told_from_the_sources(store: SqlStore) -> None:
    run = Stored(store, WINDOWS)
    run.insert(10, {"id": 7, "amount": 9}, {"id": 8, "amount": 9}).at(15)
    run.insert(40, {"id": 7, "amount": 3}).at(200)
    assert told(run.why_not("lasting", {"id": 7})) == (
        "parts",
        "`high` held for id 7 from 09:00:10 on for only 30 s of the 1 min: `low` at 09:00:40 ended"
        " it.",
    )
    assert told(run.why_not("silent", {"id": 7}))[1].startswith("`low` came for id 7 at 09:00:40")
    assert told(run.why_not("mean", {"id": 7}))[1].endswith(
        "Nearest was 09:00:10: avg(amount) is 9.0, of 1 row in 1 min."
    )
    assert told(run.why_not("ended", {"id": 8}))[1] == (
        "Rule lasting fired for id 8 at 09:01:10 and is not over: no `low` came since."
    )
    assert run.why_not("lasting", {"id": 8}).fired is not None


def test_a_row_of_another_event_type_of_the_window_is_not_lost(store: SqlStore) -> None:
    run = Stored(store, WINDOWS.replace("avg(amount) > 20", "count(*) > 2"))
    run.insert(10, {"id": 7, "amount": 3}).at(15)
    assert told(run.why_not("lasting", {"id": 7}))[0] == "occurrences"
    run.insert(20, {"id": 7, "amount": 9}).at(200)
    rung, said = told(run.why_not("mean", {"id": 7}))
    assert (rung, "count(*) is 2, of 2 rows" in said) == ("parts", True), said


def test_a_row_that_is_no_event_of_the_window_is_lost(store: SqlStore) -> None:
    text = WINDOWS.replace("amount > 5}", "amount > 5 AND note = 'x'}")
    run = Stored(store, text).insert(10, {"id": 7, "amount": 9, "note": "y"}).at(200)
    rung, said = told(run.why_not("lasting", {"id": 7}))
    assert (rung, "note is y" in said) == ("where", True), said
