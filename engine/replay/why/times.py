"""Instants and keys in a story: in the rulebook's zone, without the date where it is that of the
firing's end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tidegate.engine.core.text.json_text import shown
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.core.text.times import micros_text
from tidegate.engine.replay.why.model import Story
from tidegate.engine.replay.why_not.words import lasting

VALUE_MAX = 60
"""Characters of a value in a sentence."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MILLISECOND, _SECOND = 1_000, 1_000_000


class Times:
    """The instants of one story: `09:10:00`, `2026-03-02 09:10:00.25`."""

    def __init__(self, story: Story) -> None:
        self._zone = ZoneInfo(story.timezone)
        self.day = self.local(story.end).partition("T")[0]

    def at(self, micros: int) -> str:
        """An instant for people. A watermark (.000998), and what begins just after one (.000999),
        are shown as the millisecond that is meant."""
        rest = micros % 1_000
        day, _, time = self.local(micros + {998: -998, 999: 1}.get(rest, 0)).partition("T")
        time = time.rstrip("0").rstrip(".") if "." in time else time
        return time if day == self.day else f"{day} {time}"

    def clock(self, micros: int) -> str:
        """What the engine's clock said, to the millisecond."""
        return self.at(rounded(micros, _MILLISECOND))

    def local(self, micros: int) -> str:
        """An instant in the rulebook's zone, ISO 8601 without an offset."""
        try:
            found = (_EPOCH + micros * _MICROSECOND).astimezone(self._zone)
        except OverflowError:
            return micros_text(micros)
        return found.replace(tzinfo=None).isoformat()


def rounded(micros: int, step: int) -> int:
    """The nearest multiple of a step."""
    return (micros + step // 2) // step * step


def took(micros: int) -> str:
    """How long the engine took for something, in three digits or so: `37 ms`, `11.6 s`, `2 min`."""
    steps = (_MILLISECOND, _SECOND // 10, _SECOND)
    step = steps[(micros >= _SECOND) + (micros >= 60 * _SECOND)]
    return lasting(rounded(micros, step)) if micros >= step else "less than 1 ms"


def key_words(key: Mapping[str, Any]) -> str:
    """`account_id 7, region eu`; of a long value its beginning."""
    said = ((name, shortened(shown(value), VALUE_MAX)) for name, value in key.items())
    return ", ".join(f"{name} {value}" for name, value in said)
