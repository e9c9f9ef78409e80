"""Rules that run behind a bucket's watermark: those over event time (G5).

Such a rule has a clock of its own. What arrives is seen by it as soon as its clock's watermark has
passed, and is held back until then: as part of what is carried, in order of time.

Example: rule r over the events a and b runs by the clock t. A bucket up to 10 brings a at 9, and t
stands at 7: the a waits in the table `held:a by t`. The next one brings b at 8, and t stands at 9:
r sees b at 8, then a at 9. Another rule over b, without a clock, has seen b with the bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidegate.engine.detector import listing
from tidegate.engine.detector.carried import read_occurrences, write_occurrences
from tidegate.engine.detector.clocks import name_of
from tidegate.engine.detector.edges import BY, shown_name
from tidegate.engine.detector.log import frozen
from tidegate.engine.detector.stacking import both
from tidegate.engine.values import Batch
from tidegate.rules import expression as x
from tidegate.rules.model import Rule, Rulebook

_HELD = "held:"


def with_clocks(book: Rulebook, clocks: Mapping[str, str]) -> Rulebook:
    """The rulebook with event types of their own for the rules in `clocks`, which says by which
    clock each runs. A rule that one of them uses as an event is there once more by that clock,
    unless it runs by it anyway. What uses a rule that has a clock has one too."""
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
    """The clock that an event type is seen by; empty for the bucket's own."""
    return event.partition(BY)[2]


def released(
    tables: Mapping[str, pa.Table],
    batches: Mapping[str, Batch],
    events: frozenset[str],
    behind: Mapping[str, int],
) -> tuple[dict[str, Batch], dict[str, pa.Table]]:
    """What arrives now, with what the clocks let go of: of the event types in `events`, seen by
    clocks of which `behind` has the watermarks. And the tables of what is held back."""
    found, held = dict(batches), dict[str, pa.Table]()
    for event in sorted(events):
        seen, _, clock = event.partition(BY)
        known = tables.get(_HELD + event)
        waiting = read_occurrences(shown_name(seen), known).batch if known is not None else None
        arrived = batches.get(seen)
        whole = both(waiting, arrived) if waiting and arrived else waiting or arrived
        if whole is None:
            continue
        if whole is waiting and whole.time[0] > behind[clock] and known is not None:
            held[_HELD + event] = known
            continue
        if not listing.ascending(frozen(whole.time)):
            whole = whole.take(np.argsort(whole.time, kind="stable"))
        due = int(np.searchsorted(whole.time, behind[clock], side="right"))
        if due:
            found[event] = whole.take(np.arange(due))
        if due < len(whole):
            rest = np.arange(due, len(whole))
            nothing = np.zeros(len(rest), dtype=np.int64)
            held[_HELD + event] = write_occurrences(whole, rest, nothing, nothing, 0)
    return found, held


def is_held(name: str) -> bool:
    """Whether a carried table is of occurrences that are held back."""
    return name.startswith(_HELD)


def names_for(clock: str, events: Iterable[str]) -> dict[str, str]:
    """The names by which the detections of a rule by a clock have event types: as the rule was
    written; those that another clock sees, or none, as they are told apart here."""
    return {event: event.partition(BY)[0] if clock_of(event) == clock else event + BY
            for event in events}  # fmt: skip
