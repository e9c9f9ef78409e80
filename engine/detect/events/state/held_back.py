"""Rules that run behind a bucket's watermark: those over event time (G5).

Such a rule has its own watermark, a fixed time before the bucket's. It sees an arrival once its
own watermark has passed that. Until then the arrival is held back: it is carried, in order of time.
The event types of the rule are named by how far it is behind.

Example: rule r over the events a and b runs 3 us behind. A bucket up to 10 brings a at 9: the a
waits in the table `held:a by 3`. The next bucket, up to 12, brings b at 8: r sees b at 8, then a at
9. Another rule over b, which is not behind, has seen b with the bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidegate.engine.core.clocks import name_of
from tidegate.engine.core.event_names import EventKey, shown_name
from tidegate.engine.core.values import Batch
from tidegate.engine.detect.events.kernels import table_rows
from tidegate.engine.detect.events.occurrences.concatenation import both
from tidegate.engine.detect.events.occurrences.occurrence_table import frozen
from tidegate.engine.detect.events.state.partitions import marked
from tidegate.engine.detect.events.state.tables import read_occurrences, write_occurrences
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.durations import format_duration
from tidegate.rules.model import Rule, Rulebook

_HELD = "held:"


def with_lateness(book: Rulebook, lateness: Mapping[str, int]) -> Rulebook:
    """The rulebook in which the rules in `lateness` have event types of their own. `lateness`: rule
    -> how far it runs behind, microseconds. A rule that one of them uses as an event is added once
    more at the same lateness, unless it has that lateness itself. A rule runs at least as far
    behind as the rules that it uses."""
    rules = dict(book.rules)
    for name in lateness:
        if name in book.rules:
            _add(rules, book.rules, name, name, lateness)
    return replace(book, rules=rules)


def _add(
    rules: dict[str, Rule],
    written: Mapping[str, Rule],
    rule: str,
    name: str,
    lateness: Mapping[str, int],
) -> None:
    """Add a rule that runs behind as `name`, and what it uses; `written` has rules as they were."""
    behind = EventKey.of(name).behind
    behind = lateness[name] if behind is None else behind

    def seen(event: str) -> str:
        if event in written and lateness.get(event) == behind:
            return event
        by = str(replace(EventKey.of(event), behind=behind))
        if event in written and by not in rules:
            _add(rules, written, event, by, lateness)
        return by

    pattern = written[rule].pattern
    per = {seen(event): columns for event, columns in pattern.per.items()}
    pattern = replace(pattern, on=_renamed(pattern.on, seen), per=per)
    rules[name] = replace(written[rule], name=name, pattern=pattern)


def _renamed(e: x.Expression, seen: Callable[[str], str]) -> x.Expression:
    match e:
        case x.Name(name=name):
            return x.Name(seen(name))
        case x.Clock() | x.Cron():
            return x.Name(seen(name_of(e)))
    return x.with_operands(e, [_renamed(operand, seen) for operand in e.operands()])


def seen_by_all(event: str) -> str:
    """An event type as the bucket's own watermark sees it."""
    return str(replace(EventKey.of(event), behind=None))


def released(
    tables: Mapping[str, pa.Table],
    batches: Mapping[str, Batch],
    events: frozenset[str],
    watermark: int,
) -> tuple[dict[str, Batch], dict[str, pa.Table]]:
    """The arrivals, with those let go now of the event types in `events`; all of these run behind.
    And the tables of the occurrences that stay held back."""
    found, held = dict(batches), dict[str, pa.Table]()
    for event in sorted(events):
        seen, behind = seen_by_all(event), EventKey.of(event).behind or 0
        last = watermark - behind
        known = tables.get(_HELD + event)
        waiting = _waiting(shown_name(seen), known) if known is not None else None
        arrived = batches.get(seen)
        whole = both(waiting, arrived) if waiting and arrived else waiting or arrived
        if whole is None:
            continue
        if whole is waiting and whole.time[0] > last and known is not None:
            held[_HELD + event] = known
            continue
        if not table_rows.ascending(frozen(whole.time)):
            whole = whole.take(np.argsort(whole.time, kind="stable"))
        due = int(np.searchsorted(whole.time, last, side="right"))
        if due:
            found[event] = whole.take(np.arange(due))
        if due < len(whole):
            rest = whole.take(np.arange(due, len(whole)))
            nothing = np.zeros(len(rest), dtype=np.int64)
            table = write_occurrences(rest, nothing, nothing if rest.place is None else rest.place)
            held[_HELD + event] = marked(table, 1, int(rest.time[0]) + behind)
    return found, held


def _waiting(event: str, table: pa.Table) -> Batch:
    """What is held back; where it stands among what its script emitted is kept as its rank."""
    found = read_occurrences(event, table)
    return replace(found.batch, place=found.rank)


def check_held(tables: Mapping[str, pa.Table], events: frozenset[str]) -> None:
    """Whether what another rulebook holds back can wait on, for one whose rules see `events`.
    Raises EngineError `lateness-changed` where it is seen by another clock now, or by none: let go
    by that one, it could be too late for some rules, and come twice for others."""
    left = sorted(name[len(_HELD) :] for name in tables if is_held(name))
    for event in left:
        seen, behind = seen_by_all(event), EventKey.of(event).behind or 0
        if event not in events and any(seen_by_all(e) == seen for e in events):
            name, was = shown_name(seen), format_duration(x.Duration(0, behind))
            raise EngineError(
                "lateness-changed",
                f"rows of `{name}` wait for late ones, by a lateness of {was} that the rulebook "
                "has no more",
                f"run the rulebook as it was until they are through ({was} after the last of "
                "them), then change the lateness",
            )


def held_for(tables: Mapping[str, pa.Table], events: frozenset[str]) -> dict[str, pa.Table]:
    """Of tables those that are held back for rules that see `events`."""
    return {name: t for name, t in tables.items() if name.removeprefix(_HELD) in events}


def is_held(name: str) -> bool:
    """Whether a carried table is of occurrences that are held back."""
    return name.startswith(_HELD)


def names_for(behind: int | None, events: Iterable[str]) -> dict[str, str]:
    """The names by which the detections of a rule that runs so far behind have event types: as the
    rule was written. What the bucket's own watermark sees has the name that is left over."""
    if behind is None:
        return {event: event for event in events}
    names = {event: seen_by_all(event) for event in events if EventKey.of(event).behind == behind}
    taken = {name: event for event, name in names.items()}
    return {event: names.get(event) or taken.get(event, event) for event in events}
