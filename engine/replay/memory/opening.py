"""The loop of an engine over memory: without threads, without Spark, on a virtual clock.

What does not depend on the case is made once (`Opening`): the rulebook, what its texts read,
detectors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from tidegate.engine.act.run import Runner
from tidegate.engine.capture.commit_instants import Instants, Now
from tidegate.engine.core.instants import floor_watermark
from tidegate.engine.core.ledger import Suspects
from tidegate.engine.core.ports import Analyst, Sink
from tidegate.engine.core.state import State
from tidegate.engine.core.types.spark import arrow_schema, schema_json
from tidegate.engine.core.values import (
    Batch,
    Bucket,
    Carried,
    Cursor,
    Load,
    Needs,
)
from tidegate.engine.detect.events.state.loads import PartLoads
from tidegate.engine.detect.events.step.component_step import ComponentsStepped
from tidegate.engine.detect.pipeline import Flow
from tidegate.engine.detect.stage import BucketDetector
from tidegate.engine.evaluate.action_events import with_action_events
from tidegate.engine.evaluate.conditions import LocalConditions
from tidegate.engine.evaluate.requirements import Prepared, prepare
from tidegate.engine.loop.compiled_rulebook import digests_of, first_compiled
from tidegate.engine.loop.loop import Loop
from tidegate.engine.loop.planner import Planner
from tidegate.engine.loop.ports import Ports
from tidegate.engine.quarantine.quarantine import Health, Quarantine
from tidegate.engine.quarantine.turns import Gate
from tidegate.engine.replay.memory.analyst import MemoryAnalyst
from tidegate.engine.replay.memory.clock import VirtualClock
from tidegate.engine.replay.memory.conditions import MemoryConditions
from tidegate.engine.replay.memory.executors import Actions, Alone, Unprepared
from tidegate.engine.replay.memory.feed import MemoryFeed
from tidegate.engine.replay.memory.sink import MemorySink
from tidegate.engine.replay.memory.store import MemoryLedger, MemoryStore
from tidegate.rules.analysis.graph import lateness_micros
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook

_AHEAD_MICROS = 10_000_000  # no commit's clock is ahead here
_DETECTORS_MAX = 100


class Heard(NamedTuple):
    """A bucket that was detected over. `emitted`: by event type, what scripts emitted. `stopped`:
    the rules and scripts that did not run."""

    bucket: Bucket
    emitted: Mapping[str, Batch]
    stopped: frozenset[str]


Buckets = dict[int, Heard]
"""By number, the buckets of a loop."""


class Healthy:
    """A Spark that never ends by itself. What says that it has ended is believed."""

    def lost(self, error: BaseException | None = None) -> EngineError | None:
        return error if isinstance(error, EngineError) and error.code == "spark-lost" else None

    def overrun(self) -> tuple[bool, EngineError | None]:
        return False, None


def quarantine(
    records: Suspects,
    health: Health | None = None,
    most: int = 10,
    stopped: Callable[[], bool] = lambda: False,
) -> Quarantine:
    """A quarantine with a gate of its own."""
    return Quarantine(records, Gate(), health or Healthy(), most, stopped)


class HeardDetector(BucketDetector):
    """A detector that records each bucket and the emissions of its scripts. A bucket that is taken
    again replaces its record."""

    heard: Buckets

    def step(
        self,
        bucket: Bucket,
        carried: Carried,
        stopped: Collection[str],
        *given: Any,
    ) -> tuple[ComponentsStepped, Flow]:
        made, flow = super().step(bucket, carried, stopped, *given)
        self.heard[bucket.plan.bucket] = Heard(bucket, flow.shown, frozenset(stopped))
        return made, flow

    def loads(self, carried: Carried, counted: PartLoads) -> dict[str, Load]:  # noqa: ARG002
        """Nobody looks at how much is carried."""
        return {}


class Opening:
    """Opens loops of one rulebook over tables of these schemas. Raises InputError with what is
    wrong with the rulebook over them."""

    def __init__(
        self,
        book: Rulebook,
        schemas: Mapping[str, pa.Schema],
        analyst: Analyst | None = None,
    ) -> None:
        settings = replace(book.settings, commit_slack_ms=0)  # nobody else's clock is waited for
        self.book = with_action_events(replace(book, settings=settings), schemas)
        self._digests = digests_of(self.book)
        self._behind = lateness_micros(self.book)
        self._analyst = analyst or MemoryAnalyst(book.tables)
        self._prepared = prepare(self.book, schemas, self._analyst)
        self._texts = texts = {name: schema_json(schema) for name, schema in schemas.items()}
        self._detectors: dict[tuple[tuple[str, int], ...], HeardDetector] = {}
        self._compiled = first_compiled(self.book, self._digests, texts, {}, self.prepare)

    def open(
        self,
        instant: int,
        feed: MemoryFeed,
        store: MemoryStore,
        clock: VirtualClock,
        actions: Actions,
        heard: Buckets,
    ) -> Loop:
        """A loop over tables in memory, see `over`."""
        ledger = MemoryLedger(store)
        ports = Ports(
            ledger=ledger,
            store_id=store.id,
            check_lease=ledger.check,
            prepare=self.prepare,
            feed=feed,
            conditions=LocalConditions(MemoryConditions()),
            asked_later=LocalConditions(MemoryConditions()),
            quarantine=quarantine(ledger, most=self.book.settings.strikes_max),
            now=Now(clock, 0),
        )
        cursors = {name: feed.cursor(table) for name, table in feed.tables.items()}
        return self.over(instant, ports, MemorySink(), cursors, store, clock, actions, heard)

    def over(
        self,
        instant: int,
        ports: Ports,
        sink: Sink,
        cursors: Mapping[str, Cursor],
        store: MemoryStore,
        clock: VirtualClock,
        actions: Actions,
        heard: Buckets,
    ) -> Loop:
        """A loop as it is after a bucket that activated all rules just before `instant`, and saw no
        event: the first watermark is 2 us before it (G2)."""
        book, before = self.book, floor_watermark(instant - 1)
        active = {name: before + 1 - self._behind.get(name, 0) for name in self._digests}
        state = State(0, before, before, cursors, active, self._digests, Carried())
        store.state = state

        def detector(book: Rulebook, at: Mapping[str, int], needs: Needs) -> BucketDetector:
            found = self._detector(book, at, needs)
            found.heard = heard
            return found

        compiled = replace(
            self._compiled,
            activations=active,
            detector=detector(book, active, self._prepared.needs),
            detecting=detector,
        )
        executors = actions.executors(sink, clock)
        return Loop(
            compiled,
            state,
            ports,
            planner=Planner(book, ports, Instants(_AHEAD_MICROS)),
            runner=Runner(book, executors, ports.ledger, clock.tick, clock, Alone()),
            targets=Unprepared(sink),
        )

    def _detector(self, book: Rulebook, at: Mapping[str, int], needs: Needs) -> HeardDetector:
        """A detector knows nothing of what it has detected: the cases that begin at one instant
        share its graph."""
        key = tuple(sorted(at.items()))
        if key not in self._detectors:
            if len(self._detectors) == _DETECTORS_MAX:
                self._detectors.clear()
            self._detectors[key] = HeardDetector(book, at, needs)
        return copy(self._detectors[key])

    def prepare(self, schemas: Mapping[str, str], proven: Collection[str]) -> Prepared:
        """See `engine.loop.compiled_rulebook.Prepare`. It is the same for all cases, up to a step
        that adds columns."""
        if schemas == self._texts:
            return self._prepared
        columns = {name: arrow_schema(text) for name, text in schemas.items()}
        return prepare(self.book, columns, self._analyst, proven)
