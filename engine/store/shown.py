"""Values as commands print them (language.md 4)."""

from __future__ import annotations

import base64
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa


def instant(micros: int | None) -> str | None:
    """Microseconds since the epoch as ISO 8601, UTC: six fraction digits or none."""
    if micros is None:
        return None
    seconds, fraction = divmod(micros, 1_000_000)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction:06}Z" if fraction else f"{text}Z"


def value(found: Any, kind: pa.DataType) -> Any:
    """A value of an Arrow column as JSON has it; decimals stay Decimals."""
    if found is None or isinstance(found, bool | int | str | Decimal):
        return found
    if isinstance(found, float):
        return found if math.isfinite(found) else _not_finite(found)
    if isinstance(found, bytes):
        return base64.b64encode(found).decode()
    if isinstance(found, datetime):
        text = found.replace(tzinfo=None).isoformat()
        return text if found.tzinfo is None else f"{text}Z"
    if isinstance(found, date):
        return found.isoformat()
    if pa.types.is_struct(kind):
        return {field.name: value(found[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        pairs = ([value(k, kind.key_type), value(v, kind.item_type)] for k, v in found)
        return sorted(pairs, key=lambda pair: repr(pair[0]))
    return [value(item, kind.value_type) for item in found]


def _not_finite(found: float) -> str:
    if math.isnan(found):
        return "NaN"
    return "Infinity" if found > 0 else "-Infinity"
