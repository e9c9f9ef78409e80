"""Functions run by Spark's executors, over values that are sent there and back as bytes."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache, partial, reduce
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from tidegate.connectors.delta.catalog import collected
from tidegate.connectors.delta.faults import SPARK_ERRORS, check_alive, fault
from tidegate.connectors.delta.installation import (
    Installed,
    check_installed,
    differing,
    looking,
    own_version,
    said,
)
from tidegate.connectors.delta.jobs import Jobs, OverrunError
from tidegate.engine.core.columns.memory import give_back
from tidegate.engine.core.ports import ReadRequest
from tidegate.engine.core.values import TableRange
from tidegate.rules.model import Table

log = logging.getLogger(__name__)

Given = TypeVar("Given")
Made = TypeVar("Made")
Part = TypeVar("Part")
_ROWS_BITS = 40  # of a number: a partition has fewer rows
_SENT = "place int, given boolean, value binary"
_MADE = "place int, version string, value binary"
_LOOKS_MAX = 3  # jobs of which each executor is to run a task, if it has a slot for it
_TRACEBACK = "Traceback (most recent call last):"


class ApartRows(NamedTuple):
    """Changed rows, where they are. `whole`: what is made of them needs all of a partition."""

    frame: DataFrame
    whole: bool


class ExecutorsError(Exception):
    """A call failed in Spark's executors, or none was left to run it. The message is one line."""


class SparkExecutors:
    """The executors of a session. A call that takes longer than `seconds_max` is cancelled. `read`:
    the rows of a table, of `DeltaFeed.rows_apart`."""

    def __init__(
        self,
        spark: SparkSession,
        jobs: Jobs,
        seconds_max: int,
        read: Callable[[Table, TableRange, ReadRequest], ApartRows] | None = None,
    ) -> None:
        self._context = spark.sparkContext
        self._jobs = jobs
        self._seconds_max = seconds_max
        self._read = read

    @property
    def slots(self) -> int:
        return self._jobs.slots.count

    def check(self, call: Callable[..., Any]) -> None:
        """Look at what all executors have installed that are registered by now; those that join
        later are looked at by each call. `call`: what they will be asked to run. Without a job in
        a local session, whose workers run this installation. Raises EngineError
        `executors-differ`, `spark-lost`."""
        count = self._registered()
        if count is None:
            return
        if not count:
            log.info("Spark has no executor yet: each is looked at when it is first asked")
            return
        look, found = looking(_packed(call)), dict[tuple[str, int], Installed]()
        try:
            for tasks in (count << more for more in range(_LOOKS_MAX)):
                for one in self._looked(look, tasks):
                    found[one.host, one.process] = one
                if len(found) >= count:
                    break
        except (ExecutorsError, OverrunError) as error:
            log.warning("Spark's executors were not looked at before they are asked: %s", error)
            return
        check_installed(found.values())
        pythons = "; ".join(sorted({one.python for one in found.values()}))
        told = "%d of Spark's %d executors have tidegate %s (%s)"
        log.info(told, min(len(found), count), count, own_version(), pythons)

    def _registered(self) -> int | None:
        """How many executors there are now; None in a local session."""
        spark: Any = self._context._jsc.sc()
        if spark.isLocal():
            return None
        return len(spark.statusTracker().getExecutorInfos()) - 1  # one is the driver

    def _looked(self, look: Callable[[int], tuple[Any, ...]], tasks: int) -> list[Installed]:
        """What so many tasks see. Spark gives one to each executor before any gets a second."""
        numbers = self._context.parallelize(range(tasks), tasks)
        return [Installed(*one) for one in self._run(lambda: numbers.map(look).collect())]

    def map(self, call: Callable[[Given], Made], given: Sequence[Given]) -> list[Made]:
        """See `engine.core.ports.Executors.map`. Raises EngineError `executors-differ`,
        `spark-lost`; ExecutorsError; `OverrunError`."""
        sent = [_packed(value) for value in given]
        run = partial(_called, own_version(), _packed(call))
        if not sent:
            return []
        found = self._run(lambda: self._context.parallelize(sent, len(sent)).map(run).collect())
        _check_versions({text for text, made in found if made is None})
        packed = [made for _, made in reversed(found) if made]
        del found
        done = []
        while packed:  # see `_unpacked`
            done.append(pickle.loads(packed.pop()))  # noqa: S301, sent by ours
        return done

    def rows(self, table: Table, span: TableRange, request: ReadRequest) -> ApartRows:
        """See `engine.core.ports.Executors.rows`."""
        if self._read is None:
            raise ValueError("these executors have no tables to read")
        return self._read(table, span, request)

    def map_rows(
        self,
        rows: Sequence[ApartRows],
        cut: Callable[[int, int, pa.Table], Sequence[tuple[int, Part]]],
        call: Callable[[Given, Sequence[Part]], Made],
        given: Sequence[Given],
    ) -> tuple[list[Made], list[Part]]:
        """See `engine.core.ports.Executors.map_rows`. Raises as `map` does. One job reads, cuts,
        shuffles and calls; a task has all parts of its value in memory."""
        session = rows[0].frame.sparkSession
        own = own_version()
        frames = [
            one.frame.mapInArrow(partial(_cut, own, _packed(cut), at, one.whole), _SENT)
            for at, one in enumerate(rows)
        ]
        values = pa.table(
            {
                "place": pa.array(range(1, len(given) + 1), pa.int32()),
                "given": pa.array([True] * len(given)),
                "value": pa.array([_packed(value) for value in given], pa.binary()),
            }
        )
        sent = reduce(DataFrame.unionAll, frames, session.createDataFrame(values, _SENT))
        placed = sent.repartitionById(len(given) + 1, "place").groupBy("place")
        packed = _packed(call)

        def gathered(part: pa.Table) -> pa.Table:  # PySpark reads these types
            return _gathered(own, packed, part)

        made = placed.applyInArrow(gathered, _MADE)
        found = self._run(lambda: collected(made)).to_batches()
        _check_versions({text for some in found for text in some["version"].to_pylist()} - {own})
        return _unpacked(found, len(given))

    def _run(self, call: Callable[[], Made]) -> Made:
        try:
            return self._jobs.run(self._seconds_max, call)
        except SPARK_ERRORS as error:
            check_alive(error)
            found = fault(error)
            if how := said(found.details) or said(str(error)):
                raise differing(how) from error
            raise ExecutorsError(_reason(found.details, found.message)) from error


