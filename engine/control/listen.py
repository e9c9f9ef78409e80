"""What a program can listen to: the firings of a rule, or the occurrences of a signal, as they
come."""

from __future__ import annotations

import time
from collections.abc import Container, Iterator
from functools import partial

from tidegate.engine.control.rulebooks import opened
from tidegate.engine.control.signals import Books, meant, signals_of
from tidegate.engine.core.outage import Outages
from tidegate.engine.core.types.fields import SHOWN_MAX
from tidegate.engine.store.tail import Heard, Item, Tail
from tidegate.rules.errors import InputError, Problem, word_place
from tidegate.rules.model import SignalEvent

ITEMS = 1_000  # at a time


def heard(books: Books, name: str, word: str, allowed: Container[str] | None = None) -> Heard:
    """What to listen to: the firings of a rule, or the occurrences of a signal, in the one rulebook
    that has it. `word`: the argument that names it.

    Raises InputError `which-rulebook`, `not-kept` or `unknown-name`; the hint names only what is
    `allowed`.
    """
    having = [
        book
        for book in books.values()
        if name in book.rules or isinstance(book.events.get(name), SignalEvent)
    ]
    place = word_place(word)
    if len(having) == 1:
        (book,) = having
        settings, of_rule = book.settings, name in book.rules
        days = settings.firings_retention_days if of_rule else settings.history_retention_days
        return Heard(book.name, name, not of_rule, days)
    if having:
        names = ", ".join(book.name for book in having)
        message = f"several rulebooks have `{name[:SHOWN_MAX]}`: {names}"
        hint = f"name one: &rulebook={having[0].name}"
        raise InputError([Problem("which-rulebook", message, place, hint)])
    if any(name in book.events for book in books.values()):
        message = f"occurrences of `{name}` are kept in no store"
        hint = f"declare a rule and wait for that: rules: {{{name}_seen: {{on: {name}}}}}"
        raise InputError([Problem("not-kept", message, place, hint)])
    message = f"no rulebook has a rule or signal `{name[:SHOWN_MAX]}` ({', '.join(sorted(books))})"
    if len(books) == 1:
        message = f"the rulebook {next(iter(books))} has no rule or signal `{name[:SHOWN_MAX]}`"
    known = signals_of(books).union(*(book.rules for book in books.values()))
    raise InputError([Problem("unknown-name", message, place, meant(name, known, allowed))])


def listening(
    url: str,
    rulebook: str | None,
    name: str,
    since: str | None,
    poll_seconds: float,
    *,
    once: bool,
) -> Iterator[Item]:
    """`tidegate listen`: (position, item) for each firing of a rule, or each occurrence of a
    signal, after a position. With `once` it ends after those that are there. Raises InputError for
    a name that no store keeps items of, EngineError for a position that is not valid any more."""
    with opened(url, rulebook) as (store, book):
        tail = Tail(store, heard({book.name: book}, name, "RULE|SIGNAL"), since)
        seconds_max = book.settings.outage_max_seconds
        through = Outages(seconds_max, time.sleep, lambda: None, lambda: False).through
        while True:
            items = through(partial(tail.take, ITEMS))
            yield from items
            if not items and once:
                return
            if not items:
                time.sleep(poll_seconds)
