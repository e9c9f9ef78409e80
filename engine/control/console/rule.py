"""One rule: its state, what became of its detections, its timers and switches, its versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import Any

from tidegate.engine.control.console.listing import Books, chosen, zones
from tidegate.engine.control.console.rules import row, with_more
from tidegate.engine.control.rulebooks import key_texts, unknown
from tidegate.engine.control.status import rule_timers, status_of
from tidegate.engine.core.text import json_text
from tidegate.engine.store import KeptRulebook, SqlStore
from tidegate.rules.errors import InputError

VERSIONS_SHOWN = 10


def page(store: SqlStore, books: Books, now: int, rulebook: str, rule: str) -> dict[str, Any]:
    """A rule's row as in the list of rules, and

    `since`         since when it is active, parked or disabled
    `reason`        why it is parked, or None
    `totals`        of all of its detections: fired, condition_failed, damped, dead, damped_by
    `carried`       how many instances each node carries, by the node's digest, of all rules
    `sizes`         how many it carried at the begin of each hour of the last day: at, instances
    `next_timers`   the first ones: at, key
    `disabled_for`  the keys for which it does not fire
    `versions`      the last versions of the rulebook in which its text is another one, newest
                    first: version, registered_at, runs, difference (lines of a unified diff)

    Raises EngineError for an unknown rulebook, InputError for an unknown rule.
    """
    [book] = chosen(books, rulebook)
    if rule not in book.rules:
        raise InputError([unknown("rules", rule, book, "RULE")])
    of = store.of(rulebook)
    with store.snapshot():
        status = status_of(store, book)
        one = next(each for each in status["rules"] if each["rule"] == rule)
        found = row(book, status, one)
        with_more(store, books, [found], now)
        rest = [*status["parked_rules"], *status["disabled_rules"]]
        stopped: dict[str, Any] = next((each for each in rest if each["rule"] == rule), {})
        sizes = of.sizes.of_rules([rule], now).get(rule, {})
        counts = ("fired", "condition_failed", "damped", "dead", "damped_by")
        kept = of.versions.latest(VERSIONS_SHOWN + 1)
        return {
            "zones": zones(books),
            **found,
            "since": stopped.get("since") or json_text.instant(of.timers.activations().get(rule)),
            "reason": stopped.get("reason"),
            "totals": {name: one[name] for name in counts},
            "carried": of.recorded.carried_by_node(),
            "sizes": [
                {"at": json_text.instant(at), "instances": n} for at, n in sorted(sizes.items())
            ],
            "next_timers": rule_timers(store, book, rule),
            "disabled_for": [key_texts(key) for key in book.rules[rule].disabled_for],
            "versions": [*_versions(kept, rule, status["version"])],
        }


def _versions(
    kept: Sequence[tuple[KeptRulebook, int]], rule: str, running: int
) -> Iterator[dict[str, Any]]:
    """The versions in which the rule's text is another one than in the version before. `kept`: with
    when each was registered, newest first."""
    for (one, at), before in zip(kept, [*(each for each, _ in kept[1:]), None], strict=True):
        was = rule_text(before, rule) if before is not None else ""
        lines = [*unified_diff(was.splitlines(), rule_text(one, rule).splitlines(), lineterm="")]
        whole = before is not None or one.version == 1
        if lines and whole:
            yield {
                "version": one.version,
                "registered_at": json_text.instant(at),
                "runs": one.version == running,
                "difference": lines[2:],
            }


def rule_text(kept: KeptRulebook, rule: str) -> str:
    """A rule's lines in a rulebook's text, or in a file that it includes; all of the text where the
    rule does not stand on lines of its own. Empty if it has no such rule."""
    if rule in kept.added:
        return f"{rule}: {kept.added[rule]}"
    texts = [kept.text, *kept.files.values()]
    found = next(filter(None, (_block(text, rule) for text in texts)), None)
    if found is None and any(re.search(rf"\b{rule}\b", text) for text in texts):
        return kept.text
    return found or ""


def _block(text: str, rule: str) -> str | None:
    """The lines from `NAME:` under `rules:` to the next line that is not deeper."""
    lines = text.splitlines()
    name = re.compile(rf"""( +)(['"]?){re.escape(rule)}\2\s*:""")
    within = False
    for n, line in enumerate(lines):
        if line[:1].strip() and not line.startswith("#"):
            within = line.startswith("rules:")
        if within and (begin := name.match(line)):
            deep = len(begin[1])
            rest = lines[n + 1 :]
            more = (m for m, each in enumerate(rest) if each.strip() and _depth(each) <= deep)
            return "\n".join([line, *rest[: next(more, len(rest))]]).rstrip()
    return None


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
