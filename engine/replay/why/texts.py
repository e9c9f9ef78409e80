"""The rulebook's texts that a firing and today's rules were read from. Of each only the rules that
are asked for are read: all of a large rulebook take longer than a story."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from tidegate.engine.store import KeptRulebook
from tidegate.engine.store.versions import TAKEN, Versions
from tidegate.rules.analysis.graph import table_events, uses_of
from tidegate.rules.errors import InputError, Place
from tidegate.rules.loader import Composed, composed, part
from tidegate.rules.model import Rule, Rulebook

_KEPT_MAX = 8
_PARTS_MAX = 64


class Texts:
    """The versions of one rulebook. `running`: the one that runs, or ran last."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self.running = versions.running()

    def book(self, version: int, rule: str) -> Rulebook | None:
        """A version of the rulebook, with a part of its rules: one, those that use it, and what
        they use. None if it is not there, or cannot be read any more."""
        running = version == self.running.version
        kept = self.running if running else self._versions.version(version)
        return None if kept is None else read(kept, rule)

    def now(self, rule: str) -> Rulebook:
        """The version that runs, as `book`; all of it, if it has no such rule. Raises
        InputError."""
        found = self.book(self.running.version, rule)
        if found is None or rule not in found.rules:
            return self.running.known()
        return found

    def rules(self) -> Collection[str] | None:
        """The names of the rules of the version that runs; None if it cannot be read any more."""
        try:
            return _nodes(*_key(self.running)).rules
        except InputError:
            return None


def read(kept: KeptRulebook, rule: str = "") -> Rulebook | None:
    """A stored rulebook, with a part of its rules (`loader.part`), by default without any; None if
    this tidegate cannot read it."""
    try:
        return _part(*_key(kept), rule)
    except InputError:
        return None


def _key(kept: KeptRulebook) -> tuple[str, str | None, str, str]:
    return kept.text, kept.file, json.dumps(dict(kept.added)), json.dumps(dict(kept.files))


@lru_cache(_KEPT_MAX)
def _nodes(text: str, file: str | None, added: str, files: str) -> Composed:
    return composed(text, TAKEN, file, json.loads(added), json.loads(files))


@lru_cache(_PARTS_MAX)
def _part(text: str, file: str | None, added: str, files: str, rule: str) -> Rulebook:
    return part(_nodes(text, file, added, files), rule)


def events_of(book: Rulebook, table: str) -> set[str]:
    """The names of the event types that changes of a table raise."""
    return {event.name for event in table_events(book) if event.table == table}


def tables_of(query: str, book: Rulebook) -> list[str]:
    """The tables of a rulebook that a query names."""
    from tidegate.rules.sql.tokens import sql_words

    words = {word.name.lower() for word in sql_words(query)}
    return [table for table in book.tables if table.lower() in words]


def meaning(rule: Rule, book: Rulebook) -> Any:
    """What a rule and the event types that it names say, wherever it stands: two that are equal say
    the same."""
    events = {name: book.events.get(name) for name in uses_of(rule, book.rules)}
    return _bare((rule, events))


def _bare(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        named = [one.name for one in fields(value) if one.compare]
        own = ((name, getattr(value, name)) for name in named)
        return type(value), {n: _bare(one) for n, one in own if not isinstance(one, Place)}
    if isinstance(value, Mapping):
        return {name: _bare(one) for name, one in value.items()}
    return [*map(_bare, value)] if isinstance(value, tuple) else value
