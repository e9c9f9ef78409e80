"""How engines are ended from outside, or told to read their files again."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from tidegate.engine.app.engine import Engine
from tidegate.engine.app.engines import Engines


def stop_on_signals(engine: Engine | Engines) -> None:
    """SIGTERM and Ctrl-C end engines after the buckets in hand; a second one at once. SIGHUP has
    them read their files again."""

    def handler(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        signal.signal(number, signal.SIG_DFL)
        # Not here: the interrupted thread may hold the lock that `end` takes.
        threading.Thread(target=engine.end).start()

    signal.signal(signal.SIGTERM, handler)
    signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGHUP, lambda *_: engine.reread())
