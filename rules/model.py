"""What a rulebook says, as frozen values: the only thing the engine learns from YAML.

Reading (`rules.load`) has resolved names, defaults and paths; nothing here is text that still has
to be parsed, except Spark SQL, which Spark parses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from tidegate.rules.errors import Place, Problem
from tidegate.rules.expressions.nodes import Clock, Cron, Expression
from tidegate.rules.expressions.predicates import Predicate

if TYPE_CHECKING:  # a rulebook without scripts does without their language
    from tidegate.rules.eventscript.tree import Program

TRANSITION_TABLES = ("inserted", "deleted", "old_updated", "new_updated")
LATEST = "latest"  # the plain name of the context `restricted`
AHEAD_MICROS = 3_600_000_000  # how far an event time may lie ahead of its commit (G5)


class Change(StrEnum):
    """What of a table's commits are occurrences of an event type: rows of their change data feed,
    or the commits themselves."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    CHANGE = "change"  # any of the three
    TRANSACTION = "transaction"  # each commit that changes rows
    COMMIT = "commit"  # each commit but the seals of engines

    @property
    def is_commit(self) -> bool:
        """Whether an occurrence is a whole commit, and no row."""
        return self in (Change.TRANSACTION, Change.COMMIT)


class Context(StrEnum):
    """Parameter contexts (semantics 3). `Context("latest")` is `restricted`, by its plain name."""

    RESTRICTED = "restricted"
    RECENT = "recent"
    CHRONICLE = "chronicle"
    CONTINUOUS = "continuous"
    CUMULATIVE = "cumulative"
    UNRESTRICTED = "unrestricted"

    @classmethod
    def _missing_(cls, value: object) -> Context | None:
        return cls.RESTRICTED if value == LATEST else None


class Coupling(StrEnum):
    """Coupling modes (HiPAC), in the order from early to late."""

    IMMEDIATE = "immediate"
    DEFERRED = "deferred"
    DETACHED = "detached"


@dataclass(frozen=True, slots=True)
class Selection:
    """Hinze & Voisard's parameters (semantics 6), given in place of a context's name."""

    first: str = "all"  # first | last | all
    then: str = "all"
    pairs: str = "unique"  # unique | all
    repeat: bool = False
    evaluate: str = "early"  # early | at_end


@dataclass(frozen=True, slots=True)
class Start:
    """Where a table's cursor begins: kind `now`, `earliest`, `snapshot`, `version` or `time`.

    `value` is the version number, or the instant in microseconds since the epoch.
    """

    kind: str = "now"
    value: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A declared table. Exactly one of `path` (absolute, or a URI) and `catalog` is set."""

    name: str
    place: Place
    path: str | None = None
    catalog: str | None = None
    key: tuple[str, ...] = ()
    start: Start = Start()
    on_restore: str = "stop"  # stop | changes | skip
    on_unpaired: str = "stop"  # stop | delete_insert


@dataclass(frozen=True, slots=True)
class TableEvent:
    """An event type over the changes of a table. Instants: the commit's, or column `time`.

    `columns` maps a parameter's name to the table column it is taken from; empty means all. `rest`:
    the table's other columns are parameters, too (`columns: ["*", b as c]`).
    Those of the beginning of an update (`engine.core.event_names`) are of the pre-image.
    """

    name: str
    place: Place
    change: Change
    table: str
    of: tuple[str, ...] = ()
    where: str | None = None
    where_place: Place | None = None
    time: str | None = None
    lateness_micros: int = 0
    ahead_micros: int = AHEAD_MICROS
    columns: Mapping[str, str] = field(default_factory=dict)
    rest: bool = False

    @property
    def picks(self) -> bool:
        """Whether `columns` are all the parameters that it has of the table."""
        return bool(self.columns) and not self.rest

    def parameters(self, columns: Iterable[str]) -> dict[str, str]:
        """By parameter, its column, of a table with these columns."""
        if self.picks:
            return dict(self.columns)
        named = {*self.columns.values()}
        return {name: name for name in columns if name not in named} | dict(self.columns)

    def clashes(self, columns: Iterable[str]) -> list[str]:
        """New names of columns that other columns of the table have already. SQL does not tell
        upper from lower case."""
        named = {column.lower() for column in self.columns.values()}
        own = {name.lower() for name in columns} - named
        return [name for name in self.columns if self.rest and name.lower() in own]


@dataclass(frozen=True, slots=True)
class SignalEvent:
    """An explicit event type; `fields` maps a parameter to its Spark SQL type."""

    name: str
    place: Place
    fields: Mapping[str, str]
    where: str | None = None
    where_place: Place | None = None
    from_table: str | None = None  # its inserted rows are occurrences, too


@dataclass(frozen=True, slots=True)
class ClockEvent:
    """A named absolute event: `at` (a Clock) or `cron` as its expression."""

    name: str
    place: Place
    expression: Clock | Cron
    timezone: str
    days: tuple[int, ...] = ()  # 0 = Monday; empty = every day
    excluded: tuple[str, ...] = ()  # ISO dates
    holidays: tuple[str, ...] = ()  # regions, as DE-BE
    misfire: str = "fire_all"  # fire_all | fire_last | skip


@dataclass(frozen=True, slots=True)
class ScriptEvent:
    """What a script emits. `output`: its name in the script, `$error` for faults; `fields`: the
    columns of the script's key (`key_names`) and those of the value, with their Spark SQL types."""

    name: str
    place: Place
    script: str
    output: str
    fields: Mapping[str, str]
    key_names: tuple[str, ...] = ()


