"""`[3 business days]`: the detector finds what the reference finds, over changes of the clocks and
holidays, in every context, however the history is cut (S11)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.load import micros, rule
from tests.reference import timing
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import compared, comparing, detecting, drawn_for, resuming, saw
from tests.reference.strategies import expected
from tests.support.history import run
from tidegate.engine.detect.events.graph import local_time
from tidegate.engine.detect.events.graph.calendar import add, add_each
from tidegate.engine.detect.events.graph.search_limits import LimitError
from tidegate.rules.errors import Place
from tidegate.rules.expressions.nodes import BusinessCalendar, BusinessDays, Duration, counted_by
from tidegate.rules.model import Context, EventType, Rulebook, SignalEvent

HOUR, DAY = 3_600_000_000, 86_400_000_000
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Africa/Casablanca"]
CALENDARS = [
    BusinessCalendar(),
    BusinessCalendar(holidays=("DE-BE",)),
    BusinessCalendar((0, 2, 5), ("2026-03-30", "2026-04-04")),
    BusinessCalendar((6,), holidays=("DE", "US")),
]
WEEKENDS = [  # Easter of 2026 behind a night in spring; a night in autumn; Samoa's skipped day
    micros("2026-03-26T00:00"),
    micros("2026-10-23T00:00"),
    micros("2011-12-27T00:00"),
]


def instants(days: int) -> st.SearchStrategy[int]:
    """Instants around nights in which clocks are changed: whole quarters, and beside them."""
    quarters = st.integers(0, days * 96).map(lambda n: n * HOUR // 4)
    return st.builds(sum, st.tuples(st.sampled_from(WEEKENDS), quarters, st.integers(-1, 1)))


@comparing
def test_s11_many_at_once_end_where_the_reference_counts_day_by_day() -> None:
    """`comparing`: at least one in three ends at another hour, or not a whole number of days on."""

    @given(
        st.lists(instants(12), min_size=1, max_size=8),
        st.integers(1, 12),
        st.sampled_from(CALENDARS),
        st.sampled_from(ZONES),
    )
    @example_count(400)
    def ends(anchors: list[int], count: int, calendar: BusinessCalendar, zone: str) -> None:
        duration = BusinessDays(count, calendar)
        found = add_each(np.array(anchors), duration, zone).tolist()
        assert found == [timing.add(anchor, duration, zone) for anchor in anchors]
        naive = [anchor + count * DAY for anchor in anchors]
        compared(found != naive)

    ends()


@given(st.lists(st.integers(-300_000_000, 4_100_000_000), min_size=1), st.sampled_from(ZONES))
@example_count(200)
def test_local_times_are_those_of_the_zone_and_lead_back(seconds: list[int], zone: str) -> None:
    given_ = np.array(seconds) * 1_000_000
    local = local_time.of(given_, zone)
    naive = [timing.to_local(int(t), zone).replace(tzinfo=None) for t in given_]
    assert local.tolist() == [timing.to_micros(n.replace(tzinfo=UTC)) for n in naive]
    back = [timing.moved_forward(n, zone) for n in naive]
    assert local_time.instants(local, zone).tolist() == back


@pytest.mark.parametrize("at", ["2100-01-04T00:00", "2099-12-30T00:00", "-999999999"])
def test_s11_business_days_that_lead_out_of_the_calendar_are_a_limit(at: str) -> None:
    with pytest.raises(LimitError, match="from 1960 to 2099") as caught:
        add(micros(at), BusinessDays(5), "UTC")
    assert caught.value.code == "calendar"


EXPRESSIONS = [
    "not(b)[a, [1 business day]]",
    "a ; [2 business days]",
    "a + [1 business day]",
    "A(a, b, [1 business day])",
    "A(a, b, [1 month])",
    "A*(a, b, [2 business days])",
    "P(a, [1 business day], b)",
    "P(a, [1 day], [2 business days])",
    "P*(a, [1 business day], [3 business days])",
    "P*(a, [1 business day], b)",
    "(a ; b) then no c for 1 business day",
    "not(b)[a, [1 business day]] ; c within 20 days",
    "(a + [1 business day]) ; b",
    "any(2, a, b) ; [1 business day]",
]


@st.composite
def cases(draw: st.DrawFn, text: str, context: Context) -> tuple[Rulebook, list[Line], list[int]]:
    """A rule, a history with rows where something is due, and watermarks there and beside it."""
    calendar, zone = draw(st.sampled_from(CALENDARS[:3])), draw(st.sampled_from(ZONES[:4]))
    events: dict[str, EventType] = {n: SignalEvent(n, Place(), {"k": "bigint"}) for n in "abc"}
    keys = draw(st.sampled_from([(), ("k",)]))
    made = rule("r", text, keys, context.value, None, events, {})
    made = replace(made, pattern=replace(made.pattern, on=counted_by(made.pattern.on, calendar)))
    book = Rulebook("generated", None, "", zone, {}, events, {"r": made})
    begin, times = draw(st.sampled_from(WEEKENDS)), []
    for quarter in draw(st.lists(st.integers(0, 6 * 4), min_size=2, max_size=4)):
        times.append(begin + quarter * 6 * HOUR + draw(st.sampled_from([0, HOUR // 2])))
    length = Duration(1, 0) if "month" in text else BusinessDays(draw(st.integers(1, 2)), calendar)
    dues = [timing.add(time, length, zone) for time in times]
    beside = st.builds(sum, st.tuples(st.sampled_from(dues), st.sampled_from([-1, 0, 1])))
    later = draw(st.lists(beside, min_size=1, max_size=3))
    found = [(draw(st.sampled_from("aab")), time) for time in times]
    found += [(draw(st.sampled_from("bbac")), time) for time in later]
    if "c within" in text:
        found.append(("c", dues[-1] + 2 * DAY))
    key = st.sampled_from([0, 0, 1])
    history: list[Line] = [
        (name, time, {"k": draw(key)}) for name, time in sorted(found, key=lambda f: f[1])
    ]
    cut = draw(st.lists(st.one_of(beside, st.sampled_from(times)), min_size=1, max_size=4))
    return book, history, sorted({*cut})


@pytest.mark.parametrize("text", EXPRESSIONS)
@resuming
@detecting
def test_s11_business_days_are_detected_as_by_the_reference(text: str) -> None:
    @drawn_for(text)
    @given(data=st.data())
    @example_count(40, 4)
    def some(data: st.DataObject) -> None:
        book, history, cut = data.draw(cases(text, data.draw(st.sampled_from(Context))))
        until = history[-1][1] + 8 * DAY
        answer = expected(book, history, until=until)
        saw(answer)
        assert run(book, history, until=until) == answer
        assert run(book, history, cut, until) == answer

    some()