def _called(wanted: str, call: bytes, given: bytes) -> tuple[str, bytes | None]:
    """In an executor: the version that it has, and what the call gives, unless that is another
    version."""
    own = own_version()
    if own != wanted:
        return own, None
    value = pickle.loads(given)  # noqa: S301, sent by the engine
    return own, _packed(_function(call)(value))


def _cut(
    wanted: str, cut: bytes, table: int, whole: bool, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In an executor: what is cut from the rows of a partition, and for whom. Its rows are counted
    from a number that no other partition counts from."""
    own = own_version()
    if own != wanted:
        yield _row(0, own.encode())
        return
    first = TaskContext.get().partitionId() << _ROWS_BITS  # type: ignore[union-attr]
    some = (pa.Table.from_batches([batch]) for batch in batches)
    if whole:
        some = (pa.concat_tables(all_) for all_ in [[*some]] if all_)
    for rows in some:
        for place, part in _function(cut)(table, first, rows):
            yield _row(place + 1, _packed(part))
        first += rows.num_rows


def _unpacked(found: list[pa.RecordBatch], count: int) -> tuple[list[Any], list[Any]]:
    """What was made of so many values, in their order, and what is for the caller. What is unpacked
    is taken away from `found`: both at once would be twice as much memory."""
    done: list[Any] = [None] * count
    parts = []
    while found:
        some = found.pop()
        for place, value in zip(some["place"].to_pylist(), some["value"], strict=True):
            made = pickle.loads(value.as_buffer())  # noqa: S301, sent by ours
            if place:
                done[place - 1] = made
            else:
                parts.append(made)
    give_back()
    return done, parts


def _row(place: int, value: bytes) -> pa.RecordBatch:
    columns = [pa.array([place], pa.int32()), pa.array([False]), pa.array([value], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["place", "given", "value"])


def _gathered(wanted: str, call: bytes, rows: pa.Table) -> pa.Table:
    """In an executor: what the call gives for a value and its parts. What is for the caller, at
    place 0, goes on as it is."""
    own = own_version()
    place, given, packed = (rows.column(name).to_pylist() for name in rows.column_names)
    values = packed
    if own == wanted and place[0]:
        parts = [pickle.loads(v) for v, its in zip(packed, given, strict=True) if not its]  # noqa: S301
        value = pickle.loads(packed[given.index(True)])  # noqa: S301, sent by the engine
        values = [_packed(_function(call)(value, parts))]
    count = len(values)
    return pa.table(
        {
            "place": pa.array(place[:count], pa.int32()),
            "version": pa.array([own] * count),
            "value": pa.array(values, pa.binary()),
        }
    )


def _packed(value: object) -> bytes:
    return pickle.dumps(value, protocol=5)


@lru_cache(maxsize=4)
def _function(packed: bytes) -> Callable[..., Any]:
    """A function that a worker was sent; for the tasks that follow in the same worker, too."""
    found: Callable[..., Any] = pickle.loads(packed)  # noqa: S301, sent by the engine
    return found


def _check_versions(others: Collection[str]) -> None:
    if others:
        raise differing(f"have {min(others)}")


def _reason(details: str, message: str) -> str:
    """What is known of a failure without values of the user's tables: of an error in Python, its
    class."""
    if _TRACEBACK not in details:
        return f"Spark's executors failed: {message}"
    last = details.rpartition(_TRACEBACK)[2].splitlines()
    kinds = (line.partition(":")[0] for line in last if line and not line[0].isspace())
    return f"Spark's executors failed with {next(kinds, 'an error')}"
