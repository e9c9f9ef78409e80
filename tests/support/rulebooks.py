"""Rulebooks: values over a bank of two tables and a signal, unless others are given; and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pyarrow as pa

from tidegate import rules
from tidegate.rules.checks.gaps import all_features
from tidegate.rules.errors import Place
from tidegate.rules.expressions.nodes import Expression, Name
from tidegate.rules.expressions.parser import parse
from tidegate.rules.model import (
    Change,
    Condition,
    Context,
    EventType,
    Pattern,
    Precedence,
    Reaction,
    Rule,
    Rulebook,
    Settings,
    SignalEvent,
    Sql,
    Start,
    Table,
    TableEvent,
)
from tidegate.rules.yaml.reader import Fields, Items, Node, Scalar

HERE = Place("bank.yaml", 3, 5)
MOVES = pa.schema(
    [
        ("id", pa.int64()),
        ("account", pa.int64()),
        ("amount", pa.decimal128(12, 2)),
        ("kind", pa.string()),
    ]
)
ACCOUNTS = pa.schema([("account", pa.int32()), ("amount", pa.int32()), ("owner", pa.string())])
SCHEMAS: Mapping[str, pa.Schema] = {"moves": MOVES, "accounts": ACCOUNTS}


def table(name: str, path: str = "", **options: Any) -> Table:
    """`start` may be a word or a Start."""
    start = options.pop("start", "earliest")
    start = start if isinstance(start, Start) else Start(start)
    return Table(name, HERE, path=path or f"/lake/{name}", start=start, **options)


def event(name: str, on: str, change: str = "insert", **options: Any) -> TableEvent:
    return TableEvent(name, HERE, Change(change), on, **options)


def signal(name: str, **fields: str) -> SignalEvent:
    return SignalEvent(name, HERE, fields)


TABLES = (table("moves", key=("id",)), table("accounts", key=("account",)))
EVENTS = (
    event("moved", "moves"),
    event("changed", "accounts", "update"),
    signal("noticed", account="bigint", note="string"),
)


def rule(
    on: str = "moved",
    *,
    name: str = "r",
    per: Mapping[str, Sequence[str]] | None = None,
    context: Context = Context.RESTRICTED,
    **more: Any,
) -> Rule:
    """`per` is by event type; the key is named after the first entry."""
    columns = {event: tuple(names) for event, names in (per or {}).items()}
    keys = next(iter(columns.values()), ())
    return flat_rule(name, HERE, parse(on, HERE), on, context, key_names=keys, per=columns, **more)


def flat_rule(
    name: str, place: Place, on: Expression, text: str, context: Context, **more: Any
) -> Rule:
    """A rule of values of its parts, each by its name."""
    own = {part: {f.name for f in fields(part)} for part in (Pattern, Reaction, Precedence)}
    taken = {part: {n: more.pop(n) for n in own[part] & more.keys()} for part in own}
    return Rule(
        name,
        place,
        Pattern(on, text, context, **taken[Pattern]),
        reaction=Reaction(**taken[Reaction]),
        precedence=Precedence(**taken[Precedence]),
        **more,
    )


def altered(rule: Rule, **more: Any) -> Rule:
    """A rule with other values, also those of its pattern, its reaction and its precedence."""
    for part in ("pattern", "reaction", "precedence"):
        old = getattr(rule, part)
        own = {f.name: more.pop(f.name) for f in fields(old) if f.name in more}
        rule = replace(rule, **{part: replace(old, **own)})
    return replace(rule, **more)


def rulebook(
    *given: Rule,
    tables: Sequence[Table] = TABLES,
    events: Sequence[EventType] = EVENTS,
    **settings: Any,
) -> Rulebook:
    """Without rules, each event type has one, `on_<event>`."""
    made = given or [rule(e.name, name=f"on_{e.name}") for e in events]
    return Rulebook(
        "bank",
        None,
        "",
        "UTC",
        {t.name: t for t in tables},
        {e.name: e for e in events},
        {r.name: r for r in made},
        settings=Settings(**settings),
    )


def sql(text: str) -> Sql:
    return Sql(text, HERE)


def condition(text: str, *, query: bool = False) -> Condition:
    return Condition(text, query, HERE)


def over_signals(on: Expression | str, context: Context, keys: Sequence[str] = ()) -> Rulebook:
    """A rule r over the signals a, b, c, d with these keys and v; all of its events are keyed."""
    on = parse(on) if isinstance(on, str) else on
    used = {node.name for node in on.walk() if isinstance(node, Name)}
    per = dict.fromkeys(sorted(used), tuple(keys)) if keys else {}
    made = flat_rule("r", HERE, on, "", context, key_names=tuple(keys), per=per)
    fields = dict.fromkeys((*keys, "v"), "bigint")
    return rulebook(made, tables=(), events=[signal(name, **fields) for name in "abcd"])


def loaded(names: str, broadcasts: str = "", **bodies: str) -> Rulebook:
    """Read from a file's text: signals of these one-letter names with k and v, and without fields;
    rules by what stands in their braces."""
    events = "".join(f"  {name}: {{signal: {{k: bigint, v: bigint}}}}\n" for name in names)
    events += "".join(f"  {name}: {{signal: {{}}}}\n" for name in broadcasts)
    lines = "".join(f"  {name}: {{{body}}}\n" for name, body in bodies.items())
    text = f"rulebook: loop\nevents:\n{events}rules:\n{lines}"
    return rules.load(text, features=all_features())


def plain_value(node: Node) -> Any:
    """What a YAML node says, without its places."""
    match node:
        case Scalar():
            return node.value
        case Items():
            return [plain_value(item) for item in node.items]
        case Fields():
            return {name: plain_value(child) for name, child in node.entries.items()}
