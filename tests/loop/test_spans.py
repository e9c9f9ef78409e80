"""What cannot be read at once, and tables whose schema grows."""

# ruff: noqa: ARG005 - fakes take what the ports give

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import pytest

from tests.support.bench import Bench
from tests.support.memory import SCHEMA, WIDER
from tidegate.engine.core.ports import SinkError
from tidegate.engine.evaluate.requirements import Prepared
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import EngineError


def test_g08_a_span_that_fails_three_times_is_halved_and_nothing_is_dropped(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=8)
    bench.feed.fails = lambda first, last: last - first >= 2
    bench.drain()
    assert bench.feed.read_spans[:4] == [(0, 7)] * 3 + [(0, 3)]
    assert (0, 1) in bench.feed.read_spans
    assert bench.sink.effects == bench.expected()


def test_g08_a_failure_that_passes_does_not_cut_the_bucket(store: SqlStore) -> None:
    bench = Bench(store, commits=4)
    bench.feed.fails = lambda first, last: len(bench.feed.read_spans) < 3
    assert bench.drain() == [8]
    assert bench.feed.read_spans == [(0, 3)] * 3


def test_g08_what_cannot_be_read_at_once_is_read_in_parts_what_is_gone_stops(
    store: SqlStore,
) -> None:
    def refused(code: str) -> None:
        raise EngineError(code, "table `t`: versions cannot be read")

    bench = Bench(store, commits=4)
    bench.feed.fails = lambda first, last: last > first and bool(refused("table-unreadable"))
    bench.drain()
    assert bench.sink.effects == bench.expected()
    bench.feed.commits = 6
    bench.feed.read_spans.clear()
    bench.feed.fails = lambda first, last: bool(refused("version-gone"))
    with pytest.raises(EngineError, match="versions cannot be read"):
        bench.drain()
    assert bench.feed.read_spans == [(4, 5)]


def test_g08_one_instant_that_cannot_be_taken_stops_the_rulebook_by_name(store: SqlStore) -> None:
    bench = Bench(store, commits=4)
    bench.feed.fails = lambda first, last: first <= 2 <= last
    with pytest.raises(EngineError, match=r"t version 2 to 2.* OSError: no space left") as stop:
        bench.drain()
    assert stop.value.code == "bucket-failed"
    assert store.of("loop").buckets.load().cursors["t"].version == 1  # what comes before it is done
    assert bench.sink.effects == Counter((rule, n) for rule in "ab" for n in (0, 1))
    bench.feed.fails = lambda first, last: False
    bench.restart()
    bench.drain()
    assert bench.sink.effects == bench.expected()


def test_g16b_a_new_column_is_prepared_for_before_anything_is_stored(store: SqlStore) -> None:
    bench = Bench(store, commits=4)
    bench.feed.schemas = {2: WIDER}
    failing = [OSError("disk")] * 2
    prepare = bench.loop.ports.prepare

    def failing_at_first(schemas: Mapping[str, str], proven: Collection[str]) -> Prepared:
        if failing:
            raise failing.pop()
        return prepare(schemas, proven)

    bench.loop.ports.prepare = failing_at_first
    bench.drain()
    assert not failing
    assert [schemas["t"] for schemas in bench.prepared] == [SCHEMA, WIDER]
    assert bench.sink.effects == bench.expected()


def test_g16b_a_text_that_no_longer_fits_stops_nobody_and_is_kept(store: SqlStore) -> None:
    """The target has no room for the new column: the statement fails when it runs, as it must."""
    bench = Bench(store, commits=4)
    bench.feed.schemas = {2: WIDER}
    bench.unfit = "a"
    bench.sink.fails = lambda entry: SinkError("[WIDTH]") if entry.number == 3 else None
    bench.drain()
    assert bench.states() == [(3, "pending")]
    bench.sink.fails = lambda entry: None
    bench.clock.later(60)
    bench.drain()
    assert bench.sink.effects == bench.expected()
    assert bench.loop.compiled.capture.used("t", WIDER) == {"id", "more"}  # it reads all there is
