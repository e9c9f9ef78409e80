"""What `why-not` says of windows: what cut them short, what their rows had, when they end."""

from __future__ import annotations

import pytest

from tests.replay.why_not.runs import at, run
from tests.replay.why_not.window_rules import HOLDS, KEPT, OVER, book, lines
from tidegate.engine.replay.why_not.ladder import ladder


def said(
    on: str, history: str, until: float, since: float | None = None, rule: str = "r", more: str = ""
) -> str:
    """The first no, and that it is of the rung `parts`. `until`, `since`: seconds after nine."""
    other = ("over", 1, {"k": 99, "v": 99.0})
    evidence = run(book(on, more), [*lines(history), other], until)
    begin = None if since is None else at(since)
    rungs = ladder(evidence, rule, {"k": 7}, at(until), begin)
    assert rungs[-1].name == "parts", rungs[-1]
    assert not rungs[-1].ok
    return rungs[-1].sentence


# -- holds ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("history", "until", "says"),
    [
        pytest.param(
            "over@0 over@60 ok@180", 900,
            "`over` held for k 7 from 09:00:00 on for only 3 min of the 5 min: `ok` at 09:03:00"
            " ended"
            " it.", id="cut short",
        ),
        pytest.param(
            "over@0 ok@60 over@120 off@360 ok@360 over@400 ok@410", 900,
            "`over` held for k 7 from 09:02:00 on for only 4 min of the 5 min: `off` and `ok` at"
            " 09:06:00 ended it. Of 3 such times this was the longest.",
            id="the longest of several",
        ),
        pytest.param(
            "over@10 ok@310 over@310 ok@320", 900,
            "`over` held for k 7 from 09:00:10 on for 5 min, but `ok` came at the last instant,"
            " 09:05:10, and ended it. Of 2 such times this was the longest.",
            id="an end at the last instant",
        ),
        pytest.param(
            "ok@100 over@100 ok@150",
            900,
            "`over` held for k 7 from 09:01:40 on for only 50 s of the 5 min: `ok` at 09:02:30"
            " ended it.",
            id="an end comes before a beginning at its instant",
        ),
        pytest.param(
            "ok@100 over@100", 280,
            "`over` has held for k 7 since 09:01:40: 3 min of the 5 min at 09:04:40. It is due at"
            " 09:06:40, if no `ok or off` comes.", id="pending",
        ),
    ],
)  # fmt: skip
def test_what_did_not_hold_long_enough(history: str, until: float, says: str) -> None:
    assert said(HOLDS, history, until) == says
    assert said(KEPT, history, until) == says


@pytest.mark.parametrize(
    ("history", "since", "until", "says"),
    [
        pytest.param(
            "over@0 over@400", 350, 900,
            "It fired for k 7 at 09:05:00 and is not over: no `ok or off` came since. It fires once"
            " until then.", id="no end",
        ),
        pytest.param(
            "over@0 ok@400 over@500", 350, 900,
            "It fired for k 7 at 09:05:00 and is not over: `ok` came at 09:06:40, but `over`"
            " again at"
            " 09:08:20, within `keep: 2 min`. It fires once until then.", id="kept",
        ),
        pytest.param(
            "over@0 ok@400 over@400", 350, 900,
            "It fired for k 7 at 09:05:00 and is not over: `ok` came at 09:06:40, but `over`"
            " again at"
            " 09:06:40, within `keep: 2 min`. It fires once until then.", id="kept at once",
        ),
        pytest.param(
            "over@0 ok@400 over@500 off@850", 350, 900,
            "It fired for k 7 at 09:05:00 and is not over: `off` came at 09:14:10, and it is"
            " over at"
            " 09:16:10 if no `over` comes by then. It fires once until"
            " then.", id="about to be over",
        ),
        pytest.param(
            "over@0 ok@400", 350, 900,
            "No `over` came for k 7 since it was over at 09:08:40.", id="over, and nothing since",
        ),
        pytest.param(
            "over@0 ok@400 over@521 ok@600", 350, 900,
            "`over` held for k 7 from 09:08:41 on for only 1 min 19 s of the 5 min: `ok` at"
            " 09:10:00"
            " ended it.", id="over, and cut short",
        ),
    ],
)  # fmt: skip
def test_what_has_fired_before(history: str, since: float, until: float, says: str) -> None:
    assert said(KEPT, history, until, since) == says


def test_what_lasted_long_ago_is_told_only_where_nothing_came_since() -> None:
    history = "over@0 ok@290 over@1000 ok@1010"
    assert "for only 10 s of the 5 min" in said(HOLDS, history, 1100, 1000)
    assert "for only 4 min 50 s of the 5 min" in said(HOLDS, history, 1100)
    assert "for only 10 s of" in said(HOLDS, history, 8_000, 7_000)


