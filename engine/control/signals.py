"""Signals, checked against the declarations of all rulebooks of a store before they are stored."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Container, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tidegate import rules
from tidegate.engine.control.rulebooks import keep_given, the_rulebooks
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.core.types.fields import SHOWN_MAX, check_fields
from tidegate.engine.core.values import Signal
from tidegate.engine.store import open_store
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.model import Rulebook, SignalEvent

ID_CHARACTERS_MAX = 200
Books = Mapping[str, Rulebook]  # by name


def make_signal(
    book: Rulebook,
    event: str,
    fields: Mapping[str, Any],
    signal_id: str | None,
    received_at: int,
    *,
    text: bool = False,
) -> Signal:
    """A signal as the store takes it. Without an id it gets a random one. `text`: its fields are
    texts of a command line. Raises InputError for a wrong event, and for every wrong field."""
    declared = declared_signals({book.name: book}, event)[book.name]
    if signal_id is not None:
        check_id(declared, signal_id, "id")
    values = check_fields(declared, fields, text=text)
    return Signal(signal_id or str(uuid.uuid4()), event, values, received_at)


def given_once(event: str, fields: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a signal, from a mapping and from keyword arguments. Raises InputError for a
    field that is in both."""
    for name in fields.keys() & named.keys():
        place = word_place(f"signal({event!r}, ..)")
        message = f"the field `{name}` is given twice: in the mapping, and by name"
        raise InputError([Problem("field-twice", message, place, "leave one of them out")])
    return {**fields, **named}


def check_id(event: SignalEvent, signal_id: object, name: str) -> None:
    """Raises InputError unless a value can be a signal's id. `name`: how the request calls it."""
    fits = isinstance(signal_id, str) and 0 < len(signal_id) <= ID_CHARACTERS_MAX
    if fits and str(signal_id).isprintable():
        return
    place = replace(event.place, path=f"{event.name}.{name}")
    message = f"{shortened(repr(signal_id), SHOWN_MAX)} cannot be a signal's id"
    hint = "an id is a text of 1 to 200 characters without control characters"
    if name == "id" and "id" in event.fields:
        hint += "; in Python the field `id` stands in a mapping: signal(event, {'id': ..})"
    raise InputError([Problem("signal-id", message, place, hint)])


def declared_signals(
    books: Books, event: str, allowed: Container[str] | None = None
) -> dict[str, SignalEvent]:
    """The declarations of a signal, by rulebook. Raises InputError `unknown-signal` where no
    rulebook has it; the hint names only signals that are `allowed`."""
    found = {name: book.events.get(event) for name, book in books.items()}
    declared = {name: one for name, one in found.items() if isinstance(one, SignalEvent)}
    if declared:
        return declared
    shown = shortened(event, SHOWN_MAX)
    message = f"no rulebook declares a signal `{shown}` ({', '.join(sorted(books))})"
    place = word_place("EVENT")
    if len(books) == 1:
        (book,) = books.values()
        message = f"event `{shown}` is not {'a signal' if event in book.events else 'declared'}"
        place = word_place(book.file or "<text>", f"events.{shown}")
    hint = meant(event, signals_of(books), allowed)
    raise InputError([Problem("unknown-signal", message, place, hint)])


def make_signals(
    books: Books,
    event: str,
    fields: Mapping[str, Any],
    signal_id: str | None,
    received_at: int,
    *,
    text: bool = False,
) -> dict[str, Signal]:
    """A signal for each rulebook that declares it, all with one id. Raises InputError with the
    problems of all of them."""
    made: dict[str, Signal] = {}
    problems: list[Problem] = []
    declared = declared_signals(books, event)
    for name in declared:
        try:
            signal = make_signal(books[name], event, fields, signal_id, received_at, text=text)
            signal_id = signal.id
            made[name] = signal
        except InputError as error:
            problems += of_rulebook(error, name, several=len(declared) > 1)
    if problems:
        raise InputError(problems)
    return made


def of_rulebook(error: InputError, name: str, *, several: bool) -> list[Problem]:
    """The problems of an error. Where `several` rulebooks were asked, each names its rulebook."""
    if not several:
        return [*error.problems]
    return [replace(p, message=f"rulebook {name}: {p.message}") for p in error.problems]


def signals_of(books: Books) -> set[str]:
    """The signals that any of the rulebooks declares."""
    events = (event for book in books.values() for event in book.events.values())
    return {event.name for event in events if isinstance(event, SignalEvent)}


def meant(name: str, known: Collection[str], allowed: Container[str] | None) -> str:
    """A hint that names only what is `allowed`."""
    return did_you_mean(name[:SHOWN_MAX], [n for n in known if allowed is None or n in allowed])


def raise_signal(
    url: str,
    name: str | None,
    rulebook_file: Path | None,
    event: str,
    fields: Mapping[str, str | None],
    signal_id: str | None,
) -> dict[str, Any]:
    """`tidegate signal`: store a signal (G4) for every rulebook that declares it, or for the one
    called `name`. `rulebook_file`: it is registered first, and the signal is for it alone.

    Raises InputError for an unknown event or field, EngineError `signal-conflict` for an id that
    stands for another body.
    """
    loaded = rules.load(rulebook_file) if rulebook_file else None
    with open_store(url, create=loaded is not None) as store:
        books = {loaded.name: loaded} if loaded else the_rulebooks(store, name)
        raised = make_signals(books, event, fields, signal_id, store.wall(), text=True)
        if loaded:
            keep_given(store, loaded)
        fresh = store.raise_everywhere(raised)
        id = next(iter(raised.values())).id
        return {"event": event, "id": id, "inserted": fresh, "rulebooks": [*raised]}
