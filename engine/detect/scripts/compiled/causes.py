"""Causes as instants, ids and depths. Kernels.

A cause is a number, as in `kernel.Instances`: i >= 0 the arrival i, and behind the arrivals the
timed events that emit; -2 - i a start by arrival i; -1 a cause that is kept elsewhere, by key.
Example: arrivals at 10 and 20, key 3 keeps the id (7, 7):

    cause  key     time  id
        1    5       20  that of arrival 1
       -2    5       10  the mixed instant 10
       -1    3        0  (7, 7)
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidegate.engine.core.columns.numba_cache import inlined, njit
from tidegate.engine.core.values import Int64, UInt64

Int32 = npt.NDArray[np.int32]


class Causes(NamedTuple):
    """time[n], ids (uint64[n, 2]) and depth[n] of causes; those that are kept by key have no
    instants."""

    time: Int64
    ids: UInt64
    depth: Int32


def room_for(count: int) -> Causes:
    return Causes(
        np.empty(count, np.int64), np.empty((count, 2), np.uint64), np.empty(count, np.int32)
    )


@njit
def in_turn(numbers):
    """Whether the numbers are 0, 1, 2 and so on."""
    for n in range(len(numbers)):  # noqa: SIM110, Numba has no `all`
        if numbers[n] != n:
            return False
    return True


@njit
def in_order(time, key):
    """Whether time ascends, and at one instant there is one key alone."""
    for n in range(1, len(time)):
        if time[n] < time[n - 1] or (time[n] == time[n - 1] and key[n] != key[n - 1]):
            return False
    return True


def causes_of(
    number: Int64,
    key: Int32,
    arrived: Causes,
    timed: Causes,
    ids: UInt64,
    depth: Int32,
    *,
    instants: bool,
) -> Causes:
    """The causes of some numbers; their instants are set where they are asked for. `arrived`,
    `timed`: those of arrivals and of timed events; ids and depths are kept by key."""
    found = room_for(len(number))
    _find(number, key, arrived, timed, ids, depth, found, instants)
    return found


@njit
def _find(number, key, arrived, timed, ids_kept, depth_kept, found, instants):
    time, ids, depth = found
    for n in range(len(number)):
        if number[n] >= len(arrived.time):
            i = np.uint64(number[n] - len(arrived.time))
            depth[n] = timed.depth[i]
            if instants:
                time[n] = timed.time[i]
            ids[n, 0], ids[n, 1] = timed.ids[i, 0], timed.ids[i, 1]
        elif number[n] >= 0:
            i = np.uint64(number[n])
            depth[n] = arrived.depth[i]
            if instants:  # among many keys it is a miss of the processor's cache
                time[n] = arrived.time[i]
            ids[n, 0], ids[n, 1] = arrived.ids[i, 0], arrived.ids[i, 1]
        elif number[n] == -1:
            k = np.uint64(key[n])
            time[n], depth[n] = 0, depth_kept[k]
            ids[n, 0], ids[n, 1] = ids_kept[k, 0], ids_kept[k, 1]
        else:
            time[n], depth[n] = arrived.time[-2 - number[n]], 0
            ids[n, 0], ids[n, 1] = mixed(np.uint64(0), np.uint64(0), time[n])


@inlined
def mixed(high, low, instant):
    """As `instances.mixed`."""
    return (
        _mix(high ^ _mix(np.uint64(instant))),
        _mix(low + _mix(np.uint64(~instant))),
    )


@inlined
def _mix(value):
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
