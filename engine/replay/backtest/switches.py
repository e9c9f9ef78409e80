"""What enabled and disabled rules in the past, as a backtest repeats it (G24).

Example: `pay` was disabled by the bucket after 10:00, and enabled by the one after 11:00, for which
an operator had asked at 11:00:03. A backtest from 10:30 on disables it before it begins. One from
9:00 on stops at 10:00, disables it, and goes on to 11:00.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tidegate.engine.core.entries import Control
from tidegate.engine.core.instants import floor_millisecond
from tidegate.engine.core.text.layout import counted
from tidegate.engine.replay.backtest.report.labels import instant_label
from tidegate.engine.store.placed import PlacedSwitch

SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class Switching:
    """Requests that take effect together, once all up to `watermark` is taken. `asked_at` of an
    `enable`: just before its rule begins anew."""

    watermark: int
    controls: tuple[Control, ...]

    @property
    def asked_at(self) -> int:
        """When the last of them was asked for."""
        return max(one.asked_at for one in self.controls)


def switchings(switches: Iterable[PlacedSwitch], begin: int, end: int) -> list[Switching]:
    """The switches of a past from `begin` to `end`, by their watermarks. A rule that is off at
    `begin` is switched off there."""
    before: list[PlacedSwitch] = []
    within: list[PlacedSwitch] = []
    for one in switches:
        if one.watermark > begin:
            within.append(one)
            continue
        if one.control.kind == "enable" and one.control.asked_at <= begin:
            rule = one.control.subject  # it is on when the past begins
            before = [other for other in before if other.control.subject != rule]
        else:
            before.append(one._replace(watermark=begin))
    placed = [one for one in (*before, *within) if one.watermark < end]
    return [
        Switching(at, tuple(one.control for one in some))
        for at, some in groupby(placed, key=lambda one: one.watermark)
    ]


def switches_text(found: Sequence[Switching], names: Collection[str], zone: str) -> Iterator[str]:
    """A sentence on what is repeated, for a report. `names`: the rules that run."""
    every = [
        f"{one.subject} {'on' if one.kind == 'enable' else 'off'} {_when(one, zone)}"
        for each in found
        for one in each.controls
        if one.subject in names
    ]
    if every:
        left = len(every) - SHOWN_MAX
        more = f", and {counted(left, 'more time')}" if left > 0 else ""
        yield f"Rules were switched as they were in the past: {', '.join(every[:SHOWN_MAX])}{more}."


def _when(one: Control, zone: str) -> str:
    """When it was switched; 0: the store has forgotten the request."""
    if not one.asked_at:
        return "from the beginning on"
    return f"at {instant_label(floor_millisecond(one.asked_at), zone)}"
