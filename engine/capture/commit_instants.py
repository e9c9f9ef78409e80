"""The instant of every commit (G1)."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tidegate.engine.core.instants import after_watermark, floor_millisecond
from tidegate.engine.core.ports import Clock
from tidegate.engine.core.values import Commit


@dataclass(slots=True)
class Instants:
    """Fixes the instants of commits when they are first listed, and remembers them until a bucket
    has stored them. A run of the engine has one object.
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
        """The commits with their instants. A moved commit keeps the log's time in `logged`.

        `commits`: without gaps, with the log's times. `previous`: the instant of the version before
        the first one. `watermark_before`: of the last bucket. All commits are placed after both.
        None: no such bound.

        `now` and `listed_at`: the engine's clock before and after the table was listed. A commit
        more than `skew_max_micros` ahead of `listed_at` has a writer whose clock is wrong, and is
        moved to `now`. Example: `now` is 9:16:05 and the listing takes 30 s. A commit of 9:16:33
        was made meanwhile, and stays. One of 9:17:00 is moved to 9:16:05. Lower bounds win.
        """
        fixed = []
        for commit in commits:
            last = max((t for t in (previous, watermark_before) if t is not None), default=None)
            known = self._fixed.get((table_id, commit.version))
            # A reset may have placed earlier versions anew, at later instants.
            if known is None or (last is not None and known.instant <= last):
                known = self._fix(commit, last, now, listed_at)
                self._fixed[table_id, commit.version] = known
            fixed.append(known)
            previous = known.instant
        return tuple(fixed)

    def forget(self, table_id: str, version: int) -> None:
        """Forget the versions up to this one: a bucket has stored them."""
        for known in [k for k in self._fixed if k[0] == table_id and k[1] <= version]:
            del self._fixed[known]

    def _fix(self, commit: Commit, last: int | None, now: int, listed_at: int) -> Commit:
        """The commit with its instant, which is after `last`."""
        instant = logged = floor_millisecond(commit.instant)
        if instant > listed_at + self.skew_max_micros:
            instant = floor_millisecond(now)
        if last is not None:
            instant = max(instant, after_watermark(last))
        return replace(commit, instant=instant, logged=None if instant == logged else logged)


class Now:
    """now = max(wall clock, the last `now` + monotonic time since), microseconds.

    It starts from the greatest `now` in the store, or from the wall clock if that is later. So it
    never goes back, and it goes on at its usual speed if the wall clock is set back by an hour. For
    use by several threads.
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
