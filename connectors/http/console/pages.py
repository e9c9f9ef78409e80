"""The pages of the console: their paths, what each shows, and by what it can be filtered.

A page shows one value, which its JSON is. It computes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import EngineError, InputError, Problem, did_you_mean, word_place
from tidegate.rules.model import Rulebook

CHOICE_MAX = 300
"""Characters of what a filter is given."""
KEY = "key."
"""What the names of fields of a key begin with."""


@dataclass(frozen=True, slots=True)
class Told:
    """What other parts of tidegate tell, which connectors do not know. `rule`: in sentences, with
    its graph, given what each node carries. `firing`: as `why` tells it, given its rulebook, if
    known, and the first digits of its id. `why_not`: given a key, and when, if not now.
    `backtests`: of a folder. `report`: one of them, by its name. `changes`: between two texts of a
    rulebook, in sentences. Each raises InputError or EngineError."""

    rule: Callable[[Rulebook, str, Mapping[str, int]], dict[str, Any]]
    firing: Callable[[SqlStore, str | None, str], dict[str, Any]]
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

    def chosen(self, query: Mapping[str, str]) -> dict[str, str]:
        """The filters of a query. Others, and empty ones, are left out."""
        wanted = [name for name in query if name in self.filters or self._of_key(name)]
        given = {name: query[name].strip()[:CHOICE_MAX] for name in wanted}
        return {name: text for name, text in given.items() if text}

    def _of_key(self, name: str) -> bool:
        return KEY in self.filters and name.startswith(KEY)


def key_in(fields: Mapping[str, str]) -> dict[str, str]:
    """The fields of a key, of a form or a query."""
    return {name: fields[name][:CHOICE_MAX] for name in fields if name.startswith(KEY)}


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
    return asked.told.firing(asked.store, asked.chosen.get("rulebook"), asked.place["firing"])


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
