"""What an entry of the outbox says is to be done: a value for each kind, and its text in stores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Statement:
    """An action as it stands in an entry; `action`: its number among its rule's actions."""

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
    """A statement of Spark SQL, the table that it writes, the declared tables that it `reads`, and
    whether it only `appends`. An `unmarked` one leaves no marker: it may be done more than once
    (G19)."""

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
    """What has fields of each firing: expressions over its rows. `group`: the columns with one
    value a firing that they name. `types`: Spark's, of fields that are to be of one."""

    fields: Mapping[str, str]
    types: Mapping[str, str]
    group: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SignalStatement(FieldsStatement):
    """Raises a signal."""

    event: str


@dataclass(frozen=True, slots=True)
class WebhookStatement(FieldsStatement):
    """Sends a request. `secret`, and `headers`, name variables of the environment."""

    url: str
    secret: str | None
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SwitchStatement(Statement):
    """Enables or disables a rule."""

    rule: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class Question(Statement):
    """A condition that is asked by itself, because it is detached or failed for good."""

    text: str


_KINDS: Mapping[type[Statement], str] = {
    SignalStatement: "signal",
    WebhookStatement: "webhook",
    SwitchStatement: "switch",
    Question: "condition",
}


def encode(statement: Statement) -> str:
    """The text of a statement in a store: SQL, or JSON."""
    match statement:
        case SqlStatement(text) | Question(text):
            return text
        case SignalStatement():
            said: dict[str, Any] = {"action": statement.action, "event": statement.event}
        case WebhookStatement():
            said = {
                "url": statement.url,
                "secret": statement.secret,
                "headers": dict(statement.headers),
            }
        case SwitchStatement():
            asked = "enable" if statement.enabled else "disable"
            said = {"kind": asked, "rule": statement.rule}
    if isinstance(statement, FieldsStatement):
        for name in ("types", "fields"):
            said[name] = dict(getattr(statement, name))
        said["group"] = statement.group
    return json.dumps(said)


def decode(kind: str, text: str, action: int, **of_sql: Any) -> Statement:
    """The statement of a kind that a text says. `of_sql`: what a SqlStatement has beside it."""
    if kind in ("sql", "unmarked"):
        return SqlStatement(text, **of_sql, unmarked=kind == "unmarked", action=action)
    if kind == "condition":
        return Question(text, action=action)
    said = json.loads(text)
    if kind == "switch":
        return SwitchStatement(said["rule"], said["kind"] == "enable", action=action)
    fields = said["fields"], said["types"], tuple(said["group"])
    if kind == "signal":
        return SignalStatement(*fields, said["event"], action=action)
    return WebhookStatement(*fields, said["url"], said["secret"], said["headers"], action=action)
