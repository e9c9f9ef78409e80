"""Whose rulebook a log line is of, where a process runs several."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context

_NAME: ContextVar[str] = ContextVar("rulebook", default="")


def speak_for(rulebook: str) -> None:
    """From here on, in this thread and those that it makes by `thread_of`."""
    _NAME.set(rulebook)


def speaker() -> str:
    """The rulebook's name; empty where there is only one."""
    return _NAME.get()


def thread_of(call: Callable[..., None], *args: object, name: str) -> threading.Thread:
    """A daemon that speaks for whom its maker speaks."""
    run = copy_context().run
    return threading.Thread(target=run, args=(call, *args), name=name, daemon=True)
