"""How much is stored, before anything has arrived: the numbers that a static bound is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Amount:
    """At most `count`, and (where `span_micros` is not None) as many as arrive in so long a time;
    `endless`: no limit at all. Adds and multiplies as the numbers it stands for."""

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
        """The same where nothing older than `span_micros` is kept (None: no such promise)."""
        if span_micros is None or not self.endless:
            return self
        return Amount(self.count, span_micros)

    @property
    def maximum(self) -> int | None:
        """The number that is never exceeded, if there is one."""
        return None if self.endless or self.span_micros is not None else self.count

    def _span(self, other: Amount) -> int | None:
        known = [s for s in (self.span_micros, other.span_micros) if s is not None]
        return max(known, default=None)


NOTHING = Amount()
ONE = Amount(1)
ENDLESS = Amount(endless=True)


def total(amounts: list[Amount]) -> Amount:
    spans = [amount.span_micros for amount in amounts if amount.span_micros is not None]
    return Amount(
        sum([amount.count for amount in amounts]),
        max(spans, default=None),
        any(amount.endless for amount in amounts),
    )
