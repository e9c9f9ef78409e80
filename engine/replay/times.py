"""Instants of a trace: seconds as JSON numbers, or ISO 8601 text."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EXACT = 2.0**51
_LAST = 2**62


def of_number(value: float, text: str | bytes) -> int:
    """Seconds -> microseconds, rounded half-even. `text` is the JSON object {"time": ..} that
    the number stands in: where the nearest double cannot tell, its digits decide."""
    if isinstance(value, int):
        return _checked(value * 1_000_000)
    scaled = value * 1e6
    near = round(scaled) if abs(scaled) < _EXACT else 0
    if abs(scaled) < _EXACT and abs(scaled - near) < 0.25:
        return near
    exact = Decimal(str(json.loads(text, parse_float=Decimal)["time"])) * 1_000_000
    return _checked(int(exact.to_integral_value(ROUND_HALF_EVEN)))


def of_text(text: str) -> int:
    """ISO 8601, without offset UTC. Raises `ValueError`."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return (instant - _EPOCH) // _MICROSECOND


def of_argument(text: str) -> int:
    """The instant of `--until`: seconds, or ISO 8601. Raises `ValueError`."""
    try:
        return _checked(int((Decimal(text) * 1_000_000).to_integral_value(ROUND_HALF_EVEN)))
    except ArithmeticError:
        return of_text(text)


def _checked(micros: int) -> int:
    if not -_LAST < micros < _LAST:
        raise ValueError("out of range")
    return micros


def printed(micros: int, iso: bool) -> Any:
    """As JSON text: the shortest decimal number of seconds (3, not 3.0), or ISO 8601 with `Z`."""
    if iso:
        text = (_EPOCH + micros * _MICROSECOND).replace(tzinfo=None)
        return f'"{text.isoformat(timespec="microseconds" if text.microsecond else "seconds")}Z"'
    whole, rest = divmod(abs(micros), 1_000_000)
    sign = "-" if micros < 0 else ""
    return f"{sign}{whole}.{rest:06}".rstrip("0") if rest else f"{sign}{whole}"
