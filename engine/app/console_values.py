"""What pages of the console show that no other part of tidegate shows as one value: a rule with its
sentences and its graph, a firing with its time line, why a rule did not fire, the reports of
backtests, what another text of a rulebook changes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tidegate.connectors.http import Told
from tidegate.engine.core.ports import Feed
from tidegate.engine.core.text.layout import bytes_text
from tidegate.engine.explain.build import build
from tidegate.engine.explain.picture import pictures
from tidegate.engine.explain.svg import drawing
from tidegate.engine.replay.backtest.report.card import Card, card_in
from tidegate.engine.replay.why.ask import why
from tidegate.engine.replay.why.model import Story, as_json
from tidegate.engine.replay.why.page import ROWS_MAX
from tidegate.engine.replay.why.picture import consumed, picture
from tidegate.engine.replay.why.text import (
    condition_sentence,
    edited,
    entry_sentences,
    fate,
    gone_sentences,
    headline,
)
from tidegate.engine.replay.why.texts import meaning
from tidegate.engine.replay.why.times import Times
from tidegate.engine.replay.why_not.asking import Question
from tidegate.engine.replay.why_not.asking import asked as answered
from tidegate.engine.replay.why_not.picture import ladder_picture, timeline_picture
from tidegate.engine.replay.why_not.words import key_options
from tidegate.engine.store import SqlStore
from tidegate.rules.analysis.graph import uses_of
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook

REPORTS_MAX = 500
"""Reports that are listed: the newest."""
REPORT_BYTES_MAX = 64 << 20
"""Of a report that is shown: one that `backtest` has written is far smaller."""
_REPORT = re.compile(r"[\w-]+\.html", re.ASCII)


def told_rule(book: Rulebook, rule: str, carried: Mapping[str, int]) -> dict[str, Any]:
    """A rule in sentences, and its event graph. `carried`: rows by node. Told is of the rule and
    those that it uses alone: what triggers what takes seconds of a thousand rules."""
    explained = build(_with_used(book, rule), rule)
    (said,) = explained.rules
    return {
        "sentences": said.sentences,
        "expression": said.expression,
        "context": said.context,
        "keys": said.key_names,
        "timers": said.timers,
        "writes": said.writes,
        "damping": [asdict(one) for one in said.damping],
        "description": said.description,
        "labels": said.labels,
        "warnings": [asdict(one) for one in explained.warnings],
        "graph": drawing(pictures(explained, carried)),
    }


def _with_used(book: Rulebook, rule: str) -> Rulebook:
    """The rulebook with one rule and those that it uses, and no script."""
    used, left = {rule}, [rule]
    while left:
        more = uses_of(book.rules[left.pop()], book.rules).keys() & book.rules.keys() - used
        used |= more
        left += more
    few = {name: one for name, one in book.rules.items() if name in used}
    return replace(book, rules=few, scripts={}, warnings=())


def firing(
    store: SqlStore, rulebook: str | None, digits: str, shown: Collection[str]
) -> dict[str, Any]:
    """A firing as `why` tells it, with its time line and its sentences. `shown`: the rulebooks
    whose firings may be named as its causes and effects. Raises InputError, EngineError."""
    story = _among(why(store, rulebook, digits), shown)
    times = Times(story)
    told = as_json(story)
    more = {name: len(told[name]) - ROWS_MAX for name in ("constituents", "causes", "effects")}
    return {
        **told,
        **{name: told[name][:ROWS_MAX] for name in more},
        "more": {name: max(0, left) for name, left in more.items()},
        "said": _said(story, times),
        "picture": picture(story, times),
    }


def _among(story: Story, shown: Collection[str]) -> Story:
    """A story without the firings of other rulebooks; a note says that there are some."""
    known = (None, *shown)  # None: its own
    causes, effects = (
        tuple(link for link in links if link.rulebook in known)
        for links in (story.causes, story.effects)
    )
    if (causes, effects) == (story.causes, story.effects):
        return story
    note = "Causes or effects of it in rulebooks that this console does not show are left out."
    return replace(story, causes=causes, effects=effects, notes=(*story.notes, note))


def _said(story: Story, times: Times) -> dict[str, Any]:
    asked = story.condition.text is not None
    return {
        "headline": headline(story, times),
        "edited": edited(story),
        "condition": condition_sentence(story.condition) if asked else "",
        "fate": [*fate(story)],
        "entries": {str(e.number): [*entry_sentences(e, times)] for e in story.entries},
        "gone": [*gone_sentences(story)],
        "consumes": consumed(story),
    }


def why_not(
    store: SqlStore, book: Rulebook, rule: str, key: Mapping[str, str], at: str | None
) -> dict[str, Any]:
    """Why a rule did not fire, as far as the store alone knows: the console has no Spark. Where the
    tables must be read, its last rung says so, with the command that does. Raises InputError."""
    of_time = "" if at is None else f" --at {shlex.quote(at)}"
    command = f"tidegate why-not {rule}{key_options(key)}{of_time} --rulebook {book.name}"

    def no_tables(_: Rulebook) -> AbstractContextManager[Feed]:
        message = "the store alone does not know, and the console reads no tables"
        raise EngineError("needs-tables", message, f"`{command}` reads them")

    question = Question(rule, key, at)
    found = answered(store.of(book.name), question, no_tables, store.wall())
    pictures = {"ladder": ladder_picture(found), "timeline": timeline_picture(found)}
    return {**found.as_json(), **pictures}


def backtests(folder: Path | None) -> dict[str, Any]:
    """The reports of a folder, newest first."""
    files = (
        [] if folder is None else [f for f in folder.glob("*.html") if _REPORT.fullmatch(f.name)]
    )
    cards = [(file.name, card) for file in files if (card := _card(file))]
    cards.sort(key=lambda one: (one[1].made_at, one[0]), reverse=True)
    rows = [{"report": name, **asdict(card)} for name, card in cards[:REPORTS_MAX]]
    return {"folder": None if folder is None else str(folder), "rows": rows, "found": len(cards)}


def changes(before: Rulebook, after: Rulebook) -> list[str]:
    """Which rules are new, gone, or other than they were."""
    both = before.rules.keys() & after.rules.keys()
    pairs = ((name, before.rules[name], after.rules[name]) for name in both)
    changed = {n for n, was, now in pairs if meaning(was, before) != meaning(now, after)}
    named = {
        "New": after.rules.keys() - before.rules.keys(),
        "Gone": before.rules.keys() - after.rules.keys(),
        "Changed": changed,
    }
    said = [f"{what}: {', '.join(sorted(names))}." for what, names in named.items() if names]
    return said or ["All rules say what they said."]


def report(folder: Path | None, name: str) -> bytes:
    """A report as it was written. Raises EngineError."""
    file = None if folder is None or not _REPORT.fullmatch(name) else folder / name
    if file is None or _card(file) is None:
        raise EngineError("no-report", "there is no such report", "see the list of backtests")
    size = file.stat().st_size
    if size > REPORT_BYTES_MAX:
        message = (
            f"the report has {bytes_text(size)}; at most {bytes_text(REPORT_BYTES_MAX)} are shown"
        )
        raise EngineError("no-report", message, f"open the file itself: {name}")
    return file.read_bytes()


def _card(file: Path) -> Card | None:
    """The card of a report; None if the file is none, or a link out of the folder."""
    return None if file.is_symlink() else card_in(file)


TOLD = Told(told_rule, firing, why_not, backtests, report, changes)
