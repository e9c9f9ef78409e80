"""Absolute time as text: clock literals (Snoop's absolute events) and Vixie cron lines;
public holidays of a country or a part of it, by the library `holidays`."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tidegate.rules.errors import did_you_mean
from tidegate.rules.expressions.nodes import Clock, Cron

if TYPE_CHECKING:
    from holidays import HolidayBase


_CLOCK = re.compile(
    r"<\s*\(\s*(\d{1,2}|\*)\s*:\s*(\d{1,2}|\*)\s*:\s*(\d{1,2}|\*)\s*\)"
    r"\s*(\d{1,2}|\*)\s*/\s*(\d{1,2}|\*)\s*/\s*(\d{4}|\*)\s*>",
    re.ASCII,
)
_LEAP_YEAR = 2000
_MONTH_MAX = 31
_LAST_DAY = re.compile(r"[Ll](?:-(\d{1,4}))?", re.ASCII)
_WEEKDAY = re.compile(r"(\d{1,4}|[Ll])[Ww]", re.ASCII)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, {name: n + 1 for n, name in enumerate(_MONTHS)}),
    ("day of week", 0, 7, {name: n for n, name in enumerate(_DAYS)}),
)


def clock(text: str) -> Clock:
    """Read `<(hh:mm:ss)mm/dd/yyyy>`. Raises `ValueError` with a message for the user."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            "a clock literal is <(hh:mm:ss)mm/dd/yyyy>,"
            " each part a number or *, the year of four digits"
        )
    parts = [None if part == "*" else int(part) for part in found.groups()]
    if all(part is None for part in parts):
        raise ValueError("a clock literal cannot be * in all six parts")
    hour, minute, second, month, day, year = parts
    for name, part, low, high in (
        ("hour", hour, 0, 23),
        ("minute", minute, 0, 59),
        ("second", second, 0, 59),
        ("month", month, 1, 12),
        ("day", day, 1, 31),
        ("year", year, 1, 9999),
    ):
        if part is not None and not low <= part <= high:
            raise ValueError(f"{name} {part} is not in {low} to {high}")
    if day is not None and month is not None:
        last = calendar.monthrange(_LEAP_YEAR if year is None else year, month)[1]
        if day > last:
            raise ValueError(
                f"there is no day {day} in month {month}" + (f" of {year}" if year else "")
            )
    return Clock(hour, minute, second, month, day, year)


def daily(text: str) -> Clock:
    """Read the `HH:MM` of `at(HH:MM)`: every day at that time."""
    hours, _, minutes = text.partition(":")
    return clock(f"<({hours.strip()}:{minutes.strip()}:00)*/*/*>")


def format_clock(value: Clock) -> str:
    """The canonical text of a clock literal."""
    parts = (value.hour, value.minute, value.second, value.month, value.day)
    texts = ["*" if part is None else f"{part:02}" for part in parts]
    year = "*" if value.year is None else f"{value.year:04}"
    return "<({}:{}:{}){}/{}/{}>".format(*texts, year)


