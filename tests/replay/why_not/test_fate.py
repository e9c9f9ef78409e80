"""What became of a detection: which firing damping counts from, and which entries hold it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.replay.why_not.misses import book, line, with_entry
from tests.replay.why_not.runs import at, run
from tests.support.make import entry
from tidegate.engine.core.entries import Entry, Progress, Turn
from tidegate.engine.replay.why_not.evidence import DroppedRow, Evidence, RefusedRow, Rung
from tidegate.engine.replay.why_not.ladder import ladder


def last(evidence: Evidence, instant: int, since: int | None = None) -> Rung:
    return ladder(evidence, "r", {"k": 7}, instant, since)[-1]


def test_a_throttle_lets_again_when_the_oldest_of_those_it_counts_is_over() -> None:
    """At 680 it counts those of 100 and 650; that of 0 is over."""
    lines = [line("a", seconds) for seconds in (0, 100, 650, 680)]
    evidence = run(book("a", "throttle: 2 per 10 min"), lines, 900)
    told = last(evidence, at(680), at(680))
    assert (told.name, told.evidence["until"]) == ("damping", at(700))


def test_damping_does_not_count_from_a_firing_whose_condition_failed() -> None:
    lines = [line("a", 0, v=9), line("a", 100, v=1), line("a", 200, v=9)]
    evidence = run(book("a", "if: max(v) > 5, cooldown: 10 min"), lines, 900)
    told = last(evidence, at(200), at(200))
    assert (told.name, told.evidence["until"]) == ("damping", at(600))
    assert "; it fired at 09:00:00, so `cooldown` drops until 09:10:00." in told.sentence


def of_entries(*entries: Entry) -> Rung:
    evidence, id = with_entry(Random(1))
    mine = [replace(one, firing_ids=(id,)) if one.number == 5 else one for one in entries]
    return last(replace(evidence, entries=mine), at(900))


def test_an_entry_does_not_wait_behind_a_later_one() -> None:
    mine = entry("r", number=5, turn=Turn(place=5))
    held = Progress(state="held", attempts=3, error="table t is missing")
    other = entry("r", firing_ids=("00" * 16,), number=6, progress=held)
    assert of_entries(mine, replace(other, turn=Turn(place=6))).name == "fired"
    assert of_entries(mine, replace(other, turn=Turn(place=4))).name == "held"


def test_a_firing_is_not_held_by_what_was_to_be_done_otherwise() -> None:
    dead = Progress(state="dead", attempts=3, error="table t is missing")
    alternative = entry("r", number=5, progress=dead, alternative=True)
    assert of_entries(alternative).name == "fired"
    assert of_entries(replace(alternative, alternative=False)).name == "held"


def test_a_row_rejected_at_the_first_or_last_instant_that_is_asked_for_is_told() -> None:
    for seconds, told in ((499.999999, "rejected"), (500, "rejected"), (500.000001, "occurrences")):
        refused = [RefusedRow("b", at(seconds), "late", {"k": 7, "v": 1})]
        evidence = run(book("a ; b"), [line("a", 100)], 900, refused=refused)
        assert last(evidence, at(500)).name == told
    for seconds, told in ((50, "rejected"), (49.999999, "occurrences")):
        refused = [RefusedRow("a", at(seconds), "late", {"k": 7, "v": 1})]
        evidence = run(book("a ; b"), [line("b", 100)], 900, since=50, refused=refused)
        assert last(evidence, at(500)).name == told


def test_no_more_than_three_other_keys_are_told() -> None:
    others = (6, 8, 77, 70, 17, 71)
    lines = [line("a", 10), *(line("b", 20 + n, k) for n, k in enumerate(others))]
    near = last(run(book("a ; b"), lines, 900), at(500)).evidence["near"]
    assert [one["key"]["k"] for one in near] == [8, 6, 71]


def test_an_old_value_that_a_filter_names_is_told_as_it_was() -> None:
    row, old = {"k": 7, "v": 1}, {"k": 7, "v": 4}
    dropped = [DroppedRow("b", at(300), "where", "old.v < 3", row, old)]
    told = last(run(book("a ; b"), [line("a", 100)], 900, dropped=dropped), at(500))
    assert (told.name, told.evidence["values"]) == ("where", {"old.v": 4})


def test_what_lies_before_the_kept_history_begins_there_to_the_microsecond() -> None:
    for instant, said in ((99, "cannot be told"), (100, "became active only at 09:03:20")):
        evidence = replace(run(book("a ; b"), [line("a", 250)], 900, since=200), known_from=at(100))
        told = last(evidence, at(instant))
        assert (told.name, said in told.sentence) == ("active", True), told.sentence
