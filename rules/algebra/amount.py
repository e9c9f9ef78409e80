"""Upper bounds of what is stored: the numbers of a static bound."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Amount:
    """At most `count` things, and (where `span_micros` is not None) as many more as arrive in a
    time of that length. `endless`: there is no limit.

    Amounts add and multiply like the numbers they stand for. Example: 2 instances and those of the
    last 5 s are `Amount(2) + Amount(0, 5_000_000)`.
    """

    count: int = 0
    span_micros: int | None = None
    endless: bool = False

    def __add__(self, other: Amount) -> Amount:
        if other is NOTHING:
            return self
        return Amount(self.count + other.count, self._span(other), self.endless or other.endless)

    def __mul__(self, other: Amount) -> Amount:
        if NOTHING in (self, other):
            return NOTHING
        return Amount(self.count * other.count, self._span(other), self.endless or other.endless)

    def within(self, span_micros: int | None) -> Amount:
        """The same amount if nothing older than `span_micros` is kept (None: that is not known)."""
        if span_micros is None or not self.endless:
            return self
        return Amount(self.count, span_micros)

    @property
    def maximum(self) -> int | None:
        """The number that is never exceeded; None where there is none."""
        return None if self.endless or self.span_micros is not None else self.count

    def _span(self, other: Amount) -> int | None:
        known = [s for s in (self.span_micros, other.span_micros) if s is not None]
        return max(known, default=None)


NOTHING = Amount()
ONE = Amount(1)
ENDLESS = Amount(endless=True)


def total(amounts: Iterable[Amount]) -> Amount:
    return sum(amounts, NOTHING)
