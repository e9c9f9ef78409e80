"""A rulebook's state between two buckets, and the step from one to the next (step 3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from tidegate.engine.core.entries import Entry
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.state import State, StoredBucket
from tidegate.engine.core.state_parts import FilePart, Shelf, loaded
from tidegate.engine.core.values import DUE, FOREVER, TIMERS, Carried, Cursor, Load, Plan
from tidegate.engine.store import (
    damping,
    misfires,
    outbox,
    rejections,
    rule_states,
    signals,
    sizes,
    versions,
)
from tidegate.engine.store import tables as t
from tidegate.engine.store.blobs import table_from_bytes
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import add_up, upsert
from tidegate.engine.store.plans import plan_to_text
from tidegate.engine.store.shelf import FileShelf, Packed
from tidegate.engine.store.state_files import StateFiles, files_of, list_parts, list_rows
from tidegate.engine.store.totals import fired_lately
from tidegate.rules.errors import EngineError

_OF_KEYS = ("node:", "occ:", "apart:")  # such parts are cut by key, and may be left in files
_EVERY = "/every"  # but for these


class Buckets(Bound):
    """Implements `engine.core.ledger.Buckets`."""

    def load(self, *, apart: bool = False) -> State:
        with self.database.read() as connection:
            found = _load(connection, self.rulebook)
            rows = _rows(connection, t.carried, self.rulebook)
        moving = self._files.elsewhere() if apart else ()
        tables = carried_tables(self, rows, apart=apart, wanted=moving)
        return replace(found, carried=Carried(tables))

    def shelf(self, state_path: str | None, bucket: int) -> FileShelf | None:
        return self._files.shelf(state_path, bucket)

    def give_up(self, bucket: int, shelf: Shelf) -> None:
        with self.leased() as connection:  # a transaction whose answer was lost has ended by now
            committed = last_bucket(connection, self.rulebook) >= bucket
        if not committed:
            shelf.remove_written()

    def commit(self, taken: StoredBucket) -> tuple[Entry, ...]:
        name, plan, carried = self.rulebook, taken.plan, taken.carried
        shelf = taken.shelf if isinstance(taken.shelf, FileShelf) else self._files.reader
        moved = self._elsewhere & carried.tables.keys() - carried.written.keys()
        known = {**carried.written, **loaded({n: carried.tables[n] for n in moved}, shelf)}
        there = {n: part for n, part in known.items() if isinstance(part, FilePart)}
        here = {n: Packed.of(known[n]) for n in sorted(known.keys() - there.keys())}
        there |= shelf.write_large(here)
        of_firings = files_of(taken.firings)
        with self.leased() as connection:
            failpoint("commit.begun")
            sizes.note(connection, taken)
            _insert_bucket(connection, taken)
            failpoint("commit.bucket")
            _save_activations(connection, taken)
            misfires.add(connection, name, taken.misfires)
            save_carried(connection, name, carried, here, there)
            home = self._files.home if there or of_firings else ""
            list_parts(connection, name, plan.now, home, there.values())
            list_rows(connection, plan, home, of_firings)
            failpoint("commit.carried")
            rejections.add(connection, plan, taken.rejected)
            rule_states.save(connection, taken)
            failpoint("commit.middle")
            asked = (e for e in taken.entries if e.kind == "condition" and e.state != "dead")
            undecided = {entry.rule for entry in asked}
            outbox.insert_firings(connection, plan, taken.firings, undecided)
            failpoint("commit.firings")
            damping.remember(connection, name, taken.memory)
            numbered = outbox.insert_entries(connection, name, plan.bucket, taken.entries)
            failpoint("commit.before")
        self._elsewhere.clear()
        failpoint("commit.after")
        return numbered

    def compact(self, state_path: str | None, now: int) -> dict[str, FilePart]:
        if not (small := self._files.small()):
            return {}
        shelf = self._files.shelf(state_path, self.last())
        if shelf.folder is None:
            return {}
        moved = shelf.copied(small)
        home = self._files.home
        with self.leased() as connection:
            _point_to(connection, self.rulebook, moved)
            list_parts(connection, self.rulebook, now, home, moved.values())
            failpoint("compact.before")
        failpoint("compact.after")
        return moved

    @cached_property
    def _files(self) -> StateFiles:
        return StateFiles(self.database, self.rulebook, self.epoch)

    @cached_property
    def _elsewhere(self) -> set[str]:
        """The parts in files of other homes: the next bucket takes them over. Those who own the
        files may delete them from then on, so they are read when the state is loaded."""
        return {*self._files.elsewhere()}

    def acted(self, bucket: int, seconds: float) -> None:
        one = sa.update(t.buckets).filter_by(rulebook=self.rulebook, bucket=bucket)
        with self.leased() as connection:
            connection.execute(one.values(seconds_act=seconds))
            failpoint("acted.before")

    def last(self) -> int:
        """The number of the last bucket, 0 if there is none."""
        with self.database.read() as connection:
            return last_bucket(connection, self.rulebook)

    def version_at(self, table: str, instant: int) -> int | None:
        c = t.commits.c
        query = sa.select(c.version).where(
            c.rulebook == self.rulebook, c.table_name == table, c.instant <= instant
        )
        newest = query.order_by(c.instant.desc(), c.version.desc()).limit(1)
        with self.database.read() as connection:
            return connection.execute(newest).scalar_one_or_none()

    def cursor(self, table: str) -> int | None:
        """The last version of a table that was read."""
        query = sa.select(t.cursors.c.version)
        one = query.filter_by(rulebook=self.rulebook, table_name=table)
        with self.database.read() as connection:
            return connection.execute(one).scalar_one_or_none()


def carried_tables(
    bound: Bound, rows: Iterable[Any], *, apart: bool = False, wanted: Collection[str] = ()
) -> dict[str, pa.Table]:
    """The tables of rows of `t.carried`, by name. `apart`: those of keys that lie in files are
    `FilePart`s, but for those that are `wanted`. Raises EngineError `state-file`,
    OutageError."""
    rows = [*rows]
    shelf = StateFiles(bound.database, bound.rulebook).reader
    at = {row.name: (row.file, row.file_row) for row in rows if row.file is not None}
    left = {n for n in at if apart and n.startswith(_OF_KEYS) and not n.endswith(_EVERY)}
    left.difference_update(wanted)
    known = shelf.described({at[name][0] for name in left})
    read = shelf.read_bytes({name: place for name, place in at.items() if name not in left})
    here = {row.name: row.arrow for row in rows if row.file is None} | read
    return {
        row.name: known[at[row.name]] if row.name in left else table_from_bytes(here[row.name])
        for row in rows
    }


def _load(connection: sa.Connection, rulebook: str) -> State:
    """The state, but for what is carried."""
    b = t.buckets.c
    newest = t.of_last_bucket(rulebook, b.bucket, b.watermark, b.now)
    last = connection.execute(newest).one_or_none()
    first = sa.select(b.now).where(b.rulebook == rulebook).order_by(b.now).limit(1)
    active = _rows(connection, t.activations, rulebook)
    return State(
        bucket=last.bucket if last else 0,
        watermark=last.watermark if last else None,
        now=last.now if last else 0,
        cursors={
            row.table_name: Cursor(
                row.table_name, row.table_id, row.version, row.instant, row.schema, row.digest
            )
            for row in _rows(connection, t.cursors, rulebook)
        },
        activations={row.rule: row.instant for row in active},
        activation_digests={row.rule: row.digest for row in active},
        carried=Carried(),
        parked=rule_states.rules_in(connection, t.parked, rulebook),
        disabled=rule_states.rules_in(connection, t.disabled, rulebook),
        fired=fired_lately(connection, rulebook, last.now) if last else (),
        begun_at=connection.execute(first).scalar_one_or_none(),
    )


def _insert_bucket(connection: sa.Connection, taken: StoredBucket) -> None:
    """Store the bucket's row, and what its plan claims: cursors, signals, controls.

    Raises EngineError `bucket-order` unless it follows the last bucket.
    """
    plan = taken.plan
    last = last_bucket(connection, plan.rulebook)
    if plan.bucket != last + 1:
        raise EngineError(
            "bucket-order",
            f"bucket {plan.bucket} of {plan.rulebook!r} cannot follow bucket {last}",
            "is a second engine at work on this store? start again",
        )
    counts = {
        "adjusted_commits": len(plan.moved),
        "row_count": taken.rows,
        "detection_count": taken.detections,
        "firing_count": sum(map(len, taken.firings)),
        "entry_count": len(taken.entries),
        "rejected_count": len(taken.rejected),
    }
    own = ("rulebook", "bucket", "watermark_before", "watermark", "now")
    connection.execute(
        sa.insert(t.buckets).values(
            **{name: getattr(plan, name) for name in own},
            plan=plan_to_text(plan),
            version=versions.running(connection, plan.rulebook),
            **counts,
            **{f"seconds_{stage}": taken.seconds.get(stage) for stage in t.STAGES[:-1]},
        )
    )
    add_up(connection, t.totals, {"rulebook": plan.rulebook}, counts)
    _forget_replaced(connection, plan)
    upsert(connection, t.cursors, [_cursor(plan.rulebook, span.cursor) for span in plan.ranges])
    _insert_commits(connection, plan)
    signals.place(connection, plan.rulebook, plan.bucket, plan.signals)
    if plan.controls:
        asked = t.controls.c.id.in_(plan.controls) & (t.controls.c.rulebook == plan.rulebook)
        connection.execute(sa.update(t.controls).where(asked).values(bucket=plan.bucket))


def _forget_replaced(connection: sa.Connection, plan: Plan) -> None:
    """Delete the commits of tables whose range does not begin just after their cursor, as after a
    reset. From then on only their logs say which version they had at an instant."""
    if not plan.ranges:
        return
    c = t.cursors.c
    query = sa.select(c.table_name, c.table_id, c.version).where(
        c.rulebook == plan.rulebook, c.table_name.in_([span.table for span in plan.ranges])
    )
    expected = {name: (table_id, last + 1) for name, table_id, last in connection.execute(query)}
    for span in plan.ranges:
        follows = (span.cursor.table_id, span.first)
        if expected.get(span.table, follows) != follows:
            of_table = {"rulebook": plan.rulebook, "table_name": span.table}
            connection.execute(sa.delete(t.commits).filter_by(**of_table))


def _insert_commits(connection: sa.Connection, plan: Plan) -> None:
    rows = [
        {
            "rulebook": plan.rulebook,
            "table_name": span.table,
            "instant": instant,
            "version": version,
            "bucket": plan.bucket,
            "logged": span.logged.get(version),
        }
        for span in plan.ranges
        if not span.snapshot
        for version, instant in span.instants.items()
    ]
    if rows:
        connection.execute(sa.insert(t.commits), rows)


def last_bucket(connection: sa.Connection, rulebook: str) -> int:
    """The number of the last bucket, 0 if there is none."""
    query = t.of_last_bucket(rulebook, t.buckets.c.bucket)
    return connection.execute(query).scalar_one_or_none() or 0


def _save_activations(connection: sa.Connection, taken: StoredBucket) -> None:
    """Store the active rules, which are those in `digests`, with what each carries. Other rules are
    deleted, with the memory of their damping.

    Raises ValueError for a rule of which neither the plan nor the store has an activation.
    """
    plan, digests = taken.plan, taken.digests
    old = {row.rule: row for row in _rows(connection, t.activations, plan.rulebook)}
    instants = {**{rule: row.instant for rule, row in old.items()}, **plan.activations}
    rows = []
    for rule, digest in digests.items():
        if rule not in instants:
            raise ValueError(f"rule {rule!r} is active without an activation")
        load = taken.loads.get(rule, Load())
        row = {
            "rulebook": plan.rulebook,
            "rule": rule,
            "instant": instants[rule],
            "digest": digest,
            "carried_instances": load.instances,
            "carried_keys": load.keys,
        }
        if rule not in old or old[rule]._asdict() != row:
            rows.append(row)
    upsert(connection, t.activations, rows)
    gone = set(old) - set(digests)
    for table in (t.activations, t.damping):
        _delete(connection, table, table.c.rule, plan.rulebook, gone)


def save_carried(
    connection: sa.Connection,
    rulebook: str,
    carried: Carried,
    here: Mapping[str, Packed],
    there: Mapping[str, FilePart],
) -> None:
    """Write some parts, or where they are in files, and delete those that are gone."""
    _point_to(connection, rulebook, {**here, **there})
    _delete(connection, t.carried, t.carried.c.name, rulebook, carried.gone)


def _point_to(
    connection: sa.Connection, rulebook: str, parts: Mapping[str, Packed | FilePart]
) -> None:
    upsert(connection, t.carried, [_row(rulebook, name, part) for name, part in parts.items()])


def _row(rulebook: str, name: str, part: Packed | FilePart) -> dict[str, Any]:
    due = int(part.metadata.get(DUE, FOREVER))
    place: dict[str, Any] = (
        {"arrow": None, "file": part.file, "file_row": part.group}
        if isinstance(part, FilePart)
        else {"arrow": part.data, "file": None, "file_row": None}
    )
    return {
        "rulebook": rulebook,
        "name": name,
        **place,
        "due": due if due < FOREVER else None,
        "timers": int(part.metadata.get(TIMERS, 0)),
        "row_count": part.rows,
    }


def _cursor(rulebook: str, cursor: Cursor) -> dict[str, Any]:
    values = asdict(cursor)
    return {"rulebook": rulebook, "table_name": values.pop("table"), **values}


def _rows(connection: sa.Connection, table: sa.Table, rulebook: str) -> Sequence[sa.Row[Any]]:
    return connection.execute(sa.select(table).where(table.c.rulebook == rulebook)).all()


def _delete(
    connection: sa.Connection,
    table: sa.Table,
    column: sa.Column[str],
    rulebook: str,
    names: Collection[str],
) -> None:
    if names:
        where = (table.c.rulebook == rulebook) & (column == sa.bindparam("gone"))
        connection.execute(sa.delete(table).where(where), [{"gone": name} for name in names])
