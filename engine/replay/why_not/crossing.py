"""What `fire` and `rearm` of a window said of its rows, instant by instant.

Example: `fire: avg(celsius) > 80` over readings of 79 at 9:00:00 and 83 at 9:00:20 in 1 min. It was
asked with the averages 79 and 81, and is true of the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.text.layout import counted
from tidegate.engine.core.text.times import python_values
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.moving_aggregates import Condition, Windows
from tidegate.engine.detect.events.graph.search.asking import of_one_type, values_of
from tidegate.engine.detect.events.kernels.moving_windows import Spans, crossings
from tidegate.engine.replay.why_not.evidence import Answer, Asked
from tidegate.engine.replay.why_not.probe import Probe
from tidegate.engine.replay.why_not.words import quoted
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.durations import format_duration

Bools = npt.NDArray[np.bool_]
_SIGNS = {"<", "<=", ">", ">=", "="}


@dataclass(frozen=True, slots=True)
class _Said:
    """What was asked of n windows. `at`: their instants, ascending; `rows`: how many each has;
    `events`: the event types that the rows are of."""

    windows: Windows
    events: tuple[str, ...]
    at: Int64
    rows: Int64
    fire: Bools
    rearm: Bools

    def nearest(self, asked: w.Asked, some: Int64) -> int:
        """Of some windows that of which most terms are true; of several that whose value is nearest
        to the other side of the one term that is not; else the last."""
        terms = p.conjuncts(asked.tree)
        true = np.array([self.windows.true(Condition(term, self.events)) for term in terms])
        count = true[:, some].sum(axis=0)
        some = some[count == count.max()]
        failed = [term for term, each in zip(terms, true, strict=True) if not each[some].any()]
        far = _far(failed[0], self._taken(failed[0])) if len(failed) == 1 else None
        if far is not None:
            some = some[far[some] == far[some].min()]
        return int(some[-1])

    def values(self, asked: w.Asked, at: int) -> dict[str, Any]:
        """The aggregates of a condition over one window."""
        taken = self._taken(asked.tree)
        return {
            name: python_values(pa.chunked_array([values.slice(at, 1)]))[0]
            for name, values in taken.items()
        }

    def _taken(self, tree: p.Predicate) -> Mapping[str, pa.Array]:
        return self.windows.aggregates(Condition(tree, self.events))


class Crossed:
    """A crossing over what came for the key, up to an instant."""

    def __init__(self, on: w.Crossing, asked: Asked, probe: Probe) -> None:
        self._on, self._asked, self._probe, self._words = on, asked, probe, asked.words

    def answer(self, due: int | None) -> Answer | None:
        """Why it does not fire in the time that is asked for; `due`: it will. None: no row was in
        the window then."""
        said, asked = self._ask(), self._asked
        mine = np.flatnonzero((said.at >= asked.since) & (said.rows > 0))
        if not len(mine):  # then that is asked which was inside at the end
            mine = np.flatnonzero(said.rows)[-1:]
            if not len(mine) or mine[0] + 1 < len(said.at):
                return None
        true = mine[said.fire[mine]]
        found = self._not_armed(said, int(true[-1])) if len(true) else self._untrue(said, mine)
        if due is None:
            return found
        sentence = (
            f"{found.sentence} It is due at {self._words.at(due)}, when rows leave the window."
        )
        return Answer(sentence, {**found.evidence, "due": due})

    def _ask(self) -> _Said:
        on, span, until = self._on, self._on.length.micros, self._asked.until
        parts = [(name, self._probe.instants(name)) for name in sorted(x.names_in(on.part))]
        time = np.concatenate([instants for _, instants in parts])
        order = np.argsort(time, kind="stable")
        time = time[order]
        at = np.unique(np.concatenate([time, time + span]))
        at = at[at <= until]
        low = np.searchsorted(time, at - span, side="right")
        high = np.searchsorted(time, at, side="right")
        spans = Spans(np.zeros(len(at), np.int32), at, low, high)
        windows = Windows(spans, order, partial(self._column, parts))
        events = tuple(name for name, _ in parts)
        fire = windows.true(Condition(on.fire.tree, events))
        rearm = windows.true(Condition(on.rearm.tree, events)) if on.rearm else ~fire
        return _Said(windows, events, at, high - low, fire, rearm)

    def _column(
        self, parts: list[tuple[str, Int64]], of: p.Aggregate, _: tuple[str, ...]
    ) -> pa.Array:
        """Its column of the rows, event type by event type; a rule's detections have none."""
        pieces = []
        for name, instants in parts:
            batch = self._probe.occurrences(name)
            known = batch is not None and len(instants)
            pieces.append(
                values_of(batch, np.arange(len(batch)), of.of_rows)
                if batch is not None and known
                else pa.nulls(len(instants))
            )
        alike, _kind = of_one_type(pieces, counted=of.part == "count")
        return pa.concat_arrays(alike)

    def _untrue(self, said: _Said, mine: Int64) -> Answer:
        """`fire` was true at no instant."""
        at = said.nearest(self._on.fire, mine)
        return Answer(*self._none(said, "fire", self._on.fire, mine, at))

    def _not_armed(self, said: _Said, at: int) -> Answer:
        """`fire` is true of window `at`, which does not fire."""
        words, key = self._words, np.zeros(len(said.at), np.int32)
        before = crossings(key, said.fire, said.rearm, said.rows > 0, np.zeros(1, np.bool_))
        fired = int(before[before <= at][-1])
        figures: dict[str, Any] = {"instant": int(said.at[at]), "fired": int(said.at[fired])}
        then, when = words.at(figures["fired"]), words.at(figures["instant"])
        if fired == at:
            sentence = f"No row entered or left its window{words.of_key} since it fired at {then}."
            return Answer(sentence, figures)
        true = f"`fire: {self._on.fire.text}` was true{words.of_key} at {when}"
        sentence = f"{true}, but it had fired at {then}"
        if said.rearm[at]:
            return Answer(f"{sentence}, and was armed again only at this instant.", figures)
        since = np.arange(fired + 1, at + 1)
        if self._on.rearm is None:
            return Answer(f"{sentence}, and has been true ever since.", figures)
        near = said.nearest(self._on.rearm, since)
        none, more = self._none(said, "rearm", self._on.rearm, since, near)
        return Answer(f"{sentence}, and was not armed again. {none}", {**figures, "rearm": more})

    def _none(
        self, said: _Said, name: str, asked: w.Asked, some: Int64, near: int
    ) -> tuple[str, dict[str, Any]]:
        """A condition is true of none of some windows; `near`: the one whose values are told."""
        words, values, at = self._words, said.values(asked, near), int(said.at[near])
        shown = ", ".join(f"{n} is {quoted(each)}" for n, each in values.items())
        rows = counted(int(said.rows[near]), "row")
        what = f"{words.at(at)}: {shown}, of {rows} in {format_duration(self._on.length)}."
        text = f"`{name}: {asked.text}` was"
        sentence = f"{text} not true{words.of_key} at {what}"
        if len(some) > 1:
            many = f"at none of {len(some):,} instants"
            sentence = f"{text} true{words.of_key} {many}. Nearest was {what}"
        return sentence, {"text": asked.text, "asked": len(some), "instant": at, "values": values}


def _far(term: p.Predicate, taken: Mapping[str, pa.Array]) -> npt.NDArray[np.float64] | None:
    """How far an aggregate is from the number that a term compares it with; infinite where it is
    null; None for another term."""
    match term:
        case (
            p.Comparison(operator=sign, left=p.Aggregate() as one, right=p.Literal(value=number))
            | p.Comparison(operator=sign, left=p.Literal(value=number), right=p.Aggregate() as one)
        ) if sign in _SIGNS and isinstance(number, int | float | Decimal):
            values = taken[str(one)]
            if pa.types.is_null(values.type) or pa.types.is_temporal(values.type):
                return None
            doubles = pc.cast(values, pa.float64(), safe=False).fill_null(np.inf)
            return np.abs(np.asarray(doubles.to_numpy()) - float(number))
    return None
