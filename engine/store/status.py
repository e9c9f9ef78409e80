"""The figures that `tidegate status` shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tidegate.engine.core.entries import Entry, ways_past
from tidegate.engine.core.lifecycle import STARTING, STOPPED, Activity
from tidegate.engine.core.suspect import Text
from tidegate.engine.core.text import json_text
from tidegate.engine.store import (
    controls,
    hours,
    misfires,
    outbox,
    rejections,
    state_files,
    suspects,
    timers,
    totals,
    versions,
)
from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import Database, mappings, server_now
from tidegate.engine.store.holder import is_dead
from tidegate.engine.store.lease import holder_of, standby_of
from tidegate.engine.store.outbox import DEAD, HELD, PENDING
from tidegate.engine.store.signals import unplaced_by_event
from tidegate.engine.store.tables import metadata

NEWEST_SHOWN = 10
CARRIED = ("carried_instances", "carried_keys")
_OWN = sa.text(
    "SELECT sum(pg_total_relation_size(to_regclass(name))) FROM unnest(:names) AS name"
).bindparams(sa.bindparam("names", type_=sa.ARRAY(sa.Text)))


class Status(Bound):
    """The status of one rulebook."""

    def shown(
        self,
        declared: Collection[str] | None = None,
        rules: Collection[str] | None = None,
        texts: Callable[[], Collection[Text]] | None = None,
    ) -> dict[str, Any]:
        """The status of a rulebook, without values of the user's tables. Times are ISO 8601, UTC.

        `state`, `doing`      see `lifecycle.Activity`
        `behind`              what is visible and not taken, from the last engine that looked; its
                              fields are None before the first look
        `looked_at`           when an engine looked at its sources last
        `seen_until`          up to when nothing visible is left to take, though the last bucket
                              ended at `watermark`
        `detected`            who detected the last bucket, `driver` or `executors`, and why
        `losing_ground_since` since when buckets take longer than what arrives meanwhile, or None
        `stopped`             why the engine stopped, None if it did not
        `vanished`            the holder of a lease that ended without being given back
        `standby`             the holder that waits for the lease
        `fired`, .. `dead`    the counts of `totals.Total`, purged firings included
        `adjusted_commits`    how many commits were moved in time (G1), purged ones included
        `moved`               the last of these commits
        `rejected_rows`       how many rows were rejected, purged ones included
        `misfires`            by clock, how many occurrences were missed and passed over
        `rules`               by rule its counts, its unfinished entries, and what it carries
        `entries`             the first unfinished ones of each state; a pending one with an error
                              has failed and will be tried again; `commands`: the ways past a held
                              or dead one
        `quarantined`         texts that ended Spark's Java or overran their deadline twice
        `undeclared_signals`  signals that wait for a rulebook that declares their event type
        `asked_for`           requests of operators that wait
        `answered`            the last requests that were carried out or answered

        `declared`, `rules`, `texts`: the signals, rules and texts of the rulebook now, if known;
        the texts are asked for only where some are quarantined. An
        entry of a rule that is gone can only be skipped; other texts are left out of `quarantined`.
        """
        with self.database.read() as connection:
            detected = totals.of_rules(connection, self.rulebook)
            unplaced = unplaced_by_event(connection, self.rulebook)
            oldest = _oldest_signal_seconds(connection, self.rulebook, declared)
            left = _left(connection, self.rulebook)
            undeclared = [
                {"event": event, "signals": count}
                for event, count in sorted(unplaced.items())
                if declared is not None and event not in declared
            ]
            return {
                "rulebook": self.rulebook,
                **_engine(connection, self.rulebook),
                **_adjusted(connection, self.rulebook),
                **totals.summed(detected.values()).shown,
                "unplaced_signals": sum(unplaced.values()),
                "oldest_signal_seconds": oldest,
                "timers_pending": timers.count(connection, self.rulebook),
                "misfires": misfires.by_clock(connection, self.rulebook),
                **_entry_counts(connection, self.rulebook, left),
                **_rules(connection, self.rulebook, detected, left),
                "quarantined": suspects.shown(connection, self.rulebook, texts),
                "tables": _tables(connection, self.rulebook),
                "moved": _moved(connection, self.rulebook),
                "entries": _entries(connection, self.rulebook, rules),
                "rejected": rejections.newest(connection, self.rulebook, NEWEST_SHOWN, whole=False),
                "undeclared_signals": undeclared,
                "asked_for": _asked_for(connection, self.rulebook),
                "answered": _answered(connection, self.rulebook),
                "store_bytes": store_bytes(self.database, connection),
                **state_files.counts(connection, self.rulebook),
            }

    def stage_seconds(self) -> dict[str, float]:
        """How long the stages of the last bucket took, as far as known."""
        columns = (t.buckets.c[f"seconds_{stage}"].label(stage) for stage in t.STAGES)
        with self.database.read() as connection:
            rows = mappings(connection, t.of_last_bucket(self.rulebook, *columns))
        return {stage: s for row in rows for stage, s in row.items() if s is not None}


def _engine(connection: sa.Connection, rulebook: str) -> dict[str, Any]:
    """How far the rulebook is, who runs it, and what that engine does."""
    b = t.buckets.c
    query = t.of_last_bucket(rulebook, b.bucket, b.watermark, b.plan)
    last = connection.execute(query).one_or_none()
    watermark = last.watermark if last else None
    plan = json.loads(last.plan) if last else {}
    stopped = sa.select(t.rulebooks.c.stopped).filter_by(name=rulebook)
    return {
        "store_id": connection.execute(sa.select(t.meta.c.store_id)).scalar_one(),
        "bucket": last.bucket if last else 0,
        "watermark": json_text.instant(watermark),
        "watermark_micros": watermark,
        "detected": plan.get("detected"),
        **_lease(connection, rulebook, watermark),
        "stopped": connection.execute(stopped).scalar_one_or_none(),
        "version": versions.running(connection, rulebook),
        "standby": holder_of(connection, standby_of(rulebook)),
    }


def _lease(connection: sa.Connection, rulebook: str, watermark: int | None) -> dict[str, Any]:
    """Who runs the rulebook, what that engine does, and how far it has looked."""
    query = sa.select(t.leases).where(t.leases.c.rulebook == rulebook)
    row = connection.execute(query).one_or_none()
    now = server_now(connection)
    held = row is not None and row.expires_at > now and not is_dead(row.holder)
    said, looked = Activity(STOPPED), Activity(STOPPED)
    if row is not None:
        kept = {field.name: row._mapping[field.name] for field in fields(Activity)}
        looked = Activity(**{**kept, "state": row.state or STARTING})
        said = looked if held else said
    ends = [at for at in (watermark, looked.seen_until) if at is not None]
    return {
        "state": said.state,
        "doing": said.doing,
        "state_since": json_text.instant(row.state_at) if row is not None and held else None,
        "behind": {
            "commits": looked.commits if looked.knows else None,
            "signals": looked.signals if looked.knows else None,
            "oldest": json_text.instant(looked.oldest),
            "seconds": seconds_since(looked.oldest, now) if looked.knows else None,
        },
        "losing_ground_since": json_text.instant(said.losing_since),
        "looked_at": json_text.instant(looked.looked_at),
        "seen_until": json_text.instant(max(ends, default=None)),
        "next_timer": json_text.instant(looked.next_timer),
        "next_timer_late_seconds": seconds_since(looked.next_timer, now),
        "lease_holder": row.holder if row is not None and held else None,
        "lease_until": json_text.instant(row.expires_at) if row is not None and held else None,
        "vanished": row.holder if row is not None and not held and row.expires_at > 0 else None,
    }


def seconds_since(instant: int | None, now: int) -> float:
    """The seconds since an instant; 0 if there is none, or it is to come."""
    return 0.0 if instant is None else round(max(0, now - instant) / 1_000_000, 1)


def _oldest_signal_seconds(
    connection: sa.Connection, rulebook: str, declared: Collection[str] | None
) -> float:
    """How long the oldest signal has waited, of those that a bucket will claim."""
    if declared is not None and not declared:
        return 0.0
    c = t.signals.c
    query = sa.select(c.received_at).where(c.rulebook == rulebook, c.bucket.is_(None))
    if declared is not None:
        query = query.where(c.event.in_(declared))
    first = connection.execute(query.order_by(c.received_at).limit(1)).scalar_one_or_none()
    return seconds_since(first, server_now(connection))


def _adjusted(connection: sa.Connection, rulebook: str) -> dict[str, int]:
    c = t.totals.c
    query = sa.select(c.adjusted_commits, c.rejected_count)
    row = connection.execute(query.where(c.rulebook == rulebook)).one_or_none()
    names = ("adjusted_commits", "rejected_rows")
    return dict(zip(names, row or (0, 0), strict=True))


def _left(connection: sa.Connection, rulebook: str) -> Counter[tuple[str, str]]:
    """How many entries are unfinished, by rule and state."""
    c = t.outbox.c
    query = sa.select(c.rule, c.state, sa.func.count()).where(c.rulebook == rulebook, t.UNFINISHED)
    rows = connection.execute(query.group_by(c.rule, c.state))
    return Counter({(rule, state): count for rule, state, count in rows})


def _entry_counts(
    connection: sa.Connection, rulebook: str, left: Mapping[tuple[str, str], int]
) -> dict[str, int]:
    c = t.outbox.c
    failed = sa.select(sa.func.count()).where(c.rulebook == rulebook, t.UNFINISHED)
    failed = failed.where(c.state == PENDING, c.error.is_not(None))
    counts = Counter[str]()
    for (_, state), count in left.items():
        counts[state] += count
    return {
        "entries_pending": counts[PENDING],
        "entries_failed": connection.execute(failed).scalar_one(),
        "entries_held": counts[HELD],
        "entries_dead": counts[DEAD],
    }


def _rules(
    connection: sa.Connection,
    rulebook: str,
    found: Mapping[str, totals.Total],
    left: Counter[tuple[str, str]],
) -> dict[str, list[Any]]:
    """The rules by state. Each has its counts (`totals.Total`), those of the last 24 hours
    (`hours`), how many of its entries are pending and held, and what it carries."""
    a, p, d = t.activations.c, t.parked.c, t.disabled.c
    parked = sa.select(p.rule, p.reason, p.hint, p.instant.label("since"), p.passed_over)
    parked = parked.where(p.rulebook == rulebook).order_by(p.rule)
    disabled = sa.select(d.rule, d.instant.label("since"))
    disabled = disabled.where(d.rulebook == rulebook).order_by(d.rule)
    lately = hours.lately(connection, rulebook, server_now(connection))
    at_rest = {
        "parked": _to_enable(mappings(connection, parked, "since")),
        "disabled": _to_enable(mappings(connection, disabled, "since")),
    }
    held = sa.select(a.rule, a.carried_instances, a.carried_keys).where(a.rulebook == rulebook)
    carried = {rule: counts for rule, *counts in connection.execute(held)}
    states = dict.fromkeys(carried, "active")
    states |= {row["rule"]: state for state, rows in at_rest.items() for row in rows}
    return {
        "active_rules": sorted(rule for rule, state in states.items() if state == "active"),
        "rules": [
            {
                "rule": rule,
                "state": states[rule],
                "last_fired": json_text.instant(total.last_fired_at),
                **total.shown,
                "damped_by": total.damped,
                "last_day": lately.get(rule, hours.NOTHING),
                **{state: left[rule, state] for state in (PENDING, HELD)},
                **dict(zip(CARRIED, carried.get(rule, (0, 0)), strict=True)),
            }
            for rule in sorted(states)
            for total in (found.get(rule, totals.Total()),)
        ],
        "parked_rules": at_rest["parked"],
        "disabled_rules": at_rest["disabled"],
    }


def _to_enable(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rules that do not run, each with the command that lets it go on."""
    return [{**row, "commands": [f"tidegate enable {row['rule']}"]} for row in rows]


