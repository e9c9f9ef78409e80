"""The compiled loop that makes one timeline of the event types of a flat expression."""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.compiled import njit
from tidegate.engine.detector.kernels.columns import NEVER


@njit
def merged(bounds, order, absent, apart, key, time, rank, row, keys):
    """The arrivals of all event types as one: event type, key code, place in what is given.

    Event type s stands in bounds[s]:bounds[s + 1], in order of (time, rank, row); of one instant
    the one with the highest order[s] comes first. An occurrence of `absent` (-1 = none) is left
    out: what comes after it has a key code of its own, and if `apart`, what is simultaneous with it
    is left out too. Also real[code], and the last code of each key.
    """
    n = len(key)
    out_source = np.empty(n, dtype=np.int16)
    out_code = np.empty(n, dtype=np.int32)
    out_at = np.empty(n, dtype=np.int64)
    spare = bounds[absent + 1] - bounds[absent] if absent >= 0 else 0
    real = np.arange(keys + 1 + spare)
    real[keys + 1 :] = 0
    last = np.arange(keys + 1)
    codes = keys + 1
    ended = np.full(keys + 1 if absent >= 0 else 0, NEVER, dtype=np.int64)
    at = bounds[:-1].copy()
    o = 0
    for _ in range(n):
        s = -1
        for q in range(len(at)):
            if at[q] == bounds[q + 1]:
                continue
            if s >= 0:
                i, j = at[q], at[s]
                if time[i] > time[j]:
                    continue
                if time[i] == time[j]:
                    if order[q] < order[s]:
                        continue
                    if order[q] == order[s] and (
                        rank[i] > rank[j] or (rank[i] == rank[j] and row[i] > row[j])
                    ):
                        continue
            s = q
        i = at[s]
        at[s] += 1
        k = key[i]
        if s == absent:
            ended[k] = time[i]
            last[k] = codes
            real[codes] = k
            codes += 1
        elif absent < 0 or not apart or ended[k] != time[i]:
            out_source[o] = s
            out_code[o] = last[k]
            out_at[o] = i
            o += 1
    return out_source[:o], out_code[:o], out_at[:o], real[:codes], last
