"""What became of a `holds` for one key: it was cut short, it is pending, or it is not over yet.
The answer names what did that.

Example: `over` at 10:00:00 and `under` at 10:03:00, for 5 min. It held for 3 min of the 5 min,
until `under` came. The states are those that the detector walks through (`kernels.holding`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.engine.core.text.layout import counted, listed
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.kernels.columns import NEVER
from tidegate.engine.detect.events.kernels.holding import turns_of
from tidegate.engine.replay.why_not.evidence import Answer, Asked
from tidegate.engine.replay.why_not.words import expression_text, lasting
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.durations import format_duration

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where it stands at an instant: `pending` from t0, to fire at the second instant; `fired` then
    and not over; `clearing` from u, to be over at the second; or idle. `over`: when it was, the
    last time."""

    pending: Span | None
    fired: int | None
    clearing: Span | None
    over: int | None


class Held:
    """A `holds` over what came for the key up to an instant. `instants`: of an event type,
    ascending."""

    def __init__(self, on: w.Holding, asked: Asked, instants: Callable[[str], Int64]) -> None:
        self._on, self._asked, self._words = on, asked, asked.words
        self._ended = {name: self._seen(instants(name)) for name in sorted(x.names_in(on.ended))}
        self._begins = _sorted([self._seen(instants(n)) for n in x.names_in(on.begun)])
        self._ends = _sorted([*self._ended.values()])
        self.standing = self._stands()

    def _seen(self, instants: Int64) -> Int64:
        return instants[instants <= self._asked.until]

    def _stands(self) -> Standing:
        time, begun = np.concatenate([self._begins, self._ends]), len(self._begins)
        lengths = self._on.length.micros, self._on.keep.micros
        none = np.full(1, NEVER)
        turns, since = turns_of(
            np.zeros(len(time), np.int32), time, begun, none, lengths, self._asked.until
        )
        fires = turns.place[turns.offsets[:-1]] < begun
        spans = [*zip(turns.start.tolist(), turns.end.tolist(), strict=True)]
        ends = turns.end[turns.done & ~fires]
        waits = spans[-1] if len(spans) and not turns.done[-1] else None
        return Standing(
            waits if waits and fires[-1] else None,
            None if since[0] == NEVER else int(since[0]),
            waits if waits and not fires[-1] else None,
            int(ends[-1]) if len(ends) else None,
        )

    def not_fired(self) -> Answer:
        """Why it does not fire in the time that is asked for."""
        stands, words = self.standing, self._words
        if stands.pending is not None:
            return self._pending(*stands.pending)
        if stands.fired is not None:
            said, figures = self.not_over(stands.fired)
            return Answer(f"{said} It fires once until then.", figures)
        if (found := self._cut_short(stands.over)) is not None:
            return found
        since = "" if stands.over is None else f" since it was over at {words.at(stands.over)}"
        return Answer(f"No {self._begun} came{words.of_key}{since}.", {"over": stands.over})

    def not_over(self, fired: int, rule: str = "") -> Answer:
        """Why what fired at an instant is not over. `rule`: that fired, if not the one asked of."""
        words, keep, stands = self._words, self._on.keep, self.standing
        who = f"Rule {rule}" if rule else "It"
        fires = f"{who} fired{words.of_key} at {words.at(fired)} and is not over"
        figures: dict[str, Any] = {"fired": fired}
        if stands.clearing is not None:
            came, due = stands.clearing
            said = f"{self._by(came)} came at {words.at(came)}, and it is over at {words.at(due)}"
            said += f" if no {self._begun} comes by then"
            return Answer(f"{fires}: {said}.", {**figures, "came": came, "due": due})
        later = self._ends[self._ends > fired]
        if not len(later):
            return Answer(f"{fires}: no {expression_text(self._on.ended)} came since.", figures)
        came = int(later[-1])
        again = int(self._begins[np.searchsorted(self._begins, came)])
        said = f"{self._by(came)} came at {words.at(came)}, but {self._begun} again at"
        said += f" {words.at(again)}, within `keep: {format_duration(keep)}`"
        return Answer(f"{fires}: {said}.", {**figures, "came": came, "again": again})

    def _pending(self, start: int, due: int) -> Answer:
        words, until = self._words, self._asked.until
        held = f"{lasting(until - start)} of the {self._needed} at {words.at(until)}"
        sentence = (
            f"{self._begun} has held{words.of_key} since {words.at(start)}: {held}. It is due at"
            f" {words.at(due)}, if no {expression_text(self._on.ended)} comes."
        )
        return Answer(sentence, {"from": start, "due": due, "held_micros": until - start})

    def _cut_short(self, over: int | None) -> Answer | None:
        """The times since it was over at which an end came too early. Told is the longest of those
        that might have fired in the time that is asked for; without any of these the last."""
        ends = np.unique(self._ends if over is None else self._ends[self._ends > over])
        begin = -(2**62) if over is None else over
        first = np.searchsorted(self._begins, np.concatenate([[begin], ends[:-1]]))
        there = np.flatnonzero(first < len(self._begins)) if len(ends) else first[:0]
        there = there[self._begins[first[there]] < ends[there]]
        starts, ends = self._begins[first[there]], ends[there]
        if not len(starts):
            return None
        mine = np.flatnonzero(starts + self._on.length.micros >= self._asked.since)
        mine = mine if len(mine) else np.array([len(starts) - 1])
        held = ends[mine] - starts[mine]
        at = int(mine[np.flatnonzero(held == held.max())[-1]])
        start, end, words = int(starts[at]), int(ends[at]), self._words
        sentence = f"{self._begun} held{words.of_key} from {words.at(start)} on for"
        if end - start < self._on.length.micros:
            sentence += f" only {lasting(end - start)} of the {self._needed}: {self._by(end)} at"
            sentence += f" {words.at(end)} ended it."
        else:
            sentence += f" {self._needed}, but {self._by(end)} came at the last instant,"
            sentence += f" {words.at(end)}, and ended it."
        if len(mine) > 1:
            sentence += f" Of {counted(len(mine), 'such time')} this was the longest."
        figures: Mapping[str, Any] = {
            "from": start, "to": end, "held_micros": end - start, "times": len(mine),
            "needed_micros": self._on.length.micros,
        }  # fmt: skip
        return Answer(sentence, figures)

    @property
    def _begun(self) -> str:
        return expression_text(self._on.begun)

    @property
    def _needed(self) -> str:
        return format_duration(self._on.length)

    def _by(self, instant: int) -> str:
        """What of `until` came at an instant."""
        names = [name for name, found in self._ended.items() if instant in found]
        return listed([f"`{self._asked.written(name)}`" for name in names])


def _sorted(each: list[Int64]) -> Int64:
    return np.sort(np.concatenate([np.empty(0, np.int64), *each]))
