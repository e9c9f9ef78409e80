"""What the index of a folder says of a report. It stands in the report itself: the index is made of
the files that are there.

Example: the card of a run over March that is compared with the registered version.

    Card("bank", "bank.yaml", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", "Europe/Berlin", 120,
         11, 2, 0, 0, "registered version 3", 17, "2026-04-02T09:30:00Z")
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeGuard
from zoneinfo import ZoneInfo

import orjson

from tidegate.engine.core.text.json_text import instant
from tidegate.engine.core.text.page import data
from tidegate.engine.core.text.printable import in_line, shortened
from tidegate.engine.replay.backtest.against import Difference
from tidegate.engine.replay.backtest.counts import by_rule
from tidegate.engine.replay.backtest.model import Backtest
from tidegate.engine.replay.backtest.report.labels import sums

ELEMENT = "backtest"
"""The id of the element of a page that holds its card, as JSON."""
LABEL_MAX = 200
"""Characters of a label that a card holds."""
_READ_BYTES = 65_536  # of a file: the card stands at its begin
_FOUND = re.compile(rf'<script type="application/json" id="{ELEMENT}">([^<]*)</script>'.encode())


@dataclass(frozen=True, slots=True)
class Card:
    """Counts are of detections. `against`: what it was compared with, `differ`: how many firings
    differ. `begin`, `end`, `made_at`: ISO 8601, UTC."""

    rulebook: str
    label: str
    begin: str
    end: str
    zone: str
    fired: int
    condition_failed: int
    damped: int
    dead: int
    unasked: int
    against: str | None
    differ: int | None
    made_at: str


_KINDS: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "str | None": (str, type(None)),
    "int | None": (int, type(None)),
}


def card_of(found: Backtest, difference: Difference | None, made_at: int) -> Card:
    """The card of a report. `made_at`: microseconds."""
    return Card(
        _short(found.rulebook),
        _short(found.label),
        instant(found.span.begin) or "",
        instant(found.span.end) or "",
        found.span.zone,
        **sums(by_rule(found)),
        against=None if difference is None else _short(difference.other.label),
        differ=None if difference is None else difference.count,
        made_at=instant(made_at) or "",
    )


def element(card: Card) -> str:
    """The card as an element of a page."""
    return data(ELEMENT, asdict(card))


def card_in(file: Path) -> Card | None:
    """The card of a file; None if it has none: it is not a report, or not a whole one."""
    try:
        if not file.is_file():  # a pipe would be waited for
            return None
        with file.open("rb") as opened:
            found = _FOUND.search(opened.read(_READ_BYTES))
        values = orjson.loads(found[1]) if found else None
    except (OSError, ValueError):
        return None
    return Card(**values) if _is_card(values) else None


def _is_card(values: Any) -> TypeGuard[dict[str, Any]]:
    if not isinstance(values, dict) or values.keys() != {field.name for field in fields(Card)}:
        return False
    kinds = ((values[field.name], _KINDS[str(field.type)]) for field in fields(Card))
    fit = all(isinstance(value, kind) and not isinstance(value, bool) for value, kind in kinds)
    return fit and _is_zone(values["zone"])


def _is_zone(name: str) -> bool:
    """Whether times can be told in it: nobody could see a list with a report that names another."""
    try:
        ZoneInfo(name)
    except (ValueError, KeyError, OSError):
        return False
    return True


def _short(text: str) -> str:
    return shortened(in_line(text), LABEL_MAX)
