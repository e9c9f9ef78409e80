"""What `explain` says of a rulebook, as values. `dataclasses.asdict` of `Explained` is its JSON.

Lengths of time are in microseconds, counts are per key; None: there is no such number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.rules.analysis.triggers import Trigger


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
    """What a rule stores in one context, see `rules.algebra.bound.Bound`."""

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
class ScriptInput:
    """`name` in the script takes event type `event`. kind: table, signal, clock, `script NAME` or
    `rule NAME`; value: the column of an input of one value; columns by which simultaneous ones are
    ordered."""

    name: str
    type: str
    event: str
    kind: str
    value: str | None
    order_by: tuple[str, ...]
    group: bool


@dataclass(frozen=True, slots=True)
class ScriptOutput:
    """taken_by: `script NAME` or `rule NAME`; nobody takes what is only printed or stored."""

    name: str
    type: str
    event: str
    taken_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """What event moves a state, where to, and what is done then, in order. A timed event is its
    marker as it is written; `any other` is every event that no marker names."""

    event: str
    next: int
    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class State:
    """waits_for: markers with their places in the text; unexpected: events that are no move."""

    number: int
    waits_for: tuple[str, ...]
    moves: tuple[Move, ...]
    unexpected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """An event script. machine: `dfa` or `hierarchical`, and why; states: how many there are, None
    where that was not found out. start: what is done at the start, where state 0 is entered.
    table: the first states, states_more: how many known ones are not in it. variables, keys: types
    by name. bytes_max: of the variables of one key; bytes_why: where only `script_state_bytes_max`
    is a bound. statements_max: of one transition, None where unknown or unbounded; unbounded: why a
    transition may take any time."""

    name: str
    enabled: bool
    machine: str
    why: str
    states: int | None
    start: tuple[str, ...]
    table: tuple[State, ...]
    states_more: int
    inputs: tuple[ScriptInput, ...]
    outputs: tuple[ScriptOutput, ...]
    variables: Mapping[str, str]
    keys: Mapping[str, str]
    bytes_max: int
    bytes_why: str
    statements_max: int | None
    unbounded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning with its place, as `validate` gives it; file: where it is not the rulebook's."""

    code: str
    file: str
    line: int
    column: int
    path: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Explained:
    """A rulebook. nodes: operands first; triggers: the first of them, triggers_more: how many are
    not there; cycles: groups of rules that can trigger each other; scripts: each after those whose
    outputs it takes."""

    rulebook: str
    rules: tuple[Rule, ...]
    nodes: tuple[Node, ...]
    triggers: tuple[Trigger, ...]
    triggers_more: int
    cycles: tuple[tuple[str, ...], ...]
    warnings: tuple[Warned, ...]
    scripts: tuple[Script, ...] = ()
