"""Whether Spark is fit to run something: `engine.quarantine.quarantine.Health`."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from tidegate.connectors.delta.faults import why_lost
from tidegate.connectors.delta.slots import Slots
from tidegate.rules.errors import EngineError


@dataclass(frozen=True, slots=True)
class DeltaHealth:
    """Of one session. `own`: the engine has started it, and may start it again."""

    spark: SparkSession
    slots: Slots
    own: bool

    def lost(self, error: BaseException | None = None) -> EngineError | None:
        """See `Health.lost`. A Spark that is about to be ended is lost, whoever ends it."""
        return self.slots.condemned or why_lost(self.spark, error)

    def overrun(self) -> tuple[bool, EngineError | None]:
        """See `Health.overrun`. One slot must be left for others."""
        lost, slots = self.slots.lost, self.slots.count
        if not self.own and lost >= slots:
            held = f"tasks that nobody can end hold all {slots} slots of your Spark session"
            return True, EngineError("spark-lost", held, "end the session, and start again")
        if not self.own:
            return lost > 0, None
        if lost < max(1, slots - 1):
            return False, None
        held = f"tasks that nobody can end hold {lost} of Spark's {slots} slots"
        hint = "a text that is named above ran in them: correct it, or raise statement_seconds_max"
        self.slots.condemned = EngineError("spark-lost", held, hint)
        return False, self.slots.condemned
