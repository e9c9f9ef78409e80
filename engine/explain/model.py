"""What `explain` says of a rulebook, as values. Its JSON is `dataclasses.asdict` of `Explained`.

Lengths of time are in microseconds. Counts are per key. None: there is no such number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.rules.algebra.bound import Bound
from tidegate.rules.analysis.triggers import Trigger
from tidegate.rules.model import Detect


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the detector's event graph.

    id: the first 12 digits of its digest. The same expression with the same keys has the same id in
    any rulebook.
    operator: one of
        an operator of the language, such as `;`
        `event`: one row of each instant; `every row`: all of them
        `rule`: the detections of a rule
        a context, or `select`: the choice at the root of a rule
        `every key`: a broadcast, repeated for each key
    operands: ids. rules: those whose expression holds the node. keys: key columns of the keyed
    event types below it. horizon_micros: older instances are dropped.
    instances_max, occurrences_max: how many it stores. If they are None, `span_micros` says that it
    stores what arrives in that time; without it there is no bound.
    searched: whether the engine searches for what it detects.
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
class Damps:
    """One damping of a rule. said: it in words. instants_max: so many instants are remembered per
    key; None: the bound is for all keys together. forgets_micros: for so long; None: until
    something else happens. why: both in words."""

    kind: str
    said: str
    instants_max: int | None
    forgets_micros: int | None
    why: str


WINDOW = "window"
"""What chooses for a rule that has no context."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. sentences: what it does, in the order in which that happens. normalised: the
    expression that the detector runs. root: id of the node that detects it. searched: whether one
    of its nodes is. choices: in a sentence, which matches it would take in each context, and what
    it would consume; its own context first. stores: what it would store, likewise. timers: what
    makes it act without an event. writes: the tables that its actions write. context: that of the
    rule, or `WINDOW`. damping: what drops firings. description, severity, labels: what it says of
    itself.
    where: the condition that is asked before the context chooses. asked: the parts of the
    expression of whose matches it is asked. business_days: which days it counts as such.
    asked_by: "scan", of many matches at once; "search", of those that the nodes of the graph find,
    at each instant. watched: the tables among `writes` that an event type is of: what is written
    there shares no commit (G16).
    whole: why the driver detects it, in one place, whatever the setting `detect` says, and for
    `tidegate.detect` of a DataFrame; None: executors may, by partition of its key."""

    name: str
    sentences: tuple[str, ...]
    expression: str
    normalised: str
    context: str
    key_names: tuple[str, ...]
    enabled: bool
    root: str
    searched: bool
    choices: Mapping[str, str]
    stores: Mapping[str, Bound]
    timers: tuple[str, ...]
    writes: tuple[str, ...]
    damping: tuple[Damps, ...]
    description: str
    severity: str | None
    labels: Mapping[str, str]
    where: str | None = None
    asked: tuple[str, ...] = ()
    business_days: str | None = None
    asked_by: str | None = None
    watched: tuple[str, ...] = ()
    whole: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptInput:
    """An input: event type `event`, which is called `name` in the script. kind: table, signal,
    clock, `script NAME` or `rule NAME`. value: the column, for an input of one value. order_by:
    columns that order simultaneous events. group: whether it has the script's group."""

    name: str
    type: str
    event: str
    kind: str
    value: str | None
    order_by: tuple[str, ...]
    group: bool


@dataclass(frozen=True, slots=True)
class ScriptOutput:
    """An output. taken_by: `script NAME` or `rule NAME`; empty where it is only printed or
    stored."""

    name: str
    type: str
    event: str
    taken_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """A transition of an automaton: its event, the next state, and the actions, in order. A timed
    event is its marker as written, `elapse[5 min]`; `any other`: an event that no marker names."""

    event: str
    next: int
    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class State:
    """A state of an automaton. waits_for: markers with their places in the text. unexpected: events
    without a transition."""

    number: int
    waits_for: tuple[str, ...]
    moves: tuple[Move, ...]
    unexpected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """An event script.

    machine, why: `dfa` or `hierarchical`, with the reason. states: how many; None: not explored to
    the end. start: the actions on entering state 0. table: the first states; states_more: how many
    known ones are not in it. variables, keys: name -> type. bytes_max: of the variables of one key;
    bytes_why: the variables that only `script_state_bytes_max` bounds. statements_max: of one
    transition; None: unknown or unbounded. unbounded: why a transition may take any time.
    whole: as of a `Rule`.
    """

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
    whole: str | None = None


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning with its place, as in `validate`. file: empty for the rulebook's own file."""

    code: str
    file: str
    line: int
    column: int
    path: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Explained:
    """A rulebook. nodes: operands first. triggers: the first edges of the triggering graph;
    triggers_more: how many further ones there are. cycles: groups of rules that can trigger each
    other. scripts: each comes after those whose outputs it takes. detect: the setting, who detects
    in `run` what has a key."""

    rulebook: str
    rules: tuple[Rule, ...]
    nodes: tuple[Node, ...]
    triggers: tuple[Trigger, ...]
    triggers_more: int
    cycles: tuple[tuple[str, ...], ...]
    warnings: tuple[Warned, ...]
    scripts: tuple[Script, ...] = ()
    detect: Detect = "auto"
