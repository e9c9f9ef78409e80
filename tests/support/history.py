"""Running the detector over the reference's histories, its state written and read in between."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.reference.evaluate import Line, canonical, seconds
from tests.reference.hits import stepped
from tidegate.engine.core.clocks import clock_batches
from tidegate.engine.core.event_names import beginning, edge_micros
from tidegate.engine.core.types.spark import arrow_type
from tidegate.engine.core.values import FOREVER, Batch, Carried, Detections
from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.occurrences.instances import Carry, Flow
from tidegate.engine.detect.events.step import chains, detector
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.rules.algebra import forms
from tidegate.rules.model import ClockEvent, Context, Rulebook, SignalEvent


@contextmanager
def node_by_node() -> Iterator[None]:
    """Detectors made in here step each operator itself: no chain is stepped in one scan."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains, "chains", lambda _: {})
        yield


@contextmanager
def searched() -> Iterator[None]:
    """Detectors made and run in here search for every choice: no kernel chooses in one scan."""

    def nested(own: forms.Forms, context: Context) -> forms.Form:
        return own._nested(context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forms.Forms, "of", nested)
        yield


@contextmanager
def stepping() -> Iterator[Counter[str]]:
    """How many nodes detectors step in here: as part of a `chain`, or by the name of the shape."""
    ran, scan, step = Counter[str](), chains.step, detector._step

    def scanned(chain: chains.Chain, *given: Any) -> chains.Steps:
        ran["chain"] += len(chain.nodes)
        return scan(chain, *given)

    def stepped(node: Node, *given: Any) -> tuple[Flow, Carry]:
        ran[type(node.shape).__name__] += 1
        return step(node, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains, "step", scanned)
        patch.setattr(detector, "_step", stepped)
        yield ran


def batches(
    rulebook: Rulebook, lines: Sequence[Line], until: int | None = None
) -> dict[str, Batch]:
    """The lines of one bucket by event type, as far as they happen up to `until`."""
    found = {}
    for name, event in rulebook.events.items():
        if isinstance(event, ClockEvent):
            continue
        mine = sorted((line for line in lines if line[0] == name), key=lambda line: line[1])
        rows = [fields for _, _, fields in mine]
        columns = event.fields if isinstance(event, SignalEvent) else event.columns
        kinds = {
            f: arrow_type(columns[f] if isinstance(event, SignalEvent) else "bigint")
            for f in columns
        }
        table = pa.table({f: pa.array([r[f] for r in rows], kinds[f]) for f in columns})
        time = np.array([time for _, time, _ in mine], dtype=np.int64)
        edge = edge_micros(rulebook, name)
        for type_, instants in ((name, time + edge), (beginning(name), time - edge)):
            row = np.flatnonzero(instants <= (FOREVER if until is None else until))
            found[type_] = Batch(name, instants[row], row, table)
    return found


def through_ipc(carried: Carried) -> Carried:
    """Written to bytes and read back, as by the store."""
    tables = {}
    for name, table in carried.tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        tables[name] = pa.ipc.open_stream(sink.getvalue()).read_all()
    return Carried(tables)


def printed(found: Detections) -> list[dict[str, Any]]:
    """Detections as the reference prints them."""
    lines = []
    for i, key in enumerate(
        found.keys.to_pylist() if found.keys.num_columns else [{}] * len(found)
    ):
        constituents = []
        for j in range(found.offsets[i], found.offsets[i + 1]):
            batch = found.batches[found.events[found.event_code[j]]]
            at = found.event_row[j]
            fields = (
                batch.table.slice(batch.row[at], 1).to_pylist()[0]
                if batch.table.num_columns
                else {}
            )
            time = seconds(int(batch.time[at]))
            constituents.append({"event": batch.event, "time": time, **fields})
        start, end = seconds(int(found.start[i])), seconds(int(found.end[i]))
        lines.append(
            {"rule": found.rule, "key": key, "start": start, "end": end}
            | {"constituents": constituents}
        )
    return lines


def buckets(
    history: Iterable[Line], cuts: Iterable[int], edge: int = 0
) -> Iterator[tuple[int, list[Line]]]:
    """Watermarks with the lines that happen up to each and after the one before. No line is cut
    from its edges (G2): a watermark between them is a little later, but not after the last."""
    left = deque(sorted(history, key=lambda line: line[1]))
    ends = sorted({*cuts})
    watermark = ends[0] - 1
    for cut in ends:
        if cut <= watermark:
            continue
        watermark, bucket = cut, list[Line]()
        while left and left[0][1] - edge <= watermark:
            bucket.append(left.popleft())
            watermark = min(max(watermark, bucket[-1][1] + edge), ends[-1])
        yield watermark, bucket


def run(
    rulebook: Rulebook,
    history: Iterable[Line],
    cuts: Iterable[int] = (),
    until: int | None = None,
    *,
    partitions: int | None = None,
) -> list[str]:
    """What the detector finds over a history, canonical. A bucket ends at each of the `cuts`, at
    the last line, and at `until`; without it what has been started runs out. `partitions`: as `run`
    keeps its state, in so many at most."""
    end = FOREVER if until is None else until
    lines = sorted((line for line in history if line[1] <= end), key=lambda line: line[1])
    if not lines:
        return []
    first, last = lines[0][1], lines[-1][1]
    edge = max(edge_micros(rulebook, name) for name in rulebook.events)
    stepper: Any = Detector(rulebook, dict.fromkeys(rulebook.rules, first - edge))
    if partitions is not None:
        stepper = Partitioned(stepper, partitions)
    horizon = last if until is None else until
    inside = {cut for cut in cuts if first - edge <= cut < end}
    carried, found, since = Carried(), list[dict[str, Any]](), first
    for watermark, bucket in buckets(lines, {*inside, min(last + edge, end), end}, edge):
        before = carried
        clocks = clock_batches(rulebook, since, min(watermark, horizon))
        detected, carried, _ = stepper.step(
            carried, batches(rulebook, bucket, until) | clocks, watermark, min(watermark, horizon)
        )
        unchanged = {*carried.tables, *before.tables} - carried.changed
        assert all(carried.tables[n].equals(before.tables[n]) for n in unchanged)
        assert all(((d.end >= since - edge) & (d.end <= watermark)).all() for d in detected)
        if bucket or detected:
            stepped(before.tables.values())
        carried = through_ipc(carried)
        found += [line for detections in detected for line in printed(detections)]
        since = watermark + 1
    return canonical(found)
