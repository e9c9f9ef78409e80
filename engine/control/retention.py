"""How long until VACUUM or log cleaning outruns the engine: what it has not read, what conditions
will see, what its queues ask the logs (`engine.core.keeping`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tidegate.engine.control.table_log import TableLog
from tidegate.engine.core.keeping import Claim, Deadline, Keeping, Need, deadlines
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.layout import age_text
from tidegate.engine.core.text.times import of_text
from tidegate.engine.store import SqlStore
from tidegate.rules.analysis.graph import sample_texts, table_events
from tidegate.rules.errors import Problem
from tidegate.rules.model import Coupling, Rule, Rulebook
from tidegate.rules.sql.statement import statement

SHOWN = 20
_NEEDS = {
    Need.CURSOR: "commits of table {table} that are not read",
    Need.CONDITION: "table {table} as the condition of rule {of} is to see it",
    Need.QUEUE: "commits of table {table} by which the queue of rule {of} knows what was done",
}
_WAYS = {
    Need.CURSOR: ["let the engine catch up", "raise {by}", "tidegate reset {table} --from now"],
    Need.CONDITION: ["let the engine catch up", "raise {by}"],
    Need.QUEUE: ["tidegate redrive or skip the first entry of rule {of}", "raise {by}"],
}


def planned(
    store: SqlStore, book: Rulebook, status: Mapping[str, Any], logs: Mapping[str, TableLog]
) -> dict[str, Any]:
    """What `status` shows: `deadlines`, the first ones; `tables`, for how long each one keeps its
    past; `unknown`, the tables of which no engine has read that yet. `logs`: those on this machine.
    """
    now = store.wall()
    keepings = {
        name: _here(keeping, logs.get(name))
        for name, keeping in store.of(book.name).keepings.known().items()
        if name in book.tables
    }
    found = deadlines(claims(store, book, status, logs, now), keepings, now)
    return {
        "deadlines": [_shown(one, now) for one in found[:SHOWN]],
        "tables": [
            {
                "table": one.table,
                "stands_seconds": one.stands_micros // 1_000_000,
                "by": one.limit,
                "oldest": one.oldest,
            }
            for one in keepings.values()
        ],
        "unknown": sorted(book.tables.keys() - keepings.keys()),
    }


def claims(
    store: SqlStore,
    book: Rulebook,
    status: Mapping[str, Any],
    logs: Mapping[str, TableLog],
    now: int,
) -> list[Claim]:
    """What is still needed of the tables' past. Where a log is not on this machine, a commit that
    is not read yet came after the engine's last look, and no sooner."""
    cursors = [*_cursors(status, logs)]
    waiting = [claim.instant for claim in cursors]
    if seconds := status["lag"]["seconds"]:
        waiting.append(now - int(seconds * 1e6))
    found = [*cursors, *_queues(store, book, logs)]
    if waiting:
        found += _conditions(book, min(waiting), logs)
    return found


def short(book: Rulebook, keepings: Iterable[Keeping]) -> Iterator[Problem]:
    """A warning for each table with events that keeps its commits for less than
    `retention_margin_hours`."""
    hours = book.settings.retention_margin_hours
    read = {event.table for event in table_events(book)}
    for keeping in keepings:
        if keeping.table in read and keeping.stands_micros < hours * 3_600_000_000:
            kept = age_text(keeping.stands_micros / 1e6)
            message = f"an engine that stands still for {kept} may lose commits of it: "
            message += f"{keeping.limit} is shorter than retention_margin_hours = {hours}"
            hint = f"raise {keeping.limit} above the longest downtime"
            yield Problem("short-retention", message, book.tables[keeping.table].place, hint)


def _here(keeping: Keeping, log: TableLog | None) -> Keeping:
    """With the versions that its log has now, where it is on this machine."""
    if log is None:
        return keeping
    first, last = log.versions[0], log.versions[-1]
    return Keeping(keeping.table, keeping.log_micros, keeping.files_micros, first, last)


def _cursors(status: Mapping[str, Any], logs: Mapping[str, TableLog]) -> Iterator[Claim]:
    for row in status["tables"]:
        table, log = row["table"], logs.get(row["table"])
        if log is not None:
            ahead = log.ahead(row["version"])
            if ahead.commits and ahead.first is not None:
                yield Claim(Need.CURSOR, table, table, row["version"] + 1, ahead.first)
        elif not (status["lease_holder"] and row["commits_behind"] == 0):
            looked = (at for at in (row["instant"], status["seen_until"]) if at is not None)
            yield Claim(Need.CURSOR, table, table, None, max(map(of_text, looked)), exact=False)


def _queues(store: SqlStore, book: Rulebook, logs: Mapping[str, TableLog]) -> Iterator[Claim]:
    for head in store.of(book.name).outbox.heads():
        version, log = head.target_version + 1, logs.get(head.target)
        at = head.stored_at if log is None else log.instant(version)
        if log is not None and log.versions[-1] < version:
            continue  # nothing was committed since: nothing can be missed
        exact = log is not None and at is not None
        yield Claim(Need.QUEUE, head.target, head.rule, version, at or head.stored_at, exact=exact)


def _conditions(book: Rulebook, waiting: int, logs: Mapping[str, TableLog]) -> Iterator[Claim]:
    """What conditions and samples will see of tables as of `waiting`, the first instant that is not
    taken. The last version of a table is never gone."""
    for rule in book.rules.values():
        for table in sorted(_seen(book, rule) & logs.keys()):
            log, version = logs[table], logs[table].at(waiting)
            if version is None or version == log.versions[-1]:
                continue
            at, replaced = log.instant(version), log.instant(version + 1)
            if at is not None:
                yield Claim(Need.CONDITION, table, rule.name, version, at, replaced=replaced)


def _seen(book: Rulebook, rule: Rule) -> set[str]:
    """The tables that a rule's condition or samples see as of an instant (G14)."""
    texts = [text for text, _ in sample_texts(book, rule)]
    asked = rule.condition
    if asked is not None and asked.query and rule.condition_coupling is Coupling.IMMEDIATE:
        texts.append(asked.text)
    if not texts:
        return set()  # as nearly all rules
    read = (statement(text) for text in texts)
    names = {mention.name.lower() for one in read if one for mention in one.relations}
    return {name for name in book.tables if name.lower() in names}


def _shown(one: Deadline, now: int) -> dict[str, Any]:
    claim = one.claim
    names = {"table": claim.table, "of": claim.of, "by": one.by}
    left = (one.at - now) / 1e6
    what = _NEEDS[claim.need].format(**names)
    when = f"may be gone in {age_text(left)}"
    if one.gone:
        when = f"may be gone since {age_text(-left)}"
    least = "" if claim.exact else ", at the earliest"
    return {
        "need": str(claim.need),
        "table": claim.table,
        "of": claim.of,
        "version": claim.version,
        "at": json_text.instant(one.at),
        "left_seconds": round(left),
        "by": one.by,
        "exact": claim.exact,
        "gone": one.gone,
        "said": f"{what} {when}{least} ({one.by})",
        "ways": [way.format(**names) for way in _WAYS[claim.need]],
    }
