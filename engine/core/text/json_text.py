"""Values as JSON has them: of stored signals and rejected rows, as commands print them and
webhooks post them."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import orjson

from tidegate.engine.core.text.times import micros_text

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)


def instant(micros: int | None) -> str | None:
    """Microseconds since the epoch as ISO 8601, UTC: six fraction digits or none."""
    return None if micros is None else f"{micros_text(micros)}Z"


def value(found: Any, *, stored: bool = False) -> Any:
    """A Python value of an Arrow column as the language prints it; decimals stay Decimals.

    Maps are lists of pairs, sorted; times and dates ISO 8601; bytes base64; what is not a finite
    number is a string. Where it is `stored`, decimals are strings, and maps keep their order.
    """
    match found:
        case float() if not math.isfinite(found):
            return "NaN" if math.isnan(found) else "Infinity" if found > 0 else "-Infinity"
        case bytes():
            return base64.b64encode(found).decode()
        case datetime():
            return _time(found)
        case date():
            return found.isoformat()
        case Mapping():
            return {name: value(item, stored=stored) for name, item in found.items()}
        case [tuple(), *_] if not stored:  # Arrow's form of a map
            return [[value(k), value(item)] for k, item in sorted(found, key=_map_key)]
        case list() | tuple():
            return [value(item, stored=stored) for item in found]
        case Decimal() if stored:
            return str(found)
    return found


def posted(fields: Mapping[str, Any]) -> bytes:
    """Fields as JSON; decimals are numbers with their scale."""
    return orjson.dumps(value(fields), default=plain)


def text(fields: Mapping[str, Any]) -> str:
    """Fields as canonical JSON text: equal fields give equal texts. Decimals become strings."""
    return canonical(value(fields))


def canonical(fields: Mapping[str, Any]) -> str:
    """The same of fields whose values JSON has already."""
    return _ENCODER.encode(fields)


def shown(found: Any) -> str:
    """A value as people read it: as JSON has it, but texts without quotes."""
    if isinstance(found, str):
        return found
    if isinstance(found, Decimal):
        return format(found, "f")
    return orjson.dumps(found, default=plain).decode()


def plain(found: Any) -> Any:
    """A decimal is a number with its scale; anything else JSON has no form for is its text."""
    return orjson.Fragment(format(found, "f")) if isinstance(found, Decimal) else str(found)


def _time(at: datetime) -> str:
    form = at.replace(tzinfo=None).isoformat()
    return form if at.tzinfo is None else f"{form}Z"


def _map_key(pair: tuple[Any, Any]) -> Any:
    return repr(pair[0]) if isinstance(pair[0], dict | list) else pair[0]


def key_text(value: object) -> str:
    """A value of a key, as YAML has it.

    Example: `disabled_for: [true]` is `--key open=true`.
    """
    return str(value).lower() if isinstance(value, bool) else str(value)
