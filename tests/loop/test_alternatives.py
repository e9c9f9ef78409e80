"""Alternatives of rules whose statements are for firings that are parted in several ways (G23)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.support.analysts import EveryIdAnalyst
from tests.support.bench import Bench
from tidegate.engine.act.executors import CurrentRules, SomeFailedError, done
from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Entry, Fate, Outcome
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.values import Firings, Reading
from tidegate.engine.store import SqlStore

SQL = "{sql: INSERT INTO out SELECT id FROM event}"
HOOK = "{webhook: {url: 'https://x.example.org/a', body: {id: id}}}"


def book_of(do: str, more: str = "") -> str:
    return f"""\
rulebook: loop
tables: {{t: {{path: /t, key: [id], start: earliest}}, out: {{path: /out}}}}
events: {{row: {{on: insert, table: t}}}}
rules:
  pay:
    on: row
    per: id
    retry: {{attempts: 1000}}
    within: 5 min
    do: [{do}]
    otherwise: [{SQL}]
    {more}
"""


class Receiver:
    """An executor of webhooks: by id of the row, which ones are `down`, or refused for good."""

    def __init__(self) -> None:
        self.down, self.never = set[int](), set[int]()

    def attempt(self, waiting: Waiting, firings: Firings, current: CurrentRules) -> Outcome:  # noqa: ARG002
        ids = dict(
            zip(firings.relation["id"].to_pylist(), firings.hex_ids().to_pylist(), strict=True)
        )
        again = [ids[n] for n in ids if n in self.down]
        never = [ids[n] for n in ids if n in self.never]
        if again or never:
            raise SomeFailedError("[503] no", again, never)
        return done(waiting.entry)

    def seal(self, entry: Entry, firings: Firings) -> Fate:  # noqa: ARG002
        return Fate.SEALED


class Analyst(EveryIdAnalyst):
    def fields(self, *given: Any, **more: Any) -> Reading:  # noqa: ARG002
        return Reading(frozenset())


class Sending(Bench):
    """A loop whose webhooks go to a `receiver`, and whose statements fail while it is `broken`, but
    for the alternative's."""

    def __init__(self, store: SqlStore, text: str) -> None:
        self.receiver, self.broken = Receiver(), True
        super().__init__(store, 3, text)
        self.sink.fails = self._fails

    def restart(self) -> None:
        super().restart()
        self.loop.runner.executors["webhook"] = self.receiver  # type: ignore[index]

    def analyst(self) -> EveryIdAnalyst:
        return Analyst()

    def _fails(self, entry: Entry) -> Exception | None:
        return SinkError("[NO] no") if self.broken and not entry.alternative else None

    def on(self, seconds: int) -> None:
        for _ in range(seconds // 30):
            self.clock.later(30)
            self.drain()
            self.loop.work()

    def alternatives(self) -> list[int]:
        """How often the alternative was done for each firing that had one."""
        done_for = [ids for app, _, ids in self.sink.commits if app.endswith("/otherwise") and ids]
        return sorted(Counter(one for ids in done_for for one in ids).values())


@pytest.mark.parametrize(
    ("do", "more", "down"),
    [
        (HOOK, "", {0, 1}),  # the entry is narrowed to these
        (f"{HOOK}, {SQL}", "", {0, 1}),
        (f"{SQL}, {HOOK}", "for_each: firing", {0, 1}),
        (f"{HOOK}, {SQL}", "for_each: firing", {0, 1, 2}),
    ],
)
def test_g23_a_firing_has_its_alternative_done_once_whatever_else_is_acted_on_with_it(
    store: SqlStore, do: str, more: str, down: set[int]
) -> None:
    bench = Sending(store, book_of(do, more))
    bench.receiver.down = down
    bench.drain()
    bench.on(600)
    expected = [1, 1, 1] if "sql" in do else [1] * len(down)
    assert bench.alternatives() == expected
    bench.restart()
    bench.on(300)
    assert bench.alternatives() == expected


def test_g23_what_is_parted_after_its_alternative_has_no_other(store: SqlStore) -> None:
    bench = Sending(store, book_of(HOOK))
    bench.receiver.down = {0, 1, 2}
    bench.drain()
    bench.on(600)
    bench.receiver.down, bench.receiver.never = {1}, {0}
    bench.on(300)
    assert [state for _, state in bench.states()] == ["pending", "dead"]
    bench.restart()
    bench.on(300)
    assert bench.alternatives() == [1, 1, 1]


def test_g24_what_is_purged_has_no_alternative(store: SqlStore) -> None:
    bench = Sending(store, book_of(SQL))
    bench.drain()
    bench.broken = False
    store.of("loop").controls.ask("disable", "pay", option="purge")
    bench.on(300)
    bench.restart()
    bench.on(300)
    assert bench.alternatives() == []


def test_g18_a_redrive_takes_no_text_of_the_other_branch(store: SqlStore) -> None:
    """Actions are numbered through both: what was the second one is now the alternative's."""
    text = book_of(f"{SQL}, {SQL}").replace("attempts: 1000", "attempts: 1")
    bench = Sending(store, text)
    bench.drain()
    assert [number for number, state in bench.states() if state == "held"] == [1]
    bench.write(book_of(SQL).replace("attempts: 1000", "attempts: 1"))
    bench.restart()
    bench.broken = False
    store.of("loop").controls.ask("redrive", "2")
    bench.drain()
    [answered] = store.of("loop").status.shown()["answered"]
    assert "no action number 2 any more" in answered["answer"]
