"""Signals raised by actions (G22): one a firing, its fields expressions over the firing's rows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from tidegate.engine.act.executors import CurrentRules, Sealless, done
from tidegate.engine.act.kinds.payload import fields_of
from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Entry, Outcome
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.ports import Sink, SinkError
from tidegate.engine.core.statement import SignalStatement
from tidegate.engine.core.values import ENGINE, Firings, Signal

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Signals(Sealless):
    """Makes the signals of `signal` entries; they are inserted with the outcome. `now`: the
    engine's clock, microseconds."""

    sink: Sink
    now: Callable[[], int]

    def attempt(self, waiting: Waiting, firings: Firings, current: CurrentRules) -> Outcome:  # noqa: ARG002
        entry = waiting.entry
        signals = signals_of(entry, firings, self.sink, self.now())
        for event in dict.fromkeys(signal.event for signal in signals):
            log.info("%s raised %s, signals: %d", entry.rule, event, len(signals))
        failpoint("signal.made")
        return replace(done(entry), signals=signals)


def signals_of(entry: Entry, firings: Firings, sink: Sink, received_at: int) -> tuple[Signal, ...]:
    """The signals of one entry, in the order of its firings.

    A signal's id is made of its firing and the number of the action. So another attempt at the
    entry raises the same signals. Raises SinkError if a field cannot be evaluated.
    """
    statement = entry.stating(SignalStatement)
    ids = firings.hex_ids().to_pylist()
    fields = fields_of(entry, firings, sink)
    try:
        by_firing = {row.pop("firing_id"): row for row in fields.to_pylist()}
    except (ValueError, OverflowError):
        raise SinkError(
            f"[signal-field] a field of {statement.event} is a time outside the years 1 to 9999, "
            "which no signal can carry"
        ) from None
    depths = firings.firings["depth"].to_pylist()
    event, action = statement.event, statement.action
    return tuple(
        Signal(f"{one}-{action}", event, by_firing[one], received_at, depth, namespace=ENGINE)
        for one, depth in zip(ids, depths, strict=True)
    )