def test_what_would_have_fired_when_the_time_that_is_asked_for_begins_is_told() -> None:
    history = "over@0 ok@300 over@310 ok@320"
    assert "came at the last instant, 09:05:00" in said(HOLDS, history, 900, 300)
    assert "for only 10 s of the 5 min" in said(HOLDS, history, 900, 301)


def test_what_came_later_is_not_told() -> None:
    evidence = run(book(HOLDS), lines("over@100 ok@290"), 900)
    found = ladder(evidence, "r", {"k": 7}, at(280))[-1].sentence
    assert found.endswith("It is due at 09:06:40, if no `ok or off` comes.")


def test_what_ends_every_key_is_told() -> None:
    on = "{holds: over, until: [ok, tick], for: 5 min}"
    assert "`tick` at 09:01:40 ended it" in said(on, "over@0 tick@100", 900)


RESOLVED = "  end: {per: k, on: resolved r}\n"


@pytest.mark.parametrize(
    ("history", "says"),
    [
        ("over@0 ok@100", "Rule r had not fired for k 7. `over` held for k 7 from 09:00:00 on for"),
        ("ok@100", "Rule r had not fired for k 7. No `over` came for k 7."),
        ("over@0", "Rule r fired for k 7 at 09:05:00 and is not over: no `ok or off` came since."),
        ("over@0 ok@400 over@500", "`over` again at 09:08:20, within `keep: 2 min`."),
        ("over@0 ok@850", "it is over at 09:16:10 if no `over` comes by then."),
    ],
)
def test_why_it_is_not_resolved(history: str, says: str) -> None:
    assert says in said(KEPT, history, 900, rule="end", more=RESOLVED)


def test_what_was_resolved_before_the_time_that_is_asked_for() -> None:
    found = said(KEPT, "over@0 ok@400", 2_000, 1_000, "end", RESOLVED)
    assert found.endswith("it was last complete at 09:08:40.")


# -- over -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "history", "until", "says"),
    [
        pytest.param(
            OVER, "over@10(8.2)", 60,
            "`fire: avg(v) > 10` was not true for k 7 at 09:00:10: avg(v) is 8.2, of 1 row in 1"
            " min.",
            id="one instant",
        ),
        pytest.param(
            OVER, "over@0(9) over@10(8) over@20(3) over@200(7)", 900,
            "`fire: avg(v) > 10` was true for k 7 at none of 6 instants. Nearest was 09:00:00:"
            " avg(v)"
            " is 9.0, of 1 row in 1 min.", id="the nearest of several",
        ),
        pytest.param(
            "{over: {window: 1 min, of: over, fire: min(v) > 5}}", "over@10(2) over@40(7)", 65,
            "`fire: min(v) > 5` was true for k 7 at none of 2 instants. Nearest was 09:00:40:"
            " min(v)"
            " is 2.0, of 2 rows in 1 min. It is due at 09:01:10, when rows leave the window.",
            id="due when a row leaves",
        ),
        pytest.param(
            "{over: {window: 1 min, of: [over, ok], fire: count(*) > 2 and max(v) > 5}}",
            "over@10(9) over@200(1) ok@210(1) ok@220(2)", 230,
            "`fire: count(*) > 2 and max(v) > 5` was true for k 7 at none of 4 instants. Nearest"
            " was"
            " 09:03:40: count(*) is 3, max(v) is 2.0, of 3 rows in 1 min.", id="several terms",
        ),
        pytest.param(
            "{over: {window: 1 min, of: over, fire: count(*) > 5 and max(v) > 5 and min(v) < 2}}",
            "over@0(9) over@1(9) over@100(1)", 150,
            "`fire: count(*) > 5 and max(v) > 5 and min(v) < 2` was true for k 7 at none of 4"
            " instants."
            " Nearest was 09:00:01: count(*) is 2, max(v) is 9.0, min(v) is 9.0, of 2 rows in 1"
            " min.", id="one term is true of none, each other of some",
        ),
        pytest.param(
            OVER, "over@0(-90) over@100(null)", 150,
            "`fire: avg(v) > 10` was true for k 7 at none of 2 instants. Nearest was 09:00:00:"
            " avg(v)"
            " is -90.0, of 1 row in 1 min.", id="null is nearest to nothing",
        ),
    ],
)  # fmt: skip
def test_a_window_of_which_it_was_not_true(on: str, history: str, until: float, says: str) -> None:
    assert said(on, history, until) == says


