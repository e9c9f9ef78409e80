"""Screens for people: `tidegate status` (state, tables, rules, obstacles), and `tidegate firings`
(a line for each firing, and one for each row behind it)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from tidegate.engine.control.state_text import behind_text, detected_text, lag_text, state_text
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.layout import (
    bytes_text,
    clock_text,
    columns,
    counted,
    cut,
    fates_text,
    pairs_text,
    time_text,
    wrapped,
)
from tidegate.engine.core.text.printable import in_line
from tidegate.engine.core.text.times import local_text

_THEN = {
    "action": "Its entries are dead: `tidegate dead`",
    "condition": "The firings that it was asked of are dead: `tidegate dead`",
    "sample": "The firings that it was taken for are dead: `tidegate dead`",
    "where": "Rows that it cannot decide are rejected: `tidegate rejected -v`",
    "read": "The rulebook stops there",
}
_LISTS = {  # list of a status -> its title
    "moved": "the commits whose time was moved last",
    "rejected": "the newest rejected: `tidegate rejected -v`",
    "undeclared_signals": "signals that no event declares",
    "asked_for": "asked for",
    "answered": "answered",
}
_TIMES = frozenset({"from", "to", "asked_at"})
"""Instants in these lists."""
ID_DIGITS = 8  # of a firing's id
ROWS_MAX = 8  # of a firing
HEAD_LINES_MAX = 4


def status_lines(status: Mapping[str, Any], width: int) -> Iterator[str]:
    """The lines of `tidegate status`; none is wider than `width`."""
    yield from wrapped(f"rulebook {status['rulebook']}: {state_text(status)}", width)
    if lag := behind_text(status):
        yield from wrapped(lag, width, "  ")
    yield from wrapped(_progress(status), width, "  ")
    detected = status["detected"]
    if detected and detected["because"] and (said := detected_text(status)):
        yield from wrapped(said, width, "  ")
    zone = status["timezone"]
    size = bytes_text(status["store_bytes"])
    if count := status["state_files"]:
        size += f", and {bytes_text(status['state_bytes'])} in {counted(count, 'state file')}"
    yield from wrapped(f"store of {size}; times are in {zone}", width, "  ")
    yield from _tables(status["tables"], zone, width)
    kept = (one["said"] for one in status["retention"]["deadlines"])
    yield from _listed("what waits may be gone by then", kept, width)
    yield from _rules(status["rules"], zone, width)
    yield from _scripts(status["scripts"], width)
    yield from _carried(status, width)
    yield from _timers(status, width)
    yield from _misfires(status["misfires"], width)
    held_back = (f"{row['source']}: {row['reason']}" for row in status["held_back"])
    yield from _listed("not seen yet", held_back, width)
    scripts = {row["script"] for row in status["scripts"]}
    for parked in status["parked_rules"]:
        what = "script" if parked["rule"] in scripts else "rule"
        said = f"{what} {parked['rule']} is parked since {time_text(parked['since'], zone)}: "
        said += f"{parked['reason']}\n{parked['hint']}; then {parked['commands'][0]}"
        yield from _part(f"{said} ({parked['passed_over']:,} occurrences passed over)", width)
    for disabled in status["disabled_rules"]:
        what = "script" if disabled["rule"] in scripts else "rule"
        since = time_text(disabled["since"], zone)
        said = f"{what} {disabled['rule']} is disabled since {since}: {disabled['commands'][0]}"
        yield from _part(said, width)
    for text in status["quarantined"]:
        yield from _part(_quarantined(text, zone), width)
    for entry in status["entries"]:
        yield from _part(_entry(entry), width)
    for name, title in _LISTS.items():
        yield from _listed(title, (_told(row, zone) for row in status[name]), width)
    if any(row["last_fired"] for row in status["rules"]):
        yield from _part("`tidegate firings` lists what fired; `tidegate why ID` tells why", width)


def overview_lines(found: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    """Several rulebooks: a line of figures for each, then what each does, or why it stopped."""
    names = ("rulebook", "state", "behind", "fired", "if failed", "damped", "dead", "parked")
    rows = [
        (s["rulebook"], s["state"], lag_text(s["lag"]["seconds"]), s["fired"],
         s["condition_failed"], s["damped"], s["dead"], len(s["parked_rules"]))
        for s in found
    ]  # fmt: skip
    yield from columns(names, rows, width, left=2)
    yield ""
    for status in found:
        yield from wrapped(f"{status['rulebook']}: {state_text(status)}", width)
    yield ""
    size = bytes_text(found[0]["store_bytes"])
    yield from wrapped(f"store of {size}; `tidegate status --rulebook NAME` says all of one", width)


def _progress(status: Mapping[str, Any]) -> str:
    seen = status["seen_until"]
    parts = [
        f"bucket {status['bucket']:,}",
        f"everything up to {time_text(seen, status['timezone'])}" if seen else "nothing seen yet",
        fates_text({**status, "dead": 0}),
        f"{status['rejected_rows']:,} rejected",
        f"{counted(status['unplaced_signals'], 'signal')} waiting",
    ]
    if status["adjusted_commits"]:
        moved = counted(status["adjusted_commits"], "commit")
        parts.append(f"{moved} with their time moved")
    dead = status["dead"]  # they are among the others
    return ", ".join(parts) + (f"; {counted(dead, 'detection')} dead" if dead else "")


def _table(
    names: Sequence[str], rows: Sequence[Sequence[Any]], width: int, left: int = 1
) -> Iterator[str]:
    """A table behind an empty line; nothing without rows."""
    if rows:
        yield ""
        yield from columns(names, rows, width, left=left)


def _tables(tables: Sequence[Mapping[str, Any]], zone: str, width: int) -> Iterator[str]:
    names = ("table", "version read", "its time", "commits behind", "seconds behind")
    rows = [
        (t["table"], t["version"], time_text(t["instant"], zone), t.get("commits_behind"),
         t.get("seconds_behind"))
        for t in tables
    ]  # fmt: skip
    yield from _table(names, rows, width)


def _rules(rules: Sequence[Mapping[str, Any]], zone: str, width: int) -> Iterator[str]:
    names = ("rule", "state", "last fired", "fired", "if failed", "damped", "dead", "open")
    rows = [
        (r["rule"], r["state"], time_text(r["last_fired"], zone), r["fired"],
         r["condition_failed"], r["damped"], r["dead"], r["pending"] + r["held"])
        for r in rules
    ]  # fmt: skip
    yield from _table(names, rows, width, left=2)
    for r in rules:
        if r["damped_by"]:
            by = ", ".join(f"{count:,} by {kind}" for kind, count in r["damped_by"].items())
            yield from wrapped(f"rule {r['rule']}: detections that were damped: {by}", width)


def _scripts(scripts: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    rows = [(row["script"], row["state"]) for row in scripts]
    yield from _table(("script", "state"), rows, width, left=2)


def _carried(status: Mapping[str, Any], width: int) -> Iterator[str]:
    rows = [
        (row.get("rule") or row["script"], row["carried_instances"], row["carried_keys"])
        for row in (*status["rules"], *status["scripts"])
        if row["carried_instances"]
    ]
    yield from _table(("what is carried", "instances", "of keys"), rows, width)


def _misfires(misfires: Mapping[str, int], width: int) -> Iterator[str]:
    for clock, count in misfires.items():
        if count:
            missed = counted(count, "occurrence")
            yield from wrapped(f"clock {clock}: {missed} missed and passed over (misfire)", width)


def _timers(status: Mapping[str, Any], width: int) -> Iterator[str]:
    if status["next_timers"]:
        zone = status["timezone"]
        rows = [
            (time_text(t["at"], zone), ", ".join(t["rules"]), t["clock"] or pairs_text(t["key"]))
            for t in status["next_timers"]
        ]
        yield from _table(("next timer", "rules", "clock or key"), rows, width)
        many = status["timers_pending"]
        yield f"{counted(many, 'timer')} of rules and scripts {'waits' if many == 1 else 'wait'}"


def _entry(entry: Mapping[str, Any]) -> str:
    target = f", writes {entry['target']}" if entry["target"] else ""
    tried = f", {counted(entry['attempts'], 'attempt')}" if entry["attempts"] else ""
    said = f"entry {entry['number']} of rule {entry['rule']}: {entry['state']}{tried}{target}"
    said += f": {entry['error']}" if entry["error"] else ""
    return "\n".join([said, "; ".join(entry["commands"])]) if entry["commands"] else said


def _listed(title: str, rows: Iterable[str], width: int) -> Iterator[str]:
    """A list under its title; nothing without rows."""
    for number, row in enumerate(rows):
        if not number:
            yield from ("", f"{title}:")
        yield from wrapped(row, width, "  ")


def _told(row: Mapping[str, Any], zone: str) -> str:
    """A row of a list, field after field; its instants to the microsecond."""
    local = {name: local_text(row[name], zone).replace("T", " ") for name in _TIMES & row.keys()}
    fields = {**row, **local}.items()
    return ", ".join(f"{k} {v}" for k, v in fields if v is not None and k != "ordinal")


def _quarantined(text: Mapping[str, Any], zone: str) -> str:
    """What a text in quarantine did to Spark, what becomes of it, and the way out."""
    said = f"in quarantine since {time_text(text['since'], zone)}: {text['told']} {text['did']}."
    then = (
        f"{_THEN.get(text['kind'], 'It runs no more')}. It runs alone now, and no more at all once"
    )
    rule = text["rule"] or "RULE (a rule that uses it)"
    way = f"correct it; or `tidegate enable {rule}` lets it run as before"
    return f"{said} {then} it has strikes_max strikes\n{way}"


def _part(text: str, width: int) -> Iterator[str]:
    yield ""
    yield from wrapped(text, width)


def firing_lines(
    firings: Iterable[Mapping[str, Any]], zone: str | None, width: int
) -> Iterator[str]:
    """The lines of `tidegate firings`, with times in a zone (None: in UTC, with a Z); none is wider
    than `width`."""
    for firing in firings:
        grave = f" ({firing['severity']})" if "severity" in firing else ""
        ended = time_text(firing["end"], zone)
        words = [firing["firing_id"][:ID_DIGITS], ended, firing["rule"] + grave]
        if firing["key"]:
            words.append(pairs_text(firing["key"]))
        words.append(_fate(firing))
        yield from wrapped(cut("  ".join(words), HEAD_LINES_MAX * width), width)
        rows = firing["constituents"]
        for row in rows[:ROWS_MAX]:
            told = f"    {row['event']}  {clock_text(row['time'], zone)}  "
            yield cut(told + pairs_text(_fields(row)), width)
        if len(rows) > ROWS_MAX:
            yield f"    .. and {counted(len(rows) - ROWS_MAX, 'row')} more"


def heard_lines(item: Mapping[str, Any], width: int) -> Iterator[str]:
    """The lines of one item of `tidegate listen`: a firing, or a signal, with times in UTC."""
    if "firing_id" in item and "rule" in item:
        yield from firing_lines([item], None, width)
    else:
        yield in_line(f"{item['time']} {item['event']} {json_text.shown(_fields(item))}")


def _fields(occurrence: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in occurrence.items() if name not in ("event", "time")}


def in_zone(row: Mapping[str, Any], zone: str) -> dict[str, Any]:
    """A row of the store with its own instants (`stored_at`) as local times of a zone."""
    return {
        name: time_text(value, zone) if value and name.endswith("_at") else value
        for name, value in row.items()
    }


def entry_lines(entry: Mapping[str, Any], zone: str, width: int) -> Iterator[str]:
    """An outbox entry: each field in full, then its firings, with times in a zone. Its SQL text
    keeps its own lines; no other line is wider than `width`."""
    for name, value in in_zone(entry, zone).items():
        if name != "firings" and value not in (None, []):
            shown = "; ".join(value) if name == "commands" else json_text.shown(value)
            for line in f"{name}: {shown}".replace("\n", "\n    ").split("\n"):
                fits = name == "text" or cell_len(line) <= width
                yield from [line] if fits else wrapped(line, width, line[: -len(line.lstrip())])
    yield f"firings: {len(entry['firings'])} (times in {zone})"
    firings = [{**firing, "entries": ()} for firing in entry["firings"]]
    yield from firing_lines(firings, zone, width)


def _fate(firing: Mapping[str, Any]) -> str:
    """What became of a firing: its condition, what has damped it, its actions."""
    states = ", ".join(f"#{entry['number']} {entry['state']}" for entry in firing["entries"])
    if firing["condition"] == "failed":
        return "condition failed"
    if "damped" in firing:
        return f"damped ({firing['damped']})"
    return states or ("condition held" if firing["condition"] == "held" else "")
