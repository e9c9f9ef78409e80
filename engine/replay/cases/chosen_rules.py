"""The rules that a test file names under `rules`: they run, and those that they use; no others.

Example: `rules: [twice]`, and `twice` is `on: any(2, hot)`. Both run. Another rule that the rows
match, and whose query only Spark can ask, is off: so the tests need no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tidegate.engine.replay.cases.model import Case
from tidegate.rules.analysis.graph import made_of
from tidegate.rules.errors import Place
from tidegate.rules.model import Rulebook
from tidegate.rules.yaml.kinds import Record, Report


def chosen_rules(book: Rulebook, form: Record, report: Report) -> Rulebook:
    """The rulebook in which the rules that a file names are on, also where the rulebook switches
    them off, and all others are off. Without `rules` it stays as it is."""
    if "rules" not in form.values:
        return book
    for name, node in form.get("rules"):
        if name not in book.rules:
            hint = report.did_you_mean(name, book.rules)
            report.add("unknown-rule", f"the rulebook has no rule {name!r}", node.place, hint)
    on = made_of([name for name, _ in form.get("rules") if name in book.rules], book)
    rules = {name: replace(rule, enabled=name in on) for name, rule in book.rules.items()}
    return replace(book, rules=rules)


def check_chosen(book: Rulebook, form: Record, cases: Iterable[Case], report: Report) -> None:
    """Report what is expected of rules that the file's `rules` leaves out."""
    if "rules" not in form.values:
        return
    for name, place in _expected(cases):
        if name in book.rules and not book.rules[name].enabled:
            message = f"the rule {name!r} does not run here: `rules` names others"
            report.add("rules", message, place, f"add {name} to `rules`")


def _expected(cases: Iterable[Case]) -> Iterator[tuple[str, Place]]:
    for case in cases:
        for expect in case.expectations:
            for part in (expect.firings, expect.webhooks):
                yield from ((name, rows.place) for name, rows in part.items())
