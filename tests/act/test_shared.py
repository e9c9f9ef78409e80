"""Entries that share a commit, and those that do not (G16, G17)."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.support.acting import FakeLedger, FakeSink, Unasked, executors
from tests.support.make import firings, numbered
from tests.support.rulebooks import rule, rulebook
from tidegate.engine.act.queues import Waiting
from tidegate.engine.act.run import Runner
from tidegate.engine.act.shared import SharedCommits
from tidegate.engine.act.threads import Crew
from tidegate.engine.core.entries import Entry, Fate, Progress
from tidegate.engine.core.ports import OutageError, SinkError, StoppedError
from tidegate.engine.core.values import Firings
from tidegate.rules.errors import EngineError

INSERT = {"target": "x", "appends": True}
MERGE = {"target": "x"}
WAIT = 20  # seconds that a test waits for what never comes


class Together(FakeSink):
    """`groups`: the numbers of each shared commit that was tried; `alone`: of each statement."""

    def __init__(self, failing: dict[int, int] | None = None) -> None:
        super().__init__(failing)
        self.groups, self.alone = list[list[int]](), list[int]()
        self.left_out = set[int]()
        self.lost: EngineError | None = None  # is raised
        self.until: Callable[[], object] = lambda: None
        self.ran: dict[int, threading.Event] = defaultdict(threading.Event)

    def run(self, entry: Entry, firings: Firings) -> None:
        self.alone.append(entry.number)
        super().run(entry, firings)
        self.ran[entry.number].set()

    def run_together(self, entries: Sequence[tuple[Entry, Firings]]) -> None:
        self.groups.append([entry.number for entry, _ in entries])
        self.until()
        if self.lost:
            raise self.lost
        for number in self.groups[-1]:
            if self.failing.get(number):
                raise AssertionError(f"entry {number} fails in its own way")
        self.committed += [n for n in self.groups[-1] if n not in self.left_out]


def runner(sink: FakeSink, size: int = 2, unread: Sequence[str] = ("x",), most: int = 50) -> Runner:
    book = rulebook(*(rule(name=name) for name in "abcdef"))
    ledger = FakeLedger(firings("a", condition=["held"]))
    commits = SharedCommits(sink, lambda table: table in unread, most)
    crew = Crew("test", size)
    run = executors(sink, lambda: 0)
    return Runner(book, run, ledger, lambda: None, lambda: 0, crew, shared=commits)


def acted(*entries: Entry, **more: Any) -> Together:
    """The sink after the entries, all of which are done."""
    sink = Together()
    one = runner(sink, **more)
    one.add(entries, [])
    assert one.work(Unasked()) == len(entries)
    assert len(one.queues) == 0
    assert sorted(sink.committed) == [entry.number for entry in entries]
    return sink


@pytest.mark.parametrize("size", [1, 2])
def test_g16_inserts_of_several_rules_into_one_table_share_a_commit(size: int) -> None:
    names = ["a", "b", "c", "a", "a"]
    sink = acted(*(numbered(n, name, **INSERT) for n, name in enumerate(names, 1)), size=size)
    assert (sink.groups, sink.alone) == ([[1, 2, 3, 4, 5]], [])


def test_g16_two_tables_have_two_shared_commits() -> None:
    entries = [numbered(n, "abcd"[n - 1], target="xy"[n % 2], appends=True) for n in range(1, 5)]
    sink = acted(*entries, unread=("x", "y"))
    assert (sorted(sink.groups), sink.alone) == ([[1, 3], [2, 4]], [])


def test_those_that_share_a_commit_take_one_pair_of_hands() -> None:
    """The other pair is free for the fourth once the third has ended."""
    sink = Together()
    sink.until = lambda: sink.ran[4].wait(WAIT) or sink.groups.append([])
    one = runner(sink, size=2)
    given = [INSERT, INSERT, {"target": "y"}, {"target": "z"}]
    one.add([numbered(n, "abcd"[n - 1], **more) for n, more in enumerate(given, 1)], [])
    assert one.work(Unasked()) == 4
    assert (sink.groups, sink.committed) == ([[1, 2]], [3, 4, 1, 2])


@pytest.mark.parametrize(
    "other",
    [
        MERGE,
        {**INSERT, "target": "y"},
        {**INSERT, "reads": frozenset({"z"})},
        {**INSERT, "stage": 1},
        {**INSERT, "bucket": 10},
        {**INSERT, "kind": "unmarked"},
    ],
)
def test_g16_what_is_no_plain_insert_of_the_same_kind_runs_alone(other: dict[str, Any]) -> None:
    sink = acted(numbered(1, "a", **INSERT), numbered(2, "b", **other))
    assert (sink.groups, sorted(sink.alone)) == ([], [1, 2])


def test_g16_tables_that_somebody_watches_are_written_one_by_one() -> None:
    sink = acted(numbered(1, "a", **INSERT), numbered(2, "b", **INSERT), unread=())
    assert (sink.groups, sorted(sink.alone)) == ([], [1, 2])


def test_g15_none_joins_over_one_that_excludes_it() -> None:
    """Neither the next rule's, nor the next of the same rule."""
    heads = (numbered(1, "a", **INSERT), numbered(2, "b", **MERGE), numbered(3, "c", **INSERT))
    sink = acted(*heads, numbered(4, "a", **INSERT))
    assert sink.committed[:2] == [1, 2]
    assert sink.groups == [[3, 4]]
    assert sink.alone == [1, 2]


