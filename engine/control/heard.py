"""What a program may wait for: rules, and signals; the rest no store keeps."""

from __future__ import annotations

from collections.abc import Container

from tidegate.engine.store.tail import Heard
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.model import Rulebook, SignalEvent

SHOWN_MAX = 100


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
