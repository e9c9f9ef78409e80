"""What a firing came of, and what came of it: through signals, through commits, and through rules
that use others as events.

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

from tidegate.engine.core.parameters import ENGINE_COLUMNS
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import Firings
from tidegate.engine.replay.why.model import Constituent, Entry, Link
from tidegate.engine.replay.why.texts import events_of
from tidegate.engine.store.causes import OUTSIDE
from tidegate.engine.store.traces import Place, Trace, Traces, raiser_of
from tidegate.rules.analysis.graph import uses_of
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Rule, Rulebook

LINKS_MAX = 1_000
"""Firings of one kind of link that are told."""
_Identity = tuple[Any, ...]


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


def causes(
    traces: Traces, trace: Trace, book: Rulebook | None, constituents: Sequence[Constituent]
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
            for entry in traces.behind(table, version):
                ids, more = traces.firings_of(entry, LINKS_MAX)
                via = f"{table} version {version}"
                links.add(Link(one, entry["rule"], via) for one in ids)
                if more:
                    said = f"Entry {entry['number']}, which made {via}, was for more than"
                    links.notes.append(f"{said} {LINKS_MAX:,} firings: the first are listed.")
                elif not ids:
                    links.gone.append(f"causes.{entry['rule']}")
    if len(raisers) > LINKS_MAX or len(commits) > LINKS_MAX:
        links.notes.append(f"It has rows of more than {LINKS_MAX:,} commits or signals of actions.")
    if book is not None and trace.place.rule in book.rules:
        used = [n for n in uses_of(book.rules[trace.place.rule], book.rules) if n in book.rules]
        arrived = {one.bucket for one in constituents if one.bucket is not None}
        for name in used:
            links.add(_chained(traces, trace, name, arrived, links, later=False))
        for name in _resolved_by(book.rules[trace.place.rule]):
            links.add(_held(traces, trace, book.rules[trace.place.rule], name, later=False))
    return links


def effects(
    traces: Traces, trace: Trace, books: Collection[Rulebook], entries: Sequence[Entry]
) -> Links:
    """What came of a firing."""
    links = Links({}, [], [])
    own = trace.place.firing_id
    links.add(_linked(traces.came_of_signals(own), "its signal"))
    for table, version in dict.fromkeys((e.table, e.version) for e in entries):
        if table is not None and version is not None:
            events = {name for book in books for name in events_of(book, table)}
            via = f"{table} version {version}"
            links.add(_linked(traces.came_of_commit(events, version), via))
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
    for _, fired in traces.near(rule, trace.place.bucket, (), later=later)[0]:
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


def _linked(places: Iterable[Place], via: str) -> Iterator[Link]:
    return (Link(place.firing_id, place.rule, via) for place in places)


def _chained(
    traces: Traces,
    trace: Trace,
    rule: str,
    exact: Collection[int],
    links: Links,
    *,
    later: bool,
) -> Iterator[Link]:
    """The firings of a rule that uses this firing's rule (`later`), or that it uses: all rows of
    the one are rows of the other, too."""
    pages, more = traces.near(rule, trace.place.bucket, exact, later=later)
    found = False
    for _, fired in pages:
        for one in _matching(trace.one, fired, later=later):
            found = True
            via = f"rule {trace.place.rule}" if later else f"rule {rule}"
            yield Link(one, rule, f"{via}, used as an event")
    if more and not found:
        way = "after" if later else "before"
        links.notes.append(
            f"Rule {rule} is connected with it; its buckets next {way} it were looked through."
        )


def _matching(own: Firings, others: Firings, *, later: bool) -> Iterator[str]:
    mine = [row for row in _rows(own) if row[0][0] is not None]
    start, end = own.firings["started_at"][0], own.firings["detected_at"][0]
    begins, ends_at = others.firings["started_at"], others.firings["detected_at"]
    if later:
        inside = pc.and_(pc.less_equal(begins, start), pc.greater_equal(ends_at, end))
    else:
        inside = pc.and_(pc.greater_equal(begins, start), pc.less_equal(ends_at, end))
    if not pc.any(inside).as_py():
        return
    others = others.some(inside)
    ids = others.hex_ids().to_pylist()
    by_firing: dict[str, list[tuple[_Identity, dict[str, Any]]]] = {}
    for one, row in zip(others.relation["firing_id"].to_pylist(), _rows(others), strict=True):
        if row[0][0] is not None:
            by_firing.setdefault(one, []).append(row)
    for one in ids:
        theirs = by_firing.get(one, [])
        parts, whole = (mine, theirs) if later else (theirs, mine)
        if parts and all(any(_same(p, w) for w in whole) for p in parts):
            yield one


def _rows(fired: Firings) -> list[tuple[_Identity, dict[str, Any]]]:
    """Each row of a relation: where it came from, and its parameters."""
    relation, sources = fired.relation, fired.sources
    nothing = pa.nulls(len(relation))
    versions = (nothing if sources is None else sources["version"]).to_pylist()
    signals = (nothing if sources is None else sources["signal"]).to_pylist()
    events = relation["event_type"].to_pylist()
    times = relation["occurred_at"].cast(pa.int64()).to_pylist()
    names = [name for name in relation.column_names if name not in ENGINE_COLUMNS]
    parameters = python_rows(relation.select(names))
    origins = zip(events, times, versions, signals, strict=True)
    return [*zip(origins, parameters, strict=True)]


def _same(part: tuple[_Identity, dict[str, Any]], other: tuple[_Identity, dict[str, Any]]) -> bool:
    """Whether two rows are one occurrence, as far as both know its parameters."""
    if part[0] != other[0]:
        return False
    shared = part[1].keys() & other[1].keys()
    return all(
        part[1][name] == other[1][name]
        for name in shared
        if part[1][name] is not None and other[1][name] is not None
    )
