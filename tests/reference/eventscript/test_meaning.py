"""Section 3 to 5 of the page on the reference, a sentence a test."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.reference.eventscript.evaluate import Emission, Event, run
from tests.reference.eventscript.reading import program
from tests.reference.eventscript.times import next_match

SECOND = 1_000_000
BARE = "in {} A, {} B, {} C out {} X, {} Y, {} Z, long N, time T\n"
KEYED = "in long K group(K), {} A out long N, {} X\n"


def emit(text: str, *events: tuple[Any, ...], **options: Any) -> str:
    """Emissions as `name@second`, with a value if there is one, of a `$error` its kind."""
    history = [Event(int(e[0] * SECOND), e[1], e[2] if e[2:] else {}) for e in events]
    for name in ("start", "until"):
        if name in options:
            options[name] *= SECOND
    return " ".join(map(shown, run(program(text), history, **options)))


def shown(emission: Emission) -> str:
    seconds = f"{emission.time / SECOND:g}"
    if emission.output == "$error":
        return f"{emission.value['kind']}@{seconds}"
    value = "" if emission.value == {} else f"={emission.value}"
    return f"{emission.output}@{seconds}{value}"


def test_blocks_run_along_a_path_and_else_by_text() -> None:
    assert emit(BARE + "(B() | A() { !> X(); }) { !> Y(); } | A() { !> Z(); }", (1, "A")) == (
        "X@1 Y@1 Z@1"
    )


def test_a_block_behind_a_loop_runs_after_the_one_inside() -> None:
    text = BARE + "((A() { !> X(); })* B()?)+ { !> Y(); }"
    assert emit(text, (1, "A"), (2, "B")) == "Y@1 X@1 Y@1 Y@2"


def test_an_earlier_block_in_the_text_waits_for_one_that_leads_to_it() -> None:
    text = BARE + "({ !> X(); } A() { !> Y(); })*"
    assert emit(text, (1, "A")) == "X@1 Y@1 X@1"


def test_a_place_runs_once_however_many_paths_reach_it() -> None:
    assert emit(BARE + "(A() | A()) { n = n + 1; !> N(n); }", (1, "A")) == "N@1=1"


def test_each_copy_of_a_block_is_a_place() -> None:
    assert emit(BARE + "(.* A() { !> X(); }){2}", (1, "A"), (2, "A"), (3, "A")) == (
        "X@1 X@2 X@2 X@3 X@3"
    )


def test_an_intersection_without_a_path_runs_nothing() -> None:
    assert emit(BARE + "((A() { !> X(); } B()) & (A() C())) | A()", (1, "A")) == "X@1"
    assert emit(BARE + "((A() { !> X(); } B()) & (B() C())) | A()", (1, "A")) == ""


def test_an_unexpected_event_changes_nothing() -> None:
    text = BARE + "A() (elapse[5 seconds](t) { !> T(t); })"
    assert emit(text, (1, "A"), (3, "B")) == "unexpected@3 T@6=6000000"


def test_after_the_end_everything_is_unexpected() -> None:
    assert emit(BARE + "A()", (1, "A"), (2, "A")) == "unexpected@2"


def test_elapse_counts_from_the_previous_expected_event() -> None:
    text = BARE + "A()* elapse[5 seconds]() { !> X(); }"
    assert emit(text, (1, "A"), (5, "A")) == "X@10"
    assert emit(text, (1, "A"), (6, "A")) == "X@11"
    assert emit(text, (1, "A"), (6.5, "A")) == "X@6 unexpected@6.5"


def test_within_counts_from_when_the_path_first_stood_before_it() -> None:
    text = BARE + "A() B()* (within[5 seconds](t) { !> T(t); } | C())"
    assert emit(text, (1, "A"), (3, "B"), (5, "B"), until=9) == "T@6=6000000"
    assert emit(text, (1, "A"), (3, "B"), (6, "C"), until=9) == ""
    assert emit(text, (1, "A"), (3, "B"), (6.000001, "C"), until=9) == ("T@6=6000000 unexpected@6")


def test_within_counts_anew_where_no_path_stood_before_it() -> None:
    text = BARE + "(A() (within[5 seconds]() { !> X(); } | B()))*"
    assert emit(text, (1, "A"), (2, "B"), (4, "A"), until=9) == "X@9"


def test_within_that_has_happened_counts_anew() -> None:
    text = BARE + "(A() | within[5 seconds]() { !> X(); })*"
    assert emit(text, (1, "A"), (2, "A"), start=0, until=11) == "X@5 X@10"


def test_the_length_of_a_within_counts_as_of_when_it_was_reached() -> None:
    text = BARE + "{ n = 5; } (A() { n = 1; } | within[n seconds]() { !> X(); })*"
    assert emit(text, (1, "A"), (2, "A"), start=0, until=7) == "X@5 X@6 X@7"


def test_arrive_comes_before_named_events_and_elapse_after_them() -> None:
    text = (
        BARE + "(arrive[.::05]() { !> X(); } | elapse[5 seconds]() { !> Y(); } | A() { !> Z(); })"
    )
    assert emit(text, (5, "A"), start=0) == "X@5 unexpected@5"
    text = BARE + "(elapse[5 seconds]() { !> Y(); } | A() { !> Z(); })"
    assert emit(text, (5, "A"), start=0) == "Z@5"


def test_markers_due_together_are_one_event() -> None:
    text = BARE + "(elapse[5 seconds]() { !> X(); } | elapse[5 seconds]() { !> Y(); })*"
    assert emit(text, start=0, until=10) == "X@5 Y@5 X@10 Y@10"


def test_a_timed_event_that_is_not_expected_does_not_happen() -> None:
    text = BARE + "((elapse[5 seconds]() | A()) & A()) { !> X(); }"
    assert emit(text, (6, "A"), start=0) == "X@6"


def test_operands_count_as_of_when_the_marker_is_reached() -> None:
    text = BARE + "{ n = 2; } (A() { n = n + 1; } | elapse[n seconds]() { !> N(n); n = 0; })*"
    assert emit(text, (1, "A"), (2, "A")) == "N@6=4 elapse@6"


def test_without_until_a_pending_elapse_runs_out_once() -> None:
    text = BARE + "A() (elapse[2 seconds]() { !> X(); })*"
    assert emit(text, (1, "A")) == "X@3"
    assert emit(text, (1, "A"), until=7) == "X@3 X@5 X@7"


def test_simultaneous_events_go_by_declaration_then_columns_then_value() -> None:
    text = "in {} A, {long i; long j;} M out long N\n(A() { !> N(9); } | M(m) { !> N(m.i); })*"
    events = [(1, "M", {"i": 2, "j": 1}), (1, "M", {"i": 1, "j": 2}), (1, "A")]
    assert emit(text, *events) == "N@1=9 N@1=1 N@1=2"
    assert emit(text, *events, order_by={"M": ["j"]}) == "N@1=9 N@1=2 N@1=1"
    assert emit(text, *events, emitted={"M": "other"}) == "N@1=9 N@1=2 N@1=1"


def test_outputs_of_one_script_come_as_they_were_emitted() -> None:
    """In the place of the first input that takes one of them."""
    text = "in {} A, {} B, {} C, {} D out {} X\n(D() A() B() C() {!> X();})*"
    events = [(1, name) for name in "BDCA"]
    assert emit(text, *events, emitted={"A": "one", "D": "one"}) == "X@1"


def test_a_key_starts_before_its_first_event_and_has_its_own_variables() -> None:
    text = KEYED + "{ !> X(); } (K(k) { n = n + 1; !> N(n * 10 + group[0]); })*"
    assert emit(text, (1, "K", 1), (2, "K", 2), (3, "K", 1)) == ("X@1 N@1=11 X@2 N@2=12 N@3=21")


def test_an_input_without_group_goes_to_the_instances_that_exist() -> None:
    text = KEYED + "(K(k) | A() { !> N(k); })*"
    assert emit(text, (1, "A"), (2, "K", 2), (3, "K", None), (4, "A"), (5, "K", 1)) == (
        "N@4=None N@4=2"
    )


def test_a_value_that_no_condition_takes_is_no_event() -> None:
    text = "in long K case {K > 2 ? Big : K > 1 ? Mid} out long N\n(Big(k) | Mid(k)) { !> N(k); }"
    assert emit(text, (1, "K", 1), (2, "K", 2)) == "N@2=2"


@pytest.mark.parametrize(
    ("value", "shows"),
    [
        ("1 / 0 + 5", "arithmetic@1 N@1=5"),
        ("(0 - 7) / 2", "N@1=-3"),
        ("(0 - 7) % 2", "N@1=-1"),
        ("9223372036854775807 + 1", "N@1=-9223372036854775808"),
        ("a[3]", "index@1 N@1=0"),
        ("n", "N@1=None"),
        ("n + 1", "null@1 N@1=0"),
    ],
)
def test_a_failing_expression_gives_its_default(value: str, shows: str) -> None:
    assert emit(BARE + f"A() {{ a = new long[2]; n = 0; n = null; !> N({value}); }}", (1, "A")) == (
        shows
    )


def test_arrays_are_values() -> None:
    text = (
        BARE
        + "A() { a = new long[1]; b = a; b[0] = 5; for (x: a) { a = b; !> N(x); } !> N(a[0]); }"
    )
    assert emit(text, (1, "A")) == "N@1=0 N@1=5"


def test_over_a_limit_the_transition_is_undone_and_the_script_parked() -> None:
    text = BARE + "(A() { !> X(); } | B() { !> Y(); while (true) {} })*"
    assert emit(text, (1, "A"), (2, "B"), (3, "A"), steps_max=50) == "X@1 runaway@2"


def test_too_many_paths_park_the_script() -> None:
    assert emit(BARE + ".* A() .{9}", *[(n, "A") for n in range(9)], paths_max=5) == "runaway@3"


@pytest.mark.parametrize(
    ("components", "after", "then"),
    [
        ((None, None, None, 2, 30, 0), "2026-03-28T12:00", "2026-03-29T01:00"),  # 02:30 is skipped
        ((None, None, None, None, 30, 0), "2026-03-29T00:30", "2026-03-29T01:30"),
        ((None, None, None, None, 30, 0), "2026-10-25T00:30", "2026-10-25T01:30"),  # 02:30 again
        ((None, None, None, 2, 30, 0), "2026-03-29T12:00", "2026-03-30T00:30"),
        ((None, None, None, 2, 30, 0), "2026-10-24T12:00", "2026-10-25T00:30"),  # comes twice
        ((None, None, None, 2, 30, 0), "2026-10-25T00:30", "2026-10-26T01:30"),
        ((None, 2, 29, 0, 0, 0), "2026-01-01T00:00", "2028-02-28T23:00"),
        ((None, 2, 30, 0, 0, 0), "2026-01-01T00:00", None),
        ((2025, None, None, 0, 0, 0), "2026-01-01T00:00", None),
        ((None, None, None, None, 0, 0), "2026-01-01T00:00", "2026-01-01T01:00"),
    ],
)
def test_arrive_in_berlin(components: tuple[int | None, ...], after: str, then: str | None) -> None:
    found = next_match(components, micros(after), "Europe/Berlin")
    assert found == (None if then is None else micros(then))


def micros(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND
