"""Other rulebooks of a store that have a table, too: what one writes there may be an event of the
other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidegate.engine.replay.why.texts import read
from tidegate.engine.store import KeptRulebook, SqlStore
from tidegate.engine.store.traces import Traces
from tidegate.rules.model import Rulebook, Table


class Neighbour(NamedTuple):
    """A rulebook, as it runs or ran last. `table`: how it calls the table that is shared."""

    traces: Traces
    book: Rulebook
    table: str


class Neighbours:
    """The rulebooks beside one in a store."""

    def __init__(self, store: SqlStore, rulebook: str) -> None:
        self._store = store
        self._others = {n: kept for n, kept in store.rulebooks().items() if n != rulebook}
        self._found: dict[str, list[Neighbour]] = {}

    def of(self, table: Table | None) -> Sequence[Neighbour]:
        """Those that have a table, by its location: each is looked for once. Texts that cannot have
        it are not read."""
        wanted = "" if table is None else location(table)
        if not wanted:
            return ()
        if wanted not in self._found:
            self._found[wanted] = [*self._having(wanted)]
        return self._found[wanted]

    def _having(self, wanted: str) -> Iterator[Neighbour]:
        for name, kept in sorted(self._others.items()):
            book = read(kept) if _may_name(kept, wanted) else None
            for other in book.tables.values() if book is not None else ():
                if book is not None and location(other) == wanted:
                    yield Neighbour(self._store.of(name).traces, book, other.name)


def location(table: Table) -> str:
    """Where a table is: its path, or its name in the catalog."""
    return (table.path or table.catalog or "").rstrip("/")


def _may_name(kept: KeptRulebook, wanted: str) -> bool:
    """Whether a text has the last part of a location in it, or a `${NAME}`, which may be a part of
    it."""
    last = wanted.rpartition("/")[2]
    return any(last in text or "${" in text for text in (kept.text, *kept.files.values()))
