"""Carlson & Lisper's transformation (their Figure 5): temporal restrictions pushed down.

Their index `E_t` is our `E within t`. A restriction around an expression limits the length of its
parts, too. Where it limits the second operand of a `;`, that operator becomes the bounded sequence
`;_t`. This one needs only the queue of their Figure 4: in the detector, the pending starts of the
second operand that are no older than t.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tidegate.rules.algebra.normal_form import keeping
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.business_days import longest_days

_DAY_MICROS = 86_400_000_000


class Transformed(NamedTuple):
    """An expression, and the length of its longest instances in microseconds; None for inf."""

    expression: x.Expression
    length_micros: int | None


def transform(
    node: x.Expression,
    limit_micros: int | None = None,
    rules: Collection[str] = (),
    *,
    forgetting: bool = False,
) -> Transformed:
    """`transform(E, t)` = (E', t'), for an E of which only instances up to t long matter.

    E' has all instances of E that are no longer than t, in `restricted` with the same start and
    end; it may have longer ones, too. No instance of E' is longer than t'. `rules`: the rules that
    are used as events, whose detections may have any length. Example 6.1 of the paper:

        transform((B;B)_2 - (P;(P+T)), inf) = ((B;_0 B)_2 - (P;_2 (P+T)_2), 2)

    With `forgetting`, a part without a `within` gets one wherever its longer instances do not
    matter, so that its nodes can forget: in the example, `(P;_2 (P+T)_2)_2`.
    """
    return _Transformation(rules, forgetting=forgetting).of(node, limit_micros)


def longest_micros(duration: x.Duration) -> int:
    """Microseconds that no span of this duration exceeds, months and changes of clocks included."""
    if isinstance(duration, x.BusinessDays):
        return (longest_days(duration.calendar, duration.count) + 2) * _DAY_MICROS
    return duration.micros + (duration.months * 31 + 2 * bool(duration.months)) * _DAY_MICROS


def shortest_micros(duration: x.Duration) -> int:
    """Microseconds that every span of this duration reaches."""
    if isinstance(duration, x.BusinessDays):
        return max(duration.count - 2, 0) * _DAY_MICROS
    return duration.micros + max(duration.months * 28 - 2 * bool(duration.months), 0) * _DAY_MICROS


def shorter(one: int | None, other: int | None) -> int | None:
    """The shorter of two lengths of time, None for inf."""
    known = [length for length in (one, other) if length is not None]
    return min(known, default=None)


def loosened(node: x.Expression, span_micros: int | None) -> x.Expression:
    """The expression without the `within`s that follow from one of `span_micros` around it."""
    if span_micros is None:
        return node
    if isinstance(node, x.Within) and shortest_micros(node.duration) >= span_micros:
        return loosened(node.part, span_micros)
    return x.with_operands(node, [loosened(part, span_micros) for part in node.operands()])


class _Transformation:
    def __init__(self, rules: Collection[str], *, forgetting: bool) -> None:
        self.rules = rules
        self.forgetting = forgetting

    def of(self, node: x.Expression, limit: int | None) -> Transformed:
        match node:
            case x.Within():
                return self._within(node, limit)
            case x.Minus(part=part, absent=absent):
                kept = self.of(part, limit)
                inside = self._inside(absent, limit, kept.length_micros)
                made = keeping(node, [kept.expression, inside.expression])
                return Transformed(made, kept.length_micros)
            case x.Seq():
                return self._seq(node, limit)
            case x.Name(name=name):
                return Transformed(node, None if name in self.rules else 0)
            case x.Clock() | x.Cron() | x.Edge() | x.Own():
                return Transformed(node, 0)
            case _:
                return self._other(node, limit)

    def _within(self, node: x.Within, limit: int | None) -> Transformed:
        if limit is not None and limit <= shortest_micros(node.duration):
            return self.of(node.part, limit)
        longest = longest_micros(node.duration)
        part, length = self.of(node.part, shorter(limit, longest))
        if length is not None and length <= shortest_micros(node.duration):
            return Transformed(part, length)
        return Transformed(x.Within(part, node.duration), longest)

    def _seq(self, node: x.Seq, limit: int | None) -> Transformed:
        first, length = self.of(node.first, limit)
        if isinstance(node.then, x.Own):
            whole = None if length is None else length + longest_micros(node.then.duration)
            return Transformed(x.Seq(first, node.then), whole)
        then, length = self.of(node.then, limit)
        if length is None and limit is not None:
            then, length = x.Within(then, x.Duration(0, limit)), limit
        if length is None:
            return Transformed(keeping(node, [first, then]), None)
        return Transformed(x.BoundedSeq(first, then, x.Duration(0, length)), None)

    def _inside(self, node: x.Expression, limit: int | None, window: int | None) -> Transformed:
        """An operand of which only instances inside a window of length `window` matter. The `limit`
        stands around the whole already."""
        longest = shorter(limit, window)
        made, length = self.of(node, longest)
        known = longest == limit or (length is not None and length <= (longest or 0))
        if longest is None or known or not self.forgetting:
            return Transformed(made, length)
        return Transformed(x.Within(made, x.Duration(0, longest)), longest)

    def _other(self, node: x.Expression, limit: int | None) -> Transformed:
        parts = [
            self._inside(operand, most, window)
            for operand, most, window in zip(
                node.operands(), _limits(node, limit), _windows(node), strict=True
            )
        ]
        made = keeping(node, [part.expression for part in parts])
        return Transformed(made, _length(node, [part.length_micros for part in parts]))


def _limits(node: x.Expression, limit: int | None) -> list[int | None]:
    """The longest instances of each operand that matter, if those of the operator matter up to
    `limit`. What is counted, and what opens or closes a window, matters at any length (None)."""
    match node:
        case x.Every() | x.Nth() | x.Plus() | x.Periodic() | x.Instant():
            return [None for _ in node.operands()]
        case x.Aperiodic():
            return [None, limit, None]
        case _:
            return [limit for _ in node.operands()]


def _windows(node: x.Expression) -> list[int | None]:
    """For each operand the length of the window in which its instances matter; None: not known."""
    match node:
        case x.Not(closer=x.Own(duration=duration)):
            return [longest_micros(duration), None, None]
        case (
            x.Aperiodic(closer=x.Own(duration=duration))
            | x.AperiodicStar(closer=x.Own(duration=duration))
        ):
            return [None, longest_micros(duration), None]
        case _:
            return [None for _ in node.operands()]


def _length(node: x.Expression, lengths: list[int | None]) -> int | None:
    """The length of an operator's longest instances, from those of its operands."""
    match node:
        case x.Or():
            return None if None in lengths else max(filter(None, lengths), default=0)
        case x.Labelled() | x.Nth():
            return lengths[0]
        case x.Aperiodic():
            return lengths[1]
        case x.Plus() | x.Periodic() | x.Instant():
            return 0
        case (
            x.Not(opener=opener, closer=x.Own(duration=duration))
            | x.AperiodicStar(opener=opener, closer=x.Own(duration=duration))
            | x.PeriodicStar(opener=opener, closer=x.Own(duration=duration))
        ):
            opened = lengths[node.operands().index(opener)]
            return None if opened is None else opened + longest_micros(duration)
        case _:
            return None