@pytest.mark.parametrize(
    ("on", "history", "since", "says"),
    [
        pytest.param(
            OVER, "over@0(20) over@50(9) over@100(12)", 60,
            "`fire: avg(v) > 10` was true for k 7 at 09:01:50, but it had fired at 09:00:00, and"
            " was"
            " not armed again. `rearm: avg(v) < 5` was true for k 7 at none of 4 instants."
            " Nearest was"
            " 09:01:00: avg(v) is 9.0, of 1 row in 1 min.", id="not armed again",
        ),
        pytest.param(
            OVER.replace(", rearm: avg(v) < 5", ""), "over@0(20) over@50(30) over@100(12)", 70,
            "`fire: avg(v) > 10` was true for k 7 at 09:01:50, but it had fired at 09:00:00, and"
            " has"
            " been true ever since.", id="true without a break",
        ),
        pytest.param(
            OVER.replace("avg(v) < 5", "count(*) > 1"), "over@0(20) over@50(30)", 30,
            "`fire: avg(v) > 10` was true for k 7 at 09:00:50, but it had fired at 09:00:00, and"
            " was"
            " armed again only at this instant. It is due at 09:01:00, when rows leave the window.",
            id="armed at that instant",
        ),
    ],
)  # fmt: skip
def test_a_window_that_was_not_armed(on: str, history: str, since: float, says: str) -> None:
    until = 55 if "only at this" in says else 115
    assert said(on, history, until, since) == says


def test_at_an_instant_between_two_changes_the_rows_inside_are_asked() -> None:
    found = said("{over: {window: 1 min, of: over, fire: min(v) > 5}}", "over@10(2)", 60, 60)
    assert found.endswith("was not true for k 7 at 09:00:10: min(v) is 2.0, of 1 row in 1 min.")
    assert said(OVER, "over@0(20)", 30, 30).startswith(
        "No row entered or left its window for k 7 since it fired at 09:00:00."
    )


def test_a_window_without_rows_in_the_time_that_is_asked_for() -> None:
    found = said(OVER, "over@0(20)", 900, 300)
    assert found.startswith("No `{over: {window: 1 min, of: over, fire: avg(v) > 10")
    assert found.endswith("a row in it between 09:05:00 and 09:15:00; the last did at 09:00:00.")


# -- window, session --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "history", "until", "says"),
    [
        pytest.param(
            "{window: 5 min, of: over}", "over@60 over@61", 200,
            "Its window for k 7 is open, with 2 rows between 09:01:00 and 09:01:01: it ends at"
            " 09:05:00.",
            id="tumbling",
        ),
        pytest.param(
            "{window: 10 min, every: 5 min, of: [over, ok]}", "ok@60", 200,
            "Its window for k 7 is open, with 1 row at 09:01:00: it ends at 09:05:00.",
            id="sliding",
        ),
        pytest.param(
            "{session: 30 min, of: over}", "over@60 over@1000", 2_700,
            "Its session for k 7 is open, with 2 rows between 09:01:00 and 09:16:40: it ends at"
            " 09:46:40,"
            " if none comes within 30 min of the last.", id="session",
        ),
        pytest.param(
            "{window: 1 min, every: 5 min, of: over}", "over@60", 400,
            "The row for k 7 at 09:01:00 is in no window: one of 1 min ends every 5 min.",
            id="in none",
        ),
    ],
)  # fmt: skip
def test_a_window_that_has_not_ended(on: str, history: str, until: float, says: str) -> None:
    assert said(on, history, until) == says


def test_a_row_in_no_window_at_a_tick_and_at_the_end_of_the_time() -> None:
    """A window ends at 9:05:00, which its last row is before."""
    on = "{window: 1 min, every: 5 min, of: over}"
    assert "The row for k 7 at 09:05:00 is in no window" in said(on, "over@270 over@300", 500, 400)
    assert "The row for k 7 at 09:06:00 is in no window" in said(on, "over@270 over@360", 360, 330)


def test_a_row_in_no_window_after_one_that_was() -> None:
    found = said("{window: 1 min, every: 5 min, of: over}", "over@270 over@360", 500, 400)
    assert found.startswith("The row for k 7 at 09:06:00 is in no window")


def test_a_window_that_ended_before() -> None:
    found = said("{window: 5 min, of: over}", "over@60", 900, 600)
    assert found == (
        "No `{window: 5 min, of: over}` ended for k 7 with a row in it between 09:10:00 and"
        " 09:15:00;"
        " the last did at 09:05:00."
    )
