"""Whether what is written in a test is what happened.

Doubles may be 1e-9 apart. Decimals compare by value, timestamps by instant: a text without an
offset is in the rulebook's zone. Structs and keys compare in the fields that are written.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.times import of_text

APART_MAX = 1e-9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def same(written: Any, found: Any, zone: str) -> bool:
    """Whether a value of a test file stands for a value of what happened."""
    match found:
        case None | bool() | str():
            return type(written) is type(found) and bool(written == found)
        case int() | float() | Decimal():
            return _is_number(written, found)
        case datetime():
            return _is_moment(written, found, zone)
        case date():
            return bool(written == found.isoformat())
        case bytes():
            return _is_binary(written, found)
        case Mapping():
            return _has_fields(written, found, zone)
        case [tuple(), *_]:  # Arrow's form of a map
            return isinstance(written, Mapping | list) and _is_map(written, found, zone)
        case list() | tuple():
            if isinstance(written, Mapping):  # of an empty map
                return not written and not found
            return (
                isinstance(written, list)
                and len(written) == len(found)
                and all(same(a, b, zone) for a, b in zip(written, found, strict=True))
            )
    return bool(written == found)


def micros_of(moment: datetime) -> int:
    """Microseconds since the epoch."""
    return (moment - _EPOCH) // _MICROSECOND


def as_written(found: Any, zone: str) -> Any:
    """A value of what happened, as a test file has it. Decimals stay. Example: 07:00 UTC is
    `2026-03-02T08:00:00` in Berlin."""
    match found:
        case datetime() if found.tzinfo is not None:
            local = found.astimezone(ZoneInfo(zone))
            plain = local.replace(tzinfo=None, fold=0)
            again = plain.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) == found
            return (plain if again else local).isoformat()
        case Mapping():
            return {name: as_written(item, zone) for name, item in found.items()}
        case [tuple(), *_]:
            return {str(as_written(name, zone)): as_written(item, zone) for name, item in found}
        case list() | tuple():
            return [as_written(item, zone) for item in found]
    return json_text.value(found)


def _is_number(written: Any, found: int | float | Decimal) -> bool:
    """A text is a number with more digits than YAML holds, or none: `NaN`."""
    if isinstance(written, bool) or not isinstance(written, int | float | str):
        return False
    if isinstance(found, Decimal):
        try:
            return Decimal(str(written)) == found
        except InvalidOperation:
            return False
    if isinstance(written, str):
        try:
            written = float(written)
        except ValueError:
            return False
    if isinstance(found, int) and isinstance(written, int):
        return written == found
    if math.isnan(written) or math.isnan(found):
        return math.isnan(written) and math.isnan(found)
    return math.isclose(written, found, rel_tol=APART_MAX, abs_tol=APART_MAX)


def _is_moment(written: Any, found: datetime, zone: str) -> bool:
    if not isinstance(written, str):
        return False
    try:
        if found.tzinfo is None:
            return datetime.fromisoformat(written) == found
        return of_text(written, zone) == micros_of(found)
    except (ValueError, OverflowError, TypeError):
        return False


def _is_binary(written: Any, found: bytes) -> bool:
    try:
        return isinstance(written, str) and base64.b64decode(written, validate=True) == found
    except binascii.Error:
        return False


def _has_fields(written: Any, found: Mapping[str, Any], zone: str) -> bool:
    return isinstance(written, Mapping) and all(
        name in found and same(value, found[name], zone) for name, value in written.items()
    )


def _is_map(written: Any, found: Any, zone: str) -> bool:
    pairs = [*written.items()] if isinstance(written, Mapping) else written
    if len(pairs) != len(found):
        return False
    left = list(found)
    for pair in pairs:
        at = next((n for n, (k, v) in enumerate(left) if _is_pair(pair, k, v, zone)), None)
        if at is None:
            return False
        del left[at]
    return True


def _is_pair(pair: Any, name: Any, value: Any, zone: str) -> bool:
    """A key of a mapping is a text, whatever its type."""
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return False
    named = same(pair[0], name, zone) or pair[0] == str(as_written(name, zone))
    return named and same(pair[1], value, zone)
