"""What is wrong with a rulebook, each trouble in one sentence, with the way past it.

The overview shows all of them, the gravest first. Nobody needs another page to name one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tidegate.engine.control.state_text import process_text, state_text
from tidegate.engine.core.lifecycle import LOOKED
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.layout import age_text, counted
from tidegate.rules.model import Rulebook

BEHIND_SECONDS = 60
"""What has waited for longer is told as a trouble."""
PAUSES_SEEN, PAUSES = 20, 5
"""A source is quiet once nothing came for so many (`PAUSES`) times the longest pause between its
last `PAUSES_SEEN` arrivals."""
ARRIVALS_MIN = 4
"""Of a source that brought less, nobody knows its pace."""
QUIET_SECONDS_MIN = 60
GROWING_HOURS, GROWTH, GROWN_MIN = 3, 2, 1_000
"""A state grows that was larger at the begin of each of so many hours, and now, to so many times
the first size, and to so many instances at least."""
LISTED = 10
"""Troubles of one kind that are told one by one; one more says how many are left out."""
GRAVITIES = ("stuck", "warning", "note")


@dataclass(frozen=True, slots=True)
class Trouble:
    """One trouble. `gravity`: `stuck`, somebody has to act; `warning`, somebody should look;
    `note`, it is as it should be, and explains what is seen. `kind`: see `troubles`. `subject`: the
    rule, table or entry. `said`: one sentence. `since`: ISO 8601, UTC, or None. `ways`: commands or
    settings that get past it."""

    gravity: str
    kind: str
    subject: str
    said: str
    since: str | None = None
    ways: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """What troubles are told from. `status`: as `status_of` gives it. `buckets`: the last ones
    (`Trends.buckets`). `arrivals`: by source, as `table t`, when its last ones came, newest first,
    microseconds. `clock`: the engine's, at its last look. `rejected`: rows and signals that were
    rejected since an hour before `now`. `sizes`: by rule, how many instances it carried at the
    begin of each hour (`Sizes.of_rules`), where it carries `GROWN_MIN` by now. `now`: the store's
    clock."""

    book: Rulebook
    status: Mapping[str, Any]
    buckets: Sequence[Mapping[str, Any]]
    arrivals: Mapping[str, Sequence[int]]
    clock: int
    rejected: int
    sizes: Mapping[str, Mapping[int, int]]
    now: int


def troubles(facts: Facts) -> list[Trouble]:
    """All troubles, the gravest first.

    `stopped`      no engine runs
    `held`         an entry waits for somebody, and its rule's queue behind it
    `dead`         an entry is tried no more
    `parked`       a limit has stopped a rule
    `quarantined`  a text has harmed Spark twice
    `outbox_full`  nothing more is taken until entries are done
    `rejected`     rows or signals could not become occurrences in the last 60 minutes
    `slow_table`   the engine is behind, and spends most of its time on reading
    `behind`       the engine is behind for another reason
    `clock_moved`  a clock is ahead or was set back
    `quiet_source` a source brings nothing, unlike before
    `growing_state` what a rule carries grows from hour to hour
    `retention`    VACUUM or log cleaning is about to outrun the engine, or has
    `undeclared`   signals wait that no event declares
    `standby`      another process waits for the lease
    """
    found = [trouble for kind in _KINDS for trouble in kind(facts)]
    return sorted(found, key=lambda trouble: GRAVITIES.index(trouble.gravity))


def _stopped(facts: Facts) -> Iterator[Trouble]:
    status = facts.status
    if status["lease_holder"] is None:
        file = facts.book.file or "FILE"
        yield Trouble(
            "stuck",
            "stopped",
            facts.book.name,
            state_text(status),
            status["looked_at"],
            [f"tidegate run {file}"],
        )


def _entries(facts: Facts) -> Iterator[Trouble]:
    entries = facts.status["entries"]
    for state in ("held", "dead"):
        some = [entry for entry in entries if entry["state"] == state]
        behind = Counter(e["rule"] for e in entries if e["state"] == "pending")
        for entry in some[:LISTED]:
            error = f": {entry['error']}" if entry["error"] else ""
            wait = behind[entry["rule"]] if state == "held" else 0
            queue = f"; {counted(wait, 'entry', 'entries')} behind it" if wait else ""
            said = f"entry {entry['number']} of rule {entry['rule']} is {state}{error}{queue}"
            yield Trouble("stuck", state, f"entry {entry['number']}", said, ways=entry["commands"])
        if more := facts.status[f"entries_{state}"] - len(some[:LISTED]):
            said = f"{counted(more, 'more entry', 'more entries')} {state}"
            yield Trouble("stuck", state, "entries", said, ways=["tidegate redrive --all"])


def _parked(facts: Facts) -> Iterator[Trouble]:
    for row in facts.status["parked_rules"][:LISTED]:
        said = f"rule {row['rule']} is parked: {row['reason']}; {row['hint']}"
        passed = counted(row["passed_over"], "occurrence")
        said = f"{said} ({passed} passed over)"
        yield Trouble("stuck", "parked", row["rule"], said, row["since"], row["commands"])


def _quarantined(facts: Facts) -> Iterator[Trouble]:
    for text in facts.status["quarantined"][:LISTED]:
        rule = text["rule"] or "RULE"
        said = f"{text['told']} {text['did']}: it is in quarantine"
        ways = ["correct the text", f"tidegate enable {rule}"]
        yield Trouble("stuck", "quarantined", text["rule"] or "", said, text["since"], ways)


def _outbox(facts: Facts) -> Iterator[Trouble]:
    status, most = facts.status, facts.book.settings.outbox_entries_max
    waiting = status["entries_pending"] + status["entries_held"]
    if waiting < most:
        return
    by_rule = {row["rule"]: row["pending"] + row["held"] for row in status["rules"]}
    rule, number = max(by_rule.items(), key=lambda item: item[1], default=("", 0))
    said = f"the outbox is full: {counted(waiting, 'entry', 'entries')} wait, {number:,} of them of"
    said += f" rule {rule}; nothing more is taken until some are done (outbox_entries_max)"
    ways = [f"tidegate dead {rule}", f"tidegate disable {rule} --purge"]
    yield Trouble("stuck", "outbox_full", rule, said, ways=ways)


def _rejected(facts: Facts) -> Iterator[Trouble]:
    if not facts.rejected:
        return
    newest = facts.status["rejected"][-1:]
    what = counted(facts.rejected, "row or signal", "rows or signals")
    said = f"{what} rejected in the last 60 minutes"
    for row in newest:
        said += f"; the newest, of {row['event']} from {row['source']}: {row['reason']}"
    subject = newest[0]["event"] if newest else "rows"
    yield Trouble("warning", "rejected", subject, said, ways=["tidegate rejected -v"])


def _behind(facts: Facts) -> Iterator[Trouble]:
    """The table that is behind most, and the stage that takes most of the time."""
    status, lag = facts.status, facts.status["lag"]
    seconds = lag["seconds"] or 0.0
    losing = status["losing_ground_since"]
    if status["state"] not in LOOKED or (seconds < BEHIND_SECONDS and losing is None):
        return
    took = Counter[str]()
    for bucket in facts.buckets:
        took.update(bucket["seconds"])
    stage, most = max(took.items(), key=lambda item: item[1], default=("", 0.0))
    late = [row for row in status["tables"] if row["commits_behind"]]
    table = max(late, key=lambda row: row["seconds_behind"], default=None)
    what = f"table {table['table']}" if table else "what is due"
    count = f" by {counted(table['commits_behind'], 'commit')}" if table else ""
    said = f"{what} is behind{count}, the oldest of {age_text(seconds)} ago"
    if total := took.total():
        share = (
            f"{most / total:.0%} of the time of the last {counted(len(facts.buckets), 'bucket')}"
        )
        said += f"; {share} went to the stage {stage}"
    if losing is not None:
        said += "; ground is lost: buckets take longer than what arrives meanwhile"
    slow = stage in ("plan", "capture")
    ways = ["tidegate run -v says which step takes long", "OPTIMIZE, or another `where`"]
    name = table["table"] if table else ""
    kind = "slow_table" if slow and table else "behind"
    yield Trouble("warning", kind, name, said, losing, ways[: 2 if slow else 1])


def _clock(facts: Facts) -> Iterator[Trouble]:
    most = facts.book.settings.skew_max_seconds
    ahead = (facts.clock - facts.now) / 1e6
    if ahead > most:
        said = f"the clock was set back: the engine's is {age_text(ahead)} ahead of the store's,"
        said += " and goes on from there (G3); nothing is lost or repeated"
        ways = ["set the clock right (NTP); the engine's goes on as time does"]
        yield Trouble("warning", "clock_moved", "engine", said, ways=ways)
    hour_ago = json_text.instant(facts.now - 3_600_000_000) or ""
    moved = [row for row in facts.status["moved"] if row["to"] >= hour_ago]
    if moved:
        row = moved[-1]
        said = f"the clock of a writer is off: version {row['version']} of table {row['table']}"
        said += f" says {row['from']}, and counts as of {row['to']} (G1)"
        ways = ["set the writer's clock right", "skew_max_seconds"]
        yield Trouble("warning", "clock_moved", row["table"], said, row["to"], ways)


def _quiet(facts: Facts) -> Iterator[Trouble]:
    behind = {f"table {r['table']}" for r in facts.status["tables"] if r["commits_behind"]}
    for source, times in sorted(facts.arrivals.items()):
        silence = quiet_for(times, facts.now)
        if silence is not None and source not in behind:
            before = max(later - earlier for later, earlier in pairwise(times)) / 1e6
            said = f"{source} has brought nothing for {age_text(silence)}; the longest pause"
            said += f" between its last {len(times)} arrivals was {age_text(before)}"
            ways = ["look at what writes it"]
            yield Trouble(
                "warning", "quiet_source", source, said, json_text.instant(times[0]), ways
            )


def quiet_for(times: Sequence[int], now: int) -> float | None:
    """For how many seconds a source has been quieter than it was lately, None if it is not.
    `times`: of its last arrivals, newest first, microseconds."""
    if len(times) < ARRIVALS_MIN:
        return None
    longest = max(later - earlier for later, earlier in pairwise(times))
    silence = now - times[0]
    if silence <= max(PAUSES * longest, QUIET_SECONDS_MIN * 1_000_000):
        return None
    return silence / 1e6


def _growing(facts: Facts) -> Iterator[Trouble]:
    carried = {
        name_of(row): row["carried_instances"]
        for row in (*facts.status["rules"], *facts.status["scripts"])
    }
    for name, hours in sorted(facts.sizes.items()):
        first = growth(hours, carried.get(name, 0))
        if first is not None:
            since = json_text.instant(first)
            before = hours[first]
            said = f"the state of {name} grows: {carried[name]:,} instances are carried,"
            said += f" {before:,} at {since}, and more each hour since"
            ways = ["bound it by `within`, or expire_key_after", f"tidegate explain FILE {name}"]
            yield Trouble("warning", "growing_state", name, said, since, ways)


def name_of(row: Mapping[str, Any]) -> str:
    """The name of a rule or script, from its row of the status."""
    return str(row.get("rule") or row["script"])


def growth(hours: Mapping[int, int], now: int) -> int | None:
    """The hour since when a state has grown from hour to hour up to `now`, to `GROWTH` times as
    much at least; None if it has not. `hours`: by hour, its size at the begin of it."""
    first, later = None, now
    for hour, size in sorted(hours.items(), reverse=True):
        if size >= later:
            break
        first, later = hour, size
    if first is None or now < max(GROWTH * later, GROWN_MIN):
        return None
    return first if sum(hour >= first for hour in hours) >= GROWING_HOURS else None


def _retention(facts: Facts) -> Iterator[Trouble]:
    margin = facts.book.settings.retention_margin_hours * 3_600
    near = [one for one in facts.status["retention"]["deadlines"] if one["left_seconds"] < margin]
    for one in near[:LISTED]:
        gravity = "stuck" if one["gone"] and one["exact"] else "warning"
        yield Trouble(gravity, "retention", one["table"], one["said"], one["at"], one["ways"])


def _undeclared(facts: Facts) -> Iterator[Trouble]:
    for row in facts.status["undeclared_signals"][:LISTED]:
        waits = counted(row["signals"], "signal")
        said = f"{waits} of {row['event']} wait, and no event declares it"
        ways = ["declare the event, and tidegate reload"]
        yield Trouble("warning", "undeclared", row["event"], said, ways=ways)


def _standby(facts: Facts) -> Iterator[Trouble]:
    status = facts.status
    if status["standby"]:
        waits, holder = process_text(status["standby"]), status["lease_holder"]
        whose = f", which {process_text(holder)} holds" if holder else ", which nobody holds"
        said = f"{waits} is a standby: it waits for the lease{whose}"
        yield Trouble("note", "standby", waits, said)


_KINDS: tuple[Callable[[Facts], Iterator[Trouble]], ...] = (
    _stopped,
    _entries,
    _parked,
    _quarantined,
    _outbox,
    _rejected,
    _behind,
    _clock,
    _quiet,
    _growing,
    _retention,
    _undeclared,
    _standby,
)
