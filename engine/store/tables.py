"""The store's tables, valid on SQLite and PostgreSQL. `migrations/` makes them.

Times are microseconds since the epoch, UTC. Rulebooks are named by their names; whatever belongs
to one has its name first in its key.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ColumnElement,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    Table,
    Text,
    TextClause,
    TypeDecorator,
    select,
    text,
)
from sqlalchemy.schema import SchemaItem

metadata = MetaData()
WHERE = "where"
"""The condition of a partial index, in its `info`: as an option of a dialect, SQLAlchemy would load
the dialects of both databases to take it. The migrations have it, too."""


class Message(TypeDecorator[str]):
    """Text from elsewhere, such as Spark's errors with the user's data in them: what a database
    cannot hold (NUL, half characters) is replaced."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:  # noqa: ARG002
        return value and value.replace("\0", "?").encode(errors="replace").decode()


class HexIds(TypeDecorator[tuple[str, ...]]):
    """Ids in hexadecimal digits, as 16 bytes each."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Iterable[str] | None, dialect: Any) -> bytes | None:  # noqa: ARG002
        return None if value is None else bytes.fromhex("".join(value))

    def process_result_value(self, value: bytes | None, dialect: Any) -> tuple[str, ...] | None:  # noqa: ARG002
        return None if value is None else tuple(value.hex(" ", 16).split())


def _of_rulebook(name: str, *parts: SchemaItem) -> Table:
    """A table whose key begins with the rulebook's name."""
    return Table(name, metadata, Column("rulebook", Text, primary_key=True), *parts)


def _partial(name: str, *columns: str, where: str | TextClause) -> Index:
    """An index of the rows of which something is true."""
    return Index(name, *columns, info={WHERE: str(where)})


# One row: the random id of the store (G20), the last number of the outbox's sequence (G16).
meta = Table(
    "meta",
    metadata,
    Column("one", Integer, primary_key=True),
    Column("store_id", Text, nullable=False),
    Column("last_entry", BigInteger, nullable=False),
    CheckConstraint("one = 1", name="meta_one"),
)

# Ids of other stores, and former ones of this store, whose markers in the targets are known (G20).
known_stores = _of_rulebook(
    "known_stores",
    Column("store_id", Text, primary_key=True),
    Column("known_at", BigInteger, nullable=False),
)

# `stopped`: why the engine stopped, if it did so by itself (G7). `limits`: what it was started with
# for the size of texts.
rulebooks = Table(
    "rulebooks",
    metadata,
    Column("name", Text, primary_key=True),
    Column("text", Text, nullable=False),
    Column("file", Text),
    Column("registered_at", BigInteger, nullable=False),
    Column("stopped", Message),
    Column("version", BigInteger, nullable=False, server_default="0"),
    Column("added", Text, nullable=False, server_default="{}"),
    Column("files", Text, nullable=False, server_default="{}"),
    Column("limits", Text, nullable=False, server_default="{}"),
)
versions = _of_rulebook(
    "versions",
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
    Column("file", Text),
    Column("added", Text, nullable=False),
    Column("registered_at", BigInteger, nullable=False),
    Column("files", Text, nullable=False, server_default="{}"),
)

