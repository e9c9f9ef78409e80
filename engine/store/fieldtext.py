"""Values of signals and rejected rows as JSON text that gives the same values back.

What JSON has not is written as an object with one name that begins with `$`. Equal values give
equal texts, so texts can be compared (G4).
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

_READERS: dict[str, Callable[[Any], Any]] = {
    "$decimal": Decimal,
    "$float": float,
    "$binary": base64.b64decode,
    "$timestamp": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$micros": lambda micros: timedelta(microseconds=micros),
    "$pairs": lambda pairs: {_read(key): _read(value) for key, value in pairs},
}


def fields_to_text(fields: Mapping[str, Any]) -> str:
    """Canonical JSON of field values as Python has them; TypeError for a value of no SQL type."""
    plain = {name: _write(value) for name, value in fields.items()}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def fields_from_text(text: str) -> dict[str, Any]:
    """The field values that `fields_to_text` was given; tuples come back as lists."""
    return {name: _read(value) for name, value in json.loads(text).items()}


def _write(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"$float": str(value)}
        case Decimal():
            return {"$decimal": str(value)}
        case bytes():
            return {"$binary": base64.b64encode(value).decode()}
        case datetime():
            return {"$timestamp": value.isoformat()}
        case date():
            return {"$date": value.isoformat()}
        case timedelta():
            return {"$micros": value // timedelta(microseconds=1)}
        case list() | tuple():
            return [_write(item) for item in value]
        case Mapping():
            if all(isinstance(key, str) and not key.startswith("$") for key in value):
                return {key: _write(item) for key, item in value.items()}
            return {"$pairs": sorted(([_write(k), _write(v)] for k, v in value.items()), key=repr)}
    raise TypeError(f"{type(value).__name__} is no type of a field")


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(item) for item in value]
    if isinstance(value, dict):
        if len(value) == 1 and (reader := _READERS.get(next(iter(value)))):
            return reader(next(iter(value.values())))
        return {key: _read(item) for key, item in value.items()}
    return value
