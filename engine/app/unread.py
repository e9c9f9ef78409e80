"""Which targets no rulebook of a store watches, so that effects may share their commits (G16)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tidegate.engine.replay.why.texts import read
from tidegate.engine.store import SqlStore
from tidegate.rules.analysis.graph import table_events
from tidegate.rules.model import Rulebook, Table


@dataclass(frozen=True, slots=True)
class Watched:
    """The tables that event types of a rulebook are of: the last names of their paths, and of their
    names in the catalog."""

    paths: frozenset[str]
    catalog: frozenset[str]

    def may_be(self, table: Table) -> bool:
        """Whether one of them may be this table. One table may be written in several ways, and may
        have a path and a name in the catalog."""
        if table.path is None:
            return bool(self.paths) or _last(table.catalog or "") in self.catalog
        return bool(self.catalog) or not self.paths.isdisjoint(_last_of_path(table.path))


@dataclass(slots=True)
class Unread:
    """Says of a target of `book` whether no event type of any rulebook of the store is of it. In
    doubt it says that one is; a rulebook that cannot be read any more may watch any table."""

    store: SqlStore
    book: Rulebook
    _own: Watched = field(init=False)
    _known: dict[str, tuple[int, Watched | None]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._own = _watched_by(self.book)

    def __call__(self, target: str) -> bool:
        table = self.book.tables.get(target)
        if table is None:
            return False
        return all(one is not None and not one.may_be(table) for one in self._watched())

    def _watched(self) -> Iterator[Watched | None]:
        """What each rulebook of the store watches. Another one may come at any time."""
        yield self._own
        for name, version in self.store.version_numbers().items():
            if name == self.book.name:
                continue
            if name not in self._known or self._known[name][0] != version:
                kept = self.store.of(name).versions.running()
                found = read(kept)
                watched = None if found is None else _watched_by(found)
                self._known[name] = kept.version, watched
            yield self._known[name][1]


def _watched_by(book: Rulebook) -> Watched:
    named = {event.table for event in table_events(book)}
    tables = [table for name, table in book.tables.items() if name in named]
    return Watched(
        frozenset(name for t in tables if t.path is not None for name in _last_of_path(t.path)),
        frozenset(_last(table.catalog or "") for table in tables if table.path is None),
    )


def _last_of_path(path: str) -> frozenset[str]:
    """The last name of a path as it is written, and that of the folder to which its links lead."""
    scheme, _, rest = path.rpartition("://")
    local = not scheme or scheme.lower() == "file"
    folder = rest if scheme else re.sub("(?i)^file:", "", path)
    real = os.path.realpath(folder) if local else os.path.normpath(folder)
    return frozenset([_last(path), _last(real)])


def _last(location: str) -> str:
    """Example: `/lake/orders/` and `bank.orders` are both called orders."""
    return re.split(r"[/\\.`]", location.rstrip("/\\`"))[-1].lower()