@dataclass(frozen=True, slots=True)
class CronFields:
    """The five fields of a cron line as sets. `weekdays` has 0 = Sunday (7 is folded into it).

    `every_hour`: the hour is a wildcard (`*`, `*/n`). `either_day`: day of month and day of week
    are both restricted, so that one of them is enough. Days that depend on the month:

        before_last  `L` is 0, `L-3` is 3: so many days before the month's last
        nearest      `15W` is 15: the weekday (Monday to Friday) nearest to it in the same month;
                     `LW` is 0, nearest to the last; a month without a 31st has no `31W`
        nth          `mon#2` is (1, 2): the second Monday; `friL` is (5, 0): the last Friday
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    every_hour: bool
    either_day: bool
    before_last: frozenset[int] = frozenset()
    nearest: frozenset[int] = frozenset()
    nth: frozenset[tuple[int, int]] = frozenset()

    def fits(self, date: datetime.date) -> bool:
        """Whether a date matches the month and the days."""
        on_day, on_weekday = self._on_day(date), self._on_weekday(date)
        matches = (on_day or on_weekday) if self.either_day else (on_day and on_weekday)
        return date.month in self.months and matches

    def _on_day(self, date: datetime.date) -> bool:
        last = calendar.monthrange(date.year, date.month)[1]
        return (
            date.day in self.days
            or last - date.day in self.before_last
            or any(
                date.day == _nearest_weekday(date, day or last, last)
                for day in self.nearest
                if day <= last
            )
        )

    def _on_weekday(self, date: datetime.date) -> bool:
        weekday, last = date.isoweekday() % 7, calendar.monthrange(date.year, date.month)[1]
        if weekday in self.weekdays or (weekday, (date.day + 6) // 7) in self.nth:
            return True
        return (weekday, 0) in self.nth and date.day + 7 > last


def _nearest_weekday(date: datetime.date, day: int, last: int) -> int:
    """The day of a date's month that is Monday to Friday and nearest to `day`. It stays in the
    month: for Saturday the 1st it is Monday the 3rd."""
    weekday = date.replace(day=day).isoweekday()
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 7:
        return day + 1 if day < last else day - 2
    return day


def cron(text: str) -> CronFields:
    """Read a Vixie cron line of five fields (S11). Raises `ValueError` for the user."""
    words = text.split()
    if len(words) != len(_FIELDS):
        raise ValueError(
            "a cron line has five fields (minute, hour, day of month, month, day of week),"
            f" not {len(words)}; write 0 17 * * mon-fri, for 17:00 on working days"
        )
    words[2], before_last, nearest = _days_of_month(words[2])
    words[4], nth = _days_of_week(words[4])
    sets = [_cron_field(word, *field) for word, field in zip(words, _FIELDS, strict=True)]
    # Vixie's rule looks at the first character: */2 counts as unrestricted.
    either = not words[2].startswith("*") and not words[4].startswith("*")
    minutes, hours, days, months, weekdays = sets
    weekdays = frozenset(day % 7 for day in weekdays)
    if not either and words[2] and not words[2].startswith("*") and not before_last | nearest:
        longest = max(calendar.monthrange(_LEAP_YEAR, month)[1] for month in months)
        if min(days) > longest:
            raise ValueError(f"no month of {words[3]!r} has a day {min(days)}")
    every_hour = words[1].startswith("*")
    return CronFields(
        minutes, hours, days, months, weekdays, every_hour, either, before_last, nearest, nth
    )


def _days_of_month(word: str) -> tuple[str, frozenset[int], frozenset[int]]:
    """The field `day of month`: its plain items, and what `L`, `L-3`, `15W` and `LW` say
    (`before_last` and `nearest` of `CronFields`)."""
    plain: list[str] = []
    before, nearest = set[int](), set[int]()
    for item in word.split(","):
        if found := _LAST_DAY.fullmatch(item):
            days = int(found[1] or 0)
            if days > _MONTH_MAX - 1:
                raise ValueError(f"day of month {item!r}: L-1 to L-30 lie before the last day")
            before.add(days)
        elif found := _WEEKDAY.fullmatch(item):
            name, low, high, names = _FIELDS[2]
            given = found[1].upper()
            nearest.add(0 if given == "L" else _cron_value(given, name, low, high, names))
        else:
            plain.append(item)
    return ",".join(plain), frozenset(before), frozenset(nearest)


def _days_of_week(word: str) -> tuple[str, frozenset[tuple[int, int]]]:
    """The field `day of week`: its plain items, and what `mon#2` and `friL` say (`nth` of
    `CronFields`)."""
    plain: list[str] = []
    nth = set[tuple[int, int]]()
    name, low, high, names = _FIELDS[4]
    for item in word.split(","):
        day, hash_, number = item.partition("#")
        if hash_:
            if number not in ("1", "2", "3", "4", "5"):
                raise ValueError(f"{name} {item!r}: the first to the fifth are {day}#1 to {day}#5")
            nth.add((_cron_value(day, name, low, high, names) % 7, int(number)))
        elif item.upper() == "L":
            raise ValueError(f"{name} 'L' names no day; write friL, the last Friday of a month")
        elif item[-1:].upper() == "L" and len(item) > 1:
            nth.add((_cron_value(item[:-1], name, low, high, names) % 7, 0))
        else:
            plain.append(item)
    return ",".join(plain), frozenset(nth)


def _cron_field(word: str, name: str, low: int, high: int, names: dict[str, int]) -> frozenset[int]:
    values: set[int] = set()
    for item in word.split(",") if word else ():
        body, slash, step = item.partition("/")
        if slash and not (step.isascii() and step.isdigit() and len(step) <= 4 and int(step) > 0):
            raise ValueError(f"{name} {item!r}: a step is a number above 0")
        first, dash, last = body.partition("-")
        if slash and not dash and body != "*":
            raise ValueError(f"{name} {item!r}: a step follows * or a range")
        if body == "*":
            begin, end = low, 6 if high == 7 else high
        else:
            begin = _cron_value(first, name, low, high, names)
            end = _cron_value(last, name, low, high, names) if dash else begin
        if begin > end:
            raise ValueError(f"{name} {item!r}: the range goes backwards")
        values.update(range(begin, end + 1, int(step) if slash else 1))
    return frozenset(values)


def _cron_value(text: str, name: str, low: int, high: int, names: dict[str, int]) -> int:
    value = names.get(text.lower())
    if value is None:
        if not (text.isascii() and text.isdigit() and len(text) <= 4):
            raise ValueError(f"{name} {text!r} is not a number" + (" or name" if names else ""))
        value = int(text)
    if not low <= value <= high:
        raise ValueError(f"{name} {value} is not in {low} to {high}")
    return value


def occurs_never(
    expression: Clock | Cron, days: Collection[int] = (), excluded: Collection[str] = ()
) -> bool:
    """Whether no date of any year matches. `days` (0 = Monday) and `excluded` (ISO dates) narrow
    the expression. Holidays are not considered."""
    fitting = days or range(7)
    if isinstance(expression, Clock):
        if expression.year is None or expression.month is None or expression.day is None:
            return False
        date = datetime.date(expression.year, expression.month, expression.day)
        return date.weekday() not in fitting or date.isoformat() in excluded
    fields = cron(expression.text)
    weekdays = fields.weekdays | {day for day, _ in fields.nth}
    return not fields.either_day and not any((day + 1) % 7 in weekdays for day in fitting)


@lru_cache
def region(code: str) -> HolidayBase:
    """The holidays of a region: a country (DE) or a part of one (DE-BE), of all years. A date is
    `in` it or not. Raises `ValueError` with a message for the user."""
    import holidays  # takes a tenth of a second

    country, _, part = code.partition("-")
    known = holidays.list_supported_countries(include_aliases=False)
    if country not in known:
        hint = did_you_mean(country, known) or "write DE, or DE-BE for a part of it"
        raise ValueError(f"{code!r} is no country with known holidays; {hint}")
    if part and part not in known[country]:
        hint = did_you_mean(part, known[country]) or f"write one of {', '.join(known[country])}"
        raise ValueError(f"{country} has no part {part!r} with holidays of its own; {hint}")
    return holidays.country_holidays(country, subdiv=part or None)


def region_code(text: str) -> str:
    """The code itself if its region is known. Raises `ValueError` with a message for the user."""
    region(text)
    return text
