"""Who holds a lease: a process, named so that its death can be seen from the same machine."""

from __future__ import annotations

import os
import socket
import uuid
from contextlib import suppress
from pathlib import Path


def this_holder() -> str:
    """`machine/process id/random`: a name for one lease of this process."""
    return f"{_machine()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


def is_dead(holder: str) -> bool:
    """Whether the holder was a process of this machine that has ended: then its lease need not be
    waited for."""
    return _lives(holder) is False


def is_alive(holder: str) -> bool:
    """Whether the holder is a process of this machine that goes on."""
    return _lives(holder) is True


def _lives(holder: str) -> bool | None:
    """None where that cannot be known."""
    machine, _, rest = holder.rpartition("/")[0].rpartition("/")
    if machine != _machine() or not rest.isdigit():
        return None
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return None
    return True


def _machine() -> str:
    """Host name, boot and process namespace: process ids mean the same where this is equal."""
    parts = [socket.gethostname()]
    with suppress(OSError):  # Linux only
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text()[:8])
        parts.append(os.readlink("/proc/self/ns/pid").strip("pid:[]"))
    return "-".join(parts)
