"""What a window goes with, and what it does not."""

from __future__ import annotations

from tidegate.rules.analysis.draft import Draft, refuse
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.model import Rule
from tidegate.rules.yaml.kinds import Record, Report
from tidegate.rules.yaml.reader import Scalar


def check_window(rule: Rule, record: Record, report: Report) -> None:
    """A window chooses by itself, so it takes no context, and no condition between constituents."""
    on = rule.pattern.on
    for key, hint in _ALONE.items():
        if record.has(key):
            report.add("window", f"a window takes no {key}", record.place(key), hint)
    if isinstance(on, w.Sliding) and on.length.months and not w.calendar(on.every):
        message = "a window of months ends at a local midnight: every counts days or months, too"
        report.add("window", message, record.place("on"), "write every: 1 d, or longer")


_ALONE = {
    "context": "leave it out: what a window detects is all its rows",
    "where": "ask it of each row, in where: of its event type; or of all of them, in if:",
}


def resolved(book: Draft, node: x.Resolved, scalar: Scalar, report: Report) -> None:
    """`resolved r` is of a rule r that holds."""
    rule = book.rules.get(node.name)
    if rule is None and node.name in book.records("rules"):
        return  # it could not be read
    if rule is None or not isinstance(rule.pattern.on, w.Holding):
        message = f"{node.name!r} is never over: only a rule that holds is resolved"
        holding = [r.name for r in book.rules.values() if isinstance(r.pattern.on, w.Holding)]
        hint = report.did_you_mean(node.name, holding)
        if not holding:
            hint = f"write {node.name}: {{on: {{holds: raised, until: cleared, for: 10 min}}}}"
        refuse(report, "resolved", message, scalar, node, hint)
