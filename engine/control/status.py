"""The status of a rulebook: what the store knows, how far the tables on this machine are ahead of
their cursors, and the next timers and clocks. No Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidegate.engine.control.retention import planned
from tidegate.engine.control.rulebooks import the_rulebooks
from tidegate.engine.control.table_log import log_of
from tidegate.engine.core.clocks import name_of, running_clocks
from tidegate.engine.core.lifecycle import IDLE
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.layout import counted
from tidegate.engine.quarantine.rulebook_texts import texts_of
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store.hours import NOTHING
from tidegate.engine.store.state_files import UNREAD
from tidegate.engine.store.status import CARRIED
from tidegate.engine.store.timers import FirstTimers, Timers
from tidegate.engine.store.totals import Total
from tidegate.rules.analysis.graph import lateness_micros, table_events, uses_of
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.durations import format_duration
from tidegate.rules.model import ClockEvent, Rulebook

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 10
_NOTHING: Mapping[str, Any] = {
    "last_fired": None,
    **Total().shown,
    "damped_by": {},
    "last_day": NOTHING,
    "pending": 0,
    "held": 0,
    **dict.fromkeys(CARRIED, 0),
}


def next_timers(store: SqlStore, book: Rulebook, watermark: int | None) -> list[dict[str, Any]]:
    """The next timers after the watermark: time, rules (or script) and key of each; a clock has its
    name. A rule over event time reaches a timer's time later than the watermark does. Without files
    of the state only clocks are known."""
    found = [] if watermark is None else _clocks(book, watermark)
    active, parts = _first_parts(store.of(book.name).timers)
    if parts:
        from tidegate.engine.detect.events.step.next_timers import (
            upcoming,  # the detector takes a second
        )

        for timer in upcoming(book, active, parts, SHOWN):
            key = {name: json_text.value(value) for name, value in timer.key.items()}
            found.append((timer.at, {"rules": [*timer.rules], "key": key, "clock": None}))
        found += _of_scripts(book, dict(parts))
    found.sort(key=lambda timed: timed[0])
    return [{"at": json_text.instant(at), **said} for at, said in found[:SHOWN]]


def rule_timers(store: SqlStore, book: Rulebook, rule: str) -> list[dict[str, Any]]:
    """The next timers of one rule: at, key. Only its own event graph is built, and that of the
    rules that it uses."""
    from tidegate.engine.detect.events.step.next_timers import timed_nodes, upcoming

    timers = store.of(book.name).timers
    active, used = timers.activations(), [rule]
    for name in used:
        uses = uses_of(book.rules[name], book.rules).keys() & book.rules.keys()
        used += sorted(uses - {*used})
    small = replace(book, rules={name: one for name, one in book.rules.items() if name in used})
    if any(name not in active for name in used):
        return []
    _, parts = _first_parts(timers, timed_nodes(small, active))
    return [
        {
            "at": json_text.instant(timer.at),
            "key": {name: json_text.value(value) for name, value in timer.key.items()},
        }
        for timer in upcoming(small, active, parts, SHOWN)
        if rule in timer.rules
    ]


def _first_parts(timers: Timers, nodes: Collection[str] | None = None) -> FirstTimers:
    """None of them where their files are not read: a status has to say why an engine stopped."""
    try:
        return timers.first_parts(SHOWN, nodes)
    except EngineError as error:
        if error.code not in UNREAD:
            raise
        return {}, []


def _of_scripts(
    book: Rulebook, parts: Mapping[str, pa.Table]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The timers of scripts that wait in some parts of the state."""
    from tidegate.engine.detect.scripts.programs import script_of
    from tidegate.engine.detect.scripts.state import waiting_timers

    for script in book.scripts.values():
        names = script.program.key_names
        only_read = script_of(book, script, {})  # it is only read: no Python function is needed
        for at, values in waiting_timers(only_read, parts, SHOWN):
            key = {name: json_text.value(value) for name, value in zip(names, values, strict=True)}
            yield at, {"rules": [script.name], "key": key, "clock": None}


def next_clocks(book: Rulebook, watermark: int | None, most: int) -> list[dict[str, Any]]:
    """The next occurrence of each clock after the watermark, the first so many: at, clock, rules.
    It needs no event graph, as `next_timers` does."""
    found = [] if watermark is None else sorted(_clocks(book, watermark), key=lambda one: one[0])
    return [
        {"at": json_text.instant(at), "clock": said["clock"], "rules": said["rules"]}
        for at, said in found[:most]
    ]


def _clocks(book: Rulebook, after: int) -> list[tuple[int, dict[str, Any]]]:
    found = []
    for clock in running_clocks(book):
        at = clock.following(after)
        active = (rule for rule in book.rules.values() if rule.enabled)
        rules = [rule.name for rule in active if clock.name in _names(rule.pattern.on)]
        if at is not None:
            found.append((at, {"rules": rules, "key": {}, "clock": clock.name}))
    return found


def _names(on: x.Expression) -> set[str]:
    """The event types that an expression names, clock literals among them."""
    return {
        node.name if isinstance(node, x.Name) else name_of(node)
        for node in on.walk()
        if isinstance(node, x.Name | x.Clock | x.Cron)
    }


