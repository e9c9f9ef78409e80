"""The business days of a calendar, counted from 1960 to 2099: which days they are, and how long so
many of them take (S11)."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from functools import lru_cache

from tidegate.rules.expressions.clock_texts import region
from tidegate.rules.expressions.nodes import BusinessCalendar

YEARS = range(1960, 2100)
"""What is counted. Holidays of later years are not known."""
_EPOCH = datetime.date(1970, 1, 1).toordinal()
FIRST_DAY = datetime.date(YEARS[0], 1, 1).toordinal() - _EPOCH
LAST_DAY = datetime.date(YEARS[-1], 12, 31).toordinal() - _EPOCH


@lru_cache
def business_days(calendar: BusinessCalendar) -> Sequence[int]:
    """The business days as numbers of days since 1970-01-01, in order.

    The first days of 1970 were a Thursday, a Friday and a Saturday:

    >>> days = business_days(BusinessCalendar())
    >>> [day for day in days if 0 <= day < 7]
    [0, 1, 4, 5, 6]
    """
    regions = [region(code) for code in calendar.holidays]
    excluded = {datetime.date.fromisoformat(text).toordinal() for text in calendar.excluded}
    ordinals = range(FIRST_DAY + _EPOCH, LAST_DAY + _EPOCH + 1)
    fitting = (o for o in ordinals if (o + 6) % 7 in calendar.days and o not in excluded)
    if not regions:
        return tuple(o - _EPOCH for o in fitting)
    dates = ((o - _EPOCH, datetime.date.fromordinal(o)) for o in fitting)
    return tuple(day for day, date in dates if not any(date in each for each in regions))


@lru_cache
def longest_days(calendar: BusinessCalendar, count: int) -> int:
    """The most calendar days until the `count`-th business day after a day, wherever it is known.

    From a Friday it takes three days to the next business day:

    >>> longest_days(BusinessCalendar(), 1)
    3
    """
    days = business_days(calendar)
    # From the day of one, the next is the first to count; so it is from the days that follow it.
    waits = (later - day for day, later in zip((FIRST_DAY, *days), days[count - 1 :], strict=False))
    return max(waits, default=LAST_DAY - FIRST_DAY)
