"""The values that flow through the stages, one way:

    plan -> capture -> Bucket -> detect -> Detections -> evaluate -> Firings -> act -> Outcomes

Units: every time is an int64 count of microseconds since the epoch, UTC. Arrays are numpy, tables
are Arrow. All values are immutable by convention: nobody writes into an array it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.columns.memory import got, in_one, sent
from tidegate.engine.core.relation_files import (
    Relation,
    RelationFiles,
    RowsFile,
    RowsShelf,
    in_memory,
    on_shelf,
)
from tidegate.rules.model import About, Condition

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

FOREVER = 2**62
"""The watermark after the end of a history: every timer and window is over."""


Namespace = Literal["client", "engine"]
"""The namespace of a signal's id. `client`: the id came from outside, or was drawn for a client.
`engine`: the engine made it, for a signal of an action or of its edge. Equal ids of the two
namespaces are two signals (G28)."""

CLIENT: Namespace = "client"
ENGINE: Namespace = "engine"

Writer = tuple[str, str]
"""A rulebook and its rule."""


class ChangeKind(IntEnum):
    """The kind of a row of a table's changes. The numbers are part of occurrence ids (G6)."""

    INSERT = 0
    DELETE = 1
    UPDATE = 2
    SNAPSHOT = 3  # there when the reading began (`start: snapshot`)


# -- capture ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table as listed from its log; `instant` is already fixed (G1)."""

    version: int
    instant: int
    rows_estimate: int = 0  # from the log's metrics; 0 = unknown
    depth: int = 0  # cascade depth of the action that wrote it (userMetadata, G16); 0 = outside
    schema: str | None = None  # JSON, if the commit's metadata action changes it (G12)
    skip: bool = False  # no row of it counts: it changes none, or is a RESTORE that is skipped
    logged: int | None = None  # what its log says, where its instant was moved from there (G1)
    writer: Writer | None = None  # whose action wrote it (G22); None = the outside world
    digest: str | None = None  # of its log file's text; None = not known


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a table has been taken: every version <= `version` is in some bucket.

    `table_id`: the metadata id (G10). `schema`: the table's schema as JSON at `version` (G12).
    `instant`: of `version`; the next one stands later (G1). `digest`: of the version's log file, to
    detect a log that was rewritten (G10); None: not known.
    """

    table: str
    table_id: str
    version: int
    instant: int
    schema: str
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class TableRange:
    """The versions [first, last] of one table that a bucket holds, with their instants.

    `snapshot`: read the rows as of version `last` instead, as inserts at `instants[last]` (G9).
    `cursor`: the table's cursor after the bucket; an empty range (last = first - 1) only sets it.
    `skipped`: versions whose rows do not count; only `on: commit` sees them. `writers`: by version,
    whose action wrote it. `logged`: by version that was moved, the instant in its log (G1).
    """

    table: str
    first: int
    last: int
    instants: Mapping[int, int]
    cursor: Cursor
    depths: Mapping[int, int] = field(default_factory=dict)
    snapshot: bool = False
    skipped: frozenset[int] = frozenset()
    rows_estimate: int = 0
    writers: Mapping[int, Writer] = field(default_factory=dict)
    logged: Mapping[int, int] = field(default_factory=dict)

    def written_by(self, writer: Writer, version: Int64) -> npt.NDArray[np.bool_]:
        """Whether an action of a rule wrote each of these versions."""
        own = {v: 1 for v, by in self.writers.items() if by == writer}
        return self.of_versions(own, version) > 0

    def of_versions(self, values: Mapping[int, int], version: Int64) -> Int64:
        """The value of each of these versions; 0 if it has none."""
        found = [values.get(v, 0) for v in range(self.first, self.last + 1)]
        return np.array(found, np.int64)[version - self.first]


class Moved(NamedTuple):
    """A commit that was moved from `logged`, the time in its log, to `instant` (G1). It moves back
    to the engine's clock if its writer's clock is ahead. It moves on if the version before it, or
    the last bucket, is later."""

    table: str
    version: int
    logged: int
    instant: int


@dataclass(frozen=True, slots=True)
class Signal:
    """One explicit occurrence in the store. A rulebook has one for each `key`. `instant`: None
    until a bucket places it (G4)."""

    id: str
    event: str
    fields: Mapping[str, Any]
    received_at: int
    depth: int = 0
    instant: int | None = None
    namespace: Namespace = CLIENT

    @property
    def key(self) -> tuple[str, Namespace]:
        return self.id, self.namespace

    @property
    def firing_id(self) -> str:
        """The firing that a signal of the engine's own is for: the first part of its id."""
        return self.id.partition("-")[0]


