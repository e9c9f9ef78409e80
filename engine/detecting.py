"""A bucket's step of the detector, and what its limits do to rules and plans."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.engine.detector.limits import RuleLimitError
from tidegate.engine.detector.partitioned import Partitioned
from tidegate.engine.detector.timers import FloodError
from tidegate.engine.state import Parked, State
from tidegate.engine.values import Bucket, Carried, Detections
from tidegate.rules.model import Settings


@dataclass(frozen=True, slots=True)
class Detected:
    """What a bucket's step found, and the rules that a limit stopped on the way."""

    found: tuple[Detections, ...]
    carried: Carried
    parked: tuple[Parked, ...]


def detect(detector: Partitioned, state: State, bucket: Bucket, limits: Settings) -> Detected:
    """One step of the detector; a rule that reaches a limit is parked, and the others go on without
    it. Raises `FloodError` where the step did not reach the plan's watermark, unless that stays
    where it was: then timers of a rule that was parked are overdue, and no cut leaves them out."""
    plan = bucket.plan
    before = (state.stopped - plan.enabled) | plan.disabled
    parked: dict[str, Parked] = {}
    while True:
        try:
            found, carried, reached = detector.step(
                state.carried,
                bucket.batches,
                plan.watermark,
                parked=before | parked.keys(),
                limit=limits.timers_per_bucket_max,
            )
        except RuleLimitError as error:
            at = plan.watermark_before + 1
            for rule in detector.detector.parked_with({error.rule}) - before:
                reason = error.reason if rule == error.rule else f"it uses {error.rule}"
                parked[rule] = Parked(rule, reason, error.hint, at)
        else:
            if reached < plan.watermark and plan.watermark > plan.watermark_before:
                raise FloodError(reached)
            return Detected(found, carried, tuple(parked.values()))
