"""The instant of every commit (G1)."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tidegate.engine.core.instants import MILLISECOND, after_watermark, floor_millisecond
from tidegate.engine.core.ports import Clock
from tidegate.engine.core.values import Commit


@dataclass(slots=True)
class Instants:
    """Fixes the instants of commits when they are first listed, and remembers them.

    One for a run of the engine. What a bucket has stored needs no memory: it is never listed again.
    """

    skew_max_micros: int
    _fixed: dict[tuple[str, int], Commit] = field(default_factory=dict)

    def fix(
        self,
        table_id: str,
        commits: Iterable[Commit],
        previous: int | None,
        watermark_before: int | None,
        now: int,
        listed_at: int,
    ) -> tuple[Commit, ...]:
        """The commits with their instants; those that had to be moved keep the log's in `logged`.

        `commits` are contiguous, with the log's times; `previous` is the instant of the version
        before the first one, None if it plays no part (as `watermark_before` before the first
        plan).

        `now` and `listed_at` are the engine's clock before and after the table was listed. A commit
        that is more than `skew_max_micros` ahead of `listed_at` stands at `now`: its writer's clock
        is wrong. Example: `now` is 9:16:05 and a listing takes 30 s. A commit of 9:16:33 was made
        meanwhile, and stays. One of 9:17:00 is moved to 9:16:05. Lower bounds win over `now`.
        """
        fixed = []
        for commit in commits:
            known = self._fixed.get((table_id, commit.version))
            # Not any more, where a reset has placed earlier versions anew.
            if known is None or known.instant <= max(previous or 0, watermark_before or 0):
                known = self._fix(commit, previous, watermark_before, now, listed_at)
                self._fixed[table_id, commit.version] = known
            fixed.append(known)
            previous = known.instant
        return tuple(fixed)

    def forget(self, table_id: str, version: int) -> None:
        """Drop what is known of versions up to this one: a bucket has stored them."""
        for known in [k for k in self._fixed if k[0] == table_id and k[1] <= version]:
            del self._fixed[known]

    def _fix(
        self,
        commit: Commit,
        previous: int | None,
        watermark_before: int | None,
        now: int,
        listed_at: int,
    ) -> Commit:
        instant = logged = floor_millisecond(commit.instant)
        if instant > listed_at + self.skew_max_micros:
            instant = floor_millisecond(now)
        if previous is not None:
            instant = max(instant, floor_millisecond(previous) + MILLISECOND)
        if watermark_before is not None:
            instant = max(instant, after_watermark(watermark_before))
        return replace(commit, instant=instant, logged=None if instant == logged else logged)


class Now:
    """now = max(wall clock, the last `now` + monotonic time since), microseconds.

    It starts from the greatest `now` ever stored, or the wall clock where that is later; so a wall
    clock set back by an hour stalls nothing and repeats nothing, nor does one that was an hour
    ahead for a moment. For use by several threads.
    """

    def __init__(self, clock: Clock, stored: int) -> None:
        self._clock = clock
        self._base = stored - clock.monotonic()
        self._asking = threading.Lock()

    def __call__(self) -> int:
        with self._asking:
            steady = self._clock.monotonic()
            self._base = max(self._base, self._clock.wall() - steady)
            return self._base + steady
