"""Times as text, also outside of Python's years: those of Spark go from -290308 to 294247; and
texts as times.

The calendar is Spark's, the proleptic Gregorian one. Year 0000 comes before 0001, and -0001 before
that. Years above 9999 have a sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from tidegate.rules.errors import InputError, Problem, word_place
from tidegate.rules.expressions.durations import duration_micros

if TYPE_CHECKING:
    import pyarrow as pa

INSTANTS = "write 2026-01-01T09:00:00Z, or the seconds since 1970: 1767258000"
_CYCLE_DAYS = 146_097  # of the calendar: 400 years
_DAY_MICROS = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SECOND = 1_000_000
_LAST = 2**62 // _SECOND
# Not YYYYMMDDHH: from 2030 on it is a number of seconds, too
_DATE = re.compile(
    r"(?:19|20|21)\d\d(?:(?:0[1-9]|1[0-2])(?:(?:0[1-9]|[12]\d|3[01])(?:\d{4}|\d{6})?)?)?"
)


def day_text(days: int) -> str:
    """Days since the epoch as `2024-03-15`, `-0044-03-15`, `+10000-01-01`."""
    cycle, rest = divmod(days, _CYCLE_DAYS)
    found = date(1970, 1, 1) + timedelta(rest)
    year = found.year + 400 * cycle
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{found.month:02}-{found.day:02}"


def micros_text(micros: int) -> str:
    """Microseconds since the epoch as ISO 8601 without a zone. The fraction has six digits, or is
    left out."""
    days, rest = divmod(micros, _DAY_MICROS)
    seconds, fraction = divmod(rest, 1_000_000)
    minutes, second = divmod(seconds, 60)
    text = f"{day_text(days)}T{minutes // 60:02}:{minutes % 60:02}:{second:02}"
    return f"{text}.{fraction:06}" if fraction else text


def local_text(instant: str, zone: str | None) -> str:
    """An ISO 8601 instant of UTC (`2026-03-02T07:02:00Z`) as the local time of a zone, without
    offset. Without a zone it stays as it is, and so does a year that Python does not have."""
    if zone is None:
        return instant
    try:
        found = datetime.fromisoformat(instant).astimezone(ZoneInfo(zone))
    except (ValueError, OverflowError):
        return instant
    return found.replace(tzinfo=None).isoformat()


def of_text(text: str, zone: str = "UTC") -> int:
    """The instant of ISO 8601, microseconds; without offset the local time of a zone (S11: a
    repeated one taken first, a skipped one moved forward). Raises ValueError."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=ZoneInfo(zone), fold=0)
    return (instant - _EPOCH) // _MICROSECOND


def of_argument(text: str, zone: str = "UTC") -> int:
    """The instant of an argument: seconds, or ISO 8601. Raises ValueError."""
    try:
        return micros_of_seconds(Decimal(text))
    except ArithmeticError:
        return of_text(text, zone)


def of_question(said: str | datetime, zone: str, now: int) -> int:
    """The instant that a question about the past means: as `of_argument`, without an offset in
    `zone`, or how long before `now` it was: `1 h`. Raises ValueError."""
    text = said.isoformat() if isinstance(said, datetime) else said.strip()
    try:
        return of_argument(text, zone)
    except ValueError:
        return now - duration_micros(text)


def of_option(said: int | str | datetime | None, option: str, zone: str, now: int) -> int | None:
    """The instant that an option of a question means, as `of_question`, or microseconds. Raises
    InputError."""
    if said is None:
        return None
    hint = f"{INSTANTS}, or `1 h` for an hour ago; without an offset it is in {zone}"
    if isinstance(said, str):
        check_no_date(said, option, hint)
    try:
        found = said if isinstance(said, int) else of_question(said, zone, now)
        _EPOCH + timedelta(microseconds=found)
    except (ValueError, OverflowError):
        message = f"{said!r} is neither a time nor how long ago it was"
        raise InputError([Problem("time", message, word_place(option), hint)]) from None
    return found


def check_no_date(text: str, option: str, hint: str) -> None:
    """Raises InputError for a number that reads like a year, or like a date: 2026, 20260302,
    202603020930. As seconds since 1970 all of these are far from where tables have rows."""
    if _DATE.fullmatch(text.strip()):
        message = f"{text!r} reads like a date, but a number alone is seconds since 1970"
        raise InputError([Problem("time", message, word_place(option), hint)])


def micros_of_seconds(seconds: Decimal | int) -> int:
    """Microseconds, rounded half-even. Raises ValueError."""
    if not -_LAST < seconds < _LAST:
        raise ValueError("out of range")
    return round(Fraction(seconds) * _SECOND)


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column. If Python cannot hold one of its dates or times, all of these are ISO
    8601 texts."""
    try:
        found: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        import pyarrow as pa

        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return _values(whole)
    return found


def python_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table, values as `python_values` gives them."""
    columns = {name: python_values(table[name]) for name in table.column_names}
    return [{name: found[n] for name, found in columns.items()} for n in range(table.num_rows)]


def _values(array: pa.Array) -> list[Any]:
    import pyarrow as pa

    kind = array.type
    if pa.types.is_timestamp(kind):
        zone = "Z" if kind.tz else ""
        micros = array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
        return _each(micros, lambda value: micros_text(value) + zone)
    if pa.types.is_date32(kind):
        return _each(array.cast(pa.int32()), day_text)
    if pa.types.is_struct(kind):
        fields = [_values(child) for child in array.flatten()]
        rows = zip(*fields, strict=True) if fields else iter([()] * len(array))
        names = [field.name for field in kind]
        made = [dict(zip(names, row, strict=True)) for row in rows]
        valid = array.is_valid().to_pylist()
        return [row if valid[n] else None for n, row in enumerate(made)]
    if pa.types.is_map(kind):
        pairs = list(zip(_values(array.keys), _values(array.items), strict=True))
        return _slices(array, pairs)
    if pa.types.is_list(kind):
        return _slices(array, _values(array.values))
    values: list[Any] = array.to_pylist()
    return values


def _slices(array: pa.Array, values: list[Any]) -> list[Any]:
    """The part of `values` that belongs to each list or map of an array."""
    bounds = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    return [values[bounds[n] : bounds[n + 1]] if valid[n] else None for n in range(len(array))]


def _each(numbers: pa.Array, text: Callable[[int], str]) -> list[Any]:
    return [None if number is None else text(number) for number in numbers.to_pylist()]
