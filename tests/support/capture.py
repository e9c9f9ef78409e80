"""What capture is asked for and gives, and a loop that has nothing but capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.connectors.clock import SystemClock
from tidegate.engine.capture.commit_instants import Instants
from tidegate.engine.capture.plan import Listing, list_sources, make_plan, pin
from tidegate.engine.capture.read import Capture
from tidegate.engine.capture.sources import sources
from tidegate.engine.core.ledger import Unplaced
from tidegate.engine.core.parameters import SIGNAL_OF, VERSION_OF
from tidegate.engine.core.ports import Feed
from tidegate.engine.core.state import State
from tidegate.engine.core.values import Bucket, Carried, Needs, Plan, Signal
from tidegate.rules.model import Rulebook

_SOURCES = (VERSION_OF, SIGNAL_OF)
FRESH = State(0, None, 0, {}, {}, {}, Carried())


def needs(book: Rulebook, *columns: str) -> Needs:
    """Every event type's rule reads these columns."""
    return Needs(
        carry=dict.fromkeys(book.events, columns),
        ids={(f"on_{name}", name): columns for name in book.events},
    )


def rows(bucket: Bucket | None, name: str) -> Counter[tuple[Any, ...]]:
    """The occurrences of an event type as a multiset of their parameters."""
    batch = bucket.batches.get(name) if bucket else None
    if batch is None:
        return Counter()
    taken = parameters(batch.table).take(batch.row)
    return Counter(
        tuple(tuple(value.items()) if isinstance(value, dict) else value for value in row.values())
        for row in taken.to_pylist()
    )


def parameters(table: pa.Table) -> pa.Table:
    """The columns of occurrences without where they came from."""
    return table.select([name for name in table.column_names if name not in _SOURCES])


def id_list(bucket: Bucket, name: str) -> list[tuple[int, int]]:
    (ids,) = bucket.batches[name].ids.values()
    return sorted((int(a), int(b)) for a, b in np.asarray(ids))


class Capturing:
    """Plans and captures until nothing is left, as the engine's loop does; detects nothing."""

    def __init__(self, book: Rulebook, read: Needs, feed: Feed, state: State = FRESH) -> None:
        self.book, self.feed, self.state = book, feed, state
        self.capture = Capture(book, read)
        self.instants = Instants(book.settings.skew_max_seconds * 1_000_000)
        self.clock = SystemClock()
        self.plans: list[Plan] = []

    def step(self, signals: Sequence[Signal] = ()) -> Bucket | None:
        """One bucket, committed; None if there is nothing to do."""
        listing = self.listing(self.clock.wall())
        used = {
            name: self.capture.used(name, head.cursor.schema)
            for name, head in listing.heads.items()
        }
        plan = make_plan(self.book, self.state, listing, Unplaced(tuple(signals)), used)
        if plan is None:
            return None
        plan = pin(plan, self.book, self.feed)
        bucket = self.capture.capture(plan, self.feed)
        self.plans.append(plan)
        self.state = replace(
            self.state,
            bucket=plan.bucket,
            watermark=plan.watermark,
            now=plan.now,
            cursors={**self.state.cursors, **{r.table: r.cursor for r in plan.ranges}},
            activations={**self.state.activations, **plan.activations},
        )
        for span in plan.ranges:
            self.instants.forget(span.cursor.table_id, span.last)
        return bucket

    def listing(self, now: int) -> Listing:
        return list_sources(
            self.book,
            sources(self.book),
            self.state,
            self.feed,
            self.instants,
            now,
            self.clock.wall,
        )

    def drain(self) -> list[Bucket]:
        """Buckets until there is nothing to do at once."""
        buckets = []
        while (bucket := self.step()) is not None:
            buckets.append(bucket)
        return buckets


def total(buckets: Sequence[Bucket], name: str) -> Counter[tuple[Any, ...]]:
    """The occurrences of an event type in all buckets together."""
    return sum((rows(bucket, name) for bucket in buckets), Counter())