# A lease is held while the store's clock is before `expires_at` (G21). `alive_at`: when its holder
# was last heard of. The others say what it does (`engine.core.state`), since `state_at`.
leases = _of_rulebook(
    "leases",
    Column("holder", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("alive_at", BigInteger, nullable=False, server_default="0"),
    Column("state", Text, nullable=False, server_default=""),
    Column("doing", Message, nullable=False, server_default=""),
    Column("commits", BigInteger, nullable=False, server_default="0"),
    Column("signals", BigInteger, nullable=False, server_default="0"),
    Column("oldest", BigInteger),
    Column("next_timer", BigInteger),
    Column("looked_at", BigInteger),
    Column("seen_until", BigInteger),
    Column("state_at", BigInteger),
    Column("losing_since", BigInteger),
)

# `digest`: of the log file of `version`; null where it is not known.
cursors = _of_rulebook(
    "cursors",
    Column("table_name", Text, primary_key=True),
    Column("table_id", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("instant", BigInteger, nullable=False),
    Column("schema", Text, nullable=False),
    Column("digest", Text),
)

# For how long Delta keeps a table's past (`engine.core.keeping`), as an engine read it at
# `told_at`.
keepings = _of_rulebook(
    "keepings",
    Column("table_name", Text, primary_key=True),
    Column("log_micros", BigInteger),
    Column("files_micros", BigInteger, nullable=False),
    Column("oldest", BigInteger, nullable=False),
    Column("head", BigInteger, nullable=False),
    Column("told_at", BigInteger, nullable=False),
)

# An active rule or script: since which instant, with which digest of what it detects with; how many
# instances it carries, of how many keys.
activations = _of_rulebook(
    "activations",
    Column("rule", Text, primary_key=True),
    Column("instant", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
    Column("carried_instances", BigInteger, nullable=False, server_default="0"),
    Column("carried_keys", BigInteger, nullable=False, server_default="0"),
)

# What a rule or script carried at the first bucket of an hour, which begins at `hour`. One that
# carried nothing has no row.
rule_sizes = _of_rulebook(
    "rule_sizes",
    Column("hour", BigInteger, primary_key=True, autoincrement=False),
    Column("rule", Text, primary_key=True),
    Column("instances", BigInteger, nullable=False),
    Column("keys", BigInteger, nullable=False),
)

# How many occurrences of a clock were missed and passed over (G3), those included of buckets that
# are forgotten.
misfires = _of_rulebook(
    "misfires",
    Column("clock", Text, primary_key=True),
    Column("passed_over", BigInteger, nullable=False),
)

# A rule that a limit has parked (G13): since which instant, by which bucket, and how many
# occurrences it has not seen meanwhile.
parked = _of_rulebook(
    "parked",
    Column("rule", Text, primary_key=True),
    Column("reason", Message, nullable=False),
    Column("hint", Message, nullable=False),
    Column("instant", BigInteger, nullable=False),
    Column("bucket", BigInteger, nullable=False),
    Column("passed_over", BigInteger, nullable=False),
)

# A parking that is over: the rule saw nothing from `instant` on, and went on at `until`.
parkings = _of_rulebook(
    "parkings",
    Column("rule", Text, primary_key=True),
    Column("instant", BigInteger, primary_key=True, autoincrement=False),
    Column("until", BigInteger, nullable=False),
    Column("reason", Message, nullable=False),
)

# A rule that is switched off (G24): from which instant on, by which bucket.
disabled = _of_rulebook(
    "disabled",
    Column("rule", Text, primary_key=True),
    Column("instant", BigInteger, nullable=False),
    Column("bucket", BigInteger, nullable=False),
)

STAGES = ("plan", "capture", "detect", "evaluate", "act")
_COUNTS = ("row_count", "detection_count", "firing_count", "entry_count", "rejected_count")

# `plan`: JSON of ranges, signal ids, pinned versions, control rows (G2). The seconds are those of
# the stages; `seconds_act` is set once the bucket's entries were first tried.
buckets = _of_rulebook(
    "buckets",
    Column("bucket", BigInteger, primary_key=True),
    Column("watermark_before", BigInteger, nullable=False),
    Column("watermark", BigInteger, nullable=False),
    Column("now", BigInteger, nullable=False),
    Column("adjusted_commits", Integer, nullable=False),
    Column("plan", Text, nullable=False),
    *(Column(name, BigInteger, nullable=False, server_default="0") for name in _COUNTS),
    *(Column(f"seconds_{stage}", Float) for stage in STAGES),
    Column("version", BigInteger, nullable=False, server_default="0"),
    Index("buckets_by_now", "rulebook", "now", "bucket"),
)


def of_last_bucket(rulebook: str, *columns: ColumnElement[Any]) -> Select[*tuple[Any, ...]]:
    """A query for columns of a rulebook's last bucket; no row before the first."""
    c = buckets.c
    return select(*columns).where(c.rulebook == rulebook).order_by(c.bucket.desc()).limit(1)


# When each version of a table was: the instants of its commits, as buckets have placed them (G1).
# A version that is read again has another instant then. `logged`: what the log says of a commit
# that was moved, else null.
commits = _of_rulebook(
    "commits",
    Column("table_name", Text, primary_key=True),
    Column("instant", BigInteger, primary_key=True),
    Column("version", BigInteger, primary_key=True),
    Column("bucket", BigInteger, nullable=False),
    Column("logged", BigInteger),
    Index("commits_by_bucket", "rulebook", "bucket"),
    Index("commits_by_version", "rulebook", "table_name", "version", "bucket"),
    _partial(
        "commits_moved", "rulebook", "bucket", "instant", "table_name", where="logged IS NOT NULL"
    ),
)

# The sums of these columns of all buckets, those included that are forgotten (one row a rulebook).
totals = _of_rulebook(
    "totals",
    *(Column(name, BigInteger, nullable=False) for name in (*_COUNTS, "adjusted_commits")),
)

# What became of each rule's detections, those included that are forgotten: `firing_count` of all,
# `fired` of those that are acted on, `condition_failed` of those for which the condition does not
# hold; others are damped (`damped_totals`), or their condition has no answer yet. `last_fired_at`:
# when the last one that is acted on ended.
rule_totals = _of_rulebook(
    "rule_totals",
    Column("rule", Text, primary_key=True),
    Column("firing_count", BigInteger, nullable=False),
    Column("fired", BigInteger, nullable=False, server_default="0"),
    Column("condition_failed", BigInteger, nullable=False, server_default="0"),
    Column("last_fired_at", BigInteger),
)

# What became of each rule's detections in an hour of the engine's clock, which begins at `hour`:
# in that of their bucket, or in that in which their condition was settled. `dead`: of how many
# the first entry died in that hour, whatever became of it later.
rule_hours = _of_rulebook(
    "rule_hours",
    Column("hour", BigInteger, primary_key=True, autoincrement=False),
    Column("rule", Text, primary_key=True),
    *(
        Column(name, BigInteger, nullable=False, server_default="0")
        for name in ("fired", "condition_failed", "damped", "dead")
    ),
)


def _of_bucket() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["rulebook", "bucket"], ["buckets.rulebook", "buckets.bucket"])


# A part of what is carried: at which watermark its first timer is due, how many it has; how many
# rows it has, which are instances where the part is of a node (`node:DIGEST/PARTITION`). It stands
# here, or in a row group of a state file.
carried = _of_rulebook(
    "carried",
    Column("name", Text, primary_key=True),
    Column("file", Text),
    Column("file_row", BigInteger),
    Column("arrow", LargeBinary),
    Column("due", BigInteger),
    Column("timers", BigInteger, nullable=False, server_default="0"),
    Column("row_count", BigInteger, nullable=False, server_default="0"),
    Index("carried_by_due", "rulebook", "due"),
    _partial("carried_by_file", "rulebook", "file", where="file IS NOT NULL"),
)

# The state files that transactions have pointed to (G26). `home`: of the database whose they are.
# `bucket`, `rule`: of the firings whose rows are in it; null: it has parts of what is carried.
# `unused_since`: since when nothing points to it.
state_files = _of_rulebook(
    "state_files",
    Column("file", Text, primary_key=True),
    Column("home", Text, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("bucket", BigInteger),
    Column("rule", Text),
    Column("unused_since", BigInteger),
    Index("state_files_unused", "rulebook", "unused_since", "file"),
    _partial("state_files_by_bucket", "rulebook", "bucket", where="bucket IS NOT NULL"),
)

# All firings of a rule in a bucket: two Arrow tables, the outcomes of condition and damping. Beside
# the columns of `relation` stands where each constituent came from (`Firings.sources`).
# `ordinal` tells rules apart. The tables stand last: what is before them is read without.
firings = _of_rulebook(
    "firings",
    Column("bucket", BigInteger, primary_key=True),
    Column("rule", Text, primary_key=True),
    Column("ordinal", Integer, nullable=False),
    Column("firing_count", Integer, nullable=False),
    Column("first_detected_at", BigInteger, nullable=False),
    Column("last_detected_at", BigInteger, nullable=False),
    Column("first_id", Text, nullable=False),
    Column("last_id", Text, nullable=False),
    Column("firings", LargeBinary, nullable=False),
    Column("outcomes", LargeBinary),
    Column("relation", LargeBinary, nullable=False),
    _of_bucket(),
    Index("firings_by_rule", "rulebook", "rule", "bucket"),
    Index("firings_by_time", "rulebook", "last_detected_at", "bucket"),
)

# What is remembered of a rule's firings that passed, for those that follow: rows of
# `engine.core.damping_memory`, each until an instant.
damping = _of_rulebook(
    "damping",
    Column("rule", Text, primary_key=True),
    Column("kind", Integer, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("until", BigInteger, nullable=False),
    Column("instants", LargeBinary, nullable=False),
    Index("damping_by_time", "rulebook", "until"),
)

# How many firings of each rule were dropped, by what, those included that are forgotten.
damped_totals = _of_rulebook(
    "damped_totals",
    Column("rule", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("firing_count", BigInteger, nullable=False),
)


def _runs(name: str) -> Table:
    """Ids in sorted runs (`engine.store.id_runs`): those of the buckets `first_bucket` to `run`."""
    return _of_rulebook(
        name,
        Column("run", BigInteger, primary_key=True),
        Column("first_bucket", BigInteger, nullable=False),
        Column("level", Integer, nullable=False),
        Column("id_count", BigInteger, nullable=False),
    )


def _pieces(name: str) -> Table:
    """A run in pieces: ids, 16 bytes each, from `first_id` on; `places` says where each firing
    is."""
    return _of_rulebook(
        name,
        Column("run", BigInteger, primary_key=True),
        Column("first_id", LargeBinary, primary_key=True),
        Column("ids", LargeBinary, nullable=False),
        Column("places", LargeBinary, nullable=False),
    )


# The ids of firings, and where each firing is.
firing_runs, firing_ids = _runs("firing_runs"), _pieces("firing_ids")

# The ids of what actions did (`engine.store.causes`), and where the firings are that came of it.
cause_runs, cause_ids = _runs("cause_runs"), _pieces("cause_ids")

UNFINISHED = text("state NOT IN ('done', 'skipped', 'redriven')")

# `firing_ids` null: all firings of (bucket, rule) that held. `state`: see
# `engine.core.values.Entry`. `action` is the action's number in its rule, `app_id` and
# `target_version` are what its fate is asked with (G16b), `place` is its place in the queue of its
# rule: a redriven entry has that of the one it stands for. `stage` null: detached. `reads`: JSON,
# the tables that its statement reads; `appends`: 1 if it only appends. `otherwise_at`: when the
# alternative is due; `alternative`: 1 if it is one. `error` holds no values of the user's tables,
# `details` may. `begun_at`: when its first attempt began, `settled_at`: when the last one was
# settled, by the engine's clock; null: not yet, or it is a part of another entry. `effect_version`:
# the version of its target that is its commit, `rows_written`: what that says of its rows.
outbox = Table(
    "outbox",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("rulebook", Text, nullable=False),
    Column("bucket", BigInteger, nullable=False),
    Column("rule", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("target", Text),
    Column("position", Integer, nullable=False),
    Column("firing_ids", HexIds),
    Column("depth", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("error", Message),
    Column("details", Message),
    Column("fate", Text),
    Column("action", Integer, nullable=False, server_default="0"),
    Column("app_id", Text, nullable=False, server_default=""),
    Column("target_version", BigInteger),
    Column("place", BigInteger, nullable=False, server_default="0"),
    Column("stored_at", BigInteger, nullable=False, server_default="0"),
    Column("stage", Integer, server_default="0"),
    Column("reads", Text, nullable=False, server_default="[]"),
    Column("appends", Integer, nullable=False, server_default="0"),
    Column("next_attempt_at", BigInteger, nullable=False, server_default="0"),
    Column("otherwise_at", BigInteger),
    Column("alternative", Integer, nullable=False, server_default="0"),
    Column("version", BigInteger, nullable=False, server_default="0"),
    Column("begun_at", BigInteger),
    Column("settled_at", BigInteger),
    Column("effect_version", BigInteger),
    Column("rows_written", BigInteger),
    _of_bucket(),
    Index("outbox_by_bucket", "rulebook", "bucket", "rule"),
    _partial("outbox_unfinished", "rulebook", "state", "number", where=UNFINISHED),
    _partial(
        "outbox_by_effect",
        "rulebook",
        "target",
        "effect_version",
        where="effect_version IS NOT NULL",
    ),
)

# What Spark runs of a rulebook's texts now: JSON of `engine.core.suspect.Suspect`s. It is empty
# where nothing runs; what is in it when an engine begins ran when the last one ended (G13).
begun = _of_rulebook(
    "begun",
    Column("running", Text, nullable=False),
)

# What texts have done to Spark since they last ran cleanly (`engine.core.suspect.Strikes`).
suspects = _of_rulebook(
    "suspects",
    Column("kind", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("text", Text, primary_key=True),
    Column("part", Text, primary_key=True),
    Column("item", Text, nullable=False),
    Column("told", Message, nullable=False),
    Column("deaths", Integer, nullable=False),
    Column("overruns", Integer, nullable=False),
    Column("ends", Integer, nullable=False),
    Column("reason", Message, nullable=False),
    Column("at", BigInteger, nullable=False),
)

# Placed once `bucket` and `instant` are set (G4); `entry`, `ordinal`: the action that raised it.
# `namespace`: `engine` where the engine made the id, as `<firing>-end_of`, else `client` (G28).
signals = _of_rulebook(
    "signals",
    Column("namespace", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("event", Text, nullable=False),
    Column("fields", Text, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("instant", BigInteger),
    Column("bucket", BigInteger),
    Column("entry", BigInteger),
    Column("ordinal", Integer),
    _of_bucket(),
    Index("signals_by_entry", "entry", "ordinal", unique=True),
    _partial("signals_by_bucket", "rulebook", "bucket", where="bucket IS NOT NULL"),
    _partial(
        "signals_unplaced", "rulebook", "received_at", "id", "namespace", where="bucket IS NULL"
    ),
    _partial("signals_unplaced_by_event", "rulebook", "event", where="bucket IS NULL"),
)

# Rows that could not become occurrences (G5).
rejected = _of_rulebook(
    "rejected",
    Column("bucket", BigInteger, primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("event", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("reason", Message, nullable=False),
    Column("fields", Text, nullable=False),
    Column("details", Message),
    _of_bucket(),
)

# What an operator asked for, effective at the next plan (G24): a bucket carries it out and sets
# `bucket`, or the engine does so between two buckets and says in `answer` what came of it.
# `asked_by`: `user@machine`, or the rule whose action it was.
controls = Table(
    "controls",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("rulebook", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("version", BigInteger),
    Column("option", Text),
    Column("asked_at", BigInteger, nullable=False),
    Column("bucket", BigInteger),
    Column("answer", Message),
    Column("asked_by", Message),
    _of_bucket(),
    _partial("controls_by_bucket", "rulebook", "bucket", where="bucket IS NOT NULL"),
    Index("controls_by_time", "rulebook", "asked_at", "id"),
    _partial("controls_pending", "rulebook", "id", where="bucket IS NULL AND answer IS NULL"),
)
