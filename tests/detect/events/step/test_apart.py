"""Partitions that are stepped apart, as executors of a cluster would, and meet again (G26)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.reference.cuts import cuts
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import cases, fields_of
from tests.reference.strategies import EVERYTHING, SECOND
from tests.support.history import batches, buckets
from tests.support.rulebooks import loaded
from tidegate.engine.core.clocks import clock_batches
from tidegate.engine.core.values import Batch, Carried, Detections, Stepped
from tidegate.engine.detect.events.graph.graph import Graph
from tidegate.engine.detect.events.state.partitions import EVERY, partitions, place
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.state.shares import _referred_to
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.key_codes import select
from tidegate.engine.detect.events.step.partitioned_detector import _uses_apart
from tidegate.rules.model import Context, Rulebook

COUNT = 16
KEYS = (1, 2, 3, 5, 8, None)
EXAMPLES = 120

Batches = dict[str, Batch]


class Cluster:
    """A detector whose partitions are stepped by `executors`, each by one; what is carried is in
    `tables`, which a step of all of them together may read and write, too."""

    def __init__(self, rulebook: Rulebook, executors: Sequence[int]) -> None:
        self.detector = Detector(rulebook, dict.fromkeys(rulebook.rules, -SECOND))
        self.executors = executors
        self.carried = Carried()

    def together(self, given: Batches, watermark: int) -> list[Detections]:
        """One step over all partitions."""
        found, self.carried, _ = self.detector.step(
            self.carried, given, watermark, partitions=COUNT
        )
        return [*found]

    def apart(self, given: Batches, watermark: int) -> list[Detections]:
        """A step of each executor, from the same carried state, and what they have left."""
        steps = [self._step(number, given, watermark) for number in sorted({*self.executors})]
        left: dict[str, list[pa.Table]] = {}
        for step in steps:
            for name, table in step.carried.tables.items():
                left.setdefault(name, []).append(table)
        self.carried = Carried({name: united(tables) for name, tables in left.items()})
        return [detections for step in steps for detections in step.detections]

    def _step(self, executor: int, given: Batches, watermark: int) -> Stepped:
        own = {p for p in range(COUNT) if self.executors[p] == executor} | {EVERY}
        tables = {n: t for n, t in self.carried.tables.items() if place(n)[1] in own}
        arrivals = {name: self._own(name, batch, own) for name, batch in given.items()}
        return self.detector.step(Carried(tables), arrivals, watermark, partitions=COUNT)

    def hears(self, given: Batches) -> bool:
        """Whether a broadcast arrives that a rule knows."""
        keyed = {event for event, _ in self.detector.graph.domains}
        return any(len(given[name]) for name in given.keys() & self.detector.events - keyed)

    def _own(self, name: str, batch: Batch, own: set[int]) -> Batch:
        """The occurrences of an executor's keys; of a broadcast all."""
        columns = next((c for event, c in self.detector.graph.domains if event == name), None)
        if columns is None or not len(batch):
            return batch
        of = partitions(select(batch.table.take(batch.row), columns), COUNT)
        return batch.take(np.flatnonzero(np.isin(of, [*own])))


