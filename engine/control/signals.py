"""Signals: checked against the declaration of each rulebook of a store before they are stored; and
what a program may wait for, which are rules and signals."""

from __future__ import annotations

import uuid
from collections.abc import Container, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tidegate import rules
from tidegate.engine.control.rulebooks import (
    keep_given,
    the_rulebooks,
)
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.core.types.fields import SHOWN_MAX, check_fields
from tidegate.engine.core.values import Signal
from tidegate.engine.store import open_store
from tidegate.engine.store.tail import Heard
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


def heard(book: Rulebook, name: str, word: str, allowed: Container[str] | None = None) -> Heard:
    """A rule's firings, or the occurrences of a signal, by name; `word` is where it is given. The
    hint names only what is `allowed`. Raises InputError `not-kept` or `unknown-name`."""
    settings = book.settings
    if name in book.rules:
        return Heard(book.name, name, False, settings.firings_retention_days)
    event = book.events.get(name)
    if isinstance(event, SignalEvent):
        return Heard(book.name, name, True, settings.history_retention_days)
    if event is not None:
        message = f"occurrences of `{name}` are kept in no store"
        hint = f"declare a rule and wait for that: rules: {{{name}_seen: {{on: {name}}}}}"
        raise InputError([Problem("not-kept", message, word_place(word), hint)])
    known = [*book.rules, *(n for n, e in book.events.items() if isinstance(e, SignalEvent))]
    hint = did_you_mean(name[:SHOWN_MAX], [n for n in known if allowed is None or n in allowed])
    message = f"the rulebook {book.name} has no rule or signal `{name[:SHOWN_MAX]}`"
    raise InputError([Problem("unknown-name", message, word_place(word), hint)])


def declared_signals(
    books: Books, event: str, allowed: Container[str] | None = None
) -> dict[str, SignalEvent]:
    """A signal's declarations, by rulebook; one that is not `allowed` is not named in the hint.
    Raises InputError `unknown-signal` where none of them has it."""
    found = {name: book.events.get(event) for name, book in books.items()}
    declared = {name: one for name, one in found.items() if isinstance(one, SignalEvent)}
    if declared:
        return declared
    if len(books) == 1:
        declared_signal(next(iter(books.values())), event, allowed)
    known = {e.name for b in books.values() for e in b.events.values() if _is_signal(e)}
    hint = did_you_mean(
        event[:SHOWN_MAX], sorted(n for n in known if allowed is None or n in allowed)
    )
    message = f"no rulebook declares a signal `{shortened(event, SHOWN_MAX)}` ({_names(books)})"
    raise InputError([Problem("unknown-signal", message, word_place("EVENT"), hint)])


def make_signals(
    books: Books,
    event: str,
    fields: Mapping[str, Any],
    signal_id: str | None,
    received_at: int,
    *,
    text: bool = False,
) -> dict[str, Signal]:
    """A signal with one id, by rulebook. Raises InputError with all that any of them refuses."""
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
    """Its problems; where `several` have judged, each says whose it is."""
    if not several:
        return [*error.problems]
    return [replace(p, message=f"rulebook {name}: {p.message}") for p in error.problems]


def heard_in(books: Books, name: str, allowed: Container[str] | None = None) -> Heard:
    """A rule or a signal by name, of the one rulebook that has it. Raises InputError as `heard`
    does, and `which-rulebook`."""
    if len(books) == 1:
        return heard(next(iter(books.values())), name, "name", allowed)
    having = [n for n, b in books.items() if name in b.rules or _is_signal(b.events.get(name))]
    if len(having) == 1:
        return heard(books[having[0]], name, "name", allowed)
    if having:
        message = f"several rulebooks have `{name[:SHOWN_MAX]}`: {', '.join(having)}"
        hint = f"name one: &rulebook={having[0]}"
        raise InputError([Problem("which-rulebook", message, word_place("name"), hint)])
    declaring = [book for book in books.values() if name in book.events]
    if declaring:
        return heard(declaring[0], name, "name", allowed)
    known = {n for b in books.values() for n in (*b.rules, *filter(_of(b), b.events))}
    hint = did_you_mean(
        name[:SHOWN_MAX], sorted(n for n in known if allowed is None or n in allowed)
    )
    message = f"no rulebook has a rule or signal `{name[:SHOWN_MAX]}` ({_names(books)})"
    raise InputError([Problem("unknown-name", message, word_place("name"), hint)])


def _of(book: Rulebook) -> Any:
    return lambda name: _is_signal(book.events[name])


def _is_signal(event: object) -> bool:
    return isinstance(event, SignalEvent)


def _names(books: Books) -> str:
    return ", ".join(sorted(books))


def raise_signal(
    url: str,
    name: str | None,
    rulebook_file: Path | None,
    event: str,
    fields: Mapping[str, str | None],
    signal_id: str | None,
) -> dict[str, Any]:
    """Insert one explicit occurrence, unplaced (G4), into every rulebook that declares it, or into
    the one of a `name`; `rulebook_file` is registered first, and meant then.

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