def _tables(connection: sa.Connection, rulebook: str) -> list[dict[str, Any]]:
    c = t.cursors.c
    query = sa.select(c.table_name.label("table"), c.version, c.instant)
    query = query.where(c.rulebook == rulebook).order_by(c.table_name)
    return mappings(connection, query, "instant")


def _moved(connection: sa.Connection, rulebook: str) -> list[dict[str, Any]]:
    c = t.commits.c
    logged, instant = c.logged.label("from"), c.instant.label("to")
    query = sa.select(c.table_name.label("table"), c.version, logged, instant, c.bucket)
    query = query.where(c.rulebook == rulebook, c.logged.is_not(None))
    newest = query.order_by(c.bucket.desc(), c.instant.desc(), c.table_name.desc())
    return mappings(connection, newest.limit(NEWEST_SHOWN), "from", "to")[::-1]


def _entries(
    connection: sa.Connection, rulebook: str, rules: Collection[str] | None
) -> list[dict[str, Any]]:
    """The first unfinished entries, without their texts, which may be long."""
    c = t.outbox.c
    names = ("number", "rule", "bucket", "kind", "target", "state", "attempts", "fate", "error")
    query = sa.select(*(c[name] for name in names)).where(c.rulebook == rulebook, t.UNFINISHED)
    first = query.order_by(c.number).limit(outbox.SHOWN_MAX)
    rows = [
        row
        for state in (PENDING, HELD, DEAD)
        for row in mappings(connection, first.where(c.state == state))
    ]
    for row in rows:
        exists = rules is None or row["rule"] in rules
        row["commands"] = _commands(row["state"], row["number"], row["fate"], exists=exists)
    return sorted(rows, key=lambda row: int(row["number"]))


