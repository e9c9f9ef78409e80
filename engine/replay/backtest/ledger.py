"""The store of a backtest, in memory. Nothing is written anywhere else.

A wide bucket may hold what a firing in its middle causes: a signal 1 ms later, a rule that is
switched off. Or a limit parks a rule, which stands still from the bucket's beginning on. Such a
bucket is not kept: `CutError` says up to where another one is to be taken.

Example: a bucket holds the commits of 9:00 to 10:00, and rule `warn` raises the signal `hot` at
9:20. The bucket is taken again up to 9:20; then the signal stands at 9:20:00.001.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.capture.plan import half
from tidegate.engine.core.entries import Control, Entry, Outcome
from tidegate.engine.core.event_names import Edge, EventKey
from tidegate.engine.core.instants import MILLISECOND, ceil_watermark
from tidegate.engine.core.state import Parked, StoredBucket
from tidegate.engine.core.values import ENGINE, Firings, Int64, Namespace, Signal
from tidegate.engine.replay.backtest.dry import Effects
from tidegate.engine.replay.memory.store import Asked, MemoryLedger, MemoryStore

Key = tuple[str, Namespace]
_NOBODY = pa.array([], pa.string())


class CutError(Exception):
    """A bucket reaches too far. `watermark`: up to where it may reach."""

    def __init__(self, watermark: int) -> None:
        super().__init__(watermark)
        self.watermark = watermark


class PastLedger(MemoryLedger):
    """The ledger of a backtest.

    `effects`: by rule, what others notice of its firings. `signals`: those of a real store, at
    their instants. `known`: more ids that are taken. `switched_by`: the firings whose actions have
    switched rules in the real store. What an action causes again stays as the store has it.
    `behind`: by rule, how long it waits for late rows, microseconds: what ended at E is detected
    that much later. `parked`: what limits have stopped. `rows`, `rejected`: how many were read, and
    could not become occurrences.
    """

    def __init__(
        self,
        store: MemoryStore,
        effects: Mapping[str, Effects] = MappingProxyType({}),
        signals: Iterable[Signal] = (),
        known: Iterable[Key] = (),
        switched_by: Iterable[tuple[str, str, str]] = (),
        behind: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        super().__init__(store)
        self._behind = behind
        self.parked: list[Parked] = []
        self.rows = self.rejected = 0
        self._to_come = sorted(signals, key=lambda signal: (signal.received_at, signal.key))
        self._known = {signal.key for signal in self._to_come}.union(known)
        self._unplaced: dict[Key, Signal] = {}
        self._ends: dict[str, int] = {}  # when firings that cause something are detected
        self._effects, self._switched_by = effects, frozenset(switched_by)
        self._caused = self._by_effect()

    def commit(self, taken: StoredBucket) -> tuple[Entry, ...]:
        """See `engine.core.ledger.Buckets`. Raises CutError."""
        causes = [fired for fired in taken.firings if fired.rule in self._effects]
        first = min((at for fired in causes for at in self._news(fired)), default=None)
        if first is not None and (cut := ceil_watermark(first)) < taken.plan.watermark:
            raise CutError(cut)
        if taken.parked and (middle := half(taken.plan)) is not None:
            raise CutError(middle)
        numbered = super().commit(taken)
        for fired in causes:
            ids = fired.acted_on.hex_ids().to_pylist()
            self._ends |= zip(ids, self._detected(fired).tolist(), strict=True)
        for signal in taken.plan.signals:
            del self._unplaced[signal.key]
        self.parked += taken.parked
        self.rows += taken.rows
        self.rejected += len(taken.rejected)
        self.store.rejected.clear()
        self.store.versions.clear()
        return numbered

    def _by_effect(self) -> Mapping[Any, pa.Array]:
        """By effect, the firings of which the real store has it."""
        found: dict[Any, list[str]] = defaultdict(list)
        for id_, namespace in self._known:
            if namespace == ENGINE:
                firing, _, effect = id_.partition("-")
                found[effect].append(firing)
        for firing, kind, rule in self._switched_by:
            found[kind, rule].append(firing)
        return {effect: pa.array(firings, pa.string()) for effect, firings in found.items()}

    def _news(self, fired: Firings) -> list[int]:
        """When those firings were detected that cause what the real store does not have."""
        ids, effects = fired.acted_on.hex_ids(), self._effects[fired.rule]
        known = np.ones(len(ids), np.bool_)
        for effect in (*effects.signals, *effects.switches):
            known &= np.asarray(pc.is_in(ids, self._caused.get(effect, _NOBODY)))
        news: list[int] = self._detected(fired)[~known].tolist()
        return news

    def _detected(self, fired: Firings) -> Int64:
        """When the firings that are acted on were detected."""
        ends = fired.acted_on.firings["detected_at"].cast(pa.int64()).to_numpy()
        found: Int64 = ends + self._behind.get(fired.rule, 0)
        return found

    def switch(self, controls: Iterable[Control]) -> None:
        """Ask for what switched rules in the real store."""
        for one in controls:
            self.store.asked.append(Asked(replace(one, id=len(self.store.asked) + 1)))

    def version_at(self, table: str, instant: int) -> int | None:  # noqa: ARG002
        """The feed knows all versions of the span."""
        return None

    def show(self, instant: int) -> None:
        """Let the stored signals arrive that were received up to an instant."""
        count = bisect_right(self._to_come, instant, key=lambda signal: signal.received_at)
        for signal in self._to_come[:count]:
            self._keep(signal)
        del self._to_come[:count]

    @property
    def next_signal(self) -> int | None:
        """When the next stored signal arrives."""
        return self._to_come[0].received_at if self._to_come else None

    def tell(self, signals: Sequence[Signal]) -> None:
        """See `engine.core.ledger.Signals`."""
        for signal in self._raised(signals):
            self._keep(signal)

    def settle(self, outcomes: Sequence[Outcome]) -> tuple[Entry, ...]:
        """See `engine.core.ledger.Outbox`."""
        placed = [
            replace(one, signals=self._raised(one.signals), asks=self._asked(one))
            for one in outcomes
        ]
        made = super().settle(placed)
        for one in placed:
            self._unplaced |= {signal.key: signal for signal in one.signals}
        return made

    def _raised(self, signals: Iterable[Signal]) -> tuple[Signal, ...]:
        """Signals of the engine's own at their instants, without those that are known."""
        return tuple(
            replace(signal, received_at=self._instant(signal))
            for signal in signals
            if signal.key not in self._known
        )

    def _asked(self, outcome: Outcome) -> tuple[str, str] | None:
        """What an action asks for, unless all of its firings have asked for it in the real
        store."""
        if outcome.asks is None:
            return None
        entry, ids = outcome.entry, outcome.entry.firing_ids
        if ids is None:
            ids = self.firings(entry.bucket, entry.rule).acted_on.hex_ids().to_pylist()
        known = all((one, *outcome.asks) in self._switched_by for one in ids)
        return None if known else outcome.asks

    def _instant(self, signal: Signal) -> int:
        """1 ms after the detection. That an action begins stands before all that it does."""
        end = self._ends.get(signal.firing_id)
        if end is None:  # its condition could not be asked
            return signal.received_at
        if EventKey.of(signal.event).edge is Edge.BEGIN_OF:
            return ceil_watermark(end) + 1
        return end + MILLISECOND

    def _keep(self, signal: Signal) -> None:
        if self.store.keep(signal):
            self._unplaced[signal.key] = signal

    def _waiting(self, events: Collection[str]) -> list[Signal]:
        return [signal for signal in self._unplaced.values() if signal.event in events]
