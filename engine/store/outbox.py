"""Firings and the outbox: what a bucket made due, until it is done (G16, G17)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, fields, replace
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
import sqlalchemy as sa

from tidegate.engine.core.columns.memory import give_back, in_one
from tidegate.engine.core.entries import Entry, Outcome, Progress, Turn
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.statement import SqlStatement, decode, encode
from tidegate.engine.core.values import Firings, Plan, Signal
from tidegate.engine.store import (
    causes,
    controls,
    damping,
    hours,
    id_runs,
    signals,
    totals,
    versions,
)
from tidegate.engine.store import tables as t
from tidegate.engine.store.blobs import firings_from_columns, firings_to_columns, outcomes_to_bytes
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import server_now
from tidegate.engine.store.state_files import StateFiles
from tidegate.rules.errors import EngineError

DONE, DEAD, PENDING, HELD = "done", "dead", "pending", "held"
SKIPPED, REDRIVEN = "skipped", "redriven"
OPEN = (PENDING, HELD)
FINISHED = (DONE, SKIPPED, REDRIVEN)  # these never change again
SHOWN_MAX = 100
FIRINGS_AT_ONCE = 100_000
"""Of about so many a statement has the rows, unless one rule has more."""
_SAME = (  # of an entry and of its row
    "number",
    "bucket",
    "rule",
    "firing_ids",
    "depth",
    "app_id",
    "target_version",
    "otherwise_at",
)


class QueueHead(NamedTuple):
    """The first unfinished entry of a rule: what became of it is asked of the commits of `target`
    after `target_version` (G16b). `stored_at`: when that was the last version, microseconds."""

    number: int
    rule: str
    target: str
    target_version: int
    stored_at: int


class Outbox(Bound):
    """Implements `engine.core.ledger.Outbox`."""

    def open_entries(self) -> tuple[Entry, ...]:
        c = t.outbox.c
        due = (c.state == DEAD) & c.otherwise_at.is_not(None)
        query = sa.select(t.outbox).where(c.rulebook == self.rulebook, c.state.in_(OPEN) | due)
        query = query.where(t.UNFINISHED)  # said again for SQLite, which then uses the index
        with self.database.read() as connection:
            rows = connection.execute(query.order_by(c.place, c.number)).all()
        return tuple(map(to_entry, rows))

    def entry(self, number: int) -> Entry | None:
        query = sa.select(t.outbox).filter_by(rulebook=self.rulebook, number=number)
        with self.database.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else to_entry(row)

    def heads(self) -> list[QueueHead]:
        """The first unfinished entry of each rule that writes a table."""
        c = t.outbox.c
        mine = (c.rulebook == self.rulebook) & t.UNFINISHED & c.target_version.is_not(None)
        first = sa.select(sa.func.min(c.number)).where(mine).group_by(c.rule)
        query = sa.select(c.number, c.rule, c.target, c.target_version, c.stored_at)
        query = query.where(c.number.in_(first)).order_by(c.number)
        with self.database.read() as connection:
            return [QueueHead(*row) for row in connection.execute(query)]

    def firings(self, bucket: int, rule: str) -> Firings:
        with self.database.read() as connection:
            return self._firings(connection, bucket, rule)

    def settle(self, outcomes: Sequence[Outcome]) -> tuple[Entry, ...]:
        with self.leased() as connection:
            failpoint("settle.begun")
            found = [self._settle(connection, outcome) for outcome in outcomes]
            failpoint("settle.before")
        failpoint("settle.after")
        return tuple(successor for successors in found for successor in successors)

    def do_otherwise(self, entry: Entry, made: Sequence[Entry]) -> tuple[Entry, ...]:
        with self.leased() as connection:
            stored = self._do_otherwise(connection, entry, made)
            failpoint("otherwise.stored")
        return stored

    def dead_in_a_row(self, entry: Entry, limit: int) -> int:
        """Counted within the entry's queue. Conditions do not count: they are no actions."""
        c = t.outbox.c
        tried = sa.select(c.state).where(c.rulebook == self.rulebook, c.rule == entry.rule)
        tried = tried.where(c.attempts > 0, c.kind != "condition")
        tried = tried.where(c.alternative == int(entry.alternative))
        tried = tried.where((c.kind == "webhook") == (entry.kind == "webhook"))
        last = tried.where(c.state.in_((DONE, DEAD))).order_by(c.number.desc()).limit(limit)
        with self.database.read() as connection:
            states = [*connection.execute(last).scalars()]
        return states.index(DONE) if DONE in states else len(states)

    def _settle(self, connection: sa.Connection, outcome: Outcome) -> tuple[Entry, ...]:
        """Store an outcome. Returns its successors, numbered.

        A finished entry does not change: if an outcome is settled again, because the answer of the
        database was lost, nothing happens.
        """
        c, entry = t.outbox.c, outcome.entry
        same = (c.number == entry.number) & (c.rulebook == self.rulebook) & c.state.not_in(FINISHED)
        settled = sa.update(t.outbox).where(same).values(_changes(outcome))
        at = outcome.settled_at or server_now(connection)
        died = {entry.rule} if outcome.state == DEAD else ()
        with hours.deaths(connection, self.rulebook, entry.bucket, died, at):
            if not connection.execute(settled).rowcount:
                return ()
        if outcome.state == DONE:
            signals.raise_by_entry(connection, self.rulebook, entry, outcome.signals)
            failpoint("settle.signals")
            if outcome.asks is not None:
                by = controls.of_action(entry.rule, entry.number)
                controls.add(connection, self.rulebook, *outcome.asks, asked_by=by)
        if outcome.firings is not None:
            self._decide(connection, entry, outcome.firings)
            counts = totals.add_decided(connection, self.rulebook, outcome.firings)
            hours.add(connection, self.rulebook, at, {entry.rule: counts})
        if outcome.memory is not None:
            damping.remember(connection, self.rulebook, {entry.rule: outcome.memory})
        if outcome.control is not None:
            controls.answer(connection, self.rulebook, outcome.control, outcome.state)
        successors = insert_entries(connection, self.rulebook, entry.bucket, outcome.successors)
        if outcome.ends:
            signals.tell(connection, self.rulebook, self._ended(connection, entry, outcome.ends))
        if outcome.fails:
            signals.tell(connection, self.rulebook, outcome.died)
        return successors

    def _do_otherwise(
        self, connection: sa.Connection, entry: Entry, made: Sequence[Entry]
    ) -> tuple[Entry, ...]:
        """Store an alternative for the entry's firings that have had none. Other statements of the
        rule may be for other sets of firings, so some may have had theirs already."""
        c = t.outbox.c
        timed = self._of_branch(entry) & (c.firing_ids == entry.firing_ids)
        timed &= c.otherwise_at.is_not(None)
        stopped = sa.update(t.outbox).where(timed).values(otherwise_at=None)
        if not connection.execute(stopped).rowcount or not made:
            return ()
        before = sa.select(c.firing_ids).where(self._of_rule(entry), c.alternative == 1).distinct()
        sets = [*connection.execute(before).scalars()]
        ids = entry.firing_ids
        if sets:
            if None in sets:
                return ()
            over = set().union(*sets)
            if not ids:
                held = self._firings(connection, entry.bucket, entry.rule).acted_on
                ids = tuple(held.hex_ids().to_pylist())
            ids = tuple(one for one in ids if one not in over)
            if not ids:
                return ()
        some_only = [replace(one, firing_ids=ids) for one in made]
        return insert_entries(connection, self.rulebook, entry.bucket, some_only)

    def _firings(self, connection: sa.Connection, bucket: int, rule: str) -> Firings:
        found = stored_firings(connection, self, bucket, [rule])
        if not found:
            raise EngineError(
                "firings-gone",
                f"rule {rule!r} of {self.rulebook!r} has no stored firings in bucket {bucket}",
                "firings are kept for firings_retention_days after they are done",
            )
        return found[0]

    def _decide(self, connection: sa.Connection, entry: Entry, decided: Firings) -> None:
        """Store the outcomes of an entry's firings. These may be only some of the bucket's."""
        if entry.firing_ids is not None:
            whole = self._firings(connection, entry.bucket, entry.rule)
            decided = whole.with_outcomes(decided)
        one = {"rulebook": self.rulebook, "bucket": entry.bucket, "rule": entry.rule}
        same = sa.update(t.firings).filter_by(**one, firing_count=len(decided))
        connection.execute(same.values(outcomes=outcomes_to_bytes(decided)))

    def _ended(
        self, connection: sa.Connection, entry: Entry, ends: Sequence[Signal]
    ) -> list[Signal]:
        """The `ends` of the firings of which no other statement is left."""
        c = t.outbox.c
        branch, unfinished = self._of_branch(entry), c.state.not_in((DONE, REDRIVEN))
        left = connection.execute(sa.select(c.firing_ids).where(branch, unfinished))
        sets = left.scalars().all()
        if None in sets:
            return []
        waiting = set().union(*sets)
        return [signal for signal in ends if signal.firing_id not in waiting]

    def _of_branch(self, entry: Entry) -> sa.ColumnElement[bool]:
        """The statements of an entry's rule in its bucket: those of `do`, or of `otherwise`."""
        c = t.outbox.c
        own = (c.kind != "condition") & (c.alternative == int(entry.alternative))
        return self._of_rule(entry) & own

    def _of_rule(self, entry: Entry) -> sa.ColumnElement[bool]:
        """The entries of an entry's rule in its bucket."""
        c = t.outbox.c
        return (c.rulebook == self.rulebook) & (c.bucket == entry.bucket) & (c.rule == entry.rule)


