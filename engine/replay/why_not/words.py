"""Instants, lengths of time, keys and expressions in the sentences of `why-not`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tidegate.engine.core.event_names import EventKey
from tidegate.engine.core.text.json_text import shown, value
from tidegate.engine.core.text.layout import listed
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.core.text.times import micros_text
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.durations import length
from tidegate.rules.expressions.formatter import format_written
from tidegate.rules.model import Rulebook

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SHOWN_MAX = 60
_WORDS = frozenset({"null", "true", "false"})
_UNITS = (("day", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000))


class Words:
    """The words of one answer. Instants are in the rulebook's zone, without the date where it is
    that of `until`: `09:10:00`, `2026-03-02 09:10:00.25`."""

    def __init__(self, book: Rulebook, key: Mapping[str, Any], until: int) -> None:
        self.zone = book.timezone
        self._zone = ZoneInfo(book.timezone)
        self._today = self._local(until)[0]
        self.key = key

    def at(self, micros: int) -> str:
        """An instant. A watermark (.000998) and what begins just after one (.000999) are shown as
        the millisecond that is meant."""
        day, time = self._local(micros)
        return time if day == self._today else f"{day} {time}"

    def dated(self, micros: int) -> str:
        """An instant with its date."""
        return " ".join(self._local(micros))

    def option(self, micros: int) -> str:
        """An instant for `--at` and `--since`: exact, and with its offset where the hour is there
        twice."""
        try:
            found = (_EPOCH + micros * _MICROSECOND).astimezone(self._zone)
        except OverflowError:
            return f"{micros_text(micros)}Z"
        once = found.replace(fold=0).utcoffset() == found.replace(fold=1).utcoffset()
        return (found.replace(tzinfo=None) if once else found).isoformat()

    def between(self, first: int, last: int) -> str:
        """A span: `between 09:00:00 and 09:10:00`, `at 09:10:00`."""
        if first == last:
            return f"at {self.at(last)}"
        if first % 1_000 == 1:
            return f"after {self.at(first - 1)} and up to {self.at(last)}"
        return f"between {self.at(first)} and {self.at(last)}"

    def times(self, instants: Sequence[int], shown_max: int = 3) -> str:
        """`at 09:00:00 and 09:01:00`, `4 times, last at 09:03:00`."""
        if len(instants) > shown_max:
            return f"{len(instants):,} times, last at {self.at(instants[-1])}"
        return f"at {listed([self.at(each) for each in instants])}"

    def _local(self, micros: int) -> tuple[str, str]:
        micros += {998: -998, 999: 1}.get(micros % 1_000, 0)
        try:
            found = (_EPOCH + micros * _MICROSECOND).astimezone(self._zone).replace(tzinfo=None)
            text = found.isoformat()
        except OverflowError:
            text = micros_text(micros)
        day, _, time = text.partition("T")
        return day, time.rstrip("0") if "." in time else time

    @property
    def of_key(self) -> str:
        """` for card 7`; nothing for a rule without a key."""
        return f" for {key_phrase(self.key)}" if self.key else ""


def key_phrase(key: Mapping[str, Any]) -> str:
    """`card 7`, `account 7, region eu`."""
    return ", ".join(f"{name.removesuffix('_id')} {quoted(item)}" for name, item in key.items())


def key_options(key: Mapping[str, Any]) -> str:
    """What names a key in a command: ` --key card=7 --null region`."""
    return "".join(
        f" --null {shlex.quote(name)}"
        if item is None
        else f" --key {shlex.quote(f'{name}={shown(value(item))}')}"
        for name, item in key.items()
    )


def quoted(found: Any) -> str:
    """A value of a key: texts that look like something else are quoted."""
    said = shortened(shown(value(found)), _SHOWN_MAX)
    if isinstance(found, str):
        return said if said.isidentifier() and said not in _WORDS else f"'{said}'"
    return said


def lasting(micros: int) -> str:
    """A length of time by its units: `5 min 12 s`, `1 h`, `250 ms`."""
    if micros < _UNITS[-1][1]:
        return length(micros)
    parts = []
    for unit, size in _UNITS[:-1]:
        number, micros = divmod(micros, size)
        if number:
            parts.append(f"{number} {unit}{'s' if unit == 'day' and number > 1 else ''}")
    if micros:
        parts.append(f"{micros / _UNITS[-1][1]:.6f}".rstrip("0").rstrip(".") + " s")
    return " ".join(parts)


def expression_text(node: x.Expression) -> str:
    """An expression as it is written: "`a ; b`"."""
    return f"`{format_written(written(node))}`"


def written(node: x.Expression) -> x.Expression:
    """An expression of the running rulebook with the names of the written one."""
    if isinstance(node, x.Name):
        return x.Name(EventKey.of(node.name).written)
    return x.with_operands(node, [written(operand) for operand in node.operands()])
