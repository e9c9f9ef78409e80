"""The values that flow through the stages, one way:

    plan -> capture -> Bucket -> detect -> Detections -> evaluate -> Firings -> act -> Outcomes

Units: every time is an int64 count of microseconds since the epoch, UTC. Arrays are numpy, tables
are Arrow. All values are immutable by convention: nobody writes into an array it was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.rules.model import Condition

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

FOREVER = 2**62
"""The watermark of a history that has ended: everything runs out."""


Namespace = Literal["client", "engine"]
"""Whose ids a signal's is one of: those that come from outside, given or drawn, or the engine's own
of what actions raise, and of their edges. Equal ids of the two are two signals (G28)."""

CLIENT: Namespace = "client"
ENGINE: Namespace = "engine"

Writer = tuple[str, str]
"""A rulebook and its rule."""


class ChangeKind(IntEnum):
    """What a row of a table's changes tells. The numbers are part of occurrence ids (G6)."""

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

    `table_id` is the metadata id (G10), `schema` the table's schema JSON at `version` (G12),
    `instant` the instant of `version` (the lower bound of the next one, G1), `digest` that of the
    version's log file, by which a log that was written anew shows (G10); None = not known.
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

    `snapshot` asks for the rows as of version `last` as inserts at `instants[last]` instead (G9).
    `cursor` is the table's cursor once the bucket is committed; an empty range (last = first - 1)
    only sets it. `skipped` versions are part of the range, and only an `on: commit` sees them.
    `writers`: by version, whose action wrote it. `logged`: by version that was moved, the instant
    that its log says (G1).
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

    def written_by(self, writer: Writer) -> npt.NDArray[np.bool_]:
        """Of the versions from `first` on, whether an action of a rule wrote them."""
        found = [self.writers.get(v) == writer for v in range(self.first, self.last + 1)]
        return np.array(found, np.bool_)


class Moved(NamedTuple):
    """A commit that stands at `instant` though its log says `logged` (G1): back to the engine's
    clock where its writer's is ahead, else on after the version before it and the last bucket."""

    table: str
    version: int
    logged: int
    instant: int


@dataclass(frozen=True, slots=True)
class Signal:
    """One explicit occurrence as it stands in the store, where `key` is known once in a rulebook.
    `instant` is None until placed (G4)."""

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


@dataclass(frozen=True, slots=True)
class Plan:
    """What the next bucket holds: exactly the instants in (`watermark_before`, `watermark`] (G2).

    Made before anything is read; binds only with the bucket's transaction.
    `first_starts` are rules activated by this bucket, with their activation instants (G9).
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
    """What the rules read of their events, found on analysed plans.

    Names are parameters as the rules see them (`engine.core.parameters`); a parameter `old` is the
    whole pre-image. `carry`: by event type, what its batch must hold; an event type that is not in
    it is not captured. `ids`: by (rule, event type), the rule's parameters (G6), of which the
    parameter hash is made; the table's `key` is added by whoever hashes.
    """

    carry: Mapping[str, tuple[str, ...]]
    ids: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Batch:
    """The occurrences of one event type in one bucket, in order of time. `event` is what they are
    called: its edges are called like the whole (S10).

    time[n] is non-decreasing; row[n] says which row of `table` (parameters as columns; `old` a
    struct on updates) each occurrence is; several event types share one table. `depth[n]` is the
    cascade depth of each occurrence's cause (0 = the outside world), None when all are 0.
    `ids` holds, for each column set that rules need, the 128-bit occurrence ids (uint64[n, 2]),
    by the digest of that column set (`engine.core.columns.ids.column_set`). `place[n]` is where an
    occurrence that a script emitted stands among all that the script emitted at its instant; None:
    of no script, or of no one who asks.
    """

    event: str
    time: Int64
    row: Int64
    table: pa.Table
    ids: Mapping[str, UInt64] = field(default_factory=dict)
    depth: npt.NDArray[np.int32] | None = None
    place: Int64 | None = None

    def __len__(self) -> int:
        return len(self.time)

    def ids_by(self, columns: str) -> UInt64:
        """The ids by a column set; those by another one where what a rule reads has changed since
        the occurrences came."""
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
        return Batch(self.event, self.time[index], self.row[index], self.table, ids, depth, place)


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that could not become an occurrence (G5), for the store's `rejected` table.

    `reason` holds no values of the user's tables; `row`, and the whole message in `details`, may.
    """

    event: str
    source: str
    reason: str
    row: Mapping[str, Any]
    details: str | None = None


