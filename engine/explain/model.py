"""What `explain` says of a rulebook, as values. `dataclasses.asdict` of `Explained` is its JSON.

Lengths of time are in microseconds, counts are per key; None: there is no such number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.rules.triggers import Trigger


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the detector's event graph.

    id: the first 12 digits of the digest that names it where all rules are active since one
    instant, the same for the same expression with the same keys in any rulebook; operator: its
    name as written in the language; `event`, one row an instant, or `every row` of it; `rule`; a
    context's name, or `select`, for the choice at the root of a rule; `every key` where broadcasts
    are repeated for each. operands: ids; rules: those whose expression holds it; keys: key columns
    by keyed event type below; horizon_micros: older instances are dropped.
    instances_max, occurrences_max: what it stores; None with a `span_micros`: as many as arrive in
    that time; None without: no bound. searched: what it detects is searched for.
    """

    id: str
    operator: str
    expression: str
    operands: tuple[str, ...]
    rules: tuple[str, ...]
    keys: Mapping[str, tuple[str, ...]]
    horizon_micros: int | None
    instances_max: int | None
    occurrences_max: int | None
    span_micros: int | None
    searched: bool


@dataclass(frozen=True, slots=True)
class Stores:
    """What a rule stores in one context, see `rules.bound.Bound`."""

    instances_max: int | None
    occurrences_max: int | None
    span_micros: int | None
    forgets_micros: int | None
    why: str
    advice: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Damps:
    """What damps a rule, as it is `said`. It remembers at most `instants_max` instants per key
    (None: a bound that holds for all keys together), for so long (None: until something else
    happens); `why` says so."""

    kind: str
    said: str
    instants_max: int | None
    forgets_micros: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. normalised: its expression as it is detected; root: the id of the node that detects
    it; searched: one of its nodes is; stores: by context, its own one first; timers: what makes it
    act without an event; writes: tables that its actions write; damping: what drops firings."""

    name: str
    expression: str
    normalised: str
    context: str
    key_names: tuple[str, ...]
    enabled: bool
    root: str
    searched: bool
    stores: Mapping[str, Stores]
    timers: tuple[str, ...]
    writes: tuple[str, ...]
    damping: tuple[Damps, ...]


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning with its place, as `validate` gives it."""

    code: str
    line: int
    column: int
    path: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Explained:
    """A rulebook. nodes: operands first; triggers: the first of them, triggers_more: how many are
    not there; cycles: groups of rules that can trigger each other."""

    rulebook: str
    rules: tuple[Rule, ...]
    nodes: tuple[Node, ...]
    triggers: tuple[Trigger, ...]
    triggers_more: int
    cycles: tuple[tuple[str, ...], ...]
    warnings: tuple[Warned, ...]
