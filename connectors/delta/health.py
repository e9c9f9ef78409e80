"""Whether Spark is fit to run something: `engine.quarantine.quarantine.Health`."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tidegate.connectors.delta.faults import SPARK_ERRORS, check_running, is_lost, spark_lost
from tidegate.connectors.delta.slots import Slots
from tidegate.rules.errors import EngineError


class DeltaHealth:
    """Of one session. `own`: the engine has started it, and may start it again."""

    def __init__(self, spark: SparkSession, slots: Slots, *, own: bool) -> None:
        self._spark, self._slots, self._own = spark, slots, own

    def lost(self, error: BaseException | None = None) -> EngineError | None:
        """`spark-lost` where an error, or Spark itself, says that its Java or context has ended."""
        if isinstance(error, EngineError) and error.code == "spark-lost":
            return error
        try:
            check_running(self._spark)
        except EngineError as lost:
            return lost
        except SPARK_ERRORS as said:
            return spark_lost(str(said)) if is_lost(said) else None
        return None

    def overrun(self) -> tuple[bool, EngineError | None]:
        """See `Health.overrun`. One slot must be left for others."""
        lost, slots = self._slots.lost, self._slots.count
        if not self._own:
            return lost > 0, None
        if lost < max(1, slots - 1):
            return False, None
        held = f"tasks that nobody can end hold {lost} of Spark's {slots} slots"
        hint = "a text that is named above ran in them: correct it, or raise statement_seconds_max"
        return False, EngineError("spark-lost", held, hint)
