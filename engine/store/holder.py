"""The name of a lease's holder: a process. Others on the same machine can see whether it lives. And
the name of who runs it."""

from __future__ import annotations

import getpass
import os
import socket
import uuid
from contextlib import suppress
from pathlib import Path


def this_holder() -> str:
    """`machine/process id/begun-random`: the name for one lease of this process. A restarted
    container may use a process id again, so the name has the time at which the process began."""
    return f"{_machine()}/{os.getpid()}/{_begun(os.getpid())}-{uuid.uuid4().hex[:8]}"


def this_user() -> str:
    """`user@machine`: who runs this process."""
    user = str(os.getuid()) if hasattr(os, "getuid") else "?"
    with suppress(KeyError, OSError, ImportError):  # a container's user may have no name
        user = getpass.getuser()
    return f"{user}@{socket.gethostname()}"


def is_dead(holder: str) -> bool:
    """Whether the holder was a process of this machine that has ended. Nobody waits for its lease
    then."""
    return _lives(holder) is False


def is_alive(holder: str) -> bool:
    """Whether the holder is a process of this machine that is running."""
    return _lives(holder) is True


def _lives(holder: str) -> bool | None:
    """Whether the holder's process is running; None if that cannot be known."""
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
    """When a process began, in ticks since the machine's start; empty if that is unknown."""
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
