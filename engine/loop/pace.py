"""Judges whether buckets keep up with what arrives.

A bucket loses ground if it leaves something to the next one, and the oldest of what waits is older
after it than before. Then it took longer than the time that it covers. Example: a bucket takes ten
seconds and covers the commits of four. What waits is six seconds older then.
"""

from __future__ import annotations

import logging

from tidegate.engine.core.values import Plan

log = logging.getLogger(__name__)
BUCKETS = 3
"""So many buckets in a row must lose ground before it is logged, and keep up before it is over."""


class Pace:
    """Judges the buckets of one rulebook: it compares each plan with the one before."""

    def __init__(self) -> None:
        self.losing_since: int | None = None
        self._bucket = 0  # that was planned last
        self._more = False  # whether it leaves something visible to the next one
        self._lag = 0  # for how long the oldest of what waits had done so before it
        self._loses = False  # the bucket before it
        self._alike = 0  # buckets in a row that did as that one
        self._first_lag = 0  # before the first of these

    def planned(self, plan: Plan, oldest: int | None) -> int | None:
        """Judge a new plan. Returns since when ground is lost, None if it is not. `oldest`: when
        the first of what waits came, microseconds. A plan that is made again does not count."""
        if plan.bucket != self._bucket:
            lag = 0 if oldest is None else max(0, plan.now - oldest)
            self._took(self._more and lag > self._lag, lag, plan.now)
            self._bucket, self._lag = plan.bucket, lag
        self._more = plan.more
        return self.losing_since

    def rested(self) -> None:
        """Nothing waits."""
        self._more = False
        self._over(0)

    def _took(self, loses: bool, lag: int, now: int) -> None:
        if loses != self._loses:
            self._loses, self._alike, self._first_lag = loses, 0, self._lag
        self._alike += 1
        if self._alike < BUCKETS:
            return
        if not loses:
            self._over(lag)
        elif self.losing_since is None:
            self.losing_since = now
            log.warning(
                "losing ground: over %d buckets the oldest of what waits went from %.1f s to %.1f s"
                " of age, as a bucket takes longer than what arrives meanwhile; `run -v` says which"
                " step takes long",
                BUCKETS,
                self._first_lag / 1e6,
                lag / 1e6,
            )

    def _over(self, lag: int) -> None:
        if self.losing_since is not None:
            self.losing_since = None
            log.info("keeping up again: the oldest of what waits is %.1f s old", lag / 1e6)
