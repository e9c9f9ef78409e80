"""Explicit events, checked against their declaration before they are stored."""

from __future__ import annotations

import uuid
from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any

from tidegate.engine.core.text.printable import shortened
from tidegate.engine.core.types.fields import SHOWN_MAX, check_fields
from tidegate.engine.core.values import Signal
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.model import Rulebook, SignalEvent

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
    declared = declared_signal(book, event)
    if signal_id is not None:
        check_id(declared, signal_id, "id")
    values = check_fields(declared, fields, text=text)
    return Signal(signal_id or str(uuid.uuid4()), event, values, received_at)


def given_once(event: str, fields: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a signal, from a mapping and by name. Raises InputError for one that is in
    both."""
    for name in fields.keys() & named.keys():
        place = word_place(f"signal({event!r}, ..)")
        message = f"the field `{name}` is given twice: in the mapping, and by name"
        raise InputError([Problem("field-twice", message, place, "leave one of them out")])
    return {**fields, **named}


def declared_signal(
    book: Rulebook, event: str, allowed: Container[str] | None = None
) -> SignalEvent:
    """The signal of a name; one that is not `allowed` is not named in the hint. Raises InputError
    for any other event, and for none."""
    declared = book.events.get(event)
    if isinstance(declared, SignalEvent):
        return declared
    known = [n for n, e in book.events.items() if isinstance(e, SignalEvent)]
    shown = shortened(event, SHOWN_MAX)
    what = "is not a signal" if declared else "is not declared"
    hint = did_you_mean(event[:SHOWN_MAX], [n for n in known if allowed is None or n in allowed])
    place = word_place(book.file or "<text>", f"events.{shown}")
    raise InputError([Problem("unknown-signal", f"event `{shown}` {what}", place, hint)])


def check_id(event: SignalEvent, signal_id: object, name: str) -> None:
    """Raises InputError for what cannot be a signal's id, which is called `name`."""
    if _storable(signal_id):
        return
    place = replace(event.place, path=f"{event.name}.{name}")
    message = f"{shortened(repr(signal_id), SHOWN_MAX)} cannot be a signal's id"
    hint = "an id is a text of 1 to 200 characters without control characters"
    if name == "id" and "id" in event.fields:
        hint += "; in Python the field `id` stands in a mapping: signal(event, {'id': ..})"
    raise InputError([Problem("signal-id", message, place, hint)])


def _storable(signal_id: object) -> bool:
    return (
        isinstance(signal_id, str)
        and 0 < len(signal_id) <= ID_CHARACTERS_MAX
        and signal_id.isprintable()
    )
