"""What happens next by itself, for `status`: timers of rules and scripts, and clocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tidegate.engine.core.clocks import name_of, running_clocks
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.layout import counted
from tidegate.engine.store import SqlStore
from tidegate.rules.analysis.lateness import lateness_micros
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.durations import format_duration
from tidegate.rules.model import Rulebook

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 10


def next_timers(store: SqlStore, book: Rulebook, watermark: int | None) -> list[dict[str, Any]]:
    """The next timers after the watermark, each with its time, rules (or script) and key; a clock's
    with its name. Times are the timers' own: a rule over event time reaches them later."""
    found = [] if watermark is None else _clocks(book, watermark)
    active, parts = store.first_timers(book.name, SHOWN)
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


def _of_scripts(
    book: Rulebook, parts: Mapping[str, pa.Table]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The timers of scripts in some parts of carried tables."""
    from tidegate.engine.detect.scripts.programs import script_of
    from tidegate.engine.detect.scripts.state import waiting_timers

    for script in book.scripts.values():
        names = script.program.key_names
        only_read = script_of(book, script, {})  # nothing is called, so no function is looked for
        for at, values in waiting_timers(only_read, parts, SHOWN):
            key = {name: json_text.value(value) for name, value in zip(names, values, strict=True)}
            yield at, {"rules": [script.name], "key": key, "clock": None}


def _clocks(book: Rulebook, after: int) -> list[tuple[int, dict[str, Any]]]:
    found = []
    for clock in running_clocks(book):
        at = clock.following(after)
        active = (rule for rule in book.rules.values() if rule.enabled)
        rules = [rule.name for rule in active if clock.name in _names(rule.on)]
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
    """What has not been seen yet, and why: sources that are ahead of the engine, a full outbox,
    rules that run behind."""
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
