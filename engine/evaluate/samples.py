"""Samples: the value of a query as of each tick of a `P` or `P*` (S11).

Example: `P*(opening, [5 min]: price, closing)` with `samples: {price: SELECT max(price) FROM
prices}`. Each tick is a row of the parameter relation, and its column `sample` is the price at its
instant: of the version of `prices` that was the last one then. Ticks between two commits ask once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidegate.engine.core.parameters import SAMPLE
from tidegate.engine.core.ports import Conditions, Feed
from tidegate.engine.core.text.logs import SAMPLING, begin, go_on
from tidegate.engine.core.values import Batch, Detections, Failure, Int64, TableRange
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Table

History = Callable[[str, int], int | None]
"""Gives the last version of a table at an instant, by the commits that earlier buckets placed."""
ATTEMPTS = 3
_Seen = tuple[tuple[str, int | None], ...]  # the version of each table


@dataclass(frozen=True, slots=True)
class AsOf:
    """Finds the version of a table at an instant: by the commits of a plan's ranges, else by the
    history of earlier buckets, else by the table's log. The log is the last resort, because
    instants are fixed once, and the log's times may have changed since.

    Example: the ranges have the versions 4 at 10:00 and 5 at 10:01. At 10:00:30 the table was at 4.
    """

    tables: Mapping[str, Table]
    feed: Feed
    history: History
    ranges: Sequence[TableRange] = ()

    def version(self, table: str, instant: int) -> int | None:
        """The version; None if the table did not exist then. Raises EngineError `table-missing`."""
        for span in self.ranges:
            if span.table == table and not span.snapshot:
                passed = [v for v, at in span.instants.items() if at <= instant]
                if passed:
                    return max(passed)
        known = self.history(table, instant)
        return self.feed.version_at(self.tables[table], instant) if known is None else known


@dataclass(frozen=True, slots=True)
class Sample:
    """A query of one value: its text, the type of the value, the tables that it reads."""

    text: str
    kind: pa.DataType
    tables: frozenset[str]


class Sampler:
    """Takes the samples of one bucket. A query is asked once for the same versions of its
    tables."""

    def __init__(
        self,
        samples: Iterable[Sample],
        ticks: Mapping[str, str],
        conditions: Conditions,
        as_of: AsOf,
    ) -> None:
        """`ticks`: by event type of ticks, the text of their sample."""
        known = {sample.text: sample for sample in samples}
        self._samples = {event: known[text] for event, text in ticks.items() if text in known}
        self._conditions = conditions
        self._as_of = as_of
        self._known: dict[tuple[object, ...], pa.Scalar | Failure | None] = {}

    def with_samples(
        self, detections: Detections
    ) -> tuple[Detections, Sequence[tuple[Int64, Failure]]]:
        """The detections with a sample for each of their ticks, null if it could not be taken; and
        for each failed sample the detections that have it."""
        batches, failed = dict(detections.batches), []
        for code, event in enumerate(detections.events):
            sample = self._samples.get(event)
            if sample is not None:
                entries = np.flatnonzero(detections.event_code == code)
                rows = detections.event_row[entries]
                batches[event], unsampled = self._sampled(batches[event], np.unique(rows), sample)
                for ticks, why in unsampled:
                    shown = entries[np.isin(rows, ticks)]
                    of = np.searchsorted(detections.offsets, shown, side="right") - 1
                    failed.append((np.unique(of), why))
        return replace(detections, batches=batches), failed

    def _sampled(
        self, ticks: Batch, shown: Int64, sample: Sample
    ) -> tuple[Batch, Iterable[tuple[list[int], Failure]]]:
        """The ticks with samples for those that are `shown`; and for each failure its ticks."""
        values: list[pa.Scalar | None] = [None] * len(ticks)
        failed: dict[_Seen | str, tuple[list[int], Failure]] = {}
        begin(SAMPLING, len(shown))
        for at in shown.tolist():
            go_on(SAMPLING)
            seen = self._seen(sample, int(ticks.time[at]))
            found = seen if isinstance(seen, Failure) else self._value(sample, seen)
            if isinstance(found, Failure):
                reason = found.error if isinstance(seen, Failure) else seen
                failed.setdefault(reason, ([], found))[0].append(at)
            elif found is not None:
                values[at] = found.cast(sample.kind)
        table = pa.table({SAMPLE: pa.array(values, sample.kind)})
        return replace(ticks, row=np.arange(len(ticks)), table=table), failed.values()

    def _seen(self, sample: Sample, instant: int) -> _Seen | Failure:
        """The versions of a sample's tables at an instant."""
        try:
            tables = sorted(sample.tables)
            return tuple((name, self._as_of.version(name, instant)) for name in tables)
        except EngineError as error:
            if error.code != "table-missing":
                raise
            return Failure(f"a sample failed: {error.message}", lasting=True)

    def _value(self, sample: Sample, seen: _Seen) -> pa.Scalar | Failure | None:
        if any(version is None for _, version in seen):
            return None  # there was no such table then
        key = (sample.text, *seen)
        if key not in self._known:
            pinned = {name: version for name, version in seen if version is not None}
            found: pa.Scalar | Failure | None = None
            for attempt in range(1, ATTEMPTS + 1):
                found = self._conditions.sample(sample.text, pinned)
                if not isinstance(found, Failure):
                    break
                found = replace(found, attempts=attempt)
                if found.lasting:
                    break
            self._known[key] = found
        return self._known[key]
