"""Checks of what damps a rule: `cooldown`, `throttle`, `dedupe`, `hysteresis`."""

from __future__ import annotations

from tidegate.rules.analysis.draft import Draft
from tidegate.rules.checks.columns import columns_seen
from tidegate.rules.model import DAMPINGS, Rule
from tidegate.rules.yaml.kinds import Record, Report


def check_damping(book: Draft, rule: Rule, record: Record, report: Report) -> None:
    """Add what is wrong with the damping of a rule, and warn where there is nothing to damp."""
    written = [key for key in DAMPINGS if record.has(key)]
    if not written:
        return
    if not record.has("do"):
        message = f"the rule has no do: {written[0]} has no action to drop"
        hint = "its detections are events of other rules all the same, with or without it"
        report.warn("nothing-damped", message, record.place(written[0]), hint)
    dedupe = record.get("dedupe")
    if not isinstance(dedupe, Record) or rule.damping is None or rule.damping.dedupe is None:
        return
    known = columns_seen(book, rule)
    if known is None:
        return
    known |= {*rule.pattern.key_names}
    for column in rule.damping.dedupe.by:
        if column not in known:
            message = f"dedupe: no event of the expression has the column {column}"
            hint = report.did_you_mean(column, known)
            report.add("unknown-column", message, dedupe.place("by"), hint)
