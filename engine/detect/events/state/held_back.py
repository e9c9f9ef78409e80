"""Rules that run behind a bucket's watermark: those over event time (G5).

Such a rule has a watermark of its own, which lies a fixed time before the bucket's. What arrives
is seen by it once that watermark has passed, and is held back until then: as part of what is
carried, in order of time. Its event types are named by how far it is behind.

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
from tidegate.engine.core.event_names import BY, is_tick, shown_name
from tidegate.engine.core.values import Batch
from tidegate.engine.detect.events.kernels import table_rows
from tidegate.engine.detect.events.occurrences.concatenation import both
from tidegate.engine.detect.events.occurrences.log import frozen
from tidegate.engine.detect.events.state.partitions import saying_due
from tidegate.engine.detect.events.state.tables import read_occurrences, write_occurrences
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.durations import format_duration
from tidegate.rules.model import Rule, Rulebook

_HELD = "held:"


def with_lateness(book: Rulebook, lateness: Mapping[str, int]) -> Rulebook:
    """The rulebook with event types of their own for the rules in `lateness`, which says how far
    each runs behind, microseconds. A rule that one of them uses as an event is there once more as
    far behind, unless it is so anyway. What uses a rule that is behind is no less behind."""
    clocks = {rule: str(micros) for rule, micros in lateness.items()}
    rules = dict(book.rules)
    for name, clock in clocks.items():
        if name in book.rules:
            _add(rules, book.rules, name, name, clock, clocks)
    return replace(book, rules=rules)


def _add(
    rules: dict[str, Rule],
    written: Mapping[str, Rule],
    rule: str,
    name: str,
    clock: str,
    clocks: Mapping[str, str],
) -> None:
    """Add a rule by a clock as `name`, and what it uses; `written` has rules as they were."""

    def seen(event: str) -> str:
        if event not in written:
            return event + BY + clock
        if clocks.get(event) == clock:
            return event
        if event + BY + clock not in rules:
            _add(rules, written, event, event + BY + clock, clock, clocks)
        return event + BY + clock

    own = written[rule]
    per = {seen(event): columns for event, columns in own.per.items()}
    rules[name] = replace(own, name=name, on=_renamed(own.on, seen), per=per)


def _renamed(e: x.Expression, seen: Callable[[str], str]) -> x.Expression:
    match e:
        case x.Name(name=name):
            return x.Name(seen(name))
        case x.Clock() | x.Cron():
            return x.Name(seen(name_of(e)))
    return x.with_operands(e, [_renamed(operand, seen) for operand in e.operands()])


def clock_of(event: str) -> str:
    """By which watermark an event type is seen: how far behind, as text; empty for the bucket's."""
    return "" if is_tick(event) else event.partition(BY)[2]


def behind_micros(event: str) -> int:
    """How far behind an event type is seen."""
    return int(clock_of(event) or 0)


def released(
    tables: Mapping[str, pa.Table],
    batches: Mapping[str, Batch],
    events: frozenset[str],
    watermark: int,
) -> tuple[dict[str, Batch], dict[str, pa.Table]]:
    """What arrives now, with what is let go: of the event types in `events`, all of which are seen
    behind. And the tables of what is held back."""
    found, held = dict(batches), dict[str, pa.Table]()
    for event in sorted(events):
        seen, last = event.partition(BY)[0], watermark - behind_micros(event)
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
            rest = np.arange(due, len(whole))
            nothing = np.zeros(len(rest), dtype=np.int64)
            place = nothing if whole.place is None else whole.place[rest]
            table = write_occurrences(whole, rest, nothing, place, 0)
            held[_HELD + event] = saying_due(table, int(whole.time[due]) + behind_micros(event), 0)
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
        seen = event.partition(BY)[0]
        if event not in events and any(e.partition(BY)[0] == seen for e in events):
            name, was = shown_name(seen), format_duration(x.Duration(0, behind_micros(event)))
            raise EngineError(
                "lateness-changed",
                f"rows of `{name}` wait for late ones, by a lateness of {was} that the rulebook "
                "has no more",
                f"run the rulebook as it was until they are through ({was} after the last of "
                "them), then change the lateness",
            )


def is_held(name: str) -> bool:
    """Whether a carried table is of occurrences that are held back."""
    return name.startswith(_HELD)


def names_for(clock: str, events: Iterable[str]) -> dict[str, str]:
    """The names by which the detections of a rule by a clock have event types: as the rule was
    written; those that another clock sees, or none, as they are told apart here."""

    def name(event: str) -> str:
        if is_tick(event):
            return event
        return event.partition(BY)[0] if clock_of(event) == clock else event + BY

    return {event: name(event) for event in events}
