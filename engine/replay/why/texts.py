"""The rulebook's texts that a firing and today's rules were read from: each is read once a process,
for a large rulebook takes longer to read than a story to tell."""

from __future__ import annotations

import json
from functools import lru_cache

from tidegate.engine.store import KeptRulebook, SqlStore
from tidegate.rules.analysis.graph import table_events
from tidegate.rules.errors import InputError
from tidegate.rules.loader import load_rulebook
from tidegate.rules.model import Rulebook

_KEPT_MAX = 8


class Texts:
    """The versions of one rulebook in a store."""

    def __init__(self, store: SqlStore, rulebook: str) -> None:
        self._versions = store.of(rulebook).versions
        self._known = store.rulebooks()[rulebook]

    @property
    def running(self) -> KeptRulebook:
        """The version that runs, or ran last."""
        return self._known

    def book(self, version: int) -> Rulebook | None:
        """A version of the rulebook; None if it is not there, or cannot be read any more."""
        running = version == self._known.version
        kept = self._known if running else self._versions.version(version)
        return None if kept is None else read(kept)


def read(kept: KeptRulebook) -> Rulebook | None:
    """A stored rulebook; None if this tidegate cannot read it."""
    try:
        return _read(
            kept.text, kept.file, json.dumps(dict(kept.added)), json.dumps(dict(kept.files))
        )
    except InputError:
        return None


@lru_cache(_KEPT_MAX)
def _read(text: str, file: str | None, added: str, files: str) -> Rulebook:
    kept = {"added": json.loads(added), "files": json.loads(files)}
    return load_rulebook(text, {}, file, frozenset(), **kept, doubts=False)


def events_of(book: Rulebook, table: str) -> set[str]:
    """The names of the event types that changes of a table raise."""
    return {event.name for event in table_events(book) if event.table == table}
