"""Runs actions on Delta tables, each commit with a marker of its own (G16, G31)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import Column, SparkSession

from tidegate.connectors.delta.analyst import DeltaAnalyst, group
from tidegate.connectors.delta.catalog import Catalog, collected, quoted, show
from tidegate.connectors.delta.effects import Effects, store_of
from tidegate.connectors.delta.faults import SPARK_ERRORS, check_alive, fault
from tidegate.connectors.delta.java_classes import java_class
from tidegate.connectors.delta.jobs import OverrunError
from tidegate.connectors.delta.markers import prepare
from tidegate.connectors.delta.plans import Plans, expression
from tidegate.connectors.delta.shared_commit import Insert, insert_of, run_shared
from tidegate.engine.core.columns.transitions import transition_table
from tidegate.engine.core.entries import Effect, Entry, Fate
from tidegate.engine.core.ports import AppIds, SinkError
from tidegate.engine.core.statement import FieldsStatement, encode
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import Firings, Reading
from tidegate.rules.errors import InputError, Place, word_place
from tidegate.rules.model import Rulebook

T = TypeVar("T")

CONFLICTS_MAX = 20  # attempts of one statement that other writers of its target get ahead of
FIRING_IDS_NOTED = 100  # in a commit's userMetadata
SMALL_SOURCE_ROWS = 50_000
SMALL_TARGET_BYTES = 256 * 1024 * 1024
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_CONFLICTS = ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")
_LARGE_JOBS = {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "200"}
# A marked commit runs Spark jobs that build the table's state from its log. Their plans are new
# each time, and take longer to compile than to run. A statement over few rows is faster
# interpreted, too.
INTERPRETED_BYTES = 16 * 1024 * 1024
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class DeltaSink:
    """Runs the entries of one rulebook. Every statement has a session of its own: no other
    statement sees its marker or its `event`. `app_ids`: asks the store for the app ids of entries,
    by their numbers (`engine.core.ports.Store`)."""

    def __init__(
        self, catalog: Catalog, rulebook: Rulebook, analyst: DeltaAnalyst, app_ids: AppIds
    ) -> None:
        self._catalog = catalog
        self._rulebook = rulebook
        self._analyst = analyst
        self._app_ids = app_ids
        self._effects = Effects(catalog.spark, catalog.locations)
        self._searched: set[str] = set()  # targets whose statements look for rows in them

    def run(self, entry: Entry, firings: Firings) -> None:
        """See `engine.core.ports.Sink`."""
        with self._failing():
            for attempt in range(1, CONFLICTS_MAX):
                try:
                    self._run(entry, firings)
                    return
                except SPARK_ERRORS as error:
                    check_alive(error)
                    if not fault(error).condition.startswith(_CONFLICTS):
                        raise
                time.sleep(0.05 * min(attempt, 10))
            self._run(entry, firings)

    def run_together(self, entries: Sequence[tuple[Entry, Firings]]) -> None:
        """See `engine.core.ports.Sink`. Left out are those whose marker was passed, those that read
        a relation (which may be a view of the target), those that write other columns than the
        first, those with which it would be no small job, whose rows are in memory all at once; and
        what follows them in their queue: its rows would come before theirs, and a greater marker
        would pass over them."""
        left_out: set[str] = set()
        with self._failing(), ExitStack() as opened:
            snapshot = self._within(lambda: self._target(entries[0][0]))
            inserts: list[Insert] = []
            sharing: list[tuple[Entry, Firings]] = []
            rows = 0
            for entry, firings in sorted(entries, key=lambda one: one[0].position):
                if entry.queue in left_out:
                    continue
                reading = self._reading(entry, firings)
                more = rows + firings.relation.num_rows
                insert = None
                if reading.own_rows and more <= SMALL_SOURCE_ROWS:
                    session = opened.enter_context(self._catalog.session())
                    self._show(session, entry, firings, reading)
                    insert = self._within(partial(self._insert, session, entry, firings, snapshot))
                if insert is not None and insert.columns == (inserts or [insert])[0].columns:
                    inserts.append(insert)
                    sharing.append((entry, firings))
                    rows = more
                else:
                    left_out.add(entry.queue)
            if len(inserts) > 1:
                session = opened.enter_context(self._catalog.session())
                for key, value in self._shared_settings(sharing).items():
                    session.conf.set(key, value)
                self._effects.counted(self._within(lambda: run_shared(session, inserts)))

    def ready(self, targets: Collection[str]) -> None:
        """See `engine.core.ports.Sink`. A marked commit looks at the markers there are, and a MERGE
        or UPDATE at the target's files. Where the checksum does not list the markers, Delta builds
        both from the log with two Spark jobs, and keeps them: that is done here."""
        for target in targets:
            with suppress(Exception):
                snapshot = self._snapshot(target)
                snapshot.transactions().size()
                if target in self._searched:
                    snapshot.setTransactions().size()

    def fate(self, entry: Entry, firings: Firings) -> Fate:
        """See `engine.core.ports.Sink`. The log is read first, for it is cheap: markers are part of
        the table's state, which costs Spark jobs after each commit."""
        try:
            told = self._effects.told(entry, _first(firings, FIRING_IDS_NOTED), len(firings))
            if told is not None:
                return told
            snapshot = self._target(entry)
            if int(snapshot.version()) < self._effects.last(entry):
                return Fate.UNKNOWN  # Delta sees less than the log shows: there is a gap
            if _marker(entry, snapshot) < entry.number:
                return Fate.PASSED if self._is_moved(entry, snapshot) else Fate.ABSENT
            return self._effects.passed(entry, int(snapshot.version()))
        except (*SPARK_ERRORS, ValueError, KeyError) as error:
            check_alive(error)
            return Fate.UNKNOWN

    def effect(self, entry: Entry) -> Effect | None:
        """The commit of an entry whose fate was found to be `effect`; asked once."""
        return self._effects.seen(entry)

    def seal(self, entry: Entry) -> None:
        """See `engine.core.ports.Sink`."""
        target = quoted(entry.target or "")
        text = f"INSERT INTO {target} SELECT * FROM {target} WHERE false"  # noqa: S608
        with self._failing():
            self._analyst.target(entry.target, self._place(entry))
            with self._catalog.session() as session:
                for key, value in _marked(entry, {**self._noted(entry), "sealed": True}).items():
                    session.conf.set(key, value)
                self._within(lambda: session.sql(text))

    def fields(self, entry: Entry, firings: Firings) -> pa.Table:
        """See `engine.core.ports.Sink`."""
        statement = entry.stating(FieldsStatement)
        names = list(statement.fields)
        columns = dict.fromkeys(("firing_id", *statement.group))
        with self._failing(), self._catalog.session() as session:
            values = [
                _typed(expression(session, text), statement.types.get(name))
                for name, text in statement.fields.items()
            ]
            grouped = group(show(session, firings.relation), tuple(columns), *values)
            found = grouped.select("firing_id", *(f"_{n}" for n in range(len(names))))
            return self._within(lambda: collected(found.toDF("firing_id", *names)))

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Turns what a statement raises into a SinkError."""
        try:
            yield
        except InputError as error:
            problem = error.problems[0]
            raise SinkError(f"[{problem.code}] {problem.message}") from None
        except OverrunError as error:
            seconds = self._rulebook.settings.statement_seconds_max
            said = f"[OVERRUN] {error} (statement_seconds_max = {seconds})"
            raise SinkError(said, overrun=True) from error
        except SPARK_ERRORS as error:
            check_alive(error)
            found = fault(error)
            raise SinkError(f"[{found.condition}] {found.message}", found.details) from None

    def _is_moved(self, entry: Entry, snapshot: Any) -> bool:
        """Whether an engine on a copy of the store has moved the marker of an entry's app id, while
        the marker is still below the entry's number.

        The marker then has the number of an entry that this store keeps under another app id, or
        has passed. That engine may have done the entry's work under a number of its own.
        """
        marker = _marker(entry, snapshot)
        if not 0 < marker < entry.number:
            return False
        return self._app_ids([marker]).get(marker, entry.app_id) != entry.app_id

    def _run(self, entry: Entry, firings: Firings) -> None:
        """One attempt. The marker is checked last: if another engine commits under it while the
        statement runs, Delta reports a conflict, and the next attempt checks it again."""
        reading = self._reading(entry, firings)
        with self._catalog.session() as session:
            for key, value in self._settings(entry, firings, reading).items():
                session.conf.set(key, value)
            self._show(session, entry, firings, reading)
            if entry.kind == "sql" and self._within(
                lambda: self._is_moved(entry, self._target(entry))
            ):
                return
            if _parameters(entry, firings):
                self._within(lambda: _run_plan(session, _parsed(session, entry, firings)))
            else:
                self._within(lambda: session.sql(encode(entry.statement)))

    def _show(
        self, session: SparkSession, entry: Entry, firings: Firings, reading: Reading
    ) -> None:
        """Make the views of an entry's statement."""
        show(session, firings.relation, "event", f"p_{entry.rule}")
        for name in sorted(reading.transitions):
            show(session, transition_table(firings.rows, name), name)

    def _within(self, call: Callable[[], T]) -> T:
        return self._catalog.jobs.run(self._rulebook.settings.statement_seconds_max, call)

    def _reading(self, entry: Entry, firings: Firings) -> Reading:
        """The verdict on the entry's statement, which is judged again: the store may have kept it
        from another version of the rulebook."""
        return self._analyst.statement(
            entry.rule,
            encode(entry.statement),
            self._place(entry),
            firings.relation.schema,
            _parameters(entry, firings),
            at_least_once=entry.kind == "unmarked",
        )

    def _place(self, entry: Entry) -> Place:
        return word_place(self._rulebook.file or "<text>", f"rules.{entry.rule}.do")

    def _settings(self, entry: Entry, firings: Firings, reading: Reading) -> dict[str, str]:
        noted = self._noted_effect(entry, firings)
        ids = noted["ids"]
        settings = _marked(entry, noted, _why(ids, len(firings)) if ids else "")
        if reading.fixed_source:
            settings["spark.databricks.delta.merge.materializeSource"] = "none"
        return settings | _job_settings(firings.relation.num_rows, self._bytes_read(entry, reading))

    def _insert(
        self, session: SparkSession, entry: Entry, firings: Firings, snapshot: Any
    ) -> Insert | None:
        marker = _marker(entry, snapshot)
        if marker >= entry.number or self._is_moved(entry, snapshot):
            return None
        return insert_of(session, entry, _parsed(session, entry, firings), marker)

    def _shared_settings(self, entries: Sequence[tuple[Entry, Firings]]) -> dict[str, str]:
        """The settings of a commit of several entries, which read no tables and few rows."""
        notes = [self._noted_effect(entry, firings) for entry, firings in entries]
        why = _why(notes[0]["ids"], sum(note["firings"] for note in notes))
        return {_USER_METADATA: json.dumps({"why": why, "tidegate": notes}), **_INTERPRETED}

    def _bytes_read(self, entry: Entry, reading: Reading) -> int:
        """The size of the tables that a statement reads. A MERGE or UPDATE reads its target, an
        INSERT does not. Tables under `reads:` have an unknown size, which counts as medium."""
        tables = set(reading.tables)
        if entry.target is not None and not reading.appends:
            tables.add(entry.target)
            self._searched.add(entry.target)
        unknown = INTERPRETED_BYTES + 1 if self._rulebook.reads else 0
        return unknown + sum(_bytes(self._catalog.snapshot(table)) for table in tables)

    def _target(self, entry: Entry) -> Any:
        return self._snapshot(entry.target or "")

    def _snapshot(self, table: str) -> Any:
        """A table's latest snapshot, with the markers that its checksum lists."""
        snapshot = self._catalog.snapshot(table)
        prepare(self._catalog.spark, snapshot)
        return snapshot

    def _noted_effect(self, entry: Entry, firings: Firings) -> dict[str, Any]:
        """What the note of an effect says."""
        ids = _first(firings, FIRING_IDS_NOTED)
        return {**self._noted(entry), "firings": len(firings), "ids": ids}

    def _noted(self, entry: Entry) -> dict[str, Any]:
        """What the note of every commit says of its entry."""
        return {
            "store": store_of(entry.app_id),
            "rulebook": self._rulebook.name,
            "rule": entry.rule,
            "entry": entry.number,
            "app_id": entry.app_id,
            "action": entry.statement.action,
            "depth": entry.depth,
        }