EventType = TableEvent | SignalEvent | ClockEvent | ScriptEvent


@dataclass(frozen=True, slots=True)
class ScriptInput:
    """What an input of a script is: an event type or a rule. `value`: the column that an input of
    one value takes; None for a structure, for nothing, and for the only column of a table."""

    event: str
    value: str | None = None
    order_by: tuple[str, ...] = ()  # of occurrences at one instant


@dataclass(frozen=True, slots=True)
class Script:
    """An event script. `inputs` by their names in the script; `outputs`: the event type of each."""

    name: str
    place: Place
    program: Program
    inputs: Mapping[str, ScriptInput]
    outputs: Mapping[str, str]
    machine: str = "auto"  # auto | dfa | hierarchical
    on_error: str = "log"  # ignore | log | stop
    expire_key_after_micros: int | None = None
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Sql:
    """One Spark SQL statement that reads `event`."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class SignalAction:
    """Raises `event` once a firing; `fields` maps its parameters to expressions as in `if`."""

    event: str
    fields: Mapping[str, str]
    place: Place


@dataclass(frozen=True, slots=True)
class Webhook:
    """POSTs to `url` once a firing, at least once (G29). `secret`: the environment variable of the
    secret that signs; `headers` may name such variables; `fields` of the body are expressions as in
    `if`."""

    url: str
    secret: str | None
    headers: Mapping[str, str]
    fields: Mapping[str, str]
    place: Place


@dataclass(frozen=True, slots=True)
class Switch:
    """Enables or disables a rule."""

    rule: str
    enabled: bool
    place: Place


Action = Sql | SignalAction | Webhook | Switch


@dataclass(frozen=True, slots=True)
class Condition:
    """`if`: an expression over the rows of one firing, or (`query`) a query of firing_ids."""

    text: str
    query: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Throttle:
    """At most `count` firings of a key in any time of this length."""

    count: int
    within_micros: int


@dataclass(frozen=True, slots=True)
class Dedupe:
    """No firing of a key whose rows have the values of another within this time, in the columns
    `by` of the parameter relation."""

    by: tuple[str, ...]
    within_micros: int


@dataclass(frozen=True, slots=True)
class Hysteresis:
    """A firing of a key for which `fire` holds, and then none until `rearm` has held for one. Both
    are expressions over the rows of one firing."""

    fire: Condition
    rearm: Condition


DAMPINGS = ("hysteresis", "dedupe", "cooldown", "throttle")
"""The keys that damp a rule, in the order in which they are evaluated."""


@dataclass(frozen=True, slots=True)
class Damping:
    """Which of a rule's firings are dropped though its condition let them through, key by key. What
    is not None is asked in this order; the first that refuses a firing drops it."""

    hysteresis: Hysteresis | None = None
    dedupe: Dedupe | None = None
    cooldown_micros: int | None = None
    throttle: Throttle | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """Attempts of one entry, with doubling pauses between the two bounds."""

    attempts: int = 3
    backoff_min_micros: int = 1_000_000
    backoff_max_micros: int = 60_000_000


@dataclass(frozen=True, slots=True)
class Constraint:
    """The `where` of a rule: a condition between constituents, asked before the context chooses."""

    tree: Predicate
    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a rule detects, and in which context.

    `per` maps every *keyed* event type (or rule) of `on` to its columns, in the order of
    `key_names`; event types of `on` that are not in it broadcast to all keys (S7).
    """

    on: Expression
    text: str
    context: Context
    selection: Selection | None = None
    key_names: tuple[str, ...] = ()
    per: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    context_word: str = field(default="", compare=False)  # the plain name that it was written with
    ignore_own: bool = False  # what its rule's own actions write is no event of it (G22)
    where: Constraint | None = None


