"""The kernel that decides which firings of one rule are dropped."""
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
    """Decide on each firing, key by key. The firings of key k are order[begin[k]:begin[k + 1]], in
    order of their instants `at`. `levels` false, and the length 0 of `dedupe`, `cooldown` or the
    `rate` (`length`), turn that damping off. verdict[i]: what drops firing i. State:

        armed[k]                  hysteresis: whether the next firing with `fires` passes
        last[k]                   cooldown: when a firing passed last, NEVER = none did
        window[head[k]:tail[k]]   throttle: when firings passed within `length`, ascending
        seen[same[i]]             dedupe: when a firing like i passed last

    Only passing firings change the state, except `armed`. A firing older than the last instant in
    the window gets that instant, so that the window stays ascending.

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
