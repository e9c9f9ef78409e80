"""`tidegate explain`: what a rulebook is to the detector, without Spark and without running it."""

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


def explain(file: str | os.PathLike[str], rule: str | None = None, format_: str = "text") -> str:
    """What a rulebook means to the detector: each rule's expression as it is detected, the event
    graph that runs, how much is stored per key in each context, timers, the triggering graph,
    warnings; each script's automaton, types, bounds, inputs and outputs. `file` may be a script.

    `rule` names the only rule or script to be explained; `format_` is one of `FORMATS`. JSON is one
    object: the fields of `engine.explain.model.Explained`, lengths of time in microseconds, null
    where there is no such number. Explains the whole language, also what the engine has not built
    yet.
    Raises `InputError` if the rulebook is wrong or has no such rule.
    """
    book = rules.load(file, features=all_features())
    if rule is not None and rule not in {**book.rules, **book.scripts}:
        hint = did_you_mean(rule, [*book.rules, *book.scripts])
        raise InputError([Problem("rule", f"no rule {rule!r}", word_place("RULE"), hint)])
    explained = build(book, rule)
    match format_:
        case "json":
            return orjson.dumps(dataclasses.asdict(explained)).decode() + "\n"
        case "mermaid":
            return mermaid(_pictures(explained))
        case "svg":
            return svg(_pictures(explained))
        case _:
            return text(explained, screen_width())


def _pictures(explained: Explained) -> Iterator[Picture]:
    """Those of the rules, then those of the scripts."""
    if explained.rules or not explained.scripts:
        yield from pictures(explained)
    yield from script_pictures(explained)
