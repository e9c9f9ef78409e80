"""How an engine is ended from outside, or told to read its file again."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from tidegate.engine.app.engine import Engine


def stop_on_signals(engine: Engine) -> None:
    """SIGTERM and Ctrl-C end the engine after the bucket in hand; a second one at once. SIGHUP has
    it read its file again."""

    def handler(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        signal.signal(number, signal.SIG_DFL)
        # Not here: the interrupted thread may hold the lock that `stop` takes.
        threading.Thread(target=engine.stop).start()

    signal.signal(signal.SIGTERM, handler)
    signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGHUP, lambda *_: engine.reread())
