"""Firings, the newest first, and as many as are asked for further back."""

from __future__ import annotations

from typing import Any, TypedDict

from tidegate.engine.control.console.listing import Books, check_choice, chosen, zones
from tidegate.engine.control.firings import FiringFilter
from tidegate.engine.core.lifecycle import FIRING_STATES
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.times import of_option, of_text
from tidegate.engine.store import SqlStore
from tidegate.engine.store.firings import Newest, Wanted
from tidegate.rules.errors import InputError, Problem, word_place
from tidegate.rules.model import Rulebook

SHOWN = 50
LOOK_SECONDS = 0.25
"""For so long firings are looked for that a filter lets through; the next page looks on."""


class Page(TypedDict):
    """Firings, newest first. `states`: by which they can be filtered. Each row is a line of
    `firings --json`, with its `rulebook`. `before`: the id before which the next page goes on,
    None: this is the last one, or several rulebooks are listed. `looked_until`: how far back was
    looked, where a filter lets few through: the next page looks on from there. None: as far as was
    asked."""

    zones: dict[str, str]
    states: tuple[str, ...]
    rows: list[dict[str, Any]]
    before: str | None
    looked_until: str | None


def page(
    store: SqlStore,
    books: Books,
    now: int,
    rulebook: str | None = None,
    rule: str | None = None,
    key: str | None = None,
    state: str | None = None,
    since: str | None = None,
    until: str | None = None,
    before: str | None = None,
) -> Page:
    """The firings that a filter lets through (`FiringFilter`). `key`: as `account_id=7,atm_id=2`.
    Raises EngineError, InputError."""
    check_choice("state", state, FIRING_STATES)
    some = [book for book in chosen(books, rulebook) if rule is None or rule in book.rules]
    if before is not None and len(some) > 1:
        message = "an id is of one rulebook, and several are listed"
        raise InputError([Problem("several-rulebooks", message, word_place("before"), "name one")])
    wanted = FiringFilter(rule, pairs(key), state, since, until, before, SHOWN)
    rows: list[dict[str, Any]] = []
    more: list[Newest] = []
    shown = some or chosen(books, rulebook)
    for book in shown:
        wanted.check(book)
        found = _of(store, book, wanted, now, LOOK_SECONDS / len(shown))
        rows += [{"rulebook": book.name, **row} for row in reversed(found.firings)]
        more.append(found)
    rows.sort(key=lambda row: of_text(row["end"]), reverse=True)
    looked = [of_text(found.looked_until) for found in more if found.looked_until]
    return {
        "zones": zones(books),
        "states": FIRING_STATES,
        "rows": rows[:SHOWN],
        "before": more[0].before if len(more) == 1 else None,
        "looked_until": json_text.instant(max(looked, default=None)),
    }


def pairs(key: str | None) -> dict[str, str]:
    """`account_id=7,atm_id=2` by column. Raises InputError."""
    found = {}
    for part in (key or "").split(","):
        name, equals, text = part.partition("=")
        if part.strip():
            if not equals:
                message = f"{part!r} is no COLUMN=VALUE"
                raise InputError([Problem("bad-key", message, word_place("key"), "as id=7")])
            found[name.strip()] = text.strip()
    return found


def _of(store: SqlStore, book: Rulebook, wanted: FiringFilter, now: int, seconds: float) -> Newest:
    of_store = Wanted(
        rule=wanted.rule,
        since=of_option(wanted.since, "since", book.timezone, now),
        until=of_option(wanted.until, "until", book.timezone, now),
        match=wanted.matches if wanted.key or wanted.state else None,
        limit=wanted.limit,
        before_id=wanted.before,
    )
    return store.of(book.name).firings.newest(of_store, seconds)
