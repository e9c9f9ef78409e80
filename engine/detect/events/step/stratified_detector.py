"""A detector of rules in strata: scripts run between them, and take what the strata before detect.

Example: script `s` takes what rule `r` detects, rule `q` looks at what `s` emits. First `r` is
stepped, then `s`, then `q`. Mostly no rule looks at what such a script emits. Then all rules are of
one stratum, and one detector steps them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple

from tidegate.engine.core.state_parts import Shelf
from tidegate.engine.core.values import Batch, Carried, Detections, Stepped
from tidegate.engine.detect.events.state.held_back import check_held
from tidegate.engine.detect.events.state.partitions import wanted
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.state.shares import Sharing
from tidegate.engine.detect.events.step.component_task import Plan
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.rules.analysis.graph import strata
from tidegate.rules.model import Rulebook

Detect = Callable[[int, Mapping[str, Batch]], Sequence[Detections]]
"""Steps the rules of a stratum, given by its number, over arrivals; gives what they detect."""


class RulesOf(NamedTuple):
    """The detector of a stratum, and the rules of which it shows what it detects. The others are of
    strata before: its own rules use them, so they are stepped once more."""

    detector: Detector
    shown: frozenset[str]

    def some(self, found: Sequence[Detections]) -> tuple[Detections, ...]:
        """Those detections that are shown."""
        return tuple(one for one in found if one.rule in self.shown)


def by_stratum(
    book: Rulebook,
    make: Callable[[Collection[str] | None], Detector],
    only: Collection[str] | None = None,
) -> list[RulesOf]:
    """The rules of a rulebook, or `only` these, by stratum. `make` makes the detector of some
    rules, or of all."""
    kept = [one for n, one in enumerate(strata(book)) if one.rules or not n]
    if len(kept) == 1:
        return [RulesOf(make(only), frozenset(kept[0].rules))]
    used = [one.used if only is None else {*one.used} & {*only} for one in kept]
    return [RulesOf(make(u), frozenset(one.rules)) for u, one in zip(used, kept, strict=True)]


class StratifiedDetector:
    """Rules of a rulebook by stratum. What is carried is cut into `count_max` partitions at most,
    and is what one detector of all rules carries."""

    def __init__(self, plan: Plan, count_max: int, only: Collection[str] | None = None) -> None:
        self._rules = by_stratum(plan.book, plan.detector, only)
        self._each = [Partitioned(one.detector, count_max) for one in self._rules]
        texts = [",".join(sorted(one.shown)) for one in self._rules[:-1]]
        self.digests = [hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts]
        """Of all strata but the last."""
        self._sharing = Sharing([one.graph for one in self.detectors], self.digests)
        self._plan = plan
        self._count_max = count_max
        self._adopted = False

    @property
    def detectors(self) -> list[Detector]:
        """Of each stratum."""
        return [one.detector for one in self._rules]

    @cached_property
    def whole(self) -> Partitioned:
        """Of all rules, to be asked what is known without a step."""
        if len(self._each) == 1:
            return self._each[0]
        return Partitioned(self._plan.detector(None), self._count_max)

    def step(
        self,
        carried: Carried,
        watermark: int,
        last: int | None,
        parked: Collection[str],
        limit: int | None,
        shelf: Shelf | None,
        through: Callable[[Detect], None],
    ) -> Stepped:
        """`Partitioned.step`, where `through` asks for what each stratum detects."""
        if len(self._each) == 1:
            own = [carried]
            return self.step_shares(own, watermark, last, parked, limit, shelf, through)[0]
        stored = Parts.of(carried.tables)
        asleep = [detector.asleep(parked) for detector in self.detectors]
        shares = self._sharing.divided(Carried(stored), asleep, shelf)
        count = wanted(stored.count, stored.largest, self._count_max)
        made = self.step_shares(shares, watermark, last, parked, limit, shelf, through, count)
        left = self._sharing.beside_each_other([one.carried for one in made], shares)
        after = Parts.of(left.tables)
        order = {rule: number for number, rule in enumerate(self._plan.book.rules)}
        found = sorted((d for one in made for d in one.detections), key=lambda d: order[d.rule])
        left = Carried(after, after.differing(stored))
        return Stepped(tuple(found), left, min(one.watermark for one in made))

    def step_shares(
        self,
        shares: Sequence[Carried],
        watermark: int,
        last: int | None,
        parked: Collection[str],
        limit: int | None,
        shelf: Shelf | None,
        through: Callable[[Detect], None],
        count: int | None = None,
    ) -> list[Stepped]:
        """`step` over what each stratum carries; of each what it detects and carries on. Strata end
        at one instant: where timers stop one of them earlier, `through` is called again."""
        if not self._adopted:
            held = {n: t for share in shares for n, t in Parts.of(share.tables).rest.items()}
            check_held(held, frozenset().union(*(one.events for one in self.detectors)))
            self._adopted = True
        given = last, parked, limit, shelf, count
        made = self._once(shares, watermark, given, through)
        while len(made) > 1 and (reached := min(one.watermark for one in made)) < watermark:
            watermark = reached
            made = self._once(shares, watermark, given, partial(shorter, through, watermark))
        return made

    def _once(
        self,
        shares: Sequence[Carried],
        watermark: int,
        given: tuple[int | None, Collection[str], int | None, Shelf | None, int | None],
        through: Callable[[Detect], None],
    ) -> list[Stepped]:
        """`step_shares`, however far each stratum gets. `given`: the other arguments of
        `Partitioned.step`."""
        made: list[Stepped] = []

        def detect(stratum: int, arrivals: Mapping[str, Batch]) -> Sequence[Detections]:
            one = self._each[stratum].step(shares[stratum], arrivals, watermark, *given)
            found = self._rules[stratum].some(one.detections)
            made.append(one._replace(detections=found))
            return found

        through(detect)
        return made


def shorter(through: Callable[[Detect], None], watermark: int, detect: Detect) -> None:
    """Asks for what is detected of the arrivals up to a watermark."""

    def detect_some(stratum: int, arrivals: Mapping[str, Batch]) -> Sequence[Detections]:
        some = {event: batch.until(watermark) for event, batch in arrivals.items()}
        return detect(stratum, some)

    through(detect_some)
