"""Whose a log line is: of which rulebook, where a process runs several; or of nobody."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context

_NAME: ContextVar[str] = ContextVar("rulebook", default="")
_HUSHED: ContextVar[bool] = ContextVar("hushed", default=False)


def speak_for(rulebook: str) -> None:
    """From here on, in this thread and those that it makes by `thread_of`."""
    _NAME.set(rulebook)


def speaker() -> str:
    """The rulebook's name; empty where there is only one."""
    return _NAME.get()


@contextmanager
def nobodys() -> Iterator[None]:
    """What is logged in here, and in threads of `thread_of`, is of the whole process."""
    token = _NAME.set("")
    try:
        yield
    finally:
        _NAME.reset(token)


def thread_of(call: Callable[..., None], *args: object, name: str) -> threading.Thread:
    """A daemon that speaks for whom its maker speaks."""
    run = copy_context().run
    return threading.Thread(target=run, args=(call, *args), name=name, daemon=True)


@contextmanager
def hushed() -> Iterator[None]:
    """What is logged in here, and in threads of `thread_of`, `is_heard` leaves out."""
    token = _HUSHED.set(True)
    try:
        yield
    finally:
        _HUSHED.reset(token)


def is_heard(record: logging.LogRecord) -> bool:  # noqa: ARG001, a filter of a handler
    return not _HUSHED.get()
