"""The compiled loop of a walk: one pass over occurrences in order of time.

A key's state is a record of numbers. For each stage but the last it holds at at[stage] the latest
instance that ended before: its start and its occurrences; after these at at[place] the time of the
last occurrence of each event type that guards something, and that one. `NEVER`: there is none.

Indices are unsigned, as numba asks of each signed one whether it counts from the end.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def, call-arg"

from __future__ import annotations

import numpy as np

from tidegate.engine.compiled import njit
from tidegate.engine.detector.prefetch import prefetch

RUN_MAX = 64
"""So many occurrences may be simultaneous."""
AHEAD = 16
"""So many occurrences a walk looks ahead."""
CACHED = 1 << 17
"""A state of so many numbers is at hand without."""


@njit
def walk(
    first, code, time, value, low, last, place, at, size, noted, span, checks, emits, bounds,
    guards, state, ahead, run, room, output, key, start, end, row,
):  # fmt: skip
    """From occurrence `first` on until more than `room` instances are found, or all are; returns
    where it ended and how many were written to output[n], key[n], start[n], end[n], row[n, stages].
    It ends at -1 where occurrences of one event type and key are simultaneous, or too many are.

    place[code] is the stage of an event type, or past `last` what it guards by, or the one past
    these if it is of no use. What is only noted, noted[place], goes to the state at once, what is
    of no use to the end of it, where size[place] is 0: a jump there would be one that cannot be
    foreseen. Else an instance, not longer than span[stage], is looked at by checks[stage]:
    checks[stage + 1]. Check c lets it pass if it starts after the guards bounds[c]:bounds[c + 1]:
    the first one of a stage to the state, but for the last stage, the others and those of that to
    the output emits[c]. The state of the occurrence `ahead` is asked for in time.
    """
    zero, one = np.uint64(0), np.uint64(1)
    n, i, x, simultaneous = zero, first, 0, 0
    t = np.int64(0)
    while (i < len(time) and n <= room) or x < simultaneous:
        if x < simultaneous:
            r = run[x]
            x += 1
        else:
            r = i
            t = time[i]
            i += 1
            if i + ahead < len(time):
                prefetch(state, np.uint64((value[i + ahead] - low) * size[0]))
            if i < len(time) and time[i] == t:
                simultaneous = gather(r, t, code, time, value, last, place, run)
                if simultaneous < 0:
                    return -1, n
                i = r + simultaneous
                r = run[0]
                x = 1
        p = place[np.uint32(code[r])]
        base = np.uint64((value[r] - low) * size[p])
        if noted[p]:
            d = base + at[p]
            state[d] = t
            state[d + one] = r
            continue
        b, s = base, t
        if p > zero:
            b = base + at[p - one]
            s = state[b]
            if s < t - span[p]:
                continue
        c = checks[p]
        if p < last:
            if passes(c, s, base, state, bounds, guards):
                d = base + at[p]
                state[d] = s
                for y in range(p):
                    state[d + one + y] = state[b + one + y]
                state[d + one + p] = r
            c += one
        while c < checks[p + one]:
            if passes(c, s, base, state, bounds, guards):
                output[n] = emits[c]
                key[n] = value[r] - low + 1
                start[n] = s
                end[n] = t
                for y in range(p):
                    row[n, y] = state[b + one + y]
                row[n, p] = r
                n += one
            c += one
    return i, n


@njit
def passes(check, start, base, state, bounds, guards):
    """Did nothing that guards occur since `start`?"""
    later = True
    for g in range(bounds[check], bounds[check + np.uint64(1)]):
        later &= start > state[base + guards[g]]
    return later


@njit
def gather(first, instant, code, time, value, last, place, run):
    """The simultaneous occurrences from `first` on, what guards before stages, later stages before
    earlier ones, so that nothing follows what it is simultaneous with: how many, -1 for no way."""
    count = 0
    while first + count < len(time) and time[first + count] == instant:
        if count == RUN_MAX:
            return -1
        r = first + count
        x = count
        while x > 0 and place[code[run[x - 1]]] < place[code[r]]:
            run[x] = run[x - 1]
            x -= 1
        run[x] = r
        count += 1
    for x in range(count):
        y = x + 1
        while y < count and place[code[run[y]]] == place[code[run[x]]]:
            if place[code[run[x]]] <= last and value[run[x]] == value[run[y]]:
                return -1
            y += 1
    return count
