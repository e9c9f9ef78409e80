"""Public holidays of a country or a part of it, by the library `holidays`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tidegate.rules.errors import did_you_mean

if TYPE_CHECKING:
    from holidays import HolidayBase


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
    """The code of a region that is known. Raises `ValueError` with a message for the user."""
    region(text)
    return text
