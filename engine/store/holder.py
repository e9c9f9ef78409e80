"""Who holds a lease: a process, named so that its death can be seen from the same machine."""

from __future__ import annotations

import os
import socket
import uuid
from contextlib import suppress
from pathlib import Path


def this_holder() -> str:
    """`machine/process id/begun-random`: a name for one lease of this process. When the process
    began tells it from one of the same id, as a container that is restarted may give."""
    return f"{_machine()}/{os.getpid()}/{_begun(os.getpid())}-{uuid.uuid4().hex[:8]}"


def is_dead(holder: str) -> bool:
    """Whether the holder was a process of this machine that has ended: then its lease need not be
    waited for."""
    return _lives(holder) is False


def is_alive(holder: str) -> bool:
    """Whether the holder is a process of this machine that goes on."""
    return _lives(holder) is True


def _lives(holder: str) -> bool | None:
    """None where that cannot be known."""
    process, _, lease = holder.rpartition("/")
    machine, _, number = process.rpartition("/")
    if machine != _machine() or not number.isdigit():
        return None
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return None
    return _begun(int(number)) == lease.partition("-")[0]


def _begun(process: int) -> str:
    """When a process began, in ticks since the machine's start; empty where nobody says it."""
    try:  # Linux: field 22, behind the command's name, which may hold anything
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _machine() -> str:
    """Host name, boot and process namespace: process ids mean the same where this is equal."""
    parts = [socket.gethostname()]
    with suppress(OSError):  # Linux only
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text()[:8])
        parts.append(os.readlink("/proc/self/ns/pid").strip("pid:[]"))
    return "-".join(parts)
