"""Tables whose rows executors read themselves: which these may be, and what is made of the rows
there (G26).

Example: `a ; b` per k, of tables `x` and `y`. Executors read both. Of each split of the rows they
make occurrences and send each to where its k is detected. The driver sees detections alone. A rule
that counts the rows of `x` without a key needs all of them in one place: then the driver reads `x`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from tidegate.engine.capture.changes import arrange
from tidegate.engine.capture.read import Capture, TableCapture, is_empty
from tidegate.engine.capture.request import TableRequest
from tidegate.engine.core.evaluator.filters import held_by_any
from tidegate.engine.core.evaluator.nodes import UndecidedError
from tidegate.engine.core.ports import Executors, LeftToDriverError
from tidegate.engine.core.values import Batch, Captured, Needs, Plan, Unread
from tidegate.rules.model import Rulebook


def may_be_apart(request: TableRequest | None, keyed: Collection[str]) -> bool:
    """Whether executors may read a table. `keyed`: the event types that have a key wherever they
    are looked at. A `where` that Spark has to decide is the driver's, which can name it if Spark
    dies of it."""
    return (
        request is not None
        and not _asks_spark(request)
        and all(one.event.name in keyed for one in request.events)
    )


def _asks_spark(request: TableRequest) -> bool:
    """Whether Spark has to decide a `where`."""
    return bool(request.read.where or request.decide)


def unread(
    book: Rulebook, needs: Needs, capture: Capture, plan: Plan, executors: Executors
) -> Unread | None:
    """The rows of the tables that executors read themselves; None if a plan has none. Raises
    LeftToDriverError where a commit of the plan gives a table columns of which Spark has to decide
    a `where`."""
    spans, rows = [], []
    for span in plan.ranges:
        request = capture.request(span.table, span.cursor.schema)
        if span.table in plan.site.tables and not is_empty(span) and request is not None:
            if _asks_spark(request):
                raise LeftToDriverError(f"table {span.table}: Spark has to decide a `where`")
            read = replace(request.read, only=())  # no text of the rulebook's runs in Spark
            spans.append(span)
            rows.append(executors.rows(request.table, span, read))
    if not rows:
        return None
    of_rows = replace(plan, ranges=tuple(spans), signals=(), pinned={}, latest={})
    estimate = sum(span.rows_estimate for span in spans)
    capture_apart = ApartCapture(book, needs, of_rows)
    return Unread(tuple(rows), capture_apart, estimate, plan.site.found_max)


@dataclass(frozen=True, eq=False)
class ApartCapture:
    """Makes occurrences of rows that are read apart. `plan`: with the ranges of these tables alone,
    in their order. Implements `Unread.capture`; raises LeftToDriverError, and `unpaired-update` as
    it."""

    book: Rulebook
    needs: Needs
    plan: Plan

    def __call__(self, table: int, first: int, rows: pa.Table) -> Captured:
        span = self.plan.ranges[table]
        request = _capture(self).request(span.table, span.cursor.schema)
        if request is None:
            raise LeftToDriverError(f"no event type is of table {span.table}")
        rows = _wanted(rows, request)
        changes = arrange(rows, span, request)
        made = TableCapture(request, span, changes, _Undecided(), self.plan, whole=False)
        batches: dict[str, Batch] = {}
        for one in request.events:
            name, batch, rejected = made.captured(one)
            if rejected:
                raise LeftToDriverError(f"rows of table {span.table} are rejected")
            if len(batch):
                batches[name] = replace(batch, number=first + np.arange(len(batch)))
        return Captured(batches, rows.num_rows)


class _Undecided:
    """Stands for the feed: nothing is asked of Spark from within an executor."""

    def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:  # noqa: ARG002
        raise LeftToDriverError(f"table {source}: Spark has to decide a `where`")


def _wanted(rows: pa.Table, request: TableRequest) -> pa.Table:
    """The rows that the driver would read: of which one of the `where`s is true or raises."""
    filters = [one.filter for one in request.events if one.filter] if request.read.only else []
    with suppress(UndecidedError):
        return held_by_any(filters, rows)
    return rows


@lru_cache(maxsize=2)
def _capture(own: ApartCapture) -> Capture:
    """Made once for all splits that a worker is given."""
    return Capture(own.book, own.needs)
