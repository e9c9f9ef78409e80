"""What a firing came of, and what came of it: through signals, through commits, and through rules
that use others as events. Commits are followed from one rulebook of the store to another.

Example: `paid` raises `noticed`, of which `noted` comes; `noted` writes `log`, whose rows are
events of `logged`. The causes of `noted` are `paid`, its effects `logged`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.text.layout import counted
from tidegate.engine.replay.why.model import Constituent, Entry, Link
from tidegate.engine.replay.why.neighbours import Neighbours
from tidegate.engine.replay.why.texts import events_of
from tidegate.engine.replay.why.used_rules import matching
from tidegate.engine.store.causes import OUTSIDE
from tidegate.engine.store.traces import Came, Trace, Traces, raiser_of
from tidegate.rules.analysis.graph import uses_of
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Rule, Rulebook

LINKS_MAX = 1_000
"""Firings of one kind of link that are told."""


@dataclass(slots=True)
class Links:
    """The links of one firing, one way; with notes on what is left out, and what is gone."""

    found: dict[str, Link]
    notes: list[str]
    gone: list[str]

    def add(self, links: Iterable[Link]) -> None:
        some = [*islice(links, LINKS_MAX + 1)]
        for link in some[:LINKS_MAX]:
            self.found.setdefault(link.firing_id, link)
        if len(some) > LINKS_MAX:
            note = f"more than {LINKS_MAX:,} firings by {some[0].via}: the first are listed."
            self.notes.append(note)

    def came(self, found: Came, via: str, rulebook: str | None = None) -> None:
        """Add firings that came of it. `rulebook`: whose they are, if it is another one."""
        self.add(Link(place.firing_id, place.rule, via, rulebook) for place in found.places)
        if found.unread:
            note = f"Not all firings were looked through for those by {via}: they are too large."
            self.notes.append(note)


def causes(
    traces: Traces,
    trace: Trace,
    book: Rulebook | None,
    others: Neighbours,
    constituents: Sequence[Constituent],
) -> Links:
    """What a firing came of."""
    links = Links({}, [], [])
    raised = [
        (one, raiser_of(f"{one.namespace}/{one.signal}")) for one in constituents if one.signal
    ]
    raisers = [*dict.fromkeys(raiser for _, raiser in raised if raiser)]
    later = {*raisers[LINKS_MAX:]}
    known = traces.known(raisers[:LINKS_MAX])
    for one, raiser in raised:
        if raiser is None or raiser in links.found or raiser in later:
            continue
        place = known.get(raiser)
        links.add([Link(raiser, place and place.rule, f"signal {one.event}")])
        if place is None:
            links.gone.append(f"causes.{raiser}")
    deep = trace.one.firings["depth"][0].as_py() > OUTSIDE
    commits = [*dict.fromkeys((c.table, c.version) for c in constituents)] if deep else []
    for table, version in commits[:LINKS_MAX]:
        if table is not None and version is not None:
            via = f"{table} version {version}"
            _behind(traces, (table, version), via, links)
            for other in others.of(book.tables.get(table) if book is not None else None):
                _behind(other.traces, (other.table, version), via, links, other.book.name)
    if len(raisers) > LINKS_MAX or len(commits) > LINKS_MAX:
        links.notes.append(f"It has rows of more than {LINKS_MAX:,} commits or signals of actions.")
    if book is not None and trace.place.rule in book.rules:
        used = [n for n in uses_of(book.rules[trace.place.rule], book.rules) if n in book.rules]
        arrived = {one.bucket for one in constituents}
        for name in used:
            links.add(_chained(traces, trace, name, arrived, links, later=False))
        for name in _resolved_by(book.rules[trace.place.rule]):
            links.add(_held(traces, trace, book.rules[trace.place.rule], name, later=False))
    return links


def _behind(
    traces: Traces, commit: tuple[str, int], via: str, links: Links, rulebook: str | None = None
) -> None:
    """The firings behind a commit. `rulebook`: whose they are, if it is another one."""
    for entry in traces.behind(*commit):
        ids, more = traces.firings_of(entry, LINKS_MAX)
        links.add(Link(one, entry["rule"], via, rulebook) for one in ids)
        if more:
            said = f"Entry {entry['number']}, which made {via}, was for more than"
            links.notes.append(f"{said} {LINKS_MAX:,} firings: the first are listed.")
        elif not ids:
            links.gone.append(f"causes.{entry['rule']}")


def effects(
    traces: Traces,
    trace: Trace,
    books: Collection[Rulebook],
    others: Neighbours,
    entries: Sequence[Entry],
) -> Links:
    """What came of a firing."""
    links = Links({}, [], [])
    own = trace.place.firing_id
    links.came(traces.came_of_signals(own, LINKS_MAX + 1), "its signal")
    for table, version in dict.fromkeys((e.table, e.version) for e in entries):
        if table is not None and version is not None:
            events = {name for book in books for name in events_of(book, table)}
            via = f"{table} version {version}"
            links.came(traces.came_of_commit(events, version, LINKS_MAX + 1), via)
            known = next((book.tables[table] for book in books if table in book.tables), None)
            for other in others.of(known):
                theirs = events_of(other.book, other.table)
                came = other.traces.came_of_commit(theirs, version, LINKS_MAX + 1)
                links.came(came, via, other.book.name)
    rule = trace.place.rule
    users = {
        name
        for book in books
        for name, other in book.rules.items()
        if rule in uses_of(other, book.rules)
    }
    for name in sorted(users):
        links.add(_chained(traces, trace, name, set(), links, later=True))
        user = next(book.rules[name] for book in books if name in book.rules)
        if rule in _resolved_by(user):
            links.add(_held(traces, trace, user, name, later=True))
    return links


def _resolved_by(rule: Rule) -> dict[str, None]:
    """The rules whose ends a rule names."""
    return {n.name: None for n in rule.pattern.on.walk() if isinstance(n, x.Resolved)}


def _held(traces: Traces, trace: Trace, user: Rule, rule: str, *, later: bool) -> Iterator[Link]:
    """The firing that was resolved, the last one of its key before; or (`later`) the first one of
    `rule`, which is the `user` then, that came of its end. They share no rows."""
    held = trace.place.rule if later else rule
    mine, theirs = user.pattern.key_names, user.pattern.per.get(held, ())
    if later:
        mine, theirs = theirs, mine
    own = [trace.one.firings[name][0] for name in mine]
    at, found = trace.one.firings["detected_at"][0], list[tuple[Any, str]]()
    for fired in traces.near(rule, trace.place.bucket, (), later=later)[0]:
        if {*fired.key_names} != {*theirs}:
            continue
        times = fired.firings["detected_at"]
        fits = pc.greater(times, at) if later else pc.less(times, at)
        for name, value in zip(theirs, own, strict=True):
            fits = pc.and_(fits, _equal(fired.firings[name], value))
        some = fired.some(fits)
        ids = some.hex_ids().to_pylist()
        found += zip(some.firings["detected_at"].to_pylist(), ids, strict=True)
    if found:
        _, one = min(found) if later else max(found)
        yield Link(one, rule, f"resolved {held}")


def _equal(column: pa.ChunkedArray, value: pa.Scalar) -> pa.ChunkedArray:
    """Which values of a key column are this one; null is one."""
    return pc.fill_null(pc.equal(column, value), False) if value.is_valid else pc.is_null(column)


def _chained(
    traces: Traces,
    trace: Trace,
    rule: str,
    arrived: Collection[int | None],
    links: Links,
    *,
    later: bool,
) -> Iterator[Link]:
    """The firings of a rule that uses this firing's rule (`later`), or that it uses."""
    pages, more = traces.near(rule, trace.place.bucket, arrived, later=later)
    if more:
        way = "from it on" if later else "up to it"
        links.notes.append(
            f"Rule {rule} is connected with it. Of its firings those of the next"
            f" {counted(len(pages), 'bucket')}, {way}, were looked through, and more are there."
        )
    used, user = (trace.place.rule, rule) if later else (rule, trace.place.rule)
    via = f"{used}, an event of {user}"
    for fired in pages:
        yield from (Link(one, rule, via) for one in matching(trace.one, fired, later=later))
