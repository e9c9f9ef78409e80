"""Targets in memory. Implements `engine.core.ports.Sink`: statements land, and nobody reads what
they have done."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

from tidegate.engine.core.entries import Entry, Fate
from tidegate.engine.core.evaluator.firings import compile_fields
from tidegate.engine.core.evaluator.nodes import RaisingError, UndecidedError
from tidegate.engine.core.ports import AppIds, SinkError
from tidegate.engine.core.statement import FieldsStatement
from tidegate.engine.core.values import Firings
from tidegate.engine.replay.memory.predicates import needs_spark_error


class MemorySink:
    """A target with Delta's rule for markers: a statement at or below its marker is skipped in
    silence, and so is one whose marker another history has moved. `app_ids`: those of the store's
    entries, as in its port. `commits`: app id, number, and the firings' ids; None: a seal."""

    def __init__(self) -> None:
        self.commits: list[tuple[str, int, list[str] | None]] = []
        self.actions: dict[tuple[str, int], int] = {}  # by app id and number
        self.cleaned = False  # the log before the last commit
        self.app_ids: AppIds = lambda numbers: {}  # noqa: ARG005

    def ready(self, targets: Collection[str]) -> None:
        """Nothing has to be known."""

    def run(self, entry: Entry, firings: Firings) -> None:
        if entry.number > self.marker(entry) and not self.is_moved(entry):
            self.take_effect(entry, firings)

    def run_together(self, entries: Sequence[tuple[Entry, Firings]]) -> None:
        """One commit; nothing lands if a marker stands at one of them."""
        if all(e.number > self.marker(e) and not self.is_moved(e) for e, _ in entries):
            for entry, firings in entries:
                self.take_effect(entry, firings)

    def take_effect(self, entry: Entry, firings: Firings) -> None:
        """The statement's commit."""
        self.commits.append((entry.app_id, entry.number, firings.hex_ids().to_pylist()))
        self.actions[entry.app_id, entry.number] = entry.statement.action

    def seal(self, entry: Entry) -> None:
        if entry.number > self.marker(entry):
            self.commits.append((entry.app_id, entry.number, None))

    def fate(self, entry: Entry, firings: Firings) -> Fate:
        found = {c[1]: c[2] for c in self.commits if c[0] == entry.app_id}
        action = self.actions.get((entry.app_id, entry.number), entry.statement.action)
        own = (None, firings.hex_ids().to_pylist())
        if (
            entry.number not in found
            or found[entry.number] not in own
            or action != entry.statement.action
        ):
            if entry.number > self.marker(entry):
                return Fate.PASSED if self.is_moved(entry) else Fate.ABSENT
            return Fate.UNKNOWN if self.cleaned else Fate.PASSED
        return Fate.SEALED if found[entry.number] is None else Fate.EFFECT

    def is_moved(self, entry: Entry) -> bool:
        """Whether the marker is at an entry that the store has under another app id."""
        marker = self.marker(entry)
        known = self.app_ids([marker]).get(marker, entry.app_id)
        return marker < entry.number and known != entry.app_id

    def marker(self, entry: Entry) -> int:
        """The number of the last statement of the entry's app id, 0 if there is none."""
        return max((c[1] for c in self.commits if c[0] == entry.app_id), default=0)

    def fields(self, entry: Entry, firings: Firings) -> pa.Table:
        """See `engine.core.ports.Sink`: what the local evaluator has left. Raises EngineError
        `needs-spark`."""
        said, relation = entry.stating(FieldsStatement), firings.rows
        fields = compile_fields(said.fields, said.types, relation.schema, said.group)
        try:
            if fields is not None:
                return fields.values(relation)
        except RaisingError:
            raise SinkError(f"[FIELD] a field of rule {entry.rule} raises") from None
        except UndecidedError:
            pass
        raise needs_spark_error(f"a field of rule {entry.rule}")
