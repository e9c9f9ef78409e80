"""Windows over event types: `A*(a, b, c)`, chosen among in one walk."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate.rules.expressions import nodes as x


@dataclass(frozen=True, slots=True)
class Window:
    """`A*(a, b, c)` or (`length_micros` > 0) `A*(a, b, [d])` over distinct event types.

    An instance lasts no longer than `span_micros` and has no occurrence of `absent` inside.
    """

    events: tuple[str, ...]
    length_micros: int
    span_micros: int | None = None
    absent: str | None = None


def window(expression: x.Expression) -> Window | None:
    """An expression without labels as such a window; None if it is anything else."""
    found = _window(expression)
    return found if found and len({*found.events}) == len(found.events) else None


def _window(node: x.Expression) -> Window | None:
    match node:
        case x.Within(part=part, duration=duration) if not duration.months:
            found = _window(part)
            if found is None:
                return None
            span = found.span_micros
            shorter = duration.micros if span is None else min(span, duration.micros)
            return replace(found, span_micros=shorter)
        case x.Minus(part=part, absent=x.Name(name=name)):
            found = _window(part)
            if found is None or found.absent:
                return None
            return replace(found, events=(*found.events, name), absent=name)
        case x.AperiodicStar(opener=x.Name(name=a), part=x.Name(name=b), closer=closer):
            if isinstance(closer, x.Name):
                return Window((a, b, closer.name), 0)
            if isinstance(closer, x.Own) and not closer.duration.months:
                return Window((a, b), closer.duration.micros)
    return None