@dataclass(frozen=True, slots=True)
class Bucket:
    """The changes taken in one step: a plan and the occurrences it covers, by event type."""

    plan: Plan
    batches: Mapping[str, Batch]
    rejected: tuple[Rejected, ...] = ()
    rows: int = 0  # rows read from the sources


# -- detect -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Detections:
    """What one rule detected in one bucket, n detections ordered by (end, key, start, ..).

    keys: a table of n rows, a column for each key name (none without `per:`); start[n], end[n];
    the constituents of detection i are the entries offsets[i]:offsets[i+1]. Entry j is occurrence
    event_row[j] of batches[events[event_code[j]]]; label[j] indexes `labels` (-1 = none).
    `batches` holds the carried occurrences and the bucket's own. Ticks and clock occurrences are
    entries of event types whose batch has no parameters.
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


DUE, TIMERS = b"due", b"timers"
"""Metadata of a carried table: the watermark at which its first timer is due, how many it has."""


@dataclass(frozen=True, slots=True)
class Carried:
    """All that outlives a bucket: Arrow tables by name, each with a schema version in metadata; one
    with timers has `DUE` and `TIMERS`.

    Names are those of `detector.carried`, in parts as `detector.parts` says; `changed` are the
    names that differ from the bucket before, those that are gone too: the only ones to be written.
    """

    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()


class Load(NamedTuple):
    """What a rule carries: instances, as `a` that waits for its `b`, and the keys that have any."""

    instances: int = 0
    keys: int = 0


class Stepped(NamedTuple):
    """What a step of the detector gives: the detections of each rule that has any, what to carry
    on, and the watermark it has reached: the one asked for, or where a limit has stopped it."""

    detections: tuple[Detections, ...]
    carried: Carried
    watermark: int


# -- evaluate -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reading:
    """What one text of a rule is, found on its analysed plan (G6, G27).

    `columns` of the parameter relation that it reads (`old.x` for a field of `old`); the declared
    table that it writes, if any; the declared `tables` that it names. `fixed_source`: a MERGE whose
    source reads nothing but `event`, and so is the same whenever it is evaluated. `appends`: an
    INSERT, which does not look at its target. `transitions`: the transition tables that it names,
    in small letters; `columns` are also those of which they are made. `unmarked`: a statement that
    leaves no marker.
    """

    columns: frozenset[str]
    target: str | None = None
    tables: frozenset[str] = frozenset()
    fixed_source: bool = False
    appends: bool = False
    transitions: frozenset[str] = frozenset()
    unmarked: bool = False


class Asked(NamedTuple):
    """Names one question of a bucket: by the rule, by what is asked, and by the versions of the
    tables that are seen. Each question of a rule has an answer of its own."""

    rule: str
    asks: str
    versions: frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Question:
    """A rule's condition, asked of those of its firings in one bucket that see the same versions.

    `asks`: `if` for the condition itself; `fire` or `rearm` for one of its hysteresis. `group`: the
    columns that an expression names and that have one value a firing. `tables`: the declared tables
    that a query names. `versions`: by table, the version that is read; a table without one did not
    exist then. `transitions`: the transition tables that it names. `entry`: the number of the entry
    that asks it, 0 where its bucket does.
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
    def asked(self) -> Asked:
        """What tells it apart from the bucket's other questions."""
        return Asked(self.rule, self.asks, frozenset(self.versions.items()))


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something failed: `error` is one line without values of the user's tables, `details` all
    that was said. `lasting`: it would fail again if it were tried at once. `attempts`: how often it
    was tried. `overrun`: it took longer than statement_seconds_max. `quarantined`: it is not run
    any more, for what it did to Spark."""

    error: str
    details: str | None = None
    lasting: bool = False
    attempts: int = 1
    overrun: bool = False
    quarantined: bool = False


@dataclass(frozen=True, slots=True)
class Answers:
    """What conditions said: the firing ids (hex) for which they hold, those for which their rule's
    hysteresis fires and is rearmed, and by question why it could not be asked."""

    held: frozenset[str] = frozenset()
    failed: Mapping[Asked, Failure] = field(default_factory=dict)
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
    """Firings of a rule (hex ids) that are dead for one reason: what they ask, of the versions that
    they see, failed for good."""

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

    `firings`: a row each, in detection order: firing_id (fixed_size_binary[16]), the key columns,
    started_at, detected_at (timestamp[us, UTC]), depth (int32), condition (held | failed | none;
    dead: it could not be asked), constituents (int32), and where a firing may be damped what has
    dropped it (damped: string, null = nothing). `relation`: the parameter relation `event` of *all*
    of them (semantics 5), a row a constituent, firing_id as lower-case hex string.
    """

    rule: str
    firings: pa.Table
    relation: pa.Table

    def __len__(self) -> int:
        return int(self.firings.num_rows)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The key columns, in order."""
        return tuple(name for name in self.firings.column_names if name not in FIRING_COLUMNS)

    @property
    def through(self) -> pa.Array | pa.ChunkedArray:
        """Of each firing, whether it is to be acted on: its condition has not failed, and could be
        asked, and nothing has dropped it."""
        let = pc.is_in(self.firings["condition"], pa.array(["none", "held"]))
        if DAMPED not in self.firings.column_names:
            return let
        return pc.and_(let, pc.is_null(self.firings[DAMPED]))

    @property
    def damped(self) -> Mapping[str, int]:
        """How many were dropped, by what dropped them."""
        if DAMPED not in self.firings.column_names:
            return {}
        counts = pc.value_counts(self.firings[DAMPED].drop_null()).to_pylist()
        return {one["values"]: one["counts"] for one in counts}

    def with_condition(self, outcomes: pa.Array | pa.ChunkedArray) -> Firings:
        """The same with what was said of them."""
        at = self.firings.column_names.index("condition")
        return replace(self, firings=self.firings.set_column(at, "condition", outcomes))

    def with_outcomes(self, decided: Firings) -> Firings:
        """The same with what was said of some of them: whether the condition holds, what has
        dropped them."""
        at = pc.index_in(self.firings["firing_id"], decided.firings["firing_id"].combine_chunks())
        table = self.firings
        for name in ("condition", DAMPED):
            if name in decided.firings.column_names:
                known = table.column_names
                old = table[name] if name in known else pa.nulls(len(table), pa.string())
                column = pc.if_else(pc.is_null(at), old, decided.firings[name].take(at))
                table = table.drop_columns([name]) if name in known else table
                place = known.index(name) if name in known else len(known)
                table = table.add_column(place, name, column)
        return replace(self, firings=table)

    def some(self, chosen: pa.Array | pa.ChunkedArray) -> Firings:
        """Those that are `chosen`, a truth value each, with their rows of the relation."""
        if pc.all(chosen).as_py():
            return self
        kept = replace(self, firings=self.firings.filter(chosen))
        rows = pc.is_in(self.relation["firing_id"], kept.hex_ids())
        return replace(kept, relation=self.relation.filter(rows))

    def hex_ids(self) -> pa.StringArray:
        """The firing ids as they stand in the relation."""
        ids = self.firings["firing_id"].combine_chunks()
        values = ids.buffers()[1].to_pybytes() if len(ids) else b""
        text = values[16 * ids.offset : 16 * (ids.offset + len(ids))].hex().encode()
        offsets = np.arange(0, 32 * (len(ids) + 1), 32, dtype=np.int32)
        return pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(text))
