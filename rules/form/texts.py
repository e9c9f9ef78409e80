"""Short texts of a rulebook: pauses, zones, instants, columns, days. For a wrong text a reader
raises `ValueError` with `message; hint` for the user."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Sequence
from typing import Any

from tidegate.rules.errors import did_you_mean
from tidegate.rules.expressions.clock_texts import clock, cron, daily
from tidegate.rules.expressions.durations import duration, duration_micros, lacks_unit
from tidegate.rules.expressions.nodes import BusinessDays, Clock, Duration

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CRON_WORDS = {
    **dict.fromkeys(("@hourly", "hourly"), "0 * * * *"),
    **dict.fromkeys(("@daily", "@midnight", "daily", "midnight"), "0 0 * * *"),
    **dict.fromkeys(("@weekly", "weekly"), "0 0 * * mon"),
    **dict.fromkeys(("@monthly", "monthly"), "0 0 1 * *"),
    **dict.fromkeys(("@yearly", "@annually", "yearly"), "0 0 1 1 *"),
}
_ABBREVIATED = {  # abbreviations of an offset in one season, each with a place that uses it
    **dict.fromkeys(("CEST", "MESZ", "MEZ"), "Europe/Berlin"),
    "EEST": "Europe/Helsinki",
    **dict.fromkeys(("WEST", "WEDT"), "Europe/Lisbon"),
    "BST": "Europe/London",
    "MSK": "Europe/Moscow",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "KST": "Asia/Seoul",
    **dict.fromkeys(("AEST", "AEDT"), "Australia/Sydney"),
    "EDT": "America/New_York",
    **dict.fromkeys(("CST", "CDT"), "America/Chicago"),
    "MDT": "America/Denver",
    **dict.fromkeys(("PST", "PDT"), "America/Los_Angeles"),
}
RATE_MAX = 100_000  # firings, of which the instants are kept for each key
REST = "*"  # of `columns:`: the others
NAME = "[A-Za-z_][A-Za-z0-9_]*"


def positive_micros(text: str) -> int:
    value = duration_micros(text)
    if value == 0:
        raise ValueError("the length of time must be above 0")
    return value


def positive_span(text: str) -> Duration:
    """A length of time of months, or one that is the same everywhere."""
    value = duration(text)
    if isinstance(value, BusinessDays):
        message = f"{text.strip()!r}: only an event expression counts business days"
        raise ValueError(f"{message}; write days")
    if value.months and value.micros:
        raise ValueError(f"{text!r} has months beside days; write one of them, as in 1 month")
    if value == Duration(0, 0):
        raise ValueError("the length of time must be above 0")
    return value


def backoff(text: str) -> tuple[int, int]:
    first, dots, last = text.partition("..")
    if not dots:
        raise ValueError(f"{text!r} is not a pair of pauses; write 1s..1m")
    low, high = positive_micros(first), positive_micros(last)
    if low > high:
        raise ValueError(f"{text!r}: the first pause is longer than the last")
    return low, high


def rate(text: str) -> tuple[int, int]:
    """`3 per 1 h` -> (3, microseconds)."""
    found = re.fullmatch(r"\s*(\d{1,9})\s+per\s+(.+)", text, re.ASCII)
    if not found:
        raise ValueError(f"{text!r} is not a rate; write 3 per 1 h")
    if lacks_unit(found[2]):
        raise ValueError(f"{text!r}: {found[2]} of what?; write {found[1]} per {found[2]} min")
    count = int(found[1])
    if not 1 <= count <= RATE_MAX:
        raise ValueError(f"{text!r}: a rate is 1 to {RATE_MAX:,} firings in a time")
    return count, positive_micros(found[2])


def zone(text: str) -> str:
    try:
        zoneinfo.ZoneInfo(text)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        if text.upper() in _ABBREVIATED:
            place = _ABBREVIATED[text.upper()]
            message = f"{text!r} is short for an offset, not a time zone"
            raise ValueError(f"{message}; write {place}, or another place") from None
        hint = did_you_mean(text, zoneinfo.available_timezones())
        message = f"{text!r} is not a time zone of the IANA database"
        raise ValueError(f"{message}; {hint or 'write Europe/Berlin'}") from None
    return text


def instant(text: str) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an instant; write 2026-03-02T09:00:00Z") from None


def date(text: str) -> str:
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        found = re.fullmatch(r"(\d{1,2})\.(\d{1,2})\.(\d{4})", text.strip())
        meant = f"{found[3]}-{found[2]:0>2}-{found[1]:0>2}" if found else "2026-12-25"
        raise ValueError(f"{text!r} is not a date; write {meant}") from None


def column(text: str) -> tuple[str, str]:
    """`b as c` -> (parameter c, column b); `*` -> (*, *)."""
    if text.strip() == REST:
        return REST, REST
    words = re.split(r"\s+as\s+", text.strip(), flags=re.IGNORECASE)
    if len(words) > 2 or not all(re.fullmatch(rf"{NAME}|`[^`]+`", word) for word in words):
        raise ValueError(f"{text!r} is not a column; write a, or b as c")
    return words[-1].strip("`"), words[0].strip("`")


def full_name(text: str) -> tuple[str, ...]:
    """`bank.`2026`.rates` -> its parts."""
    parts = re.findall(rf"({NAME}|`[^`/\\:]+`)(?:\.|$)", text)
    if len(parts) < 2 or ".".join(parts) != text:
        raise ValueError(f"{text!r} is no table's full name; write catalog.db.table")
    return tuple(part.strip("`") for part in parts)


def days(text: str) -> tuple[int, ...]:
    found: set[int] = set()
    for part in text.lower().split(","):
        first, dash, last = (word.strip() for word in part.partition("-"))
        if first not in WEEKDAYS or (dash and last not in WEEKDAYS):
            meant = first[:3] if first[:3] in WEEKDAYS and not dash else "mon-fri, or sat"
            raise ValueError(f"{part.strip()!r} is not a day of the week; write {meant}")
        begin, end = WEEKDAYS.index(first), WEEKDAYS.index(last or first)
        if begin > end:
            raise ValueError(f"{part.strip()!r}: the range goes backwards")
        found.update(range(begin, end + 1))
    return tuple(sorted(found))


def united(listed: Sequence[Any]) -> tuple[int, ...]:
    """The days of `days:`, which is one text or a list of texts."""
    if listed and isinstance(listed[0], tuple):
        return tuple(sorted({day for some in listed for day in some}))
    return tuple(listed)


def absolute(text: str) -> Clock:
    """A clock literal, or the HH:MM of every day."""
    text = text.strip()
    if re.fullmatch(r"\d{1,2}:\d{2}", text, re.ASCII):
        return daily(text)
    if not text.startswith("<"):
        hint = 'write 08:00, or "<(08:00:00)*/*/*>"; for a rhythm cron: "*/5 * * * *"'
        raise ValueError(f"{text!r} is no time of day; {hint}")
    return clock(text)


def cron_line(text: str) -> str:
    """The five fields of a cron line, a blank between them."""
    if text.strip().lower() in _CRON_WORDS:
        line = _CRON_WORDS[text.strip().lower()]
        raise ValueError(f'{text.strip()!r} is no cron line; write "{line}"')
    cron(text)
    return " ".join(text.split())