def _bytes(snapshot: Any) -> int:
    """The size of a table's files. Without a checksum Delta sums it up in a Spark job."""
    checksum = snapshot.checksumOpt()
    return int(checksum.get().tableSizeBytes() if checksum.isDefined() else snapshot.sizeInBytes())


def _marker(entry: Entry, snapshot: Any) -> int:
    """The number in the marker of an entry's app id, 0 where there is none. Delta caches it for the
    marked commit that follows."""
    found = snapshot.transactions().get(entry.app_id)
    return int(found.get()) if found.isDefined() else 0


def _job_settings(rows: int, size: int) -> dict[str, str]:
    """Settings for a statement over so many rows and bytes."""
    if rows > SMALL_SOURCE_ROWS or size > SMALL_TARGET_BYTES:
        return _LARGE_JOBS
    return _INTERPRETED if size <= INTERPRETED_BYTES else {}


def _typed(value: Column, kind: str | None) -> Column:
    return value if kind is None else value.cast(kind)


def _why(ids: Sequence[str], firings: int) -> str:
    """What DESCRIBE HISTORY shows first: the command that explains a commit's firings. Example:
    `tidegate why 5f3a.. # the first of 12 firings`, which a shell takes as it stands."""
    command = f"tidegate why {ids[0]}"
    return command if firings == 1 else f"{command} # the first of {firings:,} firings"