def united(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of tables, each once: of every key, each executor keeps what its own keys need."""
    if len(tables) == 1:
        return tables[0]
    whole = pa.concat_tables(tables, promote_options="default")
    first = {row: place_ for place_, row in reversed([*enumerate(rows_of(whole))])}
    order = [name for name in ("slot", "end", "time", "number") if name in whole.column_names]
    whole = whole.take(sorted(first.values())).sort_by([(name, "ascending") for name in order])
    return whole.replace_schema_metadata(tables[0].schema.metadata).combine_chunks()


def lines_of(found: Sequence[Detections]) -> list[str]:
    """Detections with their constituents by id, a tick by its instant; in order."""
    lines = []
    for detections in found:
        for i, key in enumerate(detections.keys.to_pylist() or [{}] * len(detections)):
            parts = [
                (batch.event, int(batch.time[at]), *batch.ids_by("set")[at].tolist())
                for j in range(detections.offsets[i], detections.offsets[i + 1])
                for batch in [detections.batches[detections.events[detections.event_code[j]]]]
                for at in [detections.event_row[j]]
            ]
            span = int(detections.start[i]), int(detections.end[i])
            lines.append(str((detections.rule, key, span, parts)))
    return sorted(lines)


def identified(given: Mapping[str, Batch], before: int) -> Batches:
    """Batches with an id for each occurrence, none twice, and numbered before they are cut."""
    found = {}
    for place_, (name, batch) in enumerate(given.items()):
        number = np.arange(len(batch))
        ids = np.stack([number, np.full(len(batch), 100 * before + place_)], axis=1)
        found[name] = replace(batch, ids={"set": ids.astype(np.uint64)}, number=number)
    return found


def for_each_key(history: Sequence[Line]) -> list[Line]:
    """The lines of a history, those with a key once more for each key: then partitions have
    simultaneous occurrences of one type."""
    return [
        (name, time, fields | {"k": key} if "k" in fields else fields)
        for name, time, fields in history
        for key in (KEYS if "k" in fields else KEYS[:1])
    ]


def met(tables: Mapping[str, pa.Table], executors: Sequence[int], since: int) -> bool:
    """Whether two executors have carried on occurrences of one event type since then."""
    found: dict[str, set[int]] = {}
    for name, table in tables.items():
        whole, partition = place(name)
        if not whole.startswith("occ:") or partition == EVERY:
            continue
        if (table.column("time").to_numpy() > since).any():
            found.setdefault(whole, set()).add(executors[partition])
    return any(len(some) > 1 for some in found.values())


@detecting
def test_g26_partitions_that_were_stepped_apart_are_those_that_were_stepped_together() -> None:
    """A few buckets together, a few apart, the rest together again: detections are the same, and
    what is carried but for rows that have expired. In how many examples two
    executors have occurrences of one event type where they meet, and in how many a broadcast
    arrives then, is printed: fewer than one in four and one in twenty fail."""
    meetings, broadcasts = list[bool](), list[bool]()

    @given(data=st.data())
    @example_count(EXAMPLES)
    def some(data: st.DataObject) -> None:
        drawn = cases(
            operators=EVERYTHING, contexts=list(Context), depth=2, rules_max=2, broadcasts_min=1
        )
        rulebook, history = data.draw(drawn)
        assume(all(rule.pattern.per for rule in rulebook.rules.values()))
        executors = data.draw(st.lists(st.integers(0, 3), min_size=COUNT, max_size=COUNT))
        cluster, whole = Cluster(rulebook, executors), Cluster(rulebook, executors)
        assume(not any(_uses_apart(cluster.detector.graph)))
        instants = [time for _, time, _ in history]
        heard = cluster.detector.events & {
            n for n, f in fields_of(rulebook).items() if "k" not in f
        }
        last = max(instants) + SECOND
        lines = [*for_each_key(history), *((name, last, {"v": 0}) for name in sorted(heard))]
        ends = {*data.draw(cuts(rulebook, history)), last - 1, last}
        steps = [*buckets(lines, ends)]
        last = len(steps) - 1
        begin = data.draw(st.sampled_from([0, 0, min(1, last)]))
        end = data.draw(st.sampled_from([last, last, min(begin + 1, last)]))
        since = watermark = -SECOND
        found, unlike = list[str](), Counter[str]()
        for number, (until, bucket) in enumerate(steps):
            clocks = clock_batches(rulebook, watermark + 1, until)
            arrivals = identified(batches(rulebook, bucket) | clocks, number)
            if number == begin:
                since = watermark
            if number == end:
                meetings.append(met(cluster.carried.tables, executors, since))
                broadcasts.append(meetings[-1] and cluster.hears(arrivals))
            step = cluster.apart if begin <= number < end else cluster.together
            own, watermark = lines_of(step(arrivals, until)), until
            assert own == lines_of(whole.together(arrivals, until))
            either = (cluster.carried, whole.carried)
            before, unlike = (
                unlike,
                differing(*(unexpired(one, whole.detector, until) for one in either)),
            )
            assert not before & unlike
            found += own
        saw(found)

    some()
    print(f"{sum(meetings)} of {len(meetings)} meet, {sum(broadcasts)} where a broadcast arrives")
    assert sum(meetings) * 4 >= len(meetings) > 0
    assert sum(broadcasts) * 20 >= len(meetings)


def test_g26_what_executors_have_taken_at_one_instant_is_told_apart() -> None:
    book = loaded("a", "t", r="on: 'a ; t', per: k")
    cluster = Cluster(book, range(COUNT))
    keys = [*range(40)]
    rows = [("a", SECOND, {"k": key, "v": 0}) for key in keys]
    assert cluster.apart(identified(batches(book, rows), 0), SECOND) == []
    assert met(cluster.carried.tables, cluster.executors, 0)
    given = identified(batches(book, [("t", 2 * SECOND, {})]), 1)
    (found,) = cluster.together(given, 2 * SECOND)
    of_a = found.event_row[found.event_code == found.events.index("a")]
    batch = found.batches["a"]
    assert batch.ids["set"][of_a, 0].tolist() == keys
    assert found.keys.column("k").to_pylist() == keys


def test_g26_what_executors_have_detected_at_one_instant_is_told_apart() -> None:
    book = loaded("ab", "t", pair="on: 'a ; b', per: k", r="on: 'pair ; t', per: k")
    cluster = Cluster(book, range(COUNT))
    keys = [*range(40)]
    for number, name in enumerate("ab", start=1):
        rows = [(name, number * SECOND, {"k": key, "v": 0}) for key in keys]
        found = cluster.apart(identified(batches(book, rows), number), number * SECOND)
    assert sum(map(len, found)) == len(keys)
    given = identified(batches(book, [("t", 3 * SECOND, {})]), 3)
    (found_,) = cluster.together(given, 3 * SECOND)
    of_a = found_.event_row[found_.event_code == found_.events.index("a")]
    assert found_.batches["a"].ids["set"][of_a, 0].tolist() == keys
    assert found_.keys.column("k").to_pylist() == keys


def unexpired(carried: Carried, detector: Detector, watermark: int) -> Carried:
    """Without what is too old to be of any use, and the occurrences that only this refers to: it is
    dropped where something happens in its partition."""
    kept, graph = dict(carried.tables), detector.graph
    for name, table in carried.tables.items():
        node = graph.nodes.get(name.removeprefix("node:").partition("/")[0])
        if node is not None and node.horizon_micros is not None:
            oldest = node.oldest(watermark - detector.behind_micros(node.digest))
            kept[name] = table.filter(pc.greater_equal(table.column("start"), oldest))
    return referred_to(kept, graph)


def referred_to(tables: Mapping[str, pa.Table], graph: Graph) -> Carried:
    """Without occurrences that nothing refers to."""
    occurrences = frozenset(place(name)[0] for name in tables if name.startswith("occ:"))
    kept, before = dict(tables), -1
    while before != (before := sum(map(len, kept.values()))):
        kept = dict(_referred_to(Parts.of(kept), graph, occurrences))
    return Carried(kept)


def of_keys(carried: Carried, graph: Graph) -> Carried:
    """Without what nodes with keys carry of every key: it stays where a step sees some keys."""
    kept = {
        name: table.filter(pc.invert(table["every"])) if name in keyed(carried, graph) else table
        for name, table in carried.tables.items()
    }
    return referred_to(kept, graph)


def lacking(apart: Carried, whole: Carried, graph: Graph) -> Counter[str]:
    """What nodes with keys carry of every key where all are stepped together, and do not here. With
    a census it is of the keys not seen yet, which need nothing of others."""
    expected, found = (
        Counter(
            f"{place(name)[0]}: {row}"
            for name in keyed(carried, graph)
            if not graph.nodes[place(name)[0].removeprefix("node:")].census
            for row in rows_of(carried.tables[name].filter(carried.tables[name]["every"]))
        )
        for carried in (whole, apart)
    )
    return expected - found


def keyed(carried: Carried, graph: Graph) -> set[str]:
    """The tables of nodes with keys."""
    return {
        name
        for name in carried.tables
        if (node := graph.nodes.get(place(name)[0].removeprefix("node:")))
        and graph.domain(node) is not None
    }


def differing(one: Carried, other: Carried) -> Counter[str]:
    """The rows that only one of the two carries. What an operator has no use for any more may be
    kept for one step longer, where its executor had nothing to do: no row may differ after two
    steps in turn. Marks of operators, which stand for no occurrence, are left out: one that nothing
    meets any more goes when something happens in its partition. What a mark does is detected."""
    first, second = rows_by_table(one), rows_by_table(other)
    return (first - second) + (second - first)


def rows_by_table(carried: Carried) -> Counter[str]:
    tables = carried.tables.items()
    return Counter(
        f"{name}: {row}" for name, table in tables for row in rows_of(without_marks(table))
    )


def without_marks(table: pa.Table) -> pa.Table:
    """The instances that have entries."""
    if "roles" not in table.column_names:
        return table
    return table.filter(pc.greater(pc.list_value_length(table["roles"]), 0))


def rows_of(table: pa.Table) -> list[str]:
    """The rows without ranks: these count what was ranked with them. Of every key there are key
    columns where a key was seen."""
    return [
        str({n: v for n, v in row.items() if n != "rank" and (n[0] != "k" or v is not None)})
        for row in table.to_pylist()
    ]
