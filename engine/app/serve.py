"""The inbox: alone, for rulebooks that other processes run, or beside engines in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from tidegate import rules
from tidegate.connectors.http import Address, Beside, Inbox, Shown, parse_address, strictest
from tidegate.engine.app.engines import Engines
from tidegate.engine.control.rulebooks import keep_given
from tidegate.engine.core.policy import load_policy
from tidegate.engine.store import open_store

__all__ = [
    "Address",
    "Inbox",
    "Shown",
    "answer_beside",
    "console_of",
    "inbox_at",
    "parse_address",
    "serve",
]


def inbox_at(address: Address, policy: Path | None, console: Shown | None = None) -> Inbox:
    """An inbox that has taken its port, before anything slow begins. `console`: that it has one."""
    return Inbox(address, load_policy(policy), console)


def console_of(reports: Path | None, on_asked: Callable[[], None] = lambda: None) -> Shown:
    """A console. `reports`: the folder of backtests that it lists. `on_asked`: called after each
    request to an engine."""
    from tidegate.engine.app.console_values import TOLD  # it knows all that tells something

    return Shown(TOLD, on_asked, reports)


def answer_beside(engines: Engines, inbox: Inbox) -> None:
    """Answer for the rulebooks of the store while the engines start, run and stop. A signal that
    comes in wakes them."""
    open_store(engines.store_url, create=True).close()
    inbox.begin(
        engines.store_url,
        limits=strictest(book.settings for book in engines.rulebooks),
        on_written=engines.wake,
        beside=Beside(
            waits=lambda: engines.waiting,
            activities=lambda: engines.activities,
            checking=lambda: engines.checking,
        ),
    )


def serve(
    address: Address,
    url: str,
    name: str | None,
    rulebook_file: Path | None,
    policy: Path | None,
    stop: threading.Event,
    console: Shown | None = None,
) -> None:
    """Answer until `stop`. `rulebook_file` is registered first."""
    loaded = rules.load(rulebook_file) if rulebook_file else None
    with inbox_at(address, policy, console) as inbox:
        with open_store(url, create=loaded is not None) as store:
            if loaded is not None:
                keep_given(store, loaded)
        inbox.begin(url, loaded.name if loaded is not None else name)
        stop.wait()