@dataclass(frozen=True, slots=True)
class Reaction:
    """What a rule does about its firings, and how."""

    actions: tuple[Action, ...] = ()
    coupling: Coupling = Coupling.DEFERRED
    for_each: str | None = None  # None | "firing"
    net: str = "firing"  # | "bucket": what the transition tables sum up
    dry: bool = False  # all but its actions (mode: dry)
    at_least_once: bool = False  # its statements may be such as leave no marker (G19)
    retry: Retry = Retry()
    on_dead: str = "continue"
    within_micros: int | None = None
    otherwise: tuple[Action, ...] = ()

    @property
    def every(self) -> tuple[Action, ...]:
        """Its actions by their numbers."""
        return (*self.actions, *self.otherwise)


@dataclass(frozen=True, slots=True)
class Precedence:
    """Which rules act before it and after it (G15)."""

    priority: int = 0
    precedes: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()


class Severity(StrEnum):
    """How grave a firing is, from slight to grave. The list is closed: it labels metrics."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class About:
    """What a rule says of itself to those who get its firings. It changes nothing that is detected
    or done. Example: `About("a card in two cities", {"team": "fraud"}, Severity.CRITICAL)`."""

    description: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    severity: Severity | None = None

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> About:
        """From what is `said`."""
        grave = said.get("severity")
        named = said.get("description", ""), said.get("labels", {})
        return cls(*named, Severity(grave) if grave else None)

    @property
    def said(self) -> dict[str, Any]:
        """What of it is given, by name, as firings and webhooks carry it."""
        found = {
            "description": self.description,
            "severity": self.severity and str(self.severity),
            "labels": dict(self.labels),
        }
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True, slots=True)
class Rule:
    """One event-condition-action rule."""

    name: str
    place: Place
    pattern: Pattern
    condition: Condition | None = None
    condition_coupling: Coupling = Coupling.DEFERRED
    damping: Damping | None = None
    reaction: Reaction = Reaction()
    precedence: Precedence = Precedence()
    enabled: bool = True
    disabled_for: tuple[Mapping[str, Any], ...] = ()  # keys, by column
    about: About = About()

    @property
    def asks_later(self) -> bool:
        """Whether the condition is asked by itself, and not with the bucket that detected."""
        return self.asks and self.condition_coupling is Coupling.DETACHED

    @property
    def asks(self) -> bool:
        """Whether anything is asked of its firings: a condition, or when to fire again."""
        return self.condition is not None or self.levels is not None

    @property
    def levels(self) -> Hysteresis | None:
        """The conditions that raise and lower its alarm; None without `hysteresis`."""
        return self.damping.hysteresis if self.damping else None


def in_context(rule: Rule, context: Context) -> Rule:
    """The rule as it detects in another context. For a window that is no matter."""
    return replace(rule, pattern=replace(rule.pattern, context=context, selection=None))


IN_STORE = "store"
"""The `state_path` with which all that is carried stays in the store."""
Detect = Literal["driver", "spark", "auto"]
"""Where rules with a key are detected (G26)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Every limit by its name, with its unit (guarantees); `settings:` and `--set` override."""

    commit_slack_ms: int | None = None  # None: 0 for one table without timers, else 200 (G2)
    skew_max_seconds: int = 10  # G1, G3
    bucket_rows_max: int = 1_000_000  # G8
    detect: Detect = "auto"  # where rules with a key are stepped
    driver_rows_max: int = 5_000_000  # that one process looks at; `auto` gives more to executors
    driver_carried_max: int = 50_000_000  # instances; likewise
    spark_rows_max: int = 200_000_000  # of a bucket, that executors read themselves
    timers_per_bucket_max: int = 100_000  # of clocks, and as many others (G8)
    period_min_ms: int = 1_000  # of P, P* and windows (S11)
    misfire_grace_seconds: int = 60  # what is due for longer was missed (G3)
    signals_max: int = 100_000  # of one bucket (G4)
    outbox_entries_max: int = 10_000  # G13
    actions_in_parallel_max: int = 0  # entries that are acted on at a time; 0: one a core (G15)
    entries_per_commit_max: int = 50  # INSERTs that share a commit; 1: none do (G16)
    dead_in_a_row_max: int = 10  # of one rule; then it is suspended
    firings_per_rule_per_minute_max: int = 100_000  # 0: any number (G22)
    outbox_age_max_days: int = 30  # G20
    firings_retention_days: int = 30  # G13
    retention_margin_hours: int = 24  # told before a table's past is gone that is needed
    history_retention_days: int = 30  # of buckets, placed signals, rejected rows; G4, G13
    lease_seconds: int = 30  # G21
    max_cascade_depth: int = 16
    carried_per_key_max: int = 10_000
    window_rows_max: int = 100_000_000  # of one rule in one step, in all of its windows (G8)
    dedupe_keys_max: int = 1_000_000  # of one rule, not yet forgotten
    state_partitions: int = 256  # at most so many (G26)
    state_path: str | None = None  # None: beside a store on SQLite, else in the store (G26)
    state_unused_hours: int = 24  # of files of the state
    state_unused_bytes_max: int = 10_737_418_240  # of them together
    search_steps_max: int = 1_000_000  # joins of instances, at one instant of one key
    script_steps_max: int = 1_000_000  # statements of one transition
    script_state_bytes_max: int = 65_536  # of one instance
    script_paths_max: int = 10_000  # of one instance
    script_markers_max: int = 100_000  # of one script, counts expanded
    script_states_max: int = 40_000  # of one machine
    script_exploring_steps_max: int = 3_000_000  # of all scripts, when they are validated
    script_errors_kept_max: int = 1_000  # of one bucket
    statement_seconds_max: int = 3_600
    strikes_max: int = 10  # deaths of Java, overruns; then a text is not run any more (G13)
    outage_max_seconds: int = 300  # G7
    spark_restarts_max: int = 3  # in an hour, of a Spark that the engine has started
    yaml_bytes_max: int = 1_048_576
    inbox_bytes_max: int = 4_194_304  # of one request's body
    inbox_batch_max: int = 10_000  # signals of one request
    inbox_requests_per_second_max: int = 5_000  # of one key; where there are none, of one address
    inbox_window_seconds: int = 300  # how old a signature may be (G28)
    inbox_connections_max: int = 512
    inbox_streams_max: int = 100  # programs that wait at a time
    inbox_client_seconds_max: int = 30  # for a client that neither sends on nor reads on
    console_sessions_max: int = 1_000  # of all keys
    console_session_minutes: int = 480  # from the login on
    webhooks_in_flight_max: int = 32  # requests of all rules (G29)
    webhook_seconds_max: int = 10  # from the connection to the answer


@dataclass(frozen=True, slots=True)
class Rulebook:
    """A whole rulebook, with its `text`; `warnings` are what `validate` prints beside it."""

    name: str
    file: str | None
    text: str
    timezone: str
    tables: Mapping[str, Table]
    events: Mapping[str, EventType]
    rules: Mapping[str, Rule]
    settings: Settings = Settings()
    scripts: Mapping[str, Script] = field(default_factory=dict)
    samples: Mapping[str, str] = field(default_factory=dict)
    sample_places: Mapping[str, Place] = field(default_factory=dict)
    reads: tuple[tuple[str, ...], ...] = ()  # names in parts: what actions may read beside tables
    cycles: tuple[tuple[tuple[str, ...], Place], ...] = ()  # rules that may trigger each other
    python: frozenset[str] = frozenset()  # what the operator lets scripts call: dotted names
    warnings: tuple[Problem, ...] = ()
    added: Mapping[str, str] = field(default_factory=dict)  # the YAML of rules beside the text
    # Of scripts and of what is included, by name; values of the environment, by `${NAME}`
    files: Mapping[str, str] = field(default_factory=dict)
    included: tuple[str, ...] = ()  # the names of included files
