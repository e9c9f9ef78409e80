"""A backtest from what is asked for to what was found: the span, the warm-up, the runs.

Example: `bank.yaml` against `bank2.yaml`, both from March 1 on. One remembers an hour, the other a
day: both begin to look on February 28. Their firings end up in two `Backtest`s over one span.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import pyarrow as pa

from tidegate.engine.capture.sources import sources
from tidegate.engine.core.instants import ceil_watermark, floor_watermark
from tidegate.engine.core.ports import Analyst, Feed, Sink
from tidegate.engine.core.text import json_text
from tidegate.engine.core.values import Firings
from tidegate.engine.replay.backtest.conditions import queries_of, with_skipped
from tidegate.engine.replay.backtest.found import by_rule, firings_of, shared_columns
from tidegate.engine.replay.backtest.ledger import PastLedger
from tidegate.engine.replay.backtest.model import Backtest, Span
from tidegate.engine.replay.backtest.notes import notes
from tidegate.engine.replay.backtest.parked import rules_found
from tidegate.engine.replay.backtest.past import HistoryError, Stored, table_past
from tidegate.engine.replay.backtest.run import Past, PortsOf, Run
from tidegate.engine.replay.backtest.span import instant_of, version_instant
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
    """One rulebook over its tables, called `label`. `store`: what a real store knows of its past.
    `sink`: evaluates the fields of signals."""

    label: str
    book: Rulebook
    schemas: Mapping[str, pa.Schema]
    analyst: Analyst
    feed: Feed
    sink: Callable[[PastLedger], Sink]
    ports_of: PortsOf
    store: Placed | None = None

    @property
    def stored(self) -> Mapping[str, Stored]:
        """By table, the instants of the versions that the store knows."""
        known = self.store
        return {t: known.instants(t) if known else {} for t in sources(self.book).tables}

    def past(self, begin: int, end: int) -> Past:
        """What happened in [begin, end]. Raises HistoryError for the table that begins last."""
        before, last = floor_watermark(begin - 1), ceil_watermark(end)
        tables, short = {}, list[HistoryError]()
        for name, stored in self.stored.items():
            try:
                tables[name] = table_past(self.feed, self.book.tables[name], before, last, stored)
            except HistoryError as error:
                short.append(error)
        if short:
            raise max(short, key=lambda error: error.earliest)
        if self.store is None:
            return Past(before, last, tables)
        signals = self.store.signals(before, last)
        return Past(before, last, tables, signals, self.store.signal_keys(last))


def tried(tables: Sequence[Tables], asked: Asked, now: int, progress: Progress) -> Backtest:
    """What the first rulebook would have done; `against` has what the second one would, if there is
    one. `now`: the clock. Raises InputError, EngineError."""
    span = _span(tables[0], asked, now)
    memories = [memory(one.book) for one in tables]
    wanted = max(micros for micros, _ in memories) if asked.warm_up is None else asked.warm_up
    warm_up = wanted
    while True:
        try:
            ends = [_until(one.book, span, now) for one in tables]
            pasts = [
                one.past(span.begin - warm_up, end) for one, end in zip(tables, ends, strict=True)
            ]
            runs = _runs(tables, pasts, progress)
            break
        except HistoryError as error:
            left = span.begin - error.earliest
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


def _span(tables: Tables, asked: Asked, now: int) -> Span:
    book = tables.book
    look_up = version_instant(tables.feed, book, tables.stored)
    instant = partial(instant_of, book=book, now=now, version_instant=look_up)
    try:
        begin = instant(asked.begin, "--from")
        end = now if asked.end is None else min(now, instant(asked.end, "--to"))
    except HistoryError as error:
        raise _too_early(error, asked.warm_up or 0) from error
    if end < begin:
        message = f"the span ends at {json_text.instant(end)}, before it begins"
        hint = f"it begins at {json_text.instant(begin)}"
        raise InputError([Problem("span", message, word_place("--to"), hint)])
    return Span(begin, end, book.timezone)


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
