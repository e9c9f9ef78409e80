"""Requests to an open engine, from any thread; and the obstacles that are left at the end of a run,
as sentences (exit code 4)."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidegate.engine.act.redrive import way_past
from tidegate.engine.app.why_not import ask
from tidegate.engine.control.requests import ask_for_rule
from tidegate.engine.control.rulebooks import Rules, ask_to_reload, key_texts
from tidegate.engine.control.signals import given_once, make_signal
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.policy import Policy
from tidegate.engine.core.state import Parked
from tidegate.engine.replay.why.ask import why
from tidegate.engine.replay.why.model import Story
from tidegate.engine.replay.why_not.answer import WhyNot
from tidegate.engine.replay.why_not.asking import Question
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import EngineError, InputError, Problem, word_place
from tidegate.rules.model import Rulebook

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Requests:
    """The part of `Engine` that makes requests through the store. The loop carries them out with
    its next bucket."""

    rulebook: Rulebook
    _store: SqlStore
    _spark: SparkSession
    _policy: Policy
    _open: bool
    _closed: bool = False

    def wake(self) -> None:
        """Look at once whether there is something to take."""
        raise NotImplementedError

    def signal(
        self,
        event: str,
        fields: Mapping[str, Any] | None = None,
        /,
        *,
        id: str | None = None,
        **named: Any,
    ) -> str:
        """Raise an explicit event, durably (G4); returns its id. The same `id` and fields again are
        accepted and insert nothing. Fields are `named`, or in `fields` (one called `id` must be).
        Raises InputError, or EngineError `signal-conflict`."""
        self._check_open("signal")
        values = given_once(event, fields or {}, named)
        raised = make_signal(self.rulebook, event, values, id, self._store.wall())
        self._store.of(self.rulebook.name).signals.raise_signal(raised)
        self.wake()
        return raised.id

    def enable(self, rule: str, *, key: Mapping[str, Any] | None = None) -> None:
        """Let a rule go on (G24). A parked rule keeps its state; a disabled one begins anew. Its
        texts in quarantine run again. With `key`, a value for each `per` column, it fires for that
        key again. Raises InputError."""
        self._switch("enable", rule, key)

    def disable(
        self, rule: str, *, key: Mapping[str, Any] | None = None, purge: bool = False
    ) -> None:
        """Stop a rule, and the rules that use it as an event, from the next bucket on: it detects
        nothing, and its state is dropped. Its open entries still run; with `purge` they are dead.
        With `key`, a value for each `per` column, it only stops firing for that key. Raises
        InputError."""
        if key is not None and purge:
            message = "`purge` and `key` exclude each other"
            raise InputError([Problem("not-switched", message, word_place("key="))])
        self._switch("disable", rule, key, purge=purge)

    def why(self, firing: str) -> Story:
        """Why a firing is there, and what became of it (`tidegate why`). `firing`: its id, or the
        first six or more of its digits. The story's JSON is that of
        `engine.replay.why.model.as_json`. Raises InputError, and EngineError `firing-gone`,
        `firing-unclear`."""
        self._check_open("why")
        return why(self._store, self.rulebook.name, firing)

    def _switch(
        self, kind: str, rule: str, key: Mapping[str, Any] | None, *, purge: bool = False
    ) -> None:
        self._check_open(kind)
        if key is not None:
            switch = self.rules.enable_for if kind == "enable" else self.rules.disable_for
            switch(rule, key_texts(key))
            return
        ask_for_rule(self._store, self.rulebook, kind, rule, purge=purge)
        self.wake()

    def reload(self, source: str | os.PathLike[str] | None = None) -> int:
        """Ask for another text of the rulebook: a path or YAML, by default its file. It runs from
        the next bucket on if it fits the tables; otherwise it is refused, and the present text goes
        on. Returns the number of its version. Raises InputError."""
        self._check_open("reload")
        version = ask_to_reload(self._store, self.rulebook, source, os.environ)
        self.wake()
        return version

    @property
    def rules(self) -> Rules:
        """The rules as data: listed, put beside the rulebook's text, dropped."""
        self._check_open("rules")
        return Rules(self._store, self.rulebook.name, self.wake)

    def obstacles(self) -> tuple[str, ...]:
        """The obstacles: parked rules, and entries that are held, dead or wait for their next
        attempt. Each is a sentence with the commands that get past it."""
        self._check_open("obstacles")
        found = self._store.of(self.rulebook.name).rule_states.obstacles()
        rules = self.rulebook.rules
        return tuple(
            sentence(o, rules) for o in found if not isinstance(o, Parked) or o.rule in rules
        )

    def why_not(
        self,
        rule: str,
        key: Mapping[str, Any] | None = None,
        at: datetime | str | None = None,
        *,
        since: datetime | str | None = None,
    ) -> WhyNot:
        """Why a rule did not fire for a key in [`since`, `at`]; by default as far as everything is
        seen, and so long before that as the rule remembers, a day at least. `key`: a value for each
        `per` column. Times may be ISO 8601 texts, or `1 h`, for an hour ago; without an offset they
        are in the rulebook's zone. The tables are read again where the store alone cannot tell.
        Raises InputError.

        print(engine.why_not("quick", {"card": 7}))
        """
        self._check_open("why_not")
        question = Question(rule, key or {}, at, since)
        return ask(self._store, self.rulebook.name, question, lambda: self._spark, self._policy)

    def _check_open(self, method: str) -> None:
        if self._open:
            return
        message = f"`{method}` needs an engine that is open"
        hint = f"write `with Engine(..) as engine:` and `engine.{method}(..)` inside of it"
        if self._closed:
            message = f"`{method}`: the engine is closed"
            hint = "its `with` has ended: call it inside, or enter the engine again"
        raise EngineError("engine-not-open", message, hint)


def sentence(obstacle: Entry | Parked, rules: Container[str]) -> str:
    """An obstacle as a sentence: what is stopped, why, and the commands that get past it. `rules`:
    those of the rulebook."""
    if isinstance(obstacle, Parked):
        return (
            f"rule {obstacle.rule} is parked: {obstacle.reason}\n"
            f"    {obstacle.hint}; then `tidegate enable {obstacle.rule}`"
        )
    entry = f"entry {obstacle.number} of rule {obstacle.rule}"
    if obstacle.state == "pending" and not obstacle.progress.attempts:
        return f"{entry} waits for its turn"
    state = "waits for its next attempt" if obstacle.state == "pending" else f"is {obstacle.state}"
    why = obstacle.progress.error or "not tried"
    return f"{entry} {state}: {why}\n    {way_past(obstacle, rules)}"
