"""A sink whose statements cannot stop the engine: an entry that Spark cannot run is dead (G13)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from tidegate.engine.core.entries import Entry, Fate
from tidegate.engine.core.ports import OutageError, QuarantinedError, Sink, SinkError
from tidegate.engine.core.suspect import Suspect, text_digest
from tidegate.engine.core.values import Firings
from tidegate.engine.quarantine.quarantine import Quarantine
from tidegate.engine.quarantine.rulebook_texts import text_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WatchedSink:
    """Implements `engine.core.ports.Sink` by another one.

    An entry with two strikes raises QuarantinedError and is not run any more. So does every entry
    of a text with `strikes_max` strikes.
    """

    sink: Sink
    quarantine: Quarantine

    def run(self, entry: Entry, firings: Firings) -> None:
        self._watched(_action(entry), lambda: self.sink.run(entry, firings))

    def run_together(self, entries: Sequence[tuple[Entry, Firings]]) -> None:
        """One that is suspected is left out, to run alone, and so is what follows it in its queue.
        If Java dies, all get a strike; the next attempt at each is alone, and a clean one deletes
        it."""
        some: list[tuple[Entry, Firings]] = []
        left_out: set[str] = set()
        for entry, its in sorted(entries, key=lambda one: one[0].position):
            if self.quarantine.of(_action(entry)).suspected:
                left_out.add(entry.queue)
            if entry.queue not in left_out:
                some.append((entry, its))
        if len(some) < 2:
            return
        try:
            with self.quarantine.run(*(_action(entry) for entry, _ in some)):
                self.sink.run_together(some)
        except SinkError as error:
            if error.overrun:
                self.quarantine.overran([], str(error))  # nobody knows by which of them
            raise

    def fields(self, entry: Entry, firings: Firings) -> pa.Table:
        return self._watched(_action(entry), lambda: self.sink.fields(entry, firings))

    def seal(self, entry: Entry) -> None:
        self._watched(_seal(entry), lambda: self.sink.seal(entry))

    def ready(self, targets: Collection[str]) -> None:
        self.sink.ready(targets)

    def fate(self, entry: Entry, firings: Firings) -> Fate:
        """An entry that has landed ran cleanly, whatever came after."""
        found = self.sink.fate(entry, firings)
        if found is Fate.EFFECT:
            self._forgive(_action(entry))
        return found

    def _watched(self, suspect: Suspect, call: Callable[[], T]) -> T:
        if why := self.quarantine.refuses(suspect):
            raise QuarantinedError(why)
        try:
            with self.quarantine.run(suspect):
                found = call()
        except SinkError as error:
            if error.overrun:
                self.quarantine.overran([suspect], str(error))
                if why := self.quarantine.refuses(suspect):
                    raise QuarantinedError(why, error.details) from error
            else:
                self._forgive(suspect)
            raise
        self._forgive(suspect)
        return found

    def _forgive(self, suspect: Suspect) -> None:
        """Delete the strikes after a clean run. If the store is away, the next clean run does
        it."""
        with suppress(OutageError):
            self.quarantine.forgive(suspect)


def _action(entry: Entry) -> Suspect:
    """An entry as a suspect, by the text that it runs."""
    alternative = "/otherwise" if entry.alternative else ""
    subject = f"{entry.rule}/{entry.statement.action}{alternative}"
    writes = f", which writes {entry.target}" if entry.target else ""
    told = (
        f"action {entry.statement.action + 1} of rule {entry.rule}{writes} (entry {entry.number})"
    )
    return Suspect("action", subject, text_digest(text_of(entry)), str(entry.number), told=told)


def _seal(entry: Entry) -> Suspect:
    """The seal of an entry as a suspect: the engine's own statement on a table of the user."""
    told = f"the seal of entry {entry.number} on {entry.target}"
    return Suspect("seal", f"{entry.rule}/seal", entry.target or "", str(entry.number), told=told)