def test_g15_a_rules_entry_of_a_later_stage_waits_for_the_stage_before_it() -> None:
    """An immediate rule has one stage an instant: another rule may write between two of them."""
    later, between = {**INSERT, "stage": 1}, {"target": "y"}
    entries = [numbered(1, "a", **INSERT), numbered(2, "a", **later), numbered(3, "b", **between)]
    sink = acted(*entries, size=1)
    assert (sink.groups, sink.committed) == ([], [1, 3, 2])


def test_g16_what_a_shared_commit_leaves_out_runs_alone() -> None:
    sink = Together()
    sink.left_out = {2}
    one = runner(sink)
    one.add([numbered(n, "abc"[n - 1], **INSERT) for n in (1, 2, 3)], [])
    assert one.work(Unasked()) == 3
    assert (sink.groups, sink.alone) == ([[1, 2, 3]], [2])


def test_g18_what_may_have_been_sent_with_an_earlier_one_of_its_rule_waits_for_it() -> None:
    commits, its = SharedCommits(FakeSink(landed=[3]), lambda _: True, 50), firings("a")
    first, second, third = (numbered(n, "a", **INSERT) for n in (1, 2, 3))
    with pytest.raises(SinkError, match="with entry 1"):
        commits.passed_over(second, its, [first])
    assert commits.passed_over(third, its, [first, second]) is Fate.EFFECT
    for other in (numbered(1, "a", **{**INSERT, "bucket": 10}), numbered(1, "a", **MERGE)):
        assert commits.passed_over(second, its, [other]) is Fate.SEALED


def test_g17_after_a_failure_each_is_tried_alone_and_nobody_waits_for_another() -> None:
    sink = Together({2: 1})
    one = runner(sink)
    one.add([numbered(n, "abc"[n - 1], **INSERT) for n in (1, 2, 3)], [])
    assert one.work(Unasked()) == 2
    assert (sink.groups, sorted(sink.alone)) == ([[1, 2, 3]], [1, 2, 3])
    [left] = one.queues
    assert (left.entry.number, left.entry.progress.attempts, left.tried) == (2, 1, True)
    assert "DIVIDE_BY_ZERO" in str(left.entry.progress.error)


@pytest.mark.parametrize("size", [1, 2])
def test_g17_after_a_failure_the_later_entries_of_its_rule_wait_for_the_first(size: int) -> None:
    """Their greater marker would pass over it."""
    sink = Together({1: 1})
    one = runner(sink, size)
    one.add([numbered(n, "aab"[n - 1], **INSERT) for n in (1, 2, 3)], [])
    assert one.work(Unasked()) == 1
    assert (sink.groups, sorted(sink.alone)) == ([[1, 2, 3]], [1, 3])
    assert [(w.entry.number, w.entry.progress.attempts) for w in one.queues] == [(1, 1), (2, 0)]


def test_a_stop_before_a_shared_commit_leaves_its_entries_as_they_are() -> None:
    sink = Together()
    sink.lost = StoppedError("between two statements")
    one = runner(sink)
    one.add([numbered(n, "ab"[n - 1], **INSERT) for n in (1, 2)], [])
    assert one.work(Unasked(), lambda: bool(sink.groups)) == 0
    assert (sink.groups, sink.alone) == ([[1, 2]], [])
    assert [waiting.entry.progress for waiting in one.queues] == [Progress()] * 2


def test_an_outage_ends_the_run_before_any_runs_alone() -> None:
    sink = Together()
    sink.lost = OutageError("table-unreadable", "away")
    one = runner(sink)
    one.add([numbered(n, "ab"[n - 1], **INSERT) for n in (1, 2)], [])
    with pytest.raises(OutageError):
        one.work(Unasked())
    assert sink.alone == []


def test_g16b_entries_of_an_earlier_run_are_asked_for_and_share_nothing() -> None:
    sink = Together()
    one = runner(sink)
    one.load([numbered(n, "ab"[n - 1], **INSERT) for n in (1, 2)])
    assert one.work(Unasked()) == 2
    assert (sink.groups, sorted(sink.alone)) == ([], [1, 2])


def test_the_end_of_spark_ends_the_run_before_any_runs_alone() -> None:
    sink = Together()
    sink.lost = EngineError("spark-lost", "Java has ended", "")
    one = runner(sink)
    one.add([numbered(n, "ab"[n - 1], **INSERT) for n in (1, 2)], [])
    with pytest.raises(EngineError, match="Java has ended"):
        one.work(Unasked())
    assert sink.alone == []
    one.load([])  # waits for all that runs


def test_a_shared_commit_has_so_many_entries_at_most() -> None:
    sink = acted(*(numbered(n, "a", **INSERT) for n in range(1, 8)), most=3)
    assert (sink.groups, sink.alone) == ([[1, 2, 3], [4, 5, 6]], [7])
    sink = acted(*(numbered(n, "a", **INSERT) for n in range(1, 4)), most=1)
    assert (sink.groups, sink.alone) == ([], [1, 2, 3])


def test_one_that_waits_for_a_retry_keeps_the_next_of_its_rule_out() -> None:
    one = runner(Together())
    one.queues.put([Waiting(numbered(n, "a", **INSERT), due) for n, due in ((2, 5), (3, 0))])
    one.queues.put([Waiting(numbered(1, "b", **INSERT))])
    first = next(one.queues.ready(0, ()))
    found = one.queues.beside(first, 0, (), lambda _: True, 9)
    assert [waiting.entry.number for waiting in found] == [1]