class Site(NamedTuple):
    """Where a bucket is detected: by Spark's executors, what has a key, or all of it by the driver;
    and why. Without a reason nothing was to be chosen. `tables`: those whose rows executors read
    themselves; the driver reads the rows of the others. `rows_max`: of these tables in a bucket.
    `found_max`: so many detections are taken, None: all."""

    executors: bool = False
    why: str = ""
    tables: frozenset[str] = frozenset()
    rows_max: int = 0
    found_max: int | None = None


UNCHOSEN = Site()


@dataclass(frozen=True, slots=True)
class Plan:
    """What the next bucket holds: exactly the instants in (`watermark_before`, `watermark`] (G2).

    A plan is made before anything is read. It binds only with the bucket's transaction.
    `activations`: the rules that this bucket activates, with their activation instants (G9).
    """

    rulebook: str
    bucket: int
    watermark_before: int
    watermark: int
    now: int
    ranges: tuple[TableRange, ...] = ()
    signals: tuple[Signal, ...] = ()
    activations: Mapping[str, int] = field(default_factory=dict)
    pinned: Mapping[str, int] = field(default_factory=dict)  # version a condition sees, by table
    latest: Mapping[str, int] = field(default_factory=dict)  # version listed last, by table (G16b)
    controls: tuple[int, ...] = ()  # ids of the control rows that it carries out (G24)
    enabled: frozenset[str] = frozenset()  # rules that these let go on (G13, G24)
    disabled: frozenset[str] = frozenset()  # rules that these stop
    passed_over: Mapping[str, int] = field(default_factory=dict)  # see `Clocks.passed_over`
    more: bool = False  # commits already visible that did not fit (G8): plan again at once
    site: Site = UNCHOSEN

    @property
    def moved(self) -> tuple[Moved, ...]:
        """The commits whose instant is not what their log says (G1)."""
        return tuple(
            Moved(span.table, version, logged, span.instants[version])
            for span in self.ranges
            for version, logged in span.logged.items()
        )


