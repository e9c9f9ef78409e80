"""What became of detections: fired, condition failed, damped and dead are four numbers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.bench import BOOK, Bench
from tidegate.connectors.http.metrics import Metrics
from tidegate.connectors.http.rulebooks import Source
from tidegate.engine.cli.screens import status_lines
from tidegate.engine.control.status import status_of
from tidegate.engine.core.values import Answers, Failure, Question
from tidegate.engine.store import SqlStore

IF = "a: {on: row, if: id > 0,"
DETACHED = "a: {on: row, coupling: detached, if: id > 0,"


class Saying:
    """Conditions that hold for no firing, for all, or fail."""

    def __init__(self, said: str) -> None:
        self.said = said

    def hold(self, questions: Sequence[Question]) -> Answers:
        if self.said == "fails":
            return Answers(failed={q.asked: Failure("division by zero", "") for q in questions})
        ids = (one for q in questions for one in q.relation["firing_id"].to_pylist())
        return Answers(held=frozenset(ids if self.said == "holds" else ()))


def counts(store: SqlStore) -> tuple[dict[str, int], bool]:
    """Of rule a; and whether it says when it fired last."""
    status = store.of("loop").status.shown()
    (row,) = (row for row in status["rules"] if row["rule"] == "a")
    names = ("fired", "condition_failed", "damped", "dead")
    found = {name: row[name] for name in names if row[name]}
    assert store.of("loop").firings.totals("a").shown == {name: row[name] for name in names}
    return found, row["last_fired"] is not None


@pytest.mark.parametrize("text", [IF, DETACHED])
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("holds", ({"fired": 4}, True)),
        ("no", ({"condition_failed": 4}, False)),
        ("fails", ({"dead": 4}, False)),
    ],
)
def test_what_did_not_fire_counts_as_what_became_of_it(
    store: SqlStore, text: str, said: str, expected: tuple[dict[str, int], bool]
) -> None:
    """With a detached condition nothing is counted before its answer."""
    retried = "{on: row, retry: {attempts: 1},"
    bench = Bench(store, 4, BOOK.replace("a: {on: row,", text.replace("{on: row,", retried)))
    bench.conditions = Saying(said)
    bench.restart()
    bench.drain()
    bench.loop.work()
    assert counts(store) == expected
    if said == "fails":
        bench.conditions.said = "holds"
        store.of("loop").controls.ask("redrive", "1")
        bench.drain()
        bench.loop.work()
        assert counts(store) == ({"fired": 4}, True)


def test_screen_and_monitor_show_the_four_numbers(store: SqlStore) -> None:
    bench = Bench(store, 4, BOOK.replace("a: {on: row,", IF))
    bench.conditions = Saying("no")
    bench.restart()
    bench.drain()
    status = {**status_of(store, bench.book), "next_timers": [], "held_back": []}
    lines = list(status_lines(status, 100))
    assert "4 fired, 4 whose condition failed, " in lines[2]
    (row,) = (line.split() for line in lines if line.startswith("a "))
    assert row == ["a", "active", "-", "0", "4", "0", "0", "0"]
    figures = Metrics(Source(store)).text({"loop": {**status, "stage_seconds": {}}}).decode()
    for name, number in (("firings_total", 0), ("firings_condition_failed_total", 4)):
        assert f'tidegate_{name}{{rule="a",rulebook="loop"}} {number}.0' in figures