def entry_commands(entry: Entry, rules: Collection[str] | None) -> list[str]:
    """The commands that get past a held or dead entry. `rules`: those that exist now, if known."""
    exists = rules is None or entry.rule in rules
    return _commands(entry.state, entry.number, entry.progress.fate, exists=exists)


def _commands(state: str, number: int, fate: str | None, *, exists: bool) -> list[str]:
    if state not in (HELD, DEAD):
        return []
    redrive, skip = ways_past(number, fate)
    return [redrive, skip] if exists else [skip]


def _asked_for(connection: sa.Connection, rulebook: str) -> list[dict[str, Any]]:
    names = ("kind", "subject", "version", "option", "asked_by")
    asked = controls.pending(connection, rulebook)
    return [{name: getattr(control, name) for name in names} for control in asked]


def _answered(connection: sa.Connection, rulebook: str) -> list[dict[str, Any]]:
    c = t.controls.c
    query = sa.select(c.kind, c.subject, c.option, c.asked_at, c.asked_by, c.bucket, c.answer)
    query = query.where(c.rulebook == rulebook, c.answer.is_not(None) | c.bucket.is_not(None))
    newest = query.order_by(c.asked_at.desc(), c.id.desc()).limit(NEWEST_SHOWN)
    rows = mappings(connection, newest, "asked_at")[::-1]
    return [{**row, "answer": row["answer"] or "done"} for row in rows]  # a bucket carried it out


def store_bytes(database: Database, connection: sa.Connection) -> int:
    """The bytes that a store takes on disk."""
    if database.file is None:
        return int(connection.execute(_OWN, {"names": [*metadata.tables]}).scalar_one() or 0)
    files = (database.file, Path(f"{database.file}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