def insert_firings(
    connection: sa.Connection,
    plan: Plan,
    firings: Sequence[Firings],
    undecided: Collection[str] = (),
) -> None:
    """Store a row for each rule with its firings in this bucket. The firings of `undecided` rules
    are counted as fired, failed or damped later, when their condition is settled."""
    some = [fired for fired in firings if fired.firings.num_rows]
    if not some:
        return
    rows, count = _rows_of(plan, some), sum(map(len, some))
    at_once = max(1, FIRINGS_AT_ONCE * len(some) // count)
    while chunk := [*islice(rows, at_once)]:
        if count > FIRINGS_AT_ONCE:
            give_back()
        connection.execute(sa.insert(t.firings), chunk)
    counts = {}
    totals.add_detected(connection, plan.rulebook, some)
    for fired in some:
        if fired.rule not in undecided:
            counts[fired.rule] = totals.add_decided(connection, plan.rulebook, fired)
    hours.add(connection, plan.rulebook, plan.now, counts)
    if count > FIRINGS_AT_ONCE:
        give_back()
    ids = [in_one(fired.firings["firing_id"]) for fired in some]
    id_runs.add(connection, plan.rulebook, plan.bucket, ids)
    causes.add(connection, plan.rulebook, plan.bucket, some)


def _rows_of(plan: Plan, some: Sequence[Firings]) -> Iterator[dict[str, Any]]:
    """The rows of `firings`, of one rule each."""
    return (
        {
            "rulebook": plan.rulebook,
            "bucket": plan.bucket,
            "rule": fired.rule,
            "ordinal": ordinal,
            "firing_count": fired.firings.num_rows,
            **firings_to_columns(fired),
            **_extent(fired),
        }
        for ordinal, fired in enumerate(some)
    )


def stored_firings(
    connection: sa.Connection, bound: Bound, bucket: int, rules: Collection[str]
) -> list[Firings]:
    """The firings of a bucket, of some rules."""
    c, shelf = t.firings.c, StateFiles(bound.database, bound.rulebook).reader
    query = sa.select(c.rule, c.firings, c.outcomes, c.relation)
    query = query.where(c.rulebook == bound.rulebook, c.bucket == bucket, c.rule.in_(rules))
    return [firings_from_columns(shelf, *row) for row in connection.execute(query)]


def insert_entries(
    connection: sa.Connection, rulebook: str, bucket: int, entries: Sequence[Entry]
) -> tuple[Entry, ...]:
    """Store entries, numbered in their order from the store's one sequence. Returns them with their
    numbers."""
    if not entries:
        return ()
    count = len(entries)
    last = connection.execute(
        sa.update(t.meta)
        .values(last_entry=t.meta.c.last_entry + count)
        .returning(t.meta.c.last_entry)
    ).scalar_one()
    numbered = tuple(
        entry.numbered(number, bucket)
        for number, entry in enumerate(
            sorted(entries, key=lambda e: e.turn.order), last - count + 1
        )
    )
    now = server_now(connection)
    made = {"stored_at": now, "version": versions.running(connection, rulebook)}
    rows = [{**_row(rulebook, entry), **made} for entry in numbered]
    born_dead = {entry.rule for entry in numbered if entry.state == DEAD}
    with hours.deaths(connection, rulebook, bucket, born_dead, now):
        connection.execute(sa.insert(t.outbox), rows)
    return numbered


def unfinished(connection: sa.Connection, rulebook: str) -> tuple[Entry, ...]:
    """The first entries that are pending, held and dead, `SHOWN_MAX` of each, by number."""
    c = t.outbox.c
    query = sa.select(t.outbox).where(c.rulebook == rulebook, t.UNFINISHED)
    query = query.order_by(c.number).limit(SHOWN_MAX)
    rows = [
        row
        for state in (PENDING, HELD, DEAD)
        for row in connection.execute(query.where(c.state == state))
    ]
    return tuple(to_entry(row) for row in sorted(rows, key=lambda row: row.number))


def _changes(outcome: Outcome) -> dict[str, Any]:
    """The columns that an outcome sets. An entry begins with its first attempt."""
    values = asdict(outcome.progress)
    if outcome.firing_ids:
        values["firing_ids"] = outcome.firing_ids
    if outcome.settled_at is not None:
        values["settled_at"] = outcome.settled_at
    if outcome.begun_at is not None:
        values["begun_at"] = sa.func.coalesce(t.outbox.c.begun_at, outcome.begun_at)
    if outcome.effect is not None:
        values["effect_version"], values["rows_written"] = outcome.effect
    return values


def _row(rulebook: str, entry: Entry) -> dict[str, Any]:
    said = entry.statement
    of_sql = said if isinstance(said, SqlStatement) else SqlStatement("")
    return {
        "rulebook": rulebook,
        **{name: getattr(entry, name) for name in _SAME},
        "kind": entry.kind,
        "text": encode(said),
        "action": said.action,
        "target": of_sql.target,
        "reads": json.dumps(sorted(of_sql.reads)),
        "appends": int(of_sql.appends),
        "position": entry.turn.order,
        "place": entry.turn.place,
        "stage": entry.turn.stage,
        "alternative": int(entry.alternative),
        **asdict(entry.progress),
    }


def _extent(fired: Firings) -> dict[str, Any]:
    """When its firings were detected, and which are the first and the last."""
    times = fired.firings.column("detected_at").cast(pa.int64())
    ids = fired.firings.column("firing_id")
    return {
        "first_detected_at": times[0].as_py(),
        "last_detected_at": times[-1].as_py(),
        "first_id": ids[0].as_py().hex(),
        "last_id": ids[-1].as_py().hex(),
    }


def to_entry(row: sa.Row[Any]) -> Entry:
    """An entry from its row."""
    return Entry(
        **{name: getattr(row, name) for name in _SAME},
        statement=decode(
            row.kind,
            row.text,
            row.action,
            target=row.target,
            reads=frozenset(json.loads(row.reads)),
            appends=bool(row.appends),
        ),
        turn=Turn(order=row.position, place=row.place, stage=row.stage),
        progress=Progress(**{f.name: getattr(row, f.name) for f in fields(Progress)}),
        alternative=bool(row.alternative),
    )
