"""A rulebook over signals, run by the loop on a store on disk and a clock that is set."""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.reference.evaluate import Line
from tests.support.analysts import EveryIdAnalyst
from tests.support.memory import MemoryFeed, MemorySink
from tests.support.rulebooks import condition
from tidegate.engine.act.run import Runner
from tidegate.engine.basis import make_basis
from tidegate.engine.capture.instants import Instants
from tidegate.engine.evaluate.prepare import Prepared, prepare
from tidegate.engine.loop import Loop
from tidegate.engine.store import Ledger, SqlStore
from tidegate.engine.values import Answers, Question, Reading, Signal
from tidegate.rules.model import Rulebook

BEFORE_ACTIVATION = 2  # us: the watermark next before an instant of the grid


class All(EveryIdAnalyst):
    """Conditions that read everything, and always hold."""

    def condition(self, *given: Any, **more: object) -> Reading:
        return Reading(frozenset(given[1].names))

    def hold(self, questions: Sequence[Question], pinned: Mapping[str, int]) -> Answers:
        ids = (i for q in questions for i in q.relation["firing_id"].to_pylist())
        return Answers(frozenset(ids))


class Live:
    """The engine's loop on a rulebook without tables. Its rules become active at `begin`,
    microseconds; `name` is that of the rulebook in the store."""

    def __init__(self, store: SqlStore, book: Rulebook, name: str, begin: int) -> None:
        rules = {n: replace(r, condition=condition("all")) for n, r in book.rules.items()}
        slack = replace(book.settings, commit_slack_ms=0)
        self.book = replace(book, name=name, rules=rules, settings=slack)
        self.store, self.at = store, begin - BEFORE_ACTIVATION
        store.register(name, "", None)
        self.restart()
        assert self.drain(self.at) == 1  # the first bucket, which activates the rules
        self.raised = 0

    def restart(self) -> None:
        """Another engine on the same store."""
        book, store, analyst = self.book, self.store, All()
        epoch = store.acquire(book.name, "one", 600)
        state = store.load(book.name)

        def prepared(*_: Any) -> Prepared:
            return prepare(book, {}, analyst)

        self.loop = Loop(
            basis=make_basis(book, dict.fromkeys(book.rules, "d"), {}, state.activations, prepared),
            prepare=prepared,
            store=store,
            epoch=epoch,
            check_lease=lambda: None,
            feed=MemoryFeed(0),
            conditions=analyst,
            runner=Runner(
                book, MemorySink(), Ledger(store, book.name, epoch), lambda: None, self.now
            ),
            now=self.now,
            instants=Instants(0),
            state=state,
        )

    def now(self) -> int:
        return self.at

    def signal(self, lines: Iterable[Line]) -> None:
        """Raise signals, received at their times."""
        for event, time, fields in lines:
            self.raised += 1
            self.store.raise_signal(self.book.name, Signal(f"s{self.raised}", event, fields, time))

    def drain(self, now: int) -> int:
        """Buckets until there is nothing left at `now`; how many."""
        self.at = now
        count = 0
        while self.loop.bucket() is not None:
            count += 1
        return count

    def found(self) -> list[dict[str, Any]]:
        """All firings, of which `simulate` would print the same."""
        shown = ("rule", "key", "start", "end", "constituents")
        return [{k: f[k] for k in shown} for f in self.store.firings(self.book.name)]
