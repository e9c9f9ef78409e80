"""Several INSERTs into one table in one commit, which has the marker of each (G16).

Each is analysed in a session of its own, and gets Delta's casts and defaults. The queries of those
that write the same columns become one union, and Delta's own INSERT writes it. A Java observer of
its transaction adds the markers (SharedCommit.java).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.classic.column import _to_seq
from pyspark.sql.functions import count, lit

from tidegate.connectors.delta.catalog import quoted
from tidegate.connectors.delta.java_classes import compiled, java_class
from tidegate.connectors.delta.plans import Plans
from tidegate.engine.core.entries import Entry

COUNT_SECONDS_MAX = 10.0  # for Spark to say how many rows each query had, after the commit
_LOOK_SECONDS = 0.005
_APPEND = "org.apache.spark.sql.catalyst.plans.logical.AppendData"


@dataclass(frozen=True, slots=True)
class Insert:
    """An entry's INSERT: the analysed plan, and the type of each column that it writes, by name.
    `marker`: the number in the marker of its app id, as it was looked at; 0: there was none."""

    entry: Entry
    plan: Any
    columns: Mapping[str, str]
    marker: int


def insert_of(session: SparkSession, entry: Entry, parsed: Any, marker: int) -> Insert | None:
    """A parsed statement as an INSERT that may share a commit; None if it does more than append
    rows. Nothing is run. Raises what Spark's analysis raises."""
    plans = Plans(session)
    plan = plans.resolve(parsed)
    if str(plan.getClass().getName()) != _APPEND:
        return None
    if not (plan.writeOptions().isEmpty() and plan.table().options().isEmpty()):
        return None
    return Insert(entry, plan, {name: kind for _, name, kind in plans.output(plan.query())}, marker)


def run_shared(session: SparkSession, inserts: Sequence[Insert]) -> Mapping[int, int]:
    """Run INSERTs of equal columns in one commit. Returns how many rows each wrote, by number of
    its entry, as far as Spark says it. Raises what Spark raises: nothing was committed then, as far
    as it can tell."""
    datasets = java_class(session, "org.apache.spark.sql.classic.Dataset")
    unions = java_class(session, "org.apache.spark.sql.catalyst.plans.logical.Union")
    observed, queries = {}, []
    for one in inserts:
        observed[one.entry.number] = seen = Observation()
        rows = datasets.ofRows(session._jsparkSession, one.plan.query())
        frame = DataFrame(rows, session).select([quoted(name) for name in inserts[0].columns])
        frame = frame.observe(seen, count(lit(1)).alias("rows"))
        queries.append(frame._jdf.logicalPlan())
    union = unions(_to_seq(session.sparkContext, queries), False, False)
    compiled(session, "SharedCommit").run(
        session._jsparkSession,
        inserts[0].plan.withNewQuery(union),
        "\n".join(f"{number} {seen} {app_id}" for number, seen, app_id in _marks(inserts)),
    )
    end = time.monotonic() + COUNT_SECONDS_MAX
    counts = {number: _count(seen, end) for number, seen in observed.items()}
    return {number: found for number, found in counts.items() if found is not None}


def _marks(inserts: Sequence[Insert]) -> Iterator[tuple[int, int, str]]:
    """Of each app id: its greatest number, the marker that it had, and itself."""
    marks = {}
    for one in sorted(inserts, key=lambda one: one.entry.number):
        marks[one.entry.app_id] = one.entry.number, one.marker, one.entry.app_id
    yield from marks.values()


def _count(seen: Observation, end: float) -> int | None:
    """How many rows a query had; None if Spark does not say it before the `end`."""
    java: Any = seen._jo
    while not java.future().isCompleted():
        if time.monotonic() > end:
            return None
        time.sleep(_LOOK_SECONDS)
    with suppress(Py4JJavaError):
        return int(java.getRow().getLong(0))
    return None
