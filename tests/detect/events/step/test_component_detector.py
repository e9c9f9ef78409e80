"""Components that are stepped apart, by partition, through bytes, find what one step finds (G26)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.detect.events.step.test_apart import differing, identified, lines_of
from tests.reference.cuts import cuts
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import detecting, noted, noting, saw
from tests.reference.planted import cases
from tests.reference.strategies import EVERYTHING, PLACE, SECOND
from tests.support.history import batches, buckets, through_ipc
from tests.support.rulebooks import loaded
from tidegate.engine.core.clocks import clock_batches
from tidegate.engine.core.columns.ids import constituent_ids, firing_ids
from tidegate.engine.core.values import Batch, Carried, Detections
from tidegate.engine.detect.events.graph.graph import Graph
from tidegate.engine.detect.events.graph.search_limits import RuleLimitError
from tidegate.engine.detect.events.step.component_detector import ComponentDetector, Shares
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.model import Context, Rulebook, SignalEvent

EXAMPLES = 150
COUNTS = (1, 3, 4, 16)

Batches = dict[str, Batch]


def in_process(run: Callable[[bytes], bytes], tasks: Sequence[bytes]) -> Iterable[bytes]:
    """As executors do it: the function and what it is given are pickled."""
    return [pickle.loads(pickle.dumps(run))(task) for task in tasks]


def by_keys(draw: st.DrawFn, rulebook: Rulebook) -> Rulebook:
    """The rulebook with a second key column `m` of each keyed event type, by which some of its
    rules count in place of `k`."""
    events = {
        name: replace(event, fields={**event.fields, "m": "bigint"})
        if isinstance(event, SignalEvent) and "k" in event.fields
        else event
        for name, event in rulebook.events.items()
    }
    rules = {}
    for name, rule in rulebook.rules.items():
        per = rule.pattern.per
        if draw(st.booleans()) and per.keys() <= events.keys():
            per = {e: tuple("m" if c == "k" else c for c in cs) for e, cs in per.items()}
            names = tuple("m" if n == "k" else n for n in rule.pattern.key_names)
            rule = replace(rule, pattern=replace(rule.pattern, per=per, key_names=names))
        if all(set(per.get(used, rules[used].pattern.key_names)) <= {*rules[used].pattern.key_names}
               for used in per.keys() & rules.keys()):  # fmt: skip
            rules[name] = rule
    return replace(rulebook, events=events, rules=rules or rulebook.rules)


@st.composite
def of_two_keys(draw: st.DrawFn) -> tuple[Rulebook, list[Line]]:
    """A rulebook whose rules count by k, by m or by nothing, and a history of it."""
    drawn = cases(operators=EVERYTHING, contexts=list(Context), depth=2, rules_max=3)
    rulebook, history = draw(drawn)
    book = by_keys(draw, rulebook)
    other = st.sampled_from([None, None, 1, 2])
    lines = [
        (name, time, fields | {"m": fields["k"] if (m := draw(other)) is None else m})
        if "k" in fields
        else (name, time, fields)
        for name, time, fields in history
    ]
    return book, lines


def ids_of(found: Detections) -> list[str]:
    """The firing ids of a rule's detections, in order."""
    ids = constituent_ids(found, {})
    of = firing_ids("b", found.rule, found.keys, found.start, found.end, found.offsets, ids)
    return [f"{high:x}{low:x}" for high, low in of.tolist()]


def told(found: Sequence[Detections]) -> list[tuple[str, list[str], list[str]]]:
    """Of each rule its detections, in order, and their ids."""
    return [(d.rule, lines_in_order(d), ids_of(d)) for d in found]


def lines_in_order(found: Detections) -> list[str]:
    one = [(i, lines_of([_only(found, i)])[0]) for i in range(len(found))]
    return [line for _, line in sorted(one)]


def _only(found: Detections, i: int) -> Detections:
    return replace(
        found,
        keys=found.keys.slice(i, 1),
        start=found.start[i : i + 1],
        end=found.end[i : i + 1],
        offsets=found.offsets[i : i + 2],
    )


def timed(detections: Sequence[Detections]) -> bool:
    return any(batch.event == "tick" for d in detections for batch in d.batches.values())


@noting(
    broadcasts=4, some_keyed=2, some_the_drivers=4, two_components=12, timers_stopped=12,
    modes_changed=3, partitions_changed=3,
)  # fmt: skip
@detecting
def test_g26_components_stepped_apart_are_the_rulebook_stepped_whole() -> None:
    """Detections, their order, ids and what is carried: through bytes, over any number of
    partitions and tasks, and with the mode changing from bucket to bucket."""

    @given(data=st.data())
    @example_count(EXAMPLES)
    def some(data: st.DataObject) -> None:
        rulebook, history = data.draw(of_two_keys())
        first = min(time for _, time, _ in history)
        since = dict.fromkeys(rulebook.rules, first)
        whole = Detector(rulebook, since)
        apart = ComponentDetector(rulebook, since, in_process, 4)
        keyed, rest = apart.components.keyed, apart.components.rest
        noted("some keyed", bool(keyed))
        noted("some the drivers", bool(rest) and bool(keyed))
        noted("two components", len(keyed) > 1)
        heard = {e for c in keyed for e, columns in c.events.items() if columns is None}
        lines = sorted(history, key=lambda line: line[1])
        ends = {*data.draw(cuts(rulebook, lines)), lines[-1][1], lines[-1][1] + 5 * SECOND}
        carried, shares = Carried(), Shares()
        count, mode, stopped, found = 1, data.draw(st.booleans()), False, list[Any]()
        changes, recuts, unlike, watermark = 0, 0, differing(carried, carried), first - 1
        for number, (until, bucket) in enumerate(buckets(lines, ends)):
            clocks = clock_batches(rulebook, watermark + 1, until)
            given_ = identified(batches(rulebook, bucket) | clocks, number)
            of_whole, carried, _ = whole.step(carried, given_, until, partitions=count)
            limit = data.draw(st.sampled_from([None, None, 1, 2]))
            if mode != (mode := data.draw(st.booleans())):
                changes += 1
            steps, reached = list[Sequence[Detections]](), watermark
            while reached < until:
                left = {
                    e: b.take(np.flatnonzero(b.time > reached)) for e, b in given_.items()
                }
                if mode:
                    last, count = count, data.draw(st.sampled_from(COUNTS))
                    recuts += last != count
                    tasks = data.draw(st.integers(1, 4))
                    of_apart, shares, reached = apart.step(
                        shares, left, until, limit=limit, partitions=count, tasks=tasks
                    )
                else:
                    both = through_ipc(apart.united(shares)) if shares.each else Carried()
                    of_apart, both, reached = whole.step(
                        both, left, until, limit=limit, partitions=count
                    )
                    shares = apart.divided(through_ipc(both))
                stopped |= mode and reached < until
                steps.append(of_apart)
            if len(steps) == 1:
                assert told(steps[0]) == told(of_whole)
            assert sorted(line for step in steps for line in lines_of(step)) == lines_of(of_whole)
            carried = whole.cut_anew(through_ipc(carried), count)
            before, unlike = unlike, differing(apart.united(shares), carried)
            assert not before & unlike
            found += of_whole
            watermark = until
        noted("broadcasts", bool(heard & {name for name, _, _ in lines}))
        noted("timers stopped", stopped)
        noted("modes changed", changes > 0)
        noted("partitions changed", recuts > 0)
        saw(found)

    some()
