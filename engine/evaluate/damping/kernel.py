"""The decision on the firings of one rule."""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from tidegate.engine.core.columns.numba_cache import njit

HYSTERESIS, DEDUPE, COOLDOWN, THROTTLE = 1, 2, 3, 4  # what drops a firing; 0: it passes
NEVER = -(2**62)


@njit
def damp(
    order,
    begin,
    at,
    fires,
    rearms,
    same,
    levels,
    dedupe,
    cooldown,
    rate,
    length,
    armed,
    last,
    seen,
    window,
    head,
    tail,
    verdict,
):
    """Decide on each firing, key by key; the firings of key k are order[begin[k]:begin[k + 1]], by
    their instants `at`. A length of 0 (`dedupe`, `cooldown`, `length` of the `rate`), and `levels`
    false, ask nothing. verdict[i] is what drops firing i. State:

        armed[k]    whether the next firing for which `fires` passes
        last[k]     when the last one passed, NEVER = none did
        window[head[k]:tail[k]]    when those passed that are younger than `length`, ascending
        seen[same[i]]   when the last one passed that repeats as firing i does

    All but `armed` are made of firings that pass. A firing that is older than the last one in
    `window` is put there with the instant of that one, so that the window stays ascending.

    Example: cooldown 10, instants 0, 4, 10, 12 of one key: the second and the fourth are dropped.
    """
    for k in range(len(begin) - 1):
        for n in range(begin[k], begin[k + 1]):
            i = order[n]
            now = at[i]
            if levels:
                if not armed[k]:
                    armed[k] = rearms[i]
                    verdict[i] = HYSTERESIS
                    continue
                if not fires[i]:
                    verdict[i] = HYSTERESIS
                    continue
                armed[k] = False
            if dedupe > 0 and now < seen[same[i]] + dedupe:
                verdict[i] = DEDUPE
                continue
            if cooldown > 0 and now < last[k] + cooldown:
                verdict[i] = COOLDOWN
                continue
            if length > 0:
                while head[k] < tail[k] and window[head[k]] + length <= now:
                    head[k] += 1
                if tail[k] - head[k] >= rate:
                    verdict[i] = THROTTLE
                    continue
                window[tail[k]] = now
                if head[k] < tail[k] and window[tail[k] - 1] > now:
                    window[tail[k]] = window[tail[k] - 1]
                tail[k] += 1
            last[k] = now
            if dedupe > 0:
                seen[same[i]] = now
