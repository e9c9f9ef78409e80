"""The executors of a test's world: the engine's own, some attempts of which fail because the test
says so. Webhooks are recorded, and never sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from tidegate.engine.act.executors import CurrentRules, Executor
from tidegate.engine.act.kinds.condition import Decisions
from tidegate.engine.act.kinds.payload import fields_of
from tidegate.engine.act.kinds.signal import Signals
from tidegate.engine.act.kinds.sql import Statements
from tidegate.engine.act.kinds.switch import Switches
from tidegate.engine.act.kinds.unmarked_sql import Unmarked
from tidegate.engine.act.kinds.webhook import Webhooks
from tidegate.engine.act.queues import Waiting
from tidegate.engine.act.targets import Targets
from tidegate.engine.core.entries import Entry, Fate, Outcome
from tidegate.engine.core.policy import Answer, Post
from tidegate.engine.core.ports import Sink, SinkError
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import Firings
from tidegate.engine.replay.cases.mode import NEEDS_SPARK
from tidegate.rules.errors import EngineError

FAILED = "failed by the test"


class Alone:
    """Runs each call at once, in the thread that asks for it. Implements `engine.act.run.Hands`."""

    size = 1

    def submit(self, call: Callable[[], Sequence[Outcome]]) -> Future[Sequence[Outcome]]:
        future: Future[Sequence[Outcome]] = Future()
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)
        return future


class Unprepared(Targets):
    """Nothing is looked up in advance: that would take a thread."""

    def make_ready(self) -> None: ...


class NoPoster:
    """Takes every request, and sends none."""

    def post(self, posts: Sequence[Post]) -> Sequence[Answer]:
        return [Answer() for _ in posts]


class AnySecret(Mapping[str, str]):
    """An environment in which each variable is set: nothing is signed with it that anybody gets."""

    def __getitem__(self, name: str) -> str:
        return "a secret of no use, as long as one must be"

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(slots=True)
class Actions:
    """What a test says about actions, and what became of them. `failing`: by rule, how many of the
    next attempts at its actions fail. `sent`: by rule, the fields of webhooks. `untold`: errors
    `needs-spark`, which end the case and not only an attempt."""

    failing: Counter[str] = field(default_factory=Counter)
    sent: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    untold: list[EngineError] = field(default_factory=list)

    def check(self) -> None:
        """Raises EngineError `needs-spark` for what an attempt would have needed."""
        if self.untold:
            raise self.untold[0]

    def executors(self, sink: Sink, now: Callable[[], int]) -> Mapping[str, Executor]:
        """By kind of entry, its executor. `now`: the engine's clock."""
        posted = _Recorded(Webhooks(sink, NoPoster(), AnySecret()), sink, self.sent)
        known: Mapping[str, Executor] = {
            "sql": Statements(sink),
            "unmarked": Unmarked(sink),
            "signal": Signals(sink, now),
            "switch": Switches(),
            "webhook": posted,
            "condition": Decisions(),
        }
        return {kind: _Tried(one, self) for kind, one in known.items()}


@dataclass(frozen=True, slots=True)
class _Tried:
    """An executor, some of whose attempts fail."""

    real: Executor
    actions: Actions

    def attempt(self, waiting: Waiting, firings: Firings, current: CurrentRules) -> Outcome:
        entry, left = waiting.entry, self.actions.failing
        if entry.is_action and left[entry.rule] > 0:
            left[entry.rule] -= 1
            raise SinkError(FAILED)
        try:
            return self.real.attempt(waiting, firings, current)
        except EngineError as error:
            if error.code == NEEDS_SPARK:
                self.actions.untold.append(error)
            raise

    def seal(self, entry: Entry, firings: Firings) -> Fate:
        return self.real.seal(entry, firings)


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The executor of webhooks, with what it was asked to send."""

    real: Executor
    sink: Sink
    sent: dict[str, list[dict[str, Any]]]

    def attempt(self, waiting: Waiting, firings: Firings, current: CurrentRules) -> Outcome:
        outcome = self.real.attempt(waiting, firings, current)
        rows = {
            row.pop("firing_id"): row
            for row in python_rows(fields_of(waiting.entry, firings, self.sink))
        }
        fields = [rows[one] for one in firings.hex_ids().to_pylist()]
        self.sent.setdefault(waiting.entry.rule, []).extend(fields)
        return outcome

    def seal(self, entry: Entry, firings: Firings) -> Fate:
        return self.real.seal(entry, firings)
