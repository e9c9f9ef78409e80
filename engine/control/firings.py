"""Which firings a command shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.engine.core.text.layout import value_text
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.model import Rulebook

_ID = re.compile("[0-9a-f]{6,32}")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The newest `limit` firings of a rule, with a key (texts by column), with an entry in a
    `state` (or `failed`: whose condition does not hold; `damped`), that ended between two instants
    (microseconds), before the firing whose id begins with `before`. None: all."""

    rule: str | None = None
    key: Mapping[str, str] = field(default_factory=dict)
    state: str | None = None
    since: int | None = None
    until: int | None = None
    before: str | None = None
    limit: int | None = None

    @property
    def narrow(self) -> bool:
        """Whether more than a rule is asked for."""
        bounds = (self.state, self.since, self.until, self.before)
        return bool(self.key) or any(bound is not None for bound in bounds)

    def matches(self, firing: Mapping[str, Any]) -> bool:
        """Whether a firing, as it is shown, has the key and the state."""
        key = {name: value_text(value) for name, value in firing["key"].items()}
        states = {entry["state"] for entry in firing["entries"]}
        states |= ({"failed"} & {firing["condition"]}) | ({"damped"} & firing.keys())
        return self.key.items() <= key.items() and (self.state is None or self.state in states)

    def check(self, book: Rulebook) -> None:
        """Raises InputError for what the rulebook does not have, or is no firing's id."""
        if self.rule is not None and self.rule not in book.rules:
            raise InputError([unknown("rules", self.rule, book, "--rule")])
        rules = [r for r in book.rules.values() if self.rule in (None, r.name)]
        names = {name for rule in rules for name in rule.key_names}
        for name in self.key.keys() - names:
            hint = did_you_mean(name, names) or f"they have {', '.join(sorted(names)) or 'none'}"
            message = f"no such rule has the key column `{name}`"
            raise InputError([Problem("unknown-key", message, word_place("--key"), hint)])
        if self.before is not None and not _ID.fullmatch(self.before):
            hint = "6 to 32 hexadecimal digits, as `tidegate firings` prints them"
            message = f"{self.before!r} is no firing's id"
            raise InputError([Problem("bad-firing", message, word_place("--before"), hint)])


def unknown(section: str, name: str, book: Rulebook, word: str) -> Problem:
    """A table or a rule that the rulebook does not declare, named by a `word` of the command."""
    hint = did_you_mean(name, book.tables if section == "tables" else book.rules)
    if section == "rules" and name in book.scripts:
        hint = "it is a script, which only `enable` and `disable` take, without --key"
    message = f"the rulebook {book.name} has no {section[:-1]} `{name}`"
    return Problem(f"unknown-{section[:-1]}", message, word_place(word), hint)
