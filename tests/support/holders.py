"""Holders of a lease that are no more."""

from __future__ import annotations

import os
import subprocess
import sys

from tidegate.engine.store.holder import this_holder


def ended_holder() -> str:
    """A process of this machine that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return this_holder().replace(f"/{os.getpid()}/", f"/{ended.pid}/")


def reused_holder() -> str:
    """A process of this machine that has ended, whose id another process has now."""
    return this_holder().replace(f"/{os.getpid()}/", f"/{os.getpid()}/1")