def held_back(book: Rulebook, status: dict[str, Any]) -> list[dict[str, str]]:
    """What the engine has not taken yet, and why: sources that are ahead of it, a full outbox,
    rules that wait for late rows."""
    found = []
    for row in status["tables"]:
        if row["commits_behind"]:
            behind = row["commits_behind"]
            reason = f"{counted(behind, 'commit')} after version {row['version']}"
            reason += f" {'is' if behind == 1 else 'are'} not read"
            found.append({"source": f"table {row['table']}", "reason": reason})
    if status["unplaced_signals"]:
        waiting = status["unplaced_signals"]
        reason = f"{waiting:,} {'waits' if waiting == 1 else 'wait'} for a bucket"
        found.append({"source": "signals", "reason": reason})
    if status["entries_pending"] + status["entries_held"] >= book.settings.outbox_entries_max:
        reason = "so many entries are open that nothing more is taken until some are done"
        found.append({"source": "outbox", "reason": reason})
    for name, micros in lateness_micros(book).items():
        what = "script" if name in book.scripts else "rule"
        behind = format_duration(x.Duration(0, micros))
        reason = f"over event time, it waits {behind} for rows that are late"
        found.append({"source": f"{what} {name}", "reason": reason})
    return found


def all_status(url: str, name: str | None) -> list[dict[str, Any]]:
    """`tidegate status`: the whole status of the rulebook that is meant; of several rulebooks only
    what is cheap."""
    with open_store(url, create=False) as store:
        books = the_rulebooks(store, name)
        shown = whole_status if len(books) == 1 else status_of
        return [shown(store, book) for book in books.values()]


def whole_status(store: SqlStore, book: Rulebook) -> dict[str, Any]:
    """The status with the next timers and with what is held back. The timers need the rulebook's
    event graph, which takes time to build."""
    status = status_of(store, book)
    status["next_timers"] = next_timers(store, book, status.pop("watermark_micros"))
    status["held_back"] = held_back(book, status)
    return status


def status_of(store: SqlStore, book: Rulebook) -> dict[str, Any]:
    """The part of the status that is cheap enough to be asked each second."""
    status = store.of(book.name).status.shown(
        declared=book.events, rules=book.rules, texts=lambda: texts_of(book)
    )
    status["timezone"] = book.timezone
    logs = {name: log for name, table in book.tables.items() if (log := log_of(table))}
    for row in status["tables"]:
        log = logs.get(row["table"])
        seen = log.ahead(row["version"]) if log is not None else None
        idle = status["state"] == IDLE  # then a log that is not on this machine is read, too
        row["commits_behind"] = seen.commits if seen else 0 if idle else None
        row["seconds_behind"] = seen.seconds if seen else 0.0 if idle else None
    status["lag"] = _lag(status, {event.table for event in table_events(book)})
    status["retention"] = planned(store, book, status, logs)
    for row in status["rules"]:
        rule = book.rules.get(row["rule"])
        if rule is not None and rule.reaction.dry and row["state"] == "active":
            row["state"] = "dry"
    clocks = (name for name, event in book.events.items() if isinstance(event, ClockEvent))
    status["misfires"] = {**dict.fromkeys(clocks, 0), **status["misfires"]}
    known = {row["rule"]: row for row in status["rules"]}
    status["rules"] = [row for row in status["rules"] if row["rule"] not in book.scripts]
    status["scripts"] = [
        {
            "script": name,
            "state": row.get("state", "not active" if script.enabled else "disabled"),
            **{carried: row.get(carried, 0) for carried in CARRIED},
        }
        for name, script in sorted(book.scripts.items())
        for row in [known.get(name, {})]
    ]
    status["rules"] += [
        {"rule": rule.name, "state": "not active" if rule.enabled else "disabled", **_NOTHING}
        for rule in book.rules.values()
        if rule.name not in known
    ]
    for row in status["rules"]:
        severity = book.rules[row["rule"]].about.severity if row["rule"] in book.rules else None
        row["severity"] = severity and str(severity)
    return status


def _lag(status: Mapping[str, Any], tables: AbstractSet[str]) -> dict[str, Any]:
    """How many commits and signals are visible but not taken, and for how many seconds the oldest
    of them, or of the timers that are due, has waited. None: it is not known.

    Where this machine does not see the logs of all `tables`, the figures are those that an engine
    had at its last look, `as_of`.
    """
    seen = {row["table"]: row for row in status["tables"] if row["commits_behind"] is not None}
    here, behind = seen.keys() >= tables, status["behind"]
    commits: int | None = sum(row["commits_behind"] for row in seen.values())
    seconds: float | None = max(
        status["oldest_signal_seconds"],
        status["next_timer_late_seconds"],
        *(row["seconds_behind"] for row in seen.values()),
        0.0 if here else behind["seconds"] or 0.0,
    )
    if not here:
        known = behind["commits"]
        commits = None if known is None else max(known, commits or 0)
        seconds = seconds or (None if known is None else 0.0)
    return {
        "commits": commits,
        "signals": status["unplaced_signals"],
        "seconds": seconds,
        "as_of": None if here else status["looked_at"],
    }