def _marked(entry: Entry, noted: Mapping[str, Any], why: str = "") -> dict[str, str]:
    """Session settings that put a note into a statement's commit, and a marker unless its kind has
    none. `why`: said before the note."""
    told = {"why": why, "tidegate": noted} if why else {"tidegate": noted}
    settings = {_USER_METADATA: json.dumps(told)}
    if entry.kind == "unmarked":
        return settings
    return settings | {
        "spark.databricks.delta.write.txnAppId": entry.app_id,
        "spark.databricks.delta.write.txnVersion": str(entry.number),
    }


def _run_plan(session: SparkSession, plan: Any) -> None:
    datasets = java_class(session, "org.apache.spark.sql.classic.Dataset")
    datasets.ofRows(session._jsparkSession, plan)


def _parsed(session: SparkSession, entry: Entry, firings: Firings) -> Any:
    """The plan of an entry's statement; of one for one firing, with the firing's values as
    parameters."""
    plans = Plans(session)
    plan = plans.statement(encode(entry.statement))
    names = _parameters(entry, firings)
    if not names:
        return plan
    first = firings.firings.select([name for name in names if name != "firing_id"]).slice(0, 1)
    row = python_rows(first)[0]
    row["firing_id"] = _first(firings, 1)[0]
    schema = session.table("event").schema
    return plans.bind(plan, {name: schema[name].dataType for name in names}, row)


def _parameters(entry: Entry, firings: Firings) -> tuple[str, ...]:
    """The names of the parameters of a statement for one firing; a statement for several has
    none."""
    if entry.firing_ids is None or len(entry.firing_ids) != 1:
        return ()
    return ("firing_id", "started_at", "detected_at", *firings.key_names)


def _first(firings: Firings, count: int) -> list[str]:
    ids: list[str] = [one.hex() for one in firings.firings["firing_id"][:count].to_pylist()]
    return ids
