"""Which cases need Spark: SQL actions write a table that the case checks, or that raises events.

What else needs it shows when a case runs: then the world raises EngineError `needs-spark`.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.engine.replay.cases.model import Case
from tidegate.rules.analysis.graph import table_events
from tidegate.rules.analysis.triggers import Triggers
from tidegate.rules.model import Rulebook

NEEDS_SPARK = "needs-spark"
"""The code of the EngineError by which a world without Spark says that it cannot tell."""


class Needs:
    """What cases of a rulebook need Spark for. Each answer is for people: `in_and_out writes
    accounts`."""

    def __init__(self, book: Rulebook) -> None:
        self.tables = tuple(book.tables)
        triggers = Triggers(book)
        live = [rule for rule, each in book.rules.items() if not each.reaction.dry]
        self._writers = {t: rule for rule in live for t in triggers.written[rule]}
        self._raising: dict[str, str] = {}
        edges, _ = triggers.edges()
        for edge in edges:
            if edge.kind == "table" and edge.rule in live:
                self._raise(edge.rule, edge.through, edge.triggers)
        inputs = {
            each.event: name for name, s in book.scripts.items() for each in s.inputs.values()
        }
        for event in table_events(book):
            for rule in live if event.name in inputs else ():
                if event.table in triggers.written[rule]:
                    self._raise(rule, event.table, inputs[event.name])

    def _raise(self, rule: str, table: str, reader: str) -> None:
        self._raising.setdefault(rule, f"what {rule} writes to {table} is an event of {reader}")

    def before(self, case: Case) -> str | None:
        """As far as it shows before the case runs."""
        for expect in case.expectations:
            tables = self.tables if "tables" in expect.asked else expect.tables
            for table in tables:
                if table in self._writers:
                    return f"{self._writers[table]} writes {table}"
        return None

    def after(self, fired: Iterable[str]) -> str | None:
        """As it shows by the rules that fired in a world without Spark."""
        return next((self._raising[rule] for rule in fired if rule in self._raising), None)