@dataclass(frozen=True, slots=True)
class Needs:
    """The parameters that rules read of their event types, found on analysed plans.

    Names are those that rules use (`engine.core.parameters`); `old` is the whole pre-image.
    `carry`: by event type, the columns of its batch; event types without an entry are not captured.
    `ids`: by (rule, event type), the parameters of which occurrence ids are made (G6). Capture adds
    the table's `key` to them.
    """

    carry: Mapping[str, tuple[str, ...]]
    ids: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Batch:
    """The occurrences of one event type in one bucket, in order of time. `event`: the name that
    they show; edges show the name of the whole (S10).

    time[n] is non-decreasing. Occurrence n is row row[n] of `table` (parameters as columns; `old` a
    struct on updates). Several event types share one table. depth[n]: the cascade depth of its
    cause (0 = the outside world), None if all are 0. `ids`: by the digest of a set of columns
    (`engine.core.columns.ids.column_set`), the 128-bit occurrence ids, uint64[n, 2]. place[n]: the
    position of an occurrence among all that its script emitted at that instant; None if it is of no
    script, or nobody reads the position. number[n]: tells an occurrence from the simultaneous ones
    of its type, among which it ascends; None if the batch holds all of these: then it is their
    position.
    """

    event: str
    time: Int64
    row: Int64
    table: pa.Table
    ids: Mapping[str, UInt64] = field(default_factory=dict)
    depth: npt.NDArray[np.int32] | None = None
    place: Int64 | None = None
    number: Int64 | None = None

    def __len__(self) -> int:
        return len(self.time)

    @property
    def depths(self) -> npt.NDArray[np.int32]:
        """The depth of each."""
        return np.zeros(len(self), np.int32) if self.depth is None else self.depth

    def ids_by(self, columns: str) -> UInt64:
        """The ids by a column set. Carried occurrences may have ids by another set only, if the
        rule's text changed since: then those."""
        for known in (columns, *sorted(self.ids)):
            if known in self.ids:
                return self.ids[known]
        return np.zeros((len(self), 2), dtype=np.uint64)

    def until(self, instant: int) -> Batch:
        """The occurrences up to an instant."""
        return self.take(np.arange(np.searchsorted(self.time, instant, side="right")))

    def take(self, index: Int64) -> Batch:
        """The occurrences at `index`, which ascends."""
        ids = {name: values[index] for name, values in self.ids.items()}
        depth = None if self.depth is None else self.depth[index]
        place = None if self.place is None else self.place[index]
        number = None if self.number is None else self.number[index]
        time, row = self.time[index], self.row[index]
        return Batch(self.event, time, row, self.table, ids, depth, place, number)


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that could not become an occurrence (G5), for the store's `rejected` table.

    `reason`: without values of the user's tables. `row` and `details`, the whole message, may have
    them.
    """

    event: str
    source: str
    reason: str
    row: Mapping[str, Any]
    details: str | None = None


@dataclass(frozen=True, slots=True)
class Bucket:
    """A plan and the occurrences that it covers, by event type."""

    plan: Plan
    batches: Mapping[str, Batch]
    rejected: tuple[Rejected, ...] = ()
    rows: int = 0  # rows read from the sources
    unread: Unread | None = None  # what executors read themselves


class Captured(NamedTuple):
    """The occurrences of some rows, by event type; and how many rows there were."""

    batches: Mapping[str, Batch]
    rows: int


class Unread(NamedTuple):
    """Rows of tables, wherever they are (`engine.core.ports.Executors.rows`). `capture` makes
    occurrences of some rows: of the n-th table, numbered from `first` on. It may be sent away.
    `estimate`: so many rows, as far as the logs say so. `found_max`: more detections are not taken;
    None: all are."""

    rows: tuple[Any, ...]
    capture: Callable[[int, int, pa.Table], Captured]
    estimate: int = 0
    found_max: int | None = None


# -- detect -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Detections:
    """The n detections of one rule in one bucket, ordered by (end, key, start, ..).

    `keys`: n rows, a column for each key name (none without `per:`). Detection i spans
    [start[i], end[i]]; its constituents are the entries offsets[i]:offsets[i + 1]. Entry j is
    occurrence event_row[j] of batches[events[event_code[j]]]; label[j] indexes `labels` (-1 =
    none). `batches`: the carried occurrences and the bucket's own. The batches of ticks and clocks
    have no parameters.

    Example: `a ; b` with a at 1, b at 4 is start 1, end 4, and two entries: events ("a", "b"),
    event_code [0, 1].
    """

    rule: str
    keys: pa.Table
    start: Int64
    end: Int64
    offsets: Int64
    events: tuple[str, ...]
    event_code: npt.NDArray[np.int16]
    event_row: Int64
    batches: Mapping[str, Batch]
    labels: tuple[str, ...] = ()
    label: npt.NDArray[np.int16] | None = None
    label_spans: Mapping[str, tuple[Int64, Int64]] = field(default_factory=dict)  # start[n], end[n]
    used: Detections | None = None  # the same with every role that is used, where it is asked for

    def __len__(self) -> int:
        return len(self.start)

    def gathered(
        self, values: Callable[[str, Batch], npt.NDArray[Any]], like: npt.NDArray[Any]
    ) -> npt.NDArray[Any]:
        """`like` with a value for each entry. `values(event, batch)`: the values of all occurrences
        in a batch."""
        for code in np.unique(self.event_code):
            entries = np.flatnonzero(self.event_code == code)
            found = values(self.events[code], self.batches[self.events[code]])
            like[entries] = found[self.event_row[entries]]
        return like

    @property
    def depths(self) -> npt.NDArray[np.int32]:
        """The greatest depth among the constituents of each; 0 without any."""
        found = np.zeros(len(self), np.int32)
        if any(batch.depth is not None for batch in self.batches.values()):
            own = np.zeros(len(self.event_row) + 1, np.int32)  # one more, for a last empty segment
            self.gathered(lambda _, batch: batch.depths, own[:-1])
            filled = np.diff(self.offsets) > 0
            found[filled] = np.maximum.reduceat(own, self.offsets[:-1])[filled]
        return found


DUE, TIMERS = b"due", b"timers"
"""Metadata of a carried table: when its first timer is due, and how many timers it has."""


@dataclass(frozen=True, slots=True)
class Carried:
    """The carried state: Arrow tables by name, each with a schema version in its metadata, and with
    `DUE` and `TIMERS` if it has timers.

    `changed`: the names whose tables differ from the bucket before, removed ones included. Only
    these are written. `decoded`: the same as the detector that left it has it in hand; it is not
    stored.
    """

    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()
    decoded: object = field(default=None, compare=False, repr=False)

    @property
    def written(self) -> dict[str, pa.Table]:
        """The tables that differ from the bucket before."""
        return {name: self.tables[name] for name in self.changed & self.tables.keys()}

    @property
    def gone(self) -> frozenset[str]:
        """The names of those that there are no more."""
        return self.changed - self.tables.keys()


class Load(NamedTuple):
    """How much a rule carries: its instances, such as an `a` that waits for its `b`, and how many
    keys have any."""

    instances: int = 0
    keys: int = 0


class Stepped(NamedTuple):
    """The result of a step of the detector: the detections of each rule that has any, the carried
    state, and the watermark that it reached: the one asked for, unless a limit stopped it
    before."""

    detections: tuple[Detections, ...]
    carried: Carried
    watermark: int


# -- evaluate -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reading:
    """What one text of a rule reads and writes, found on its analysed plan (G6, G27).

    `columns`: of the parameter relation (`old.x` for a field of `old`), with those that its
    transition tables are made of. `target`: the declared table that it writes. `tables`: the
    declared tables that it names. `fixed_source`: a MERGE whose source reads `event` only, and so
    is the same whenever it is evaluated. `appends`: an INSERT, which does not read its target.
    `transitions`: the transition tables that it names, in small letters. `unmarked`: a statement
    that leaves no marker. `own_rows`: an INSERT that reads no table at all, declared or not.
    """

    columns: frozenset[str]
    target: str | None = None
    tables: frozenset[str] = frozenset()
    fixed_source: bool = False
    appends: bool = False
    transitions: frozenset[str] = frozenset()
    unmarked: bool = False
    own_rows: bool = False


class QuestionKey(NamedTuple):
    """Identifies a question within a bucket: the rule, what is asked (`if`, `fire`, `rearm`), and
    the versions of the tables that it reads."""

    rule: str
    asks: str
    versions: frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Question:
    """A rule's condition, asked of those of its firings in one bucket that see the same versions.

    `asks`: `if` for the condition itself, `fire` or `rearm` for the conditions of its hysteresis.
    `group`: the columns with one value a firing that an expression names. `tables`: the declared
    tables that a query names. `versions`: by table, the version that is read; a table without one
    did not exist then. `transitions`: the transition tables that it names. `entry`: the number of
    the entry that asks it, 0 if its bucket does.
    """

    rule: str
    condition: Condition
    group: tuple[str, ...]
    tables: frozenset[str]
    relation: pa.Table
    versions: Mapping[str, int] = field(default_factory=dict)
    transitions: frozenset[str] = frozenset()
    asks: str = "if"  # if | fire | rearm
    entry: int = 0

    @property
    def asked(self) -> QuestionKey:
        """What tells it apart from the bucket's other questions."""
        return QuestionKey(self.rule, self.asks, frozenset(self.versions.items()))

    @property
    def firing_ids(self) -> pa.StringArray:
        """The firings that it is asked of (hex)."""
        if isinstance(self.relation, RelationFiles):
            return hex_ids(self.relation.ids)
        return pc.unique(self.relation["firing_id"])

    def of(self, firing_ids: pa.Array, versions: Mapping[str, int]) -> Question:
        """The same, asked of some of its firings (hex), with these versions."""
        if isinstance(self.relation, RelationFiles):
            mine = pc.is_in(self.firing_ids, firing_ids).to_numpy(zero_copy_only=False)
            rows: Relation = self.relation.take(np.flatnonzero(mine))
        else:
            rows = self.relation.filter(pc.is_in(self.relation["firing_id"], firing_ids))
        return replace(self, relation=rows, versions=versions)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something failed. `error`: one line, without values of the user's tables. `details`: the
    whole error. `lasting`: it would fail again if it was tried at once. `attempts`: how often it
    was tried. `overrun`: it took longer than statement_seconds_max. `quarantined`: it was not run,
    for what it did to Spark before."""

    error: str
    details: str | None = None
    lasting: bool = False
    attempts: int = 1
    overrun: bool = False
    quarantined: bool = False


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of conditions, as firing ids (hex). `held`: the condition holds. `fires`,
    `rearms`: the conditions of the rule's hysteresis hold. `failed`: by question, why it has no
    answer."""

    held: frozenset[str] = frozenset()
    failed: Mapping[QuestionKey, Failure] = field(default_factory=dict)
    fires: frozenset[str] = frozenset()
    rearms: frozenset[str] = frozenset()

    def also(self, other: Answers) -> Answers:
        """Both together."""
        return Answers(
            self.held | other.held,
            {**self.failed, **other.failed},
            self.fires | other.fires,
            self.rearms | other.rearms,
        )


