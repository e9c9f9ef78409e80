"""Runs a rulebook over the past of its tables: the loop of `run`, over a store in memory.

Example: from March 1 to March 31, with a day of warm-up. The rules are active from February 28 on.
The clock is set to the end, and the loop takes bucket after bucket. Where a rule raises a signal
that another one listens to, the clock is set back to that instant, and goes on from there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tidegate.engine.core.instants import MILLISECOND, after_watermark
from tidegate.engine.core.ports import Analyst, Feed, Sink
from tidegate.engine.core.values import Signal
from tidegate.engine.loop.loop import Loop
from tidegate.engine.loop.ports import Ports
from tidegate.engine.replay.backtest.dry import DryActions, dry_book, effects
from tidegate.engine.replay.backtest.edited import NOTHING, LeftOut
from tidegate.engine.replay.backtest.ledger import CutError, Key, PastLedger
from tidegate.engine.replay.backtest.past import PastFeed, TablePast
from tidegate.engine.replay.backtest.switches import Switching
from tidegate.engine.replay.memory.clock import VirtualClock
from tidegate.engine.replay.memory.opening import Buckets, Opening
from tidegate.engine.replay.memory.store import MemoryStore
from tidegate.engine.store.placed import Parking
from tidegate.rules.analysis.graph import lateness_micros
from tidegate.rules.model import Rulebook

Progress = Callable[[int], None]
"""Called with the watermark after each bucket."""
PortsOf = Callable[[Feed, PastLedger, VirtualClock], Ports]
"""From the feed, the ledger and the clock of a backtest to the ports of its loop."""


@dataclass(frozen=True, slots=True)
class Past:
    """What happened. `begin`: the last watermark before it. `end`: its last one. `tables`: those
    that raise events. `signals`: at their instants. `known`: ids of signals that came later.
    `switchings`: what enabled and disabled rules. `switched_by`: the firings whose actions did.
    `reset`: the tables that were reset. `left_out`: what a store has of actions that the rulebook
    does not have. `parkings`: when limits had parked rules. `reloads`: other versions of the
    rulebook that ran, each with the watermark behind which it did."""

    begin: int
    end: int
    tables: Mapping[str, TablePast]
    signals: Sequence[Signal] = ()
    known: Collection[Key] = ()
    switchings: Sequence[Switching] = ()
    switched_by: Collection[tuple[str, str, str]] = ()
    reset: Collection[str] = ()
    left_out: LeftOut = NOTHING
    parkings: Sequence[Parking] = ()
    reloads: Sequence[tuple[int, int]] = ()

    @property
    def commits(self) -> int:
        """How many there are."""
        return sum(len(table.commits) for table in self.tables.values())

    def until(self, instant: int) -> int:
        """How many of them stand at or before an instant."""
        return sum(table.until(instant) for table in self.tables.values())


class StandingClock(VirtualClock):
    """A clock that actions do not move."""

    def tick(self) -> None:
        """Nothing takes time."""


@dataclass(slots=True)
class Run:
    """A backtest that is opened: raises InputError with what is wrong with the rulebook over tables
    of these `schemas`. `take` runs it, once."""

    book: Rulebook
    schemas: Mapping[str, pa.Schema]
    analyst: Analyst
    past: Past
    ledger: PastLedger = field(init=False)
    _opening: Opening = field(init=False)
    _clock: StandingClock = field(init=False)

    def __post_init__(self) -> None:
        self._opening = Opening(dry_book(self.book), self.schemas, self.analyst)
        self._clock = StandingClock(self.past.begin)
        store, past = MemoryStore(self._clock), self.past
        behind = lateness_micros(self.book)
        noticed = effects(self.book)
        self.ledger = PastLedger(store, noticed, past.signals, past.known, past.switched_by, behind)

    def take(self, feed: Feed, sink: Sink, ports_of: PortsOf, progress: Progress) -> None:
        """Take all buckets. What they found is in the ledger. `feed`: reads the tables; `sink`:
        evaluates the fields of signals. Raises HistoryError, EngineError."""
        heard: Buckets = {}
        shown = PastFeed(feed, self.past.tables, self._clock)
        loop = self._loop(ports_of(shown, self.ledger, self._clock), sink, heard)
        clock, end = self._clock, self.past.end
        switchings = deque(self.past.switchings)
        step = end - clock.at  # of the clock: so that few buckets are cut
        while True:
            self.ledger.show(clock.at)
            try:
                report = loop.bucket()
            except CutError as cut:
                step = max(2 * (cut.watermark - (loop.state.watermark or 0)), MILLISECOND)
                clock.at = cut.watermark
                continue
            heard.clear()
            stop = switchings[0].watermark if switchings else end
            if report is not None:
                progress(report.watermark)
            elif clock.at >= stop and switchings:
                self._switch(loop, switchings.popleft())
            elif clock.at >= end:
                return
            else:
                clock.at = min(stop, clock.at + step)
                step *= 2

    def _switch(self, loop: Loop, switching: Switching) -> None:
        """Switch rules in a bucket that holds nothing else: all before it is taken."""
        at = self._clock.at
        self._clock.at = max(at, switching.asked_at)  # no request is later than the clock
        self.ledger.switch(switching.controls)
        loop.bucket(until=at)
        self._clock.at = at

    def _loop(self, ports: Ports, sink: Sink, heard: Buckets) -> Loop:
        """A loop whose rules are active from the first instant of the past on."""
        cursors = {name: past.cursor for name, past in self.past.tables.items()}
        begin, store = after_watermark(self.past.begin), self.ledger.store
        return self._opening.over(
            begin, ports, sink, cursors, store, self._clock, DryActions(), heard
        )
