"""`holds`: when a rule fires and when it is resolved, by the definition, alert by alert.

Of one key: idle; an `over` at t0 makes it pending. An `under` after t0, up to and at t0 + for,
makes it idle again; else it fires at t0 + for. It is resolved at u + keep, of the first
`under` at u > t0 + for after which no `over` comes in [u, u + keep], and idle again from then on;
without keep at the first, which an `over` there does not keep.
At one instant `under` comes before `over`: an `over` at t0 outlasts an `under` there, and one at
the instant of a resolution begins anew. A rule's detection is an `over` or `under` at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.reference.meaning import World, leaf_type
from tests.reference.timing import add
from tests.reference.values import Instance, Occurrence
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w


class Fate(StrEnum):
    """What became of an alert that was pending."""

    CUT_SHORT = "cut short"  # an `under` came in time
    OPEN = "open"  # it fired, and is not resolved
    RESOLVED = "resolved"


@dataclass(frozen=True)
class Alert:
    """One alert: since when it was pending; when it fired, with which `over`s; by which `under`s,
    at one instant, it was resolved, and when. `kept`: how many `under`s an `over` made void."""

    start: int
    fate: Fate
    fired: int | None = None
    overs: tuple[Occurrence, ...] = ()
    unders: tuple[Occurrence, ...] = ()
    resolved: int | None = None
    kept: int = 0


def alerts(
    overs: Sequence[Occurrence],
    unders: Sequence[Occurrence],
    lasts: Callable[[int], int],
    keeps: Callable[[int], int],
) -> list[Alert]:
    """Every alert of a history of one key, as if time went on for ever. `lasts`: t0 + for of a t0;
    `keeps`: u + keep of a u."""
    found: list[Alert] = []
    idle: int | None = None
    while starts := [o.end for o in overs if idle is None or o.end >= idle]:
        start = min(starts)
        fires = lasts(start)
        cuts = [u.end for u in unders if start < u.end <= fires]
        if cuts:
            found.append(Alert(start, Fate.CUT_SHORT))
            idle = min(cuts)
            continue
        held = tuple(o for o in overs if start <= o.end <= fires)
        later = sorted({u.end for u in unders if u.end > fires})
        lasting = [
            u for u in later if not any(u <= o.end <= keeps(u) for o in overs) or keeps(u) == u
        ]
        kept = len([u for u in later if not lasting or u < lasting[0]])
        if not lasting:
            found.append(Alert(start, Fate.OPEN, fires, held, kept=kept))
            break
        under, idle = lasting[0], keeps(lasting[0])
        at = tuple(u for u in unders if u.end == under)
        found.append(Alert(start, Fate.RESOLVED, fires, held, at, idle, kept))
    return found


def detected(on: w.Holding, world: World) -> list[Instance]:
    """What a rule detects: from t0 to the instant at which it fires, with the `over`s since."""
    return [
        _instance(alert.start, alert.fired, alert.overs)
        for alert in _alerts(on, world)
        if alert.fired is not None
    ]


def resolutions(on: w.Holding, world: World, until: int | None) -> list[Instance]:
    """Its ends, as points: `resolved` of the rule, with the `under`s at u."""
    return [
        _instance(alert.resolved, alert.resolved, alert.unders)
        for alert in _alerts(on, world)
        if alert.resolved is not None and (until is None or alert.resolved <= until)
    ]


def _instance(start: int, end: int, held: Sequence[Occurrence]) -> Instance:
    return Instance(start, end, parameters=frozenset(((0,), o) for o in held))


def _alerts(on: w.Holding, world: World) -> list[Alert]:
    return alerts(
        _seen(on.begun, world),
        _seen(on.ended, world),
        lambda start: add(start, on.length, world.zone),
        lambda under: add(under, on.keep, world.zone),
    )


def _seen(part: x.Expression, world: World) -> list[Occurrence]:
    types = {leaf_type(node) for node in part.walk()} - {None}
    return [o for type_ in types for o in world.occurrences.get(type_, ())]
