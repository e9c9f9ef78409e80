"""Values as JSON: in stored signals and rejected rows, in the output of commands, in webhooks."""

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
    """A Python value of an Arrow column, made of what JSON has, and of Decimals.

    Times and dates are ISO 8601, bytes base64, NaN and infinities strings, maps sorted lists of
    pairs. If `stored`, decimals are strings, and maps keep their order. Example: `b"hi"` is
    `"aGk="`.
    """
    match found:
        case float() if not math.isfinite(found):
            return "NaN" if math.isnan(found) else "Infinity" if found > 0 else "-Infinity"
        case bytes():
            return base64.b64encode(found).decode()
        case datetime():
            form = found.replace(tzinfo=None).isoformat()
            return form if found.tzinfo is None else f"{form}Z"
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
    """Canonical JSON text of fields whose values are JSON's already."""
    return _ENCODER.encode(fields)


def shown(found: Any) -> str:
    """A value for people: its JSON, but texts without quotes."""
    if isinstance(found, str):
        return found
    if isinstance(found, Decimal):
        return format(found, "f")
    return orjson.dumps(found, default=plain).decode()


def plain(found: Any) -> Any:
    """The JSON of a value that orjson does not know: a decimal is a number with its scale, anything
    else its text."""
    return orjson.Fragment(format(found, "f")) if isinstance(found, Decimal) else str(found)


def _map_key(pair: tuple[Any, Any]) -> Any:
    return repr(pair[0]) if isinstance(pair[0], dict | list) else pair[0]


def key_text(value: object) -> str:
    """A value of a key as YAML writes it.

    Example: `disabled_for: [true]` is `--key open=true`.
    """
    return str(value).lower() if isinstance(value, bool) else str(value)
