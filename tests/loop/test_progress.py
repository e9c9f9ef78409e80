"""What a loop is at says how far it is, and names itself."""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from tests.support.bench import Bench
from tests.support.make import BEGIN, SECOND
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.core.text.logs import ASKING, go_on
from tidegate.engine.core.values import Answers, Question, Signal
from tidegate.engine.store import LeaseKeeper, SqlStore

BOOK = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out, start: earliest}}
events:
  row: {on: insert, table: t}
  written: {on: insert, table: out}
  opened: {signal: {}}
  closed: {signal: {}}
rules:
  a: {on: row, if: id >= 0, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  b:
    on: row
    if: {sql: SELECT firing_id FROM event}
    do: [{sql: INSERT INTO out SELECT id FROM event}]
  c: {on: written, if: id >= 1}
  d: {on: "P(opened, [1500 ms]: 'SELECT max(id) FROM t', closed)"}
"""


class Watched(Bench):
    """A bench that notes what it is at, whenever something outside is asked."""

    def __init__(self, store: SqlStore) -> None:
        super().__init__(store, 0, BOOK)
        self.seen: list[str] = []
        self.conditions = self
        self.feed.meanwhile = self.note
        self.feed.fails = self.reading
        self.restart()

    def note(self) -> None:
        self.seen.append(str(self.loop.stages.now))

    def reading(self, first: int, last: int) -> bool:
        self.note()
        return False

    def hold(self, questions: Sequence[Question]) -> Answers:
        """As Delta's does: expressions together, each query alone."""
        go_on(ASKING, len(questions))
        self.note()
        ids = (one for q in questions for one in q.relation["firing_id"].to_pylist())
        return Answers(held=frozenset(ids))

    def sample(self, text: str, pinned: Mapping[str, int]) -> pa.Scalar:
        self.note()
        return pa.scalar(1)


def test_each_step_says_which_of_how_many_is_in_hand(store: SqlStore) -> None:
    bench = Watched(store)
    bench.clock.at = BEGIN - SECOND
    bench.drain()
    for event, second in (("opened", 1), ("closed", 5)):
        store.of("loop").signals.raise_signal(Signal(event, event, {}, BEGIN + second * SECOND))
    bench.feed.commits, bench.clock.at = 6, BEGIN + 60 * SECOND
    bench.seen.clear()
    assert bench.loop.bucket() is not None
    assert bench.seen == [
        "looking for new commits in tables, 1 of 2",
        "looking for new commits in tables, 2 of 2",
        "reading tables, 1 of 2",
        "reading tables, 2 of 2",
        "taking samples, 1 of 2",  # at 2.5 s and 4 s
        "taking samples, 2 of 2",
        "asking conditions, 1 to 2 of 3",
        "asking conditions, 3 of 3",
    ]


def test_what_takes_long_is_said_to_the_store_until_it_is_over(store: SqlStore) -> None:
    def shown() -> tuple[str, str]:
        status = store.of("loop").status.shown()
        return status["state"], status["doing"]

    with LeaseKeeper(store, "loop", 600) as keeper:
        keeper.say(Activity("catching up", commits=3))
        keeper.at("asking conditions, 3 of 12")
        assert shown() == ("catching up", "asking conditions, 3 of 12")
        keeper.at("")
        assert shown() == ("catching up", "")
        keeper.say(Activity("waiting", "entry 3 of rule a"))
        keeper.at("running actions, 1 of 2")
        assert shown() == ("catching up", "running actions, 1 of 2")
        keeper.at("")
        assert shown() == ("waiting", "entry 3 of rule a")
        keeper.at("running actions, 2 of 2")
        keeper.say(Activity("idle"))
        assert shown() == ("idle", "")
