"""Instants and local times of a zone, both ways, for many at once. Years 1959 to 2100 only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from tidegate.engine.core.values import Int64

_SECOND = 1_000_000
_DAY = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BEGIN = (datetime(1959, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)
_END = (datetime(2101, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)


def of(instants: Int64, zone: str) -> Int64:
    """The local times of instants, both in microseconds since 1970-01-01.

    >>> summer = np.array([1_750_000_000_000_000])
    >>> (of(summer, "Europe/Berlin") - summer) // 3_600_000_000
    array([2])
    """
    changes, offsets = _offsets(zone)
    return instants + offsets[np.searchsorted(changes, instants, side="right")]


def instants(local: Int64, zone: str) -> Int64:
    """The instants of local times (S11): of a repeated one the first, and a skipped one moves
    forward by the gap."""
    changes, offsets = _offsets(zone)
    # Up to the later of both readings of a change, the offset before it counts.
    until = changes + np.maximum(offsets[:-1], offsets[1:])
    return local - offsets[np.searchsorted(until, local, side="right")]


@lru_cache
def _offsets(zone: str) -> tuple[Int64, Int64]:
    """The instants at which a zone's offset changes, and its offsets before, between and after
    them, in microseconds. No zone changes twice in a day."""
    place = ZoneInfo(zone)

    def offset(second: int) -> int:
        instant = _EPOCH + timedelta(seconds=second)
        local = instant.astimezone(place).replace(tzinfo=UTC)
        return (local - instant) // timedelta(microseconds=1)

    changes, offsets = [], [offset(_BEGIN)]
    for day in range(_BEGIN, _END, _DAY):
        if offset(day + _DAY) == offsets[-1]:
            continue
        low, high = day, day + _DAY
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(middle) == offsets[-1] else (low, middle)
        changes.append(high)
        offsets.append(offset(high))
    return np.array(changes, dtype=np.int64) * _SECOND, np.array(offsets, dtype=np.int64)
