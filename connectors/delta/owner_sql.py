"""SQL that a table's owner has written into the table. Every write to the table runs it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tidegate.connectors.delta.catalog import Catalog
from tidegate.connectors.delta.gate import Gate
from tidegate.rules.errors import InputError, Place, Problem

_CHECK = "delta.constraints."
_OF_COLUMNS = {  # key in a column's metadata -> what it defines
    "delta.generationExpression": "generated column",
    "CURRENT_DEFAULT": "default of column",
    "EXISTS_DEFAULT": "default of column",
    "delta.invariants": "invariant of column",
}


class Owned:
    """The verdicts on targets: their CHECK constraints, generated columns and defaults are judged
    like the rulebook's own SQL."""

    def __init__(self, catalog: Catalog, gate: Gate) -> None:
        self._catalog = catalog
        self._gate = gate
        self._judged: dict[str, str] = {}  # table -> its metadata that was let in last

    def check_once(self, table: str | None, place: Place) -> None:
        """Judge a target unless it was judged before. Raises InputError."""
        if table not in self._judged:
            self.check(table, place)

    def check(self, table: str | None, place: Place) -> None:
        """Judge a target as it is now. Raises InputError."""
        if table is None:
            return
        metadata = self._catalog.snapshot(table).metadata()
        said = str(metadata.schemaString()) + str(metadata.configuration())
        if self._judged.get(table) == said:
            return
        for what, text in self._texts(metadata):
            try:
                self._gate.expression(text, lambda _: place, steady=False)
            except InputError as error:
                message = f"{what} of the target {table}: {error.problems[0].message}"
                hint = "it would run with every write; have the table's owner change it"
                raise InputError([Problem("sql-target", message, place, hint)]) from None
        self._judged[table] = said

    def _texts(self, metadata: Any) -> Iterator[tuple[str, str]]:
        """Each SQL text of a table, behind its name in a message."""
        settings = metadata.configuration()
        for key in _keys(settings):
            if key.lower().startswith(_CHECK):
                yield f"the CHECK constraint {key[len(_CHECK) :]}", str(settings.apply(key))
        yield from _of_fields(json.loads(metadata.schemaString() or "{}"), "")  # of no table: none


def _of_fields(schema: Any, path: str) -> Iterator[tuple[str, str]]:
    """The SQL texts in the metadata of columns, nested ones among them."""
    if not isinstance(schema, Mapping):
        return
    for field in schema.get("fields", ()):
        name = f"{path}{field['name']}"
        for key, what in _OF_COLUMNS.items():
            if text := field.get("metadata", {}).get(key):
                if key == "delta.invariants":
                    text = json.loads(text)["expression"]["expression"]
                yield f"the {what} {name}", str(text)
        yield from _of_fields(field["type"], f"{name}.")
    for part in ("elementType", "keyType", "valueType"):
        yield from _of_fields(schema.get(part), path)


def _keys(settings: Any) -> list[str]:
    """The keys of a Scala map."""
    found, each = [], settings.keysIterator()
    while each.hasNext():
        found.append(str(each.next()))
    return found
