"""Rows by their own time, which come late, where executors detect (G5, G26)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.loop.test_event_time import LATENESS, OPERATORS, committed, over_tables
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import detecting, noted, noting, resuming, saw
from tests.reference.planted import cases
from tests.reference.strategies import SECOND
from tests.support.executors import InProcess
from tests.support.live import Live, RowsFeed
from tidegate.engine.core.ports import ReadRequest
from tidegate.engine.core.values import TableRange
from tidegate.engine.detect.events.state import partitions
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.store import SqlStore, shelf
from tidegate.rules.analysis.graph import lateness_micros
from tidegate.rules.model import IN_STORE, Context, Settings, Table, TableEvent

NUMBERS = itertools.count()


class KeyedFeed(RowsFeed):
    """Its rows have their key as `id`."""

    keys: dict[tuple[str, int, int], int | None]

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        rows = super().read(table, span, request)
        if "id" not in rows.column_names:
            return rows
        versions = range(span.first, span.last + 1)
        keys = [
            self.keys[table.name, v, n]
            for v in versions
            for n in range(len(self.written[table.name][v][1]))
        ]
        place = rows.column_names.index("id")
        return rows.set_column(place, "id", pa.array(keys, pa.int64()))

    def commit(self, found: Sequence[tuple[int, Line]]) -> None:
        """Commit rows at their instants: those of one instant and table together."""
        keyed = sorted(found, key=lambda each: (each[0], each[1][0]))
        for (_, name), lines in itertools.groupby(keyed, key=lambda each: (each[0], each[1][0])):
            version = len(self.written.get(name, []))
            some = [*lines]
            committed(self, some)
            self.keys |= {(name, version, n): line[2].get("k") for n, (_, line) in enumerate(some)}


@pytest.mark.long
@noting(executors_read=6, files=8, behind=8)
@resuming
@detecting
def test_g05_executors_wait_for_late_rows_as_the_driver_does(
    store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two rules one may wait, and the other one not."""
    paths = [None, str(tmp_path / "one"), IN_STORE]
    ways: list[Literal["driver", "spark"]] = ["driver", "spark", "spark"]

    @given(data=st.data())
    @example_count(60, least=12)
    def some(data: st.DataObject) -> None:
        book, history = data.draw(
            cases(operators=OPERATORS, contexts=list(Context), depth=2, rules_max=3)
        )
        assume(history and all(rule.pattern.per for rule in book.rules.values()))
        assume(not any("j" in c for r in book.rules.values() for c in r.pattern.per.values()))
        waits = data.draw(st.sets(st.sampled_from("ab"), max_size=2))
        book = over_tables(book)
        keyed = {
            n: replace(e, columns={"k": "id", "v": "v"})
            for n, e in book.events.items()
            if isinstance(e, TableEvent)
        }
        book = replace(book, events={**book.events, **keyed})
        plain_events = {
            name: replace(one, time=None, lateness_micros=0)
            if isinstance(one, TableEvent) and name not in waits
            else one
            for name, one in book.events.items()
        }
        limit = data.draw(st.sampled_from([1, 2, 100_000]))
        path = data.draw(st.sampled_from(paths))
        settings = Settings(timers_per_bucket_max=limit, state_partitions=4, state_path=path)
        book = replace(book, events=plain_events, settings=settings)
        monkeypatch.setattr(partitions, "ROWS_MAX", data.draw(st.sampled_from([-1, 2])))
        first, last = (pick(time for _, time, _ in history) for pick in (min, max))
        feed, number = KeyedFeed(), next(NUMBERS)
        feed.keys = {}
        plain = Live(store, book, f"p{number}", first, feed)
        beside = InProcess(split=data.draw(st.sampled_from([1, 5])))
        beside.feed = feed
        filed = Live(
            store,
            replace(book, settings=replace(settings, detect="spark")),
            f"f{number}",
            first,
            feed,
            beside=beside,
        )
        skewed = [
            (line[1] + data.draw(st.integers(0, LATENESS.get(line[0], 0) // SECOND)) * SECOND
             if line[0] in waits else line[1], line)
            for line in history
        ]  # fmt: skip
        drawn = data.draw(st.lists(st.sampled_from([at for at, _ in skewed]), max_size=3))
        end = last + data.draw(st.sampled_from([5, 6, 100])) * SECOND
        before, files = first - SECOND, False
        for now in [*sorted({*drawn}), end]:
            monkeypatch.setattr(shelf, "BYTES_MIN", data.draw(st.sampled_from([1, 1, 10**9])))
            monkeypatch.setattr(shelf, "ROWS_BYTES_MIN", data.draw(st.sampled_from([1, 10**9])))
            fresh = [each for each in skewed if before < each[0] <= now]
            feed.commit([each for each in fresh if each[1][0] != "c"])
            for live in (plain, filed):
                live.signal(line for _, line in fresh if line[0] == "c")
                live.drain(now + 1_000)
            before = now
            files |= bool(Parts.of(filed.loop.state.carried.tables).files)
            if data.draw(st.booleans()):
                detect, path = data.draw(st.sampled_from(ways)), data.draw(st.sampled_from(paths))
                own = replace(filed.book.settings, detect=detect, state_path=path)
                filed.book = replace(filed.book, settings=own)
                filed.restart()
        noted("executors read", beside.splits > 0)
        noted("files", files)
        noted("behind", bool(lateness_micros(book)))
        assert saw(filed.found()) == plain.found()

    some()
