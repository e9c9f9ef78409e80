"""The statement of an outbox entry: a value for each kind, and its text in the store.

Example: `SwitchStatement("pay", False)` is stored as `{"kind": "disable", "rule": "pay"}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Statement:
    """An action in an entry. `action`: its number among the actions of its rule."""

    action: int = field(default=0, kw_only=True)

    @property
    def kind(self) -> str:
        return _KINDS[type(self)]

    @property
    def target(self) -> str | None:
        """The table that it writes."""
        return None


@dataclass(frozen=True, slots=True)
class SqlStatement(Statement):
    """A statement of Spark SQL. `target`: the table that it writes. `reads`: the declared tables
    that it reads. `appends`: it only appends. `unmarked`: it leaves no marker, so it may run more
    than once (G19)."""

    text: str
    target: str | None = None
    reads: frozenset[str] = frozenset()
    appends: bool = False
    unmarked: bool = False

    @property
    def kind(self) -> str:
        return "unmarked" if self.unmarked else "sql"


@dataclass(frozen=True, slots=True)
class FieldsStatement(Statement):
    """A statement with fields for each firing. `fields`: expressions over the firing's rows, by
    name. `types`: the Spark types that fields are cast to. `group`: the columns with one value a
    firing that the expressions name."""

    fields: Mapping[str, str]
    types: Mapping[str, str]
    group: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SignalStatement(FieldsStatement):
    """Raises a signal."""

    event: str


@dataclass(frozen=True, slots=True)
class WebhookStatement(FieldsStatement):
    """Sends a request. `secret` is the name of a variable of the environment, `headers` may hold
    such names. `about`: what the rule says of itself."""

    url: str
    secret: str | None
    headers: Mapping[str, str]
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SwitchStatement(Statement):
    """Enables or disables a rule."""

    rule: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class Question(Statement):
    """A condition that an entry asks, because it is detached, or failed for good in its bucket."""

    text: str


_KINDS: Mapping[type[Statement], str] = {
    SignalStatement: "signal",
    WebhookStatement: "webhook",
    SwitchStatement: "switch",
    Question: "condition",
}
_STORED: Mapping[type[Statement], tuple[str, ...]] = {
    SignalStatement: ("action", "event", "types", "fields", "group"),
    WebhookStatement: ("url", "secret", "headers", "types", "fields", "group", "about"),
}


def encode(statement: Statement) -> str:
    """The text of a statement in a store: SQL, or JSON."""
    match statement:
        case SqlStatement(text) | Question(text):
            return text
        case SwitchStatement():
            said = {"kind": "enable" if statement.enabled else "disable", "rule": statement.rule}
        case _:
            said = {name: getattr(statement, name) for name in _STORED[type(statement)]}
            said = {name: value for name, value in said.items() if value or name != "about"}
    return json.dumps(said, default=dict)


def decode(kind: str, text: str, action: int, **of_sql: Any) -> Statement:
    """The statement of a kind from its text. `of_sql`: the other fields of a SqlStatement."""
    if kind in ("sql", "unmarked"):
        return SqlStatement(text, **of_sql, unmarked=kind == "unmarked", action=action)
    if kind == "condition":
        return Question(text, action=action)
    said = json.loads(text)
    if kind == "switch":
        return SwitchStatement(said["rule"], said["kind"] == "enable", action=action)
    made = SignalStatement if kind == "signal" else WebhookStatement
    return made(**said | {"group": tuple(said["group"]), "action": action})
