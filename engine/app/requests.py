"""What may be asked of an engine while it is open, from any thread."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tidegate.engine.askrule import ask_for_rule
from tidegate.engine.explicit import make_signal
from tidegate.engine.obstacles import sentence
from tidegate.engine.rulesdata import Rules, ask_to_reload
from tidegate.engine.state import Parked
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook


class Requests:
    """The part of `Engine` that asks through the store: the loop carries it out with a bucket."""

    rulebook: Rulebook
    _store: SqlStore
    _open: bool

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
        values = {**(fields or {}), **named}
        raised = make_signal(self.rulebook, event, values, id, self._store.wall())
        self._store.raise_signal(self.rulebook.name, raised)
        self.wake()
        return raised.id

    def enable(self, rule: str) -> None:
        """Let a rule go on, from the next bucket on (G24). A parked rule keeps what it had. A
        disabled one begins anew. Raises InputError."""
        self._check_open("enable")
        ask_for_rule(self._store, self.rulebook, "enable", rule)
        self.wake()

    def disable(self, rule: str, *, purge: bool = False) -> None:
        """Stop a rule, and those that use it as an event, from the next bucket on: it detects
        nothing and keeps nothing. Its open entries still run; with `purge` they are dead. Raises
        InputError."""
        self._check_open("disable")
        ask_for_rule(self._store, self.rulebook, "disable", rule, purge=purge)
        self.wake()

    def reload(self, source: str | os.PathLike[str] | None = None) -> int:
        """Ask for another rulebook of the same name, a path or YAML text, by default the file there
        is: from the next bucket on, if it fits the tables; else it is refused, and the one there is
        goes on. Returns the number of its version. Raises InputError."""
        self._check_open("reload")
        version = ask_to_reload(self._store, self.rulebook, source)
        self.wake()
        return version

    @property
    def rules(self) -> Rules:
        """The rules as data: listed, put beside the rulebook's text, dropped."""
        self._check_open("rules")
        return Rules(self._store, self.rulebook.name, self.wake)

    def obstacles(self) -> tuple[str, ...]:
        """What stands in the way of rules: parked rules, entries that are held, dead or wait for
        their next attempt; each as a sentence with the commands that get past it."""
        self._check_open("obstacles")
        found = self._store.obstacles(self.rulebook.name)
        rules = self.rulebook.rules
        return tuple(
            sentence(o, rules) for o in found if not isinstance(o, Parked) or o.rule in rules
        )

    def _check_open(self, method: str) -> None:
        if not self._open:
            raise EngineError(
                "engine-not-open",
                f"`{method}` needs an engine that is open",
                f"write `with Engine(..) as engine:` and `engine.{method}(..)` inside of it",
            )
