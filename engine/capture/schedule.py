"""The clocks of a rulebook for planning: when the next one occurs, how many occur in a bucket,
which were missed (G2, G8).

Example: `report` occurs daily at 8:00 with `misfire: fire_last`, and the engine is down from Monday
evening to Thursday noon. Tuesday's, Wednesday's and Thursday's were missed. The plan passes over
the first two, and its bucket holds Thursday's, at its own time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tidegate.engine.core.clocks import NextOccurrence, RunningClock, batch_of
from tidegate.engine.core.instants import ceil_watermark
from tidegate.engine.core.values import FOREVER, Batch, Int64, Plan
from tidegate.rules.model import Settings

_DAY = 86_400_000_000
_SECOND = 1_000_000


class Clocks:
    """The clocks that rules listen to. Its memory is only a cache."""

    def __init__(self, clocks: Sequence[RunningClock], settings: Settings) -> None:
        self._clocks = clocks
        self._limit = settings.timers_per_bucket_max
        self._grace = settings.misfire_grace_seconds * _SECOND
        self._next = {clock.name: NextOccurrence(clock) for clock in clocks}

    def following(self, after: int) -> int | None:
        """The first occurrence of any clock later than an instant; None if there is none."""
        found = min((next_.after(after) for next_ in self._next.values()), default=FOREVER)
        return found if found < FOREVER else None

    def passed_over(self, before: int, watermark: int, now: int) -> dict[str, int]:
        """By clock, the instant up to which a bucket from `before` to `watermark` passes over its
        occurrences. An occurrence is missed if it was due before `now` minus the grace. `skip`
        passes over all missed ones, `fire_last` over all but the last."""
        late = now - self._grace - 1
        found = {}
        for clock in self._clocks:
            if clock.misfire != "fire_all" and self._occurs(clock, before, late):
                kept = self._last(clock, before, late) if clock.misfire == "fire_last" else late + 1
                until = min(kept - 1, watermark)
                if self._occurs(clock, before, until):
                    found[clock.name] = until
        return found

    def missed(self, plan: Plan, begun_at: int) -> dict[str, int]:
        """How many occurrences of each clock a plan passes over. Those before the engine's first
        start (`begun_at`) do not count: no engine could have missed them."""
        before = max(plan.watermark_before, begun_at)
        counts = {
            clock: sum(
                len(clock.instants(begin + 1, min(begin + _DAY, until)))
                for begin in range(before, until, _DAY)
            )
            for clock in self._clocks
            for until in [plan.passed_over.get(clock.name, before)]
        }
        return {clock.name: count for clock, count in counts.items() if count}

    def cut(self, before: int, watermark: int, now: int) -> int:
        """The latest watermark with no more occurrences than the limit. Those of one millisecond
        stay together."""
        days = -(-(watermark - before) // _DAY) + 1
        if sum(clock.per_day for clock in self._clocks) * days <= self._limit:
            return watermark
        passed = self.passed_over(before, watermark, now)
        days_at_once = max(1, self._limit // sum(clock.per_day for clock in self._clocks))
        instants = np.empty(0, np.int64)
        end = before
        while end < watermark and len(instants) <= self._limit:
            begin, end = end, min(end + days_at_once * _DAY, watermark)
            held = [self._held(clock, begin, end, passed) for clock in self._clocks]
            instants = np.concatenate([instants, np.sort(np.concatenate(held))])
        if len(instants) <= self._limit:
            return watermark
        return min(watermark, ceil_watermark(int(instants[self._limit - 1])))

    def batches(self, plan: Plan) -> dict[str, Batch]:
        """The occurrences that a bucket holds, by event type."""
        before, last, passed = plan.watermark_before, plan.watermark, plan.passed_over
        held = {c.name: self._held(c, before, last, passed) for c in self._clocks}
        return {name: batch_of(name, instants) for name, instants in held.items() if len(instants)}

    def _held(
        self, clock: RunningClock, before: int, last: int, passed: Mapping[str, int]
    ) -> Int64:
        """The occurrences of a clock in (before, last] that are not passed over."""
        first = max(before, passed.get(clock.name, before))
        if not self._occurs(clock, first, last):
            return np.empty(0, np.int64)
        return clock.instants(first + 1, last)

    def _occurs(self, clock: RunningClock, after: int, last: int) -> bool:
        return self._next[clock.name].after(after) <= last

    @staticmethod
    def _last(clock: RunningClock, before: int, until: int) -> int:
        """The last occurrence in (before, until]. There must be one."""
        span = _DAY
        while True:
            found = clock.instants(max(before + 1, until - span + 1), until)
            if len(found):
                return int(found[-1])
            span *= 2


NO_CLOCKS = Clocks((), Settings())
