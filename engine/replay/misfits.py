"""Values of key fields that are of another kind than was declared: 7 and "7" are two keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tidegate.rules.keytypes import family
from tidegate.rules.model import Rulebook, SignalEvent

_SHOWN = {"number": "a number", "text": "a text", "boolean": "true or false"}
_WHOLE = frozenset({"byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint"})


class Declared:
    """The declared types of a key field, by event type."""

    def __init__(self, book: Rulebook, field: str) -> None:
        self._types: Mapping[str, str] = {
            name: event.fields[field]
            for name, event in book.events.items()
            if isinstance(event, SignalEvent)
            and field in event.fields
            and family(event.fields[field]) in _SHOWN
        }
        kinds = {
            pa.int64() if family(kind) == "number" else pa.string()
            for kind in self._types.values()
            if family(kind) in ("number", "text")
        }
        same = len({family(kind) for kind in self._types.values()}) == 1
        self._fits = {pa.null(), *(kinds if same else ())}

    def fits(self, column: pa.DataType) -> bool:
        """Whether a column of this type can have nothing of another kind."""
        return not self._types or column in self._fits

    def misfit(self, event: str, value: Any) -> str:
        """`bigint, and is a text`, where a value is of another kind than declared; else nothing."""
        declared = self._types.get(event)
        if declared is None or value is None:
            return ""
        kind, wanted = kind_of(value), family(declared)
        if kind == wanted == "number" and isinstance(value, float):
            if declared.lower() in _WHOLE and not value.is_integer():
                return f"{declared}, and is a fraction"
            return ""
        if kind == wanted or (wanted == "number" and value in ("NaN", "Infinity", "-Infinity")):
            return ""
        return f"{declared}, and is {_SHOWN.get(kind, kind)}"


def kind_of(value: Any) -> str:
    """What a value is as a key: values of different kinds are never equal."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "a list" if isinstance(value, list) else "a struct"
