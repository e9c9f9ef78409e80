"""Rules as data: listed, put beside a rulebook's text, dropped, while the engine runs or not (G24).

engine.rules.put("alarm", "{on: placed, if: amount > 100, do: [{signal: alarmed}]}")
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tidegate.engine.chosen import unknown
from tidegate.engine.store import KeptRulebook, SqlStore
from tidegate.rules.errors import EngineError, InputError, Problem, word_place
from tidegate.rules.loader import is_text, read_file
from tidegate.rules.model import Rulebook


class Rules:
    """The rules of one rulebook. What changes is asked for, and taken over between two buckets by
    the engine that runs; each change is a version of the rulebook."""

    def __init__(
        self, store: SqlStore, rulebook: str, wake: Callable[[], None] = lambda: None
    ) -> None:
        self._store, self._rulebook, self._wake = store, rulebook, wake

    def put(self, name: str, text: str) -> int:
        """Put a rule beside the rulebook's text, or in the place of one that was put: `text` is its
        YAML, as it stands under `rules:`. Returns the version. Raises InputError."""
        kept = newest(self._store, self._rulebook)
        return self._ask(replace(kept, added={**kept.added, name: text}))

    def drop(self, name: str) -> int:
        """Drop a rule that was put; returns the version. Raises InputError."""
        kept = newest(self._store, self._rulebook)
        if name not in kept.added:
            book = kept.load()
            if name not in book.rules:
                raise InputError([unknown("rules", name, book, "NAME")])
            message = f"rule `{name}` stands in the rulebook's own text"
            hint = f"take it out there, or `tidegate disable {name}`"
            raise InputError([Problem("not-put", message, word_place("NAME"), hint)])
        left = {other: text for other, text in kept.added.items() if other != name}
        return self._ask(replace(kept, added=left))

    def list(self) -> list[dict[str, Any]]:
        """A row a rule: `rule`, `on`, `enabled`, and `put`, the YAML of one that was put."""
        kept = newest(self._store, self._rulebook)
        off = self._store.disabled(self._rulebook)
        return [
            {
                "rule": rule.name,
                "on": rule.on_text,
                "enabled": rule.enabled and rule.name not in off,
                "put": kept.added.get(rule.name),
            }
            for rule in kept.load().rules.values()
        ]

    def _ask(self, kept: KeptRulebook) -> int:
        kept.load()
        version = self._store.propose(self._rulebook, kept)
        self._wake()
        return version


def newest(store: SqlStore, rulebook: str) -> KeptRulebook:
    """The version that was asked for last, or else runs."""
    asked = [c for c in store.pending_controls(rulebook) if c.kind == "reload"]
    found = store.version(rulebook, int(asked[-1].subject)) if asked else None
    return found or store.rulebooks()[rulebook]


def ask_to_reload(
    store: SqlStore, book: Rulebook, source: str | os.PathLike[str] | None = None
) -> int:
    """Ask for another text of a rulebook, a path or YAML, by default its file as it is now; the
    number of its version. Raises InputError."""
    kept = newest(store, book.name)
    if source is None and kept.file is None:
        message = f"rulebook `{book.name}` came from no file"
        raise EngineError("no-rulebook", message, "name the file to take over")
    given = source if source is not None else kept.file or ""
    if isinstance(given, str) and is_text(given):
        changed = replace(kept, text=given)
    else:
        path = os.path.abspath(given)
        changed = replace(kept, text=read_file(path), file=path)
    loaded = changed.load()
    if loaded.name != book.name:
        message = f"this is the rulebook `{loaded.name}`, not `{book.name}`"
        place = word_place(changed.file or "<text>")
        hint = "a rulebook keeps its name: its state in the store is under it"
        raise InputError([Problem("other-rulebook", message, place, hint)])
    return store.propose(book.name, changed)
