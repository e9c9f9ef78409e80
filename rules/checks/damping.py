"""Checks of what damps a rule: `cooldown`, `throttle`, `dedupe`, `hysteresis`."""

from __future__ import annotations

from tidegate.rules.analysis.draft import Book
from tidegate.rules.analysis.keys import columns_of
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Change, Rule, TableEvent
from tidegate.rules.yaml.kinds import Record, Report

KEYS = ("hysteresis", "dedupe", "cooldown", "throttle")
"""In the order in which they are asked."""

_CHANGE_TYPE = "_change_type"  # which a `change` has beside its columns


def check_damping(book: Book, rule: Rule, record: Record, report: Report) -> None:
    """Add what is wrong with the damping of a rule, and warn where there is nothing to damp."""
    written = [key for key in KEYS if record.has(key)]
    if not written:
        return
    if not record.has("do"):
        message = f"the rule has no do: {written[0]} has no action to drop"
        hint = "its detections are events of other rules all the same, with or without it"
        report.warn("nothing-damped", message, record.place(written[0]), hint)
    dedupe = record.get("dedupe")
    if not isinstance(dedupe, Record) or rule.damping is None or rule.damping.dedupe is None:
        return
    known = columns_seen(book, rule, {rule.name})
    if known is None:
        return
    known |= {*rule.key_names}
    for column in rule.damping.dedupe.by:
        if column not in known:
            message = f"dedupe: no event of the expression has the column {column}"
            hint = report.did_you_mean(column, known)
            report.add("unknown-column", message, dedupe.place("by"), hint)


def columns_seen(book: Book, rule: Rule, seen: set[str]) -> set[str] | None:
    """The columns of what a rule may see, through rules used as events; None where only the tables
    know them."""
    found: set[str] = set()
    for node in rule.on.walk():
        if not isinstance(node, x.Name | x.Edge) or node.name in seen:
            continue
        seen.add(node.name)
        used, event = book.rules.get(node.name), book.events.get(node.name)
        if used is None and event is None:
            return None  # said to be unknown, or to be wrong
        columns = columns_of(book, node.name) if used is None else columns_seen(book, used, seen)
        if columns is None:
            return None
        found |= columns
        if isinstance(event, TableEvent) and event.change is Change.CHANGE:
            found.add(_CHANGE_TYPE)
    return found
