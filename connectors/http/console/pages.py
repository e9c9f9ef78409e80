"""The pages of the console: their paths, what each shows, and by what it can be filtered.

A page shows one value, which its JSON is. It computes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.engine.control.console import (
    audit,
    firings,
    overview,
    rule,
    rules,
    sources,
    stuck,
)
from tidegate.engine.control.console.listing import chosen
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import EngineError, InputError, Problem, did_you_mean, word_place
from tidegate.rules.model import Rulebook

CHOICE_MAX = 300
"""Characters of what a filter, or a column of a key, is given."""
NAME_MAX = 50
"""Characters of a filter's name that are shown."""
KEY = "key."
"""What the names of fields of a key begin with."""


@dataclass(frozen=True, slots=True)
class Told:
    """What other parts of tidegate tell, which connectors do not know. `rule`: in sentences, with
    its graph, given what each node carries. `firing`: as `why` tells it, given its rulebook, if
    known, the first digits of its id, and which rulebooks are shown. `why_not`: given a key, and
    when, if not now. `backtests`: of a folder. `report`: one of them, by its name. `changes`:
    between two texts of a rulebook, in sentences. Each raises InputError or EngineError."""

    rule: Callable[[Rulebook, str, Mapping[str, int]], dict[str, Any]]
    firing: Callable[[SqlStore, str | None, str, Collection[str]], dict[str, Any]]
    why_not: Callable[[SqlStore, Rulebook, str, Mapping[str, str], str | None], dict[str, Any]]
    backtests: Callable[[Path | None], dict[str, Any]]
    report: Callable[[Path | None, str], bytes]
    changes: Callable[[Rulebook, Rulebook], list[str]]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a page is asked of. `told`: what tells the rest. `place`: what its path names. `chosen`:
    its filters. `reports`: the folder of backtests, if any."""

    store: SqlStore
    books: Mapping[str, Rulebook]
    told: Told
    place: Mapping[str, str]
    chosen: Mapping[str, str]
    reports: Path | None = None

    @property
    def key(self) -> dict[str, str]:
        """The values of key columns among the filters."""
        given = self.chosen.items()
        return {n.removeprefix(KEY): text for n, text in given if n.startswith(KEY)}

    @property
    def book(self) -> Rulebook:
        """The rulebook that the path names. Raises EngineError."""
        name = self.place["rulebook"]
        if name not in self.books:
            hint = f"known: {', '.join(sorted(self.books))}"
            raise EngineError("no-rulebook", f"there is no rulebook `{name}`", hint)
        return self.books[name]

    @property
    def rule(self) -> str:
        """The rule that the path names. Raises EngineError, InputError."""
        name, book = self.place["rule"], self.book
        if name not in book.rules:
            message = f"the rulebook {book.name} has no rule `{name}`"
            place = word_place("RULE")
            raise InputError(
                [Problem("unknown-rule", message, place, did_you_mean(name, book.rules))]
            )
        return name


@dataclass(frozen=True, slots=True)
class Page:
    """A page. `path`: under the console's own. `filters`: the names in its query."""

    path: str
    template: str
    values: Callable[[Asked], Mapping[str, Any]]
    filters: tuple[str, ...] = ()

    def chosen(self, query: Sequence[tuple[str, str]]) -> dict[str, str]:
        """The filters of a query; empty ones are left out. Raises InputError for a name that is no
        filter of the page, or stands twice: what it asks for would be left out in silence."""
        for name, _ in query:
            if name not in self.filters and not (KEY in self.filters and name.startswith(KEY)):
                known = ", ".join(f"{KEY}COLUMN" if one == KEY else one for one in self.filters)
                raise _bad_filter(name, "this page has no filter `{}`", f"it has {known or 'none'}")
        given = {name: text.strip() for name, text in checked(query).items()}
        return {name: text for name, text in given.items() if text}


def key_in(fields: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The fields of a key, of a form or a query. Raises InputError."""
    return checked([(name, text) for name, text in fields if name.startswith(KEY)])


def checked(fields: Sequence[tuple[str, str]]) -> dict[str, str]:
    """What filters or columns of a key are given, by name. Raises InputError for a name that stands
    twice, and for a text that is too long or that no store holds: a part of it means another."""
    found: dict[str, str] = {}
    for name, text in fields:
        if name in found:
            raise _bad_filter(name, "`{}` is given twice", "give it once")
        if len(text) > CHOICE_MAX or "\0" in text:
            what = "holds a NUL" if "\0" in text else f"is longer than {CHOICE_MAX} characters"
            hint = "a command takes longer ones, `tidegate firings --key`"
            raise _bad_filter(name, f"what `{{}}` is given {what}", hint)
        found[name] = text
    return found


def _bad_filter(name: str, message: str, hint: str) -> InputError:
    said = message.format(shortened(name, NAME_MAX))
    return InputError([Problem("bad-filter", said, word_place("query"), hint)])


def _listed(of: Callable[..., Mapping[str, Any]]) -> Callable[[Asked], Mapping[str, Any]]:
    """The values of a page over all rulebooks."""
    return lambda asked: of(asked.store, asked.books, asked.store.wall(), **asked.chosen)


def _rule(asked: Asked) -> dict[str, Any]:
    name, book = asked.rule, asked.book
    figures = rule.page(asked.store, asked.books, asked.store.wall(), book.name, name)
    return {**figures, **asked.told.rule(book, name, figures["carried"])}


def _why_not(asked: Asked) -> dict[str, Any]:
    of_rule, book = asked.rule, asked.book
    keys = book.rules[of_rule].pattern.key_names
    own = {"rulebook": book.name, "rule": of_rule, "keys": keys, "answer": None}
    if not asked.key.keys() >= {*keys}:
        return own  # the form is not filled in yet
    at = asked.chosen.get("at")
    return {**own, "answer": asked.told.why_not(asked.store, book, of_rule, asked.key, at)}


def _firing(asked: Asked) -> dict[str, Any]:
    """Of the rulebooks that are shown: the store may have others."""
    some = chosen(asked.books, asked.chosen.get("rulebook"))
    name = some[0].name if len(some) == 1 else None
    return asked.told.firing(asked.store, name, asked.place["firing"], asked.books)


_FIRINGS = ("rulebook", "rule", "key", "state", "since", "until", "before")
PAGES = (
    Page("overview", "overview.html", _listed(overview.page), ("rulebook",)),
    Page("rules", "rules.html", _listed(rules.page), ("rulebook", "state", "find", "sort", "page")),
    Page("rules/{rulebook}/{rule}/why-not", "why-not.html", _why_not, (KEY, "at")),
    Page("rules/{rulebook}/{rule}", "rule.html", _rule),
    Page("firings", "firings.html", _listed(firings.page), _FIRINGS),
    Page("firings/{firing}", "firing.html", _firing, ("rulebook",)),
    Page("stuck", "stuck.html", _listed(stuck.page), ("rulebook",)),
    Page("sources", "sources.html", _listed(sources.page), ("rulebook", "sort")),
    Page("backtests", "backtests.html", lambda asked: asked.told.backtests(asked.reports)),
    Page("audit", "audit.html", _listed(audit.page), ("rulebook", "kind", "subject", "by", "page")),
)
