"""Firings, entries, dead letters and rejected rows of a store, as commands show them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from tidegate.engine.control.rulebooks import opened, unknown
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.times import of_option
from tidegate.engine.store.totals import Total
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.model import Rulebook

_ID = re.compile("[0-9a-f]{6,32}")
_Found = TypeVar("_Found")


class InZone(NamedTuple, Generic[_Found]):
    """What a store has, its instants in UTC; and the rulebook's zone, in which people read them."""

    found: _Found
    zone: str


@dataclass(frozen=True, slots=True)
class FiringFilter:
    """Which firings to list. None: no restriction.

    rule: of one rule. key: with these values of key columns, as texts. state: with an entry in this
    state; `failed`: whose condition does not hold; `damped`. since, until: that ended between two
    instants, as `of_question` reads them in the rulebook's zone. before: older than the firing
    whose id begins so. limit: the newest.
    """

    rule: str | None = None
    key: Mapping[str, str] = field(default_factory=dict)
    state: str | None = None
    since: str | None = None
    until: str | None = None
    before: str | None = None
    limit: int | None = None

    @property
    def narrow(self) -> bool:
        """Whether there is a restriction besides the rule."""
        bounds = (self.state, self.since, self.until, self.before)
        return bool(self.key) or any(bound is not None for bound in bounds)

    def matches(self, firing: Mapping[str, Any]) -> bool:
        """Whether a firing has the key and the state. `firing`: as it is listed."""
        key = {name: json_text.shown(value) for name, value in firing["key"].items()}
        states = {entry["state"] for entry in firing["entries"]}
        states |= ({"failed"} & {firing["condition"]}) | ({"damped"} & firing.keys())
        return self.key.items() <= key.items() and (self.state is None or self.state in states)

    def check(self, book: Rulebook) -> None:
        """Raises InputError for a rule or key column that the rulebook lacks, and for a bad id."""
        if self.rule is not None and self.rule not in book.rules:
            raise InputError([unknown("rules", self.rule, book, "--rule")])
        rules = [r for r in book.rules.values() if self.rule in (None, r.name)]
        names = {name for rule in rules for name in rule.pattern.key_names}
        for name in self.key.keys() - names:
            hint = did_you_mean(name, names) or f"they have {', '.join(sorted(names)) or 'none'}"
            message = f"no such rule has the key column `{name}`"
            raise InputError([Problem("unknown-key", message, word_place("--key"), hint)])
        if self.before is not None and not _ID.fullmatch(self.before):
            hint = "6 to 32 hexadecimal digits, as `tidegate firings` prints them"
            message = f"{self.before!r} is no firing's id"
            raise InputError([Problem("bad-firing", message, word_place("--before"), hint)])


def list_firings(
    url: str,
    name: str | None,
    chosen: FiringFilter = FiringFilter(),
) -> Iterator[Mapping[str, Any]]:
    """`tidegate firings`: a mapping for each, with the fields of `language.md` 3."""
    with opened(url, name) as (store, book):
        chosen.check(book)
        now = store.wall()
        yield from store.of(book.name).firings.listed(
            rule=chosen.rule,
            since=of_option(chosen.since, "--since", book.timezone, now),
            until=of_option(chosen.until, "--until", book.timezone, now),
            before=chosen.before,
            limit=chosen.limit,
            match=chosen.matches if chosen.key or chosen.state else None,
        )


def count_detections(url: str, name: str | None, rule: str | None) -> InZone[Total]:
    """How many detections fired, failed, were damped or died: of all rules or of one."""
    with opened(url, name) as (store, book):
        return InZone(store.of(book.name).firings.totals(rule), book.timezone)


def show_entry(url: str, name: str | None, number: int) -> InZone[dict[str, Any]]:
    """`tidegate firings --entry`: an entry with the full text of its error."""
    with opened(url, name) as (store, book):
        found = store.of(book.name).firings.entry(number, book.rules)
    if found is None:
        raise InputError([no_entry(number, "--entry")])
    return InZone(found, book.timezone)


def list_rejected(url: str, name: str | None, limit: int, *, whole: bool) -> list[dict[str, Any]]:
    """`tidegate rejected`: the newest rows and signals that could not become occurrences."""
    with opened(url, name) as (store, book):
        return store.of(book.name).rejections.newest(limit, whole=whole)


def list_dead(
    url: str, name: str | None, rule: str | None, limit: int
) -> InZone[list[dict[str, Any]]]:
    """`tidegate dead`: the newest entries that are no longer tried."""
    with opened(url, name) as (store, book):
        found = store.of(book.name).dead_letters.newest(rule, limit, book.rules)
        if not found:
            check_rule(book, rule)
        return InZone(found, book.timezone)


def check_rule(book: Rulebook, rule: str | None) -> None:
    if rule is not None and rule not in book.rules:
        raise InputError([unknown("rules", rule, book, "RULE")])


def no_entry(number: int, word: str = "ENTRY") -> Problem:
    message = f"there is no entry {number} (any more)"
    hint = "`tidegate status` lists those that are not finished"
    return Problem("no-entry", message, word_place(word), hint)
