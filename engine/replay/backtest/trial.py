"""A backtest from what is asked for to what was found: the span, the warm-up, the runs.

Example: `bank.yaml` against `bank2.yaml`, both from March 1 on. One remembers an hour, the other a
day: both begin to look on February 28. Their firings end up in two `Backtest`s over one span.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime

import pyarrow as pa

from tidegate.engine.capture.sources import sources
from tidegate.engine.core.instants import ceil_watermark, floor_watermark
from tidegate.engine.core.ports import Analyst, Feed, Sink
from tidegate.engine.core.text import json_text
from tidegate.engine.core.values import Firings
from tidegate.engine.replay.backtest.conditions import queries_of, with_skipped
from tidegate.engine.replay.backtest.edited import Kept
from tidegate.engine.replay.backtest.found import by_rule, firings_of, shared_columns
from tidegate.engine.replay.backtest.ledger import PastLedger
from tidegate.engine.replay.backtest.model import Backtest, Span
from tidegate.engine.replay.backtest.notes import notes
from tidegate.engine.replay.backtest.parked import rules_found
from tidegate.engine.replay.backtest.past import HistoryError, Listing, Stored
from tidegate.engine.replay.backtest.run import Past, PortsOf, Run
from tidegate.engine.replay.backtest.span import End, check_order, ends_of, known_instant
from tidegate.engine.replay.backtest.switches import switchings
from tidegate.engine.replay.backtest.warm_up import memory
from tidegate.engine.store.placed import Placed
from tidegate.rules.analysis.graph import lateness_micros
from tidegate.rules.errors import InputError, Problem, word_place
from tidegate.rules.model import Rulebook

Progress = Callable[[int, int], None]
"""Called with how many commits are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a backtest is asked for. `rule`: the only one that is shown. `warm_up`: microseconds;
    None: as long as the rules remember. `skip`: queries are not asked."""

    begin: str | datetime
    end: str | datetime | None = None
    rule: str | None = None
    warm_up: int | None = None
    skip: bool = False


@dataclass(frozen=True, slots=True)
class Tables:
    """One rulebook over its tables, called `label`. `store`: what a real store knows of the past.
    `names`: by table, what the store's rulebook calls it; others are not known to the store.
    `sink`: evaluates the fields of signals."""

    label: str
    book: Rulebook
    schemas: Mapping[str, pa.Schema]
    analyst: Analyst
    feed: Feed
    sink: Callable[[PastLedger], Sink]
    ports_of: PortsOf
    store: Placed | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    def one_state(self) -> AbstractContextManager[None]:
        """What is read of the store meanwhile is of one state: an engine may write to it."""
        return nullcontext() if self.store is None else self.store.database.snapshot()

    def stored(self, table: str) -> Stored:
        """The instants of the versions of a table that the store knows."""
        name = self.names.get(table)
        return self.store.instants(name) if self.store is not None and name is not None else {}

    def listings(self, after: int) -> dict[str, Listing]:
        """What happened after a watermark, by table. Raises HistoryError for the table that begins
        last."""
        found, short = {}, list[HistoryError]()
        for name in sources(self.book).tables:
            table, stored = self.book.tables[name], self.stored(name)
            try:
                found[name] = Listing(self.feed, table, after, stored)
            except HistoryError as error:
                short.append(error)
        if short:
            raise max(short, key=lambda error: error.earliest)
        return found

    def past(self, listings: Mapping[str, Listing], before: int, end: int) -> Past:
        """What happened in (before, end]."""
        last = ceil_watermark(end)
        tables = {name: listing.until(last) for name, listing in listings.items()}
        if self.store is None:
            return Past(before, last, tables)
        reset, kept = self.store.resets(before), Kept(self.book)
        signals = kept.signals(self.store.signals(before, last))
        switched = switchings(kept.switches(self.store.switches()), before, last)
        return Past(
            before,
            last,
            tables,
            signals,
            self.store.raised_later(last),
            switched,
            self.store.switched_by(before, last),
            frozenset(name for name in tables if self.names.get(name) in reset),
            kept.left_out,
            self.store.parkings(before, last),
            self.store.reloads(before, last),
        )


def tried(tables: Sequence[Tables], asked: Asked, now: int, progress: Progress) -> Backtest:
    """What the first rulebook would have done; `against` has what the second one would, if there is
    one. `now`: the clock. Raises InputError, EngineError."""
    first, ends = tables[0], ends_of(asked.begin, asked.end, tables[0].book, now)
    memories = [memory(one.book) for one in tables]
    wanted = max(micros for micros, _ in memories) if asked.warm_up is None else asked.warm_up
    warm_up, known = wanted, _known(first, ends, asked)
    while True:
        try:
            before = floor_watermark(known.begin - warm_up - 1)
            with first.one_state():
                listings = [one.listings(before) for one in tables]
                span = _placed(known, ends, listings[0])
                pasts = [
                    one.past(listed, before, _until(one.book, span, now))
                    for one, listed in zip(tables, listings, strict=True)
                ]
            runs = _runs(tables, pasts, progress)
            break
        except HistoryError as error:
            left = known.begin - error.earliest
            if asked.warm_up is not None or not 0 <= left < warm_up:
                raise _too_early(error, asked.warm_up or 0) from error
            warm_up = left
    whole = [
        _fired(one.book, run, span, skip=asked.skip) for one, run in zip(tables, runs, strict=True)
    ]
    columns = shared_columns(whole)
    found = []
    for one, run, fired, (_, endless) in zip(tables, runs, whole, memories, strict=True):
        shown = (
            {asked.rule} if asked.rule else {r.name for r in one.book.rules.values() if r.enabled}
        )
        said = notes(one.book, run, endless, warm_up=warm_up, asked=wanted, stored=bool(one.store))
        rules = rules_found(one.book, fired, run.ledger.parked, shown)
        own = {rule: firings for rule, firings in fired.items() if rule in shown}
        table = firings_of(own, columns)
        rows = run.ledger.rows
        name, label = one.book.name, one.label
        found.append(Backtest(name, label, span, rules, table, warm_up, rows, said, own))
    return found[0] if len(found) == 1 else replace(found[0], against=found[1])


def _known(tables: Tables, ends: tuple[End, End], asked: Asked) -> Span:
    """The span by what is known of versions before the tables are listed: they may stand a little
    later."""

    def instant(end: End, option: str) -> int:
        if isinstance(end, int):
            return end
        return known_instant(tables.feed, tables.book, end, option, tables.stored(end.table))

    try:
        begin, end = instant(ends[0], "--from"), instant(ends[1], "--to")
        return Span(begin, end, tables.book.timezone)
    except HistoryError as error:
        raise _too_early(error, asked.warm_up or 0) from error


def _placed(known: Span, ends: tuple[End, End], listings: Mapping[str, Listing]) -> Span:
    """The span by where the named versions stand: both are in it."""
    begin, end = (
        instant if isinstance(end, int) else listings[end.table].instant(end.version)
        for end, instant in zip(ends, (known.begin, known.end), strict=True)
    )
    check_order(begin, end)
    return Span(begin, end, known.zone)


def _too_early(error: HistoryError, warm_up: int) -> InputError:
    """`warm_up`: that was asked for."""
    hint = f"the earliest possible: --from {json_text.instant(error.earliest + warm_up)}"
    hint += ", with this --warm-up" if warm_up else ""
    return InputError([Problem(error.code, error.message, word_place("--from"), hint)])


def _runs(tables: Sequence[Tables], pasts: Sequence[Past], progress: Progress) -> list[Run]:
    every = sum(past.commits for past in pasts)
    done, runs = 0, []
    for one, past in zip(tables, pasts, strict=True):
        run = Run(one.book, one.schemas, one.analyst, past)

        def told(watermark: int, past: Past = past, before: int = done) -> None:
            progress(before + past.until(watermark), every)

        run.take(one.feed, one.sink(run.ledger), one.ports_of, told)
        runs.append(run)
        done += past.commits
    return runs


def _until(book: Rulebook, span: Span, now: int) -> int:
    """Up to when the past is shown: what ends in the span is detected only when late rows of its
    event types are not waited for any more."""
    late = max(lateness_micros(book).values(), default=0)
    return max(span.end, min(now, span.end + late))


def _fired(book: Rulebook, run: Run, span: Span, *, skip: bool) -> dict[str, Firings]:
    found = by_rule(run.ledger.store.stored, span.begin, ceil_watermark(span.end))
    queries = queries_of(book) if skip else ()
    return {rule: with_skipped(fired, queries) for rule, fired in found.items()}
