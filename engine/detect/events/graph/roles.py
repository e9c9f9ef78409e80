"""The roles of an expression: what each of its events is to a detection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tidegate.engine.core.clocks import name_of
from tidegate.engine.core.event_names import tick_type
from tidegate.rules.algebra.detector_form import KEPT_MAX
from tidegate.rules.expressions import nodes as x


@dataclass(frozen=True, slots=True)
class Role:
    """One event of an expression: its event type; the labels around it, outermost first; and
    whether it is a parameter. The a and c of `A*` and `P*` are no parameters."""

    event: str
    labels: tuple[str, ...]
    parameter: bool


@lru_cache(maxsize=KEPT_MAX)
def roles(e: x.Expression) -> tuple[Role, ...]:
    """The roles of an expression from the left. A role's place is its number. The ticks of a `P`
    come after its operands."""
    return tuple(_roles(e, (), parameter=True))


def _roles(e: x.Expression, labels: tuple[str, ...], *, parameter: bool) -> Iterator[Role]:
    if isinstance(e, x.Labelled):
        labels = (*labels, e.label)
    if isinstance(e, x.Name):
        yield Role(e.name, labels, parameter)
    if isinstance(e, x.Clock | x.Cron):
        yield Role(name_of(e), labels, parameter)
    for number, operand in enumerate(e.operands()):
        bounds = number != 1 if isinstance(e, x.AperiodicStar) else isinstance(e, x.PeriodicStar)
        yield from _roles(operand, labels, parameter=parameter and not bounds)
    if isinstance(e, x.Periodic | x.PeriodicStar):
        yield Role(tick_type(e), labels, parameter)