@dataclass(frozen=True, slots=True)
class Unasked:
    """Firings of a rule (hex ids) that are dead for the same reason: their question failed for
    good."""

    firing_ids: tuple[str, ...]
    why: Failure


DAMPED = "damped"
FIRING_COLUMNS = frozenset(
    {"firing_id", "started_at", "detected_at", "depth", "condition", "constituents", DAMPED}
)
"""The columns of firings beside those of their key."""


@dataclass(frozen=True, slots=True)
class Firings:
    """The firings of one rule in one bucket, by the column.

    `firings`: a row each, in detection order:

        firing_id                 fixed_size_binary[16]
        the key columns
        started_at, detected_at   timestamp[us, UTC]
        depth                     int32
        condition                 held | failed | none | dead (it could not be asked)
        constituents              int32, how many
        damped                    what dropped it, null = nothing; only if the rule has damping

    `relation`: the parameter relation `event` of *all* of them (semantics 5), a row a constituent,
    firing_id as lower-case hex string; it may lie in files. `sources`: where each of these rows
    came from, as `version` of its table or `signal` (`client/ID`, `engine/ID`); both null for
    others, None: not known, or in the files too.
    `about`: what the rule said of itself when it fired.
    """

    rule: str
    firings: pa.Table
    relation: Relation
    sources: pa.Table | None = None
    about: About = About()  # noqa: RUF009, it is frozen

    def __len__(self) -> int:
        return int(self.firings.num_rows)

    def __reduce__(self) -> tuple[object, ...]:
        """Written out: what is known of each firing as one table."""
        relation, table = self.relation, self.firings
        if isinstance(relation, RelationFiles):
            relation, table = relation.of_none, relation.placed(table)
        return _firings, (self.rule, sent(table), relation, self.sources, self.about)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The key columns, in order."""
        return tuple(name for name in self.firings.column_names if name not in FIRING_COLUMNS)

    @property
    def through(self) -> pa.Array | pa.ChunkedArray:
        """Whether each firing is acted on: its condition holds or it has none, and no damping
        dropped it."""
        let = pc.is_in(self.firings["condition"], pa.array(["none", "held"]))
        if DAMPED not in self.firings.column_names:
            return let
        return pc.and_(let, pc.is_null(self.firings[DAMPED]))

    @property
    def acted_on(self) -> Firings:
        """The firings that are acted on. The relation still has the rows of all."""
        through = self.through
        whole = pc.all(through).as_py()
        return self if whole else replace(self, firings=self.firings.filter(through))

    @property
    def offsets(self) -> Int64:
        """Firing i has the rows offsets[i]:offsets[i + 1] of the relation."""
        if isinstance(self.relation, RelationFiles):
            return self.relation.offsets
        groups = pc.run_end_encode(in_one(self.relation["firing_id"]))
        offsets: Int64 = np.concatenate([[0], np.asarray(groups.run_ends)]).astype(np.int64)
        return offsets

    @property
    def damped(self) -> Mapping[str, int]:
        """How many firings were dropped, by the kind of damping."""
        if DAMPED not in self.firings.column_names:
            return {}
        counts = pc.value_counts(self.firings[DAMPED].drop_null()).to_pylist()
        return {one["values"]: one["counts"] for one in counts}

    def with_condition(self, outcomes: pa.Array | pa.ChunkedArray) -> Firings:
        """The same with these outcomes of the condition."""
        at = self.firings.column_names.index("condition")
        return replace(self, firings=self.firings.set_column(at, "condition", outcomes))

    def with_outcomes(self, decided: Firings) -> Firings:
        """The same with the outcomes of condition and damping that `decided`, some of these
        firings, have."""
        at = pc.index_in(self.firings["firing_id"], in_one(decided.firings["firing_id"]))
        table = self.firings
        for name in ("condition", DAMPED):
            if name in decided.firings.column_names:
                if name not in table.column_names:
                    table = table.append_column(name, pa.nulls(len(table), pa.string()))
                place, given = table.column_names.index(name), decided.firings[name].take(at)
                column = pc.if_else(pc.is_null(at), table[name], given)
                table = table.set_column(place, name, column)
        return replace(self, firings=table)

    def some(self, chosen: pa.Array | pa.ChunkedArray) -> Firings:
        """The `chosen` ones (a boolean each), with their rows of the relation."""
        if pc.all(chosen).as_py():
            return self
        kept = replace(self, firings=self.firings.filter(chosen))
        if isinstance(self.relation, RelationFiles):
            return replace(kept, relation=self.relation.of(in_one(kept.firings["firing_id"])))
        rows = pc.is_in(self.relation["firing_id"], kept.hex_ids())
        sources = None if self.sources is None else self.sources.filter(rows)
        return replace(kept, relation=self.relation.filter(rows), sources=sources)

    def slice(self, first: int, count: int) -> Firings:
        """Some firings that follow each other, with their rows of the relation."""
        kept = replace(self, firings=self.firings.slice(first, count))
        if isinstance(self.relation, RelationFiles):
            index = np.arange(first, first + len(kept))
            return replace(kept, relation=self.relation.take(index))
        begin, end = self.offsets[[first, first + len(kept)]]
        sources = None if self.sources is None else self.sources.slice(begin, end - begin)
        return replace(kept, relation=self.relation.slice(begin, end - begin), sources=sources)

    def on(self, shelf: RowsShelf, *, always: bool = False) -> Firings:
        """The same with its rows in a file, if they are many or `always`. Raises as `RowsShelf`."""
        if isinstance(self.relation, RelationFiles):
            return self
        ids, rows = in_one(self.firings["firing_id"]), np.diff(self.offsets)
        there = on_shelf(self.relation, self.sources, ids, rows, shelf, always=always)
        return self if there is None else replace(self, relation=there, sources=None)

    def loaded(self, columns: Sequence[str] | None = None) -> Firings:
        """The same with all rows in memory; of rows in files these `columns` alone. Raises as
        `engine.core.relation_files.RowsShelf`."""
        if not isinstance(self.relation, RelationFiles):
            return self
        rows = self.relation if columns is None else self.relation.select(columns)
        return replace(self, relation=rows.read(), sources=rows.read_beside())

    @property
    def rows(self) -> pa.Table:
        """All rows of the relation, in memory. Raises as `loaded`."""
        return in_memory(self.relation)

    @property
    def files(self) -> tuple[RowsFile, ...]:
        """The files in which its rows are."""
        return self.relation.files if isinstance(self.relation, RelationFiles) else ()

    def hex_ids(self) -> pa.StringArray:
        """The firing ids as they stand in the relation."""
        return hex_ids(in_one(self.firings["firing_id"]))


def _firings(rule: str, data: bytes, relation: Relation, *others: Any) -> Firings:
    """The firings that were written out."""
    table = got(data)
    if isinstance(relation, RelationFiles):
        relation, table = relation.of_placed(table)
    return Firings(rule, table, relation, *others)


def hex_ids(ids: pa.FixedSizeBinaryArray) -> pa.StringArray:
    """Ids of 16 bytes each as strings of 32 lower-case hexadecimal digits."""
    values = ids.buffers()[1].to_pybytes() if len(ids) else b""
    return hex_texts(values[16 * ids.offset : 16 * (ids.offset + len(ids))])


def hex_texts(ids: bytes) -> pa.StringArray:
    """Ids of 16 bytes each as strings of 32 lower-case hexadecimal digits."""
    count, text = len(ids) // 16, ids.hex().encode()
    offsets = np.arange(0, 32 * (count + 1), 32, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))
