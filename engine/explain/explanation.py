"""`tidegate explain`: how the detector sees a rulebook. No Spark, and nothing runs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator

import orjson

from tidegate import rules
from tidegate.engine.core.text.layout import screen_width
from tidegate.engine.explain.build import build
from tidegate.engine.explain.model import Explained
from tidegate.engine.explain.picture import Picture, mermaid, pictures, script_pictures
from tidegate.engine.explain.svg import svg
from tidegate.engine.explain.text import text
from tidegate.rules.checks.gaps import all_features
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place

FORMATS = ("text", "json", "mermaid", "svg")


def explain(
    file: str | os.PathLike[str],
    rule: str | None = None,
    format_: str = "text",
    *,
    verbose: bool = False,
) -> str:
    """How the detector sees a rulebook, as a text in one of `FORMATS`.

    It tells of rules: what they do in plain sentences, normalised expressions, the event graph,
    storage per key, timers, the triggering graph, warnings. It tells of scripts: automaton, types,
    bounds, inputs, outputs. `file` may be a script. `rule`: the only rule or script to explain.
    `verbose`: the text also tells what a rule would take and store in other contexts. JSON is one
    object with the fields of `engine.explain.model.Explained`. The whole language is explained,
    even what the engine has not built yet. Raises InputError if the rulebook is wrong or lacks the
    rule.
    """
    book = rules.load(file, features=all_features())
    if rule is not None and rule not in {**book.rules, **book.scripts}:
        hint = did_you_mean(rule, [*book.rules, *book.scripts])
        raise InputError([Problem("unknown-rule", f"no rule {rule!r}", word_place("RULE"), hint)])
    explained = build(book, rule)
    match format_:
        case "json":
            return orjson.dumps(dataclasses.asdict(explained)).decode() + "\n"
        case "mermaid":
            return mermaid(_pictures(explained))
        case "svg":
            return svg(_pictures(explained))
        case _:
            return text(explained, screen_width(), verbose=verbose)


def _pictures(explained: Explained) -> Iterator[Picture]:
    """The pictures of the rules, then those of the scripts."""
    if explained.rules or not explained.scripts:
        yield from pictures(explained)
    yield from script_pictures(explained)
