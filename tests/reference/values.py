"""Occurrences, instances and their order: semantics 1 and S1, word for word.

Times are whole microseconds. An occurrence *is* its object: equal rows are two (S5).
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

_numbers = itertools.count()


def value_order(value: Any) -> tuple[Any, ...]:
    """The order of keys in `language.md` 4: null < false < true < numbers by value < strings."""
    if value is None:
        return (0,)
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, int | float | Decimal):
        return (2, value)
    if isinstance(value, str):
        return (3, value)
    return (4, json.dumps(value, sort_keys=True, default=str))


@dataclass(frozen=True, eq=False)
class Occurrence:
    """One occurrence of an event type, a rule (S8) or a clock.

    `type` is what S3 calls the event type (equal clock literals are one), `event` the printed name,
    `columns` the parameters of the whole type in name order, `fields` those of the line as printed.
    `parts` are the constituents of a rule's detection, empty for a primitive occurrence.
    """

    type: Any
    event: str
    start: int
    end: int
    columns: tuple[Any, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Constituent, ...] | None = None
    number: int = field(default_factory=lambda: next(_numbers))

    def rank(self) -> tuple[Any, ...]:
        """S1. Behind it the constituents of a rule's detection, on which S1 is silent."""
        inner = tuple(sorted(part.order() for part in self.parts or ()))
        values = tuple(value_order(value) for value in self.columns)
        return (self.start, self.end, self.event, values, inner)

    def place(self) -> tuple[Any, ...]:
        """What orders equal rows, and a rule's detections of them alike, where all that is of
        values (S1) leaves instances equal: nobody can tell them apart but `every` and `[i]`."""
        parts = sorted(self.parts or (), key=lambda part: (part.order(), _number(part)))
        return tuple(_number(part) for part in parts), self.number

    def order(self) -> tuple[Any, ...]:
        """The order of constituents in the output (`language.md` 4)."""
        return (self.end, self.event, tuple(value_order(value) for value in self.columns))


@dataclass(frozen=True)
class Tick:
    """A tick of one `P` or `P*` at an instant; `source` is that node. No occurrence (S6)."""

    source: Any
    time: int

    def order(self) -> tuple[Any, ...]:
        return (self.time, "tick", ())


Constituent = Occurrence | Tick


def _number(part: Constituent) -> int:
    return part.number if isinstance(part, Occurrence) else 0


NOTHING: frozenset[Any] = frozenset()


Role = tuple[int, ...]  # the position of a leaf: operand numbers from the root down
Filled = frozenset[tuple[Role, Occurrence]]


@dataclass(frozen=True)
class Point:
    """What `instant(x)` makes of an instance of x: one occurrence at its end, where instances are
    compared. `source` is that node, `rank` that of the lowest of the occurrences `held`, which it
    stands for. Of a plain x it is the occurrence itself, `of`, as a point."""

    role: Role
    source: Any
    time: int
    rank: tuple[Any, ...]
    held: Filled
    of: Occurrence | None = None

    def initiator(self) -> object:
        """What initiates with it (S2): of a plain x the occurrence that it is; else the point,
        known by what it holds; one that holds nothing is the instant."""
        held = frozenset(o for _, o in self.held)
        return self.of or ((self.time, held) if held else self.time)


