"""Signals for every rulebook of a store that declares them, judged by each declaration."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any

from tidegate.engine.control.heard import heard
from tidegate.engine.control.signals import declared_signal, make_signal
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.core.types.fields import SHOWN_MAX
from tidegate.engine.core.values import Signal
from tidegate.engine.store.tail import Heard
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.model import Rulebook, SignalEvent

Books = Mapping[str, Rulebook]  # by name


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
