"""The samples of `P` and `P*`: the queries that their ticks ask (S11)."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.rules.errors import Place
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Rule, Rulebook


def sample_texts(rulebook: Rulebook, rule: Rule) -> Iterator[tuple[str, Place]]:
    """The samples of the ticks among a rule's constituents, through rules that it uses."""
    for node in rule.on.walk():
        if isinstance(node, x.Periodic | x.PeriodicStar) and node.sample is not None:
            place = rulebook.sample_places.get(node.sample, rule.place)
            yield sample_text(rulebook, node.sample), place
        elif isinstance(node, x.Name) and node.name in rulebook.rules:
            yield from sample_texts(rulebook, rulebook.rules[node.name])


def sample_text(rulebook: Rulebook, sample: str) -> str:
    """The query that a sample is: an entry of `samples:`, or the text itself."""
    return rulebook.samples.get(sample, sample)