@dataclass(frozen=True)
class Instance:
    """An instance: its occurrences by role, its interval, its ticks. `points`: what stands for some
    of them where instances are compared.

    `parameters` are the constituents; `used` are the a and c of `A*` and `P*`, used up with it but
    no parameters. What is looked at only (existence-only roles) is not held.
    """

    start: int
    end: int
    parameters: Filled = NOTHING
    used: Filled = NOTHING
    ticks: frozenset[Tick] = NOTHING
    points: frozenset[Point] = NOTHING

    def under(self, operand: int) -> Instance:
        """The same as the instance of an operand, its roles seen from the operator."""
        parameters = frozenset(((operand, *role), o) for role, o in self.parameters)
        used = frozenset(((operand, *role), o) for role, o in self.used)
        points = frozenset(
            replace(
                point,
                role=(operand, *point.role),
                held=frozenset(((operand, *role), o) for role, o in point.held),
            )
            for point in self.points
        )
        return replace(self, parameters=parameters, used=used, points=points)

    def point(self, source: Any, *, plain: bool) -> Instance:
        """The same as a point at its end."""
        held = self.parameters | self.used
        ranks = self.ranks()
        rank = ranks[0] if ranks else (self.end, self.end, "", (), ())
        of = next(iter(o for _, o in held)) if plain else None
        made = Point((), source, self.end, rank, held, of)
        return replace(self, start=self.end, points=frozenset([made]))

    def compared(self) -> Filled:
        """The occurrences for which no point stands."""
        return (self.parameters | self.used) - frozenset().union(*(p.held for p in self.points))

    def occurrences(self) -> frozenset[Occurrence]:
        return frozenset(o for _, o in self.parameters | self.used)

    def constituents(self) -> frozenset[Constituent]:
        return frozenset(o for _, o in self.parameters) | self.ticks

    def times(self) -> tuple[int, ...]:
        """The sorted instants; an occurrence counts once per role, an instance without
        occurrences its own instant (S1)."""
        found = [*(o.end for _, o in self.compared()), *(point.time for point in self.points)]
        return tuple(sorted(found)) or (self.end,)

    def starts(self) -> tuple[int, ...]:
        """Of its occurrences, sorted; another list than `times` only where rules are events."""
        found = [*(o.start for _, o in self.compared()), *(point.time for point in self.points)]
        return tuple(sorted(found))

    def ranks(self) -> tuple[Any, ...]:
        found = [*(o.rank() for _, o in self.compared()), *(point.rank for point in self.points)]
        return tuple(sorted(found))

    def held(self) -> tuple[Any, ...]:
        """The ranks of all its occurrences, those for which points stand included: the order of
        what counts alike where it is compared, a list that has ended after all others."""
        found = sorted(o.rank() for _, o in self.parameters | self.used)
        return (*((0, rank) for rank in found), (1,))

    def places(self) -> tuple[Any, ...]:
        """Of its occurrences in order of rank (`Occurrence.place`)."""
        held = [(o.rank(), o.place()) for _, o in self.parameters | self.used]
        return tuple(place for _, place in sorted(held))

    def tie(self) -> tuple[Any, ...]:
        """For instances that S1 cannot order: ticks like `times`; then the first operands that the
        same occurrences can fill, so that nothing is left to chance."""
        ticks = sorted(tick.time for tick in self.ticks)
        roles = sorted(tuple(-n for n in role) for role, _ in self.parameters | self.used)
        return (*ticks, math.inf), roles


def hull(instances: Iterable[Instance]) -> Instance:
    """The union of some instances, over the hull of their intervals."""
    parts = list(instances)
    return Instance(
        start=min(i.start for i in parts),
        end=max(i.end for i in parts),
        parameters=frozenset().union(*(i.parameters for i in parts)),
        used=frozenset().union(*(i.used for i in parts)),
        ticks=frozenset().union(*(i.ticks for i in parts)),
        points=frozenset().union(*(i.points for i in parts)),
    )


def restricted_order(instance: Instance) -> tuple[Any, ...]:
    """S1, greatest wins: later start; the starts of its occurrences oldest first; ranks oldest
    first. At the first difference the later wins, and a list that has ended wins.

    Where a rule's detection is an occurrence (S8), its start stands in for its instant: only so
    does choosing at every node give the same instance as choosing at the root.
    """
    starts = (*(instance.starts() or (instance.end,)), math.inf)
    ranks = (*((0, rank) for rank in instance.ranks()), (1,))
    ticks, operands = instance.tie()
    return (instance.start, starts, ranks, instance.held(), ticks, instance.places(), operands)


def chronicle_order(instance: Instance) -> tuple[Any, ...]:
    """S3, least wins: oldest `times`, a list that has ended is older; lower ranks; older start."""
    return (instance.times(), instance.ranks(), instance.start)


def greatest(instances: Iterable[Instance]) -> Instance:
    return max(instances, key=restricted_order)


def oldest(instances: Iterable[Instance]) -> Instance:
    """The least of S3, of equal rows the first; of what that cannot order the one that stays in D
    (`distinct`), so that every context detects members of D."""

    def order(instance: Instance) -> tuple[Any, ...]:
        return chronicle_order(instance), instance.held(), instance.places()

    found = list(instances)
    least = min(map(order, found))
    return max((i for i in found if order(i) == least), key=Instance.tie)


def distinct(instances: Iterable[Instance]) -> list[Instance]:
    """D is a set of (occurrences of all roles, start, end) (S5): it does not matter which operand
    an occurrence fills. Ticks are not among these: of instances that differ in their ticks alone
    one stays."""
    found: dict[tuple[Any, ...], Instance] = {}
    for instance in instances:
        parameters = instance.constituents() - instance.ticks
        key = (instance.start, instance.end, parameters, instance.occurrences())
        found[key] = max(found.get(key, instance), instance, key=Instance.tie)
    return list(found.values())
