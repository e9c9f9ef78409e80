"""Wakes the loop. APScheduler only rings the bell: what is due, the loop computes from the sources
and the detector's state. A wake-up that is lost or late costs latency and nothing else."""

from __future__ import annotations

import logging
import threading

from apscheduler.executors.debug import DebugExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

_LOG = logging.getLogger(__name__)
_LOG.setLevel(logging.ERROR)  # a busy machine leaves wake-ups out: no news


class Wakeup:
    """A pause between two looks at the sources. It ends at the next poll, earlier when a timer is
    due, or at once when `wake` or `stop` is called."""

    def __init__(self, poll_seconds: float) -> None:
        self._event = threading.Event()
        self._stopped = False
        # Jobs run in the scheduler's own thread. A pool refuses jobs once the main thread has
        # ended, and the loop may run in another thread.
        executors = {"default": DebugExecutor()}
        self._scheduler = BackgroundScheduler(timezone="UTC", logger=_LOG, executors=executors)
        self._scheduler.add_job(
            self._event.set,
            IntervalTrigger(seconds=poll_seconds, timezone="UTC"),
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
        )

    def __enter__(self) -> Wakeup:
        self._scheduler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._scheduler.shutdown(wait=False)

    @property
    def stopped(self) -> bool:
        return self._stopped

    def wait(self, seconds_max: float | None = None) -> None:
        """Wait for the next poll, `wake` or `stop`, but no longer than `seconds_max`."""
        if not self._stopped:
            most = threading.TIMEOUT_MAX  # a timer may be due in a thousand years
            self._event.wait(most if seconds_max is None else min(seconds_max, most))
            self._event.clear()

    def wake(self) -> None:
        self._event.set()

    def stop(self) -> None:
        """Make every wait return at once, now and later."""
        self._stopped = True
        self._event.set()
