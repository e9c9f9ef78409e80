"""The compiled loops between a table of occurrences, events and detections."""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.compiled import njit


@njit
def ascending(values):
    """Is each value no smaller than the one before?"""
    falls = 0
    for i in range(1, len(values)):
        falls += values[i] < values[i - 1]
    return falls == 0


@njit
def seen(code, codes):
    """Marks the codes that there are."""
    mark = np.zeros(codes, dtype=np.bool_)
    for c in code:
        mark[c] = True
    return mark


@njit
def split(code, time, codes):
    """The places of each code, one code after the other; their times; and where each code
    begins."""
    bounds = np.zeros(codes + 1, dtype=np.int64)
    for c in code:
        bounds[c + 1] += 1
    bounds = np.cumsum(bounds)
    at = bounds[:-1].copy()
    out_place = np.empty(len(code), dtype=np.int64)
    out_time = np.empty(len(code), dtype=np.int64)
    for i in range(len(code)):
        o = at[code[i]]
        out_place[o] = i
        out_time[o] = time[i]
        at[code[i]] = o + 1
    return out_place, out_time, bounds


@njit
def listed(offsets, row, role, shown):
    """The entries of instances in roles that are shown, each occurrence once: offsets, row, role.
    Equal rows of an instance stand together."""
    out = np.zeros(len(offsets), dtype=np.int64)
    out_row = np.empty(len(row), dtype=np.int64)
    out_role = np.empty(len(row), dtype=np.int16)
    n = 0
    for i in range(len(offsets) - 1):
        for e in range(offsets[i], offsets[i + 1]):
            if shown[role[e]] and (n == out[i] or row[e] != out_row[n - 1]):
                out_row[n] = row[e]
                out_role[n] = role[e]
                n += 1
        out[i + 1] = n
    return out, out_row[:n], out_role[:n]


@njit
def located(row, bases, number, shift):
    """For each row number[p] and row + shift[p] of the piece p that it is in; piece p begins at
    bases[p]."""
    out_number = np.empty(len(row), dtype=np.int16)
    out_row = np.empty(len(row), dtype=np.int64)
    for i in range(len(row)):
        p = len(bases) - 1
        while bases[p] > row[i]:
            p -= 1
        out_number[i] = number[p]
        out_row[i] = row[i] + shift[p]
    return out_number, out_row


@njit
def place(values, at, code, number, out):
    """Write values[at[i]] to out[i] where code[i] is `number`."""
    for i in range(len(at)):
        if code[i] == number:
            out[i] = values[at[i]]
