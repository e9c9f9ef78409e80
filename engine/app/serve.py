"""The inbox alone, for rulebooks that are run elsewhere, or later."""

from __future__ import annotations

import threading
from pathlib import Path

from tidegate import rules
from tidegate.connectors.http.server import Address, Inbox
from tidegate.engine.control.requests import keep_given
from tidegate.engine.core.policy import load_policy
from tidegate.engine.store import open_store


def serve(
    address: Address,
    url: str,
    name: str | None,
    rulebook_file: Path | None,
    policy: Path | None,
    stop: threading.Event,
) -> None:
    """Answer until `stop`; `rulebook_file` is registered first. What was taken is answered."""
    loaded = rules.load(rulebook_file) if rulebook_file else None
    with Inbox(address, load_policy(policy)) as inbox:
        with open_store(url, create=loaded is not None) as store:
            if loaded is not None:
                keep_given(store, loaded)
        inbox.begin(url, loaded.name if loaded is not None else name)
        stop.wait()
