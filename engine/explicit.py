"""Explicit events, checked against their declaration before they are stored."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from tidegate.engine.fields import SHOWN_MAX, check_fields
from tidegate.engine.printable import shortened
from tidegate.engine.values import Signal
from tidegate.rules.errors import InputError, Problem, word_place
from tidegate.rules.model import Rulebook, SignalEvent
from tidegate.rules.nearest import did_you_mean

ID_CHARACTERS_MAX = 200


def make_signal(
    book: Rulebook,
    event: str,
    fields: Mapping[str, Any],
    signal_id: str | None,
    received_at: int,
    *,
    text: bool = False,
) -> Signal:
    """A signal as the store takes it; without an id it gets a random one. With `text`, fields are
    as on a command line. Raises InputError naming the event or every field that is wrong."""
    declared = book.events.get(event)
    if not isinstance(declared, SignalEvent):
        known = [n for n, e in book.events.items() if isinstance(e, SignalEvent)]
        what = "is not a signal" if declared else "is not declared"
        hint = did_you_mean(event, known)
        place = word_place(book.file or "<text>", f"events.{event}")
        raise InputError([Problem("unknown-signal", f"event `{event}` {what}", place, hint)])
    if signal_id is not None and not _storable(signal_id):
        place = word_place(book.file or "<text>", f"events.{event}")
        message = f"{shortened(repr(signal_id), SHOWN_MAX)} cannot be a signal's id"
        hint = "an id is a text of 1 to 200 characters without control characters"
        if "id" in declared.fields:
            hint += "; in Python the field `id` stands in a mapping: signal(event, {'id': ..})"
        raise InputError([Problem("signal-id", message, place, hint)])
    values = check_fields(declared, fields, text=text)
    return Signal(signal_id or str(uuid.uuid4()), event, values, received_at)


def _storable(signal_id: object) -> bool:
    return (
        isinstance(signal_id, str)
        and 0 < len(signal_id) <= ID_CHARACTERS_MAX
        and signal_id.isprintable()
    )
