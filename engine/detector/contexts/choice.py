"""The root of a rule in a context other than `restricted`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.detector.contexts import chronicle, continuous, cumulative, recent, unrestricted
from engine.detector.contexts.history import Found, History
from engine.detector.contexts.log import Log
from engine.detector.contexts.tree import Tree
from engine.detector.instances import Carry, Flow, Instances, Moment, bare, concat, no_pending
from rules.model import Context

CHOOSE: Mapping[Context, Callable[[History], Iterator[Found]]] = {
    Context.UNRESTRICTED: unrestricted.choose,
    Context.RECENT: recent.choose,
    Context.CHRONICLE: chronicle.choose,
    Context.CONTINUOUS: continuous.choose,
    Context.CUMULATIVE: cumulative.choose,
}


@dataclass(frozen=True, slots=True)
class Choice:
    """Chooses among the instances of `tree` that end now, those that hold nothing used up.

    Operands: the whole expression in `restricted`; then the event types, every row of them, the
    first role of each in `roles`; then the expressions that are only looked at. There is no
    instance where `restricted` finds none, so only where it finds one is anything searched.

    Carries per key, a slot each: the occurrences of each event type that are not used up; the
    intervals of what is looked at; the broadcasts that a key has used up; what has initiated.
    Not carried: event types (`passing`) that only ever end an instance, and what is older than
    `horizon_micros`. Bound: what arrives in that time.
    """

    context: Context
    tree: Tree
    roles: tuple[int, ...]
    looked: int
    passing: frozenset[int]
    horizon_micros: int | None
    carried_per_key_max: int = field(repr=False)
    search_steps_max: int = field(repr=False)

    @property
    def slots(self) -> int:
        return len(self.roles) + self.looked + 2

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        leaves, looked = len(self.roles), slice(len(self.roles), -2)
        shifted = [f.instances.shifted(r) for f, r in zip(operands[1:], self.roles, strict=False)]
        log = Log(
            [concat([a, b]) for a, b in zip(carry, shifted, strict=False)],
            [
                _interval(concat([a, b.instances]))
                for a, b in zip(carry[looked], operands[1 + leaves :], strict=True)
            ],
            carry[-2],
            carry[-1],
        )
        found = [
            (key, now, *chosen)
            for key, instants in _by_key(operands[0].instances)
            for now, chosen in self._choose(log, key, instants, moment)
        ]
        pool, carried = log.pool, log.carry(self.passing, self.carried_per_key_max)
        return Flow(_instances(found, pool, moment), no_pending()), carried

    def _choose(
        self, log: Log, key: int, instants: Sequence[int], moment: Moment
    ) -> Iterator[tuple[int, Found]]:
        history = log.open(key, self.tree, moment, self.search_steps_max)
        for now in instants:
            horizon = self.horizon_micros
            history.advance(now, -(2**63) if horizon is None else now - horizon)
            for chosen in CHOOSE[self.context](history):
                yield now, chosen
        log.close(key, history)


def _interval(found: Instances) -> Instances:
    return bare(found.key, found.start, found.end)


def _by_key(found: Instances) -> Iterator[tuple[int, list[int]]]:
    """The instants at which instances of each key end."""
    order = np.argsort(found.key, kind="stable")
    keys, first = np.unique(found.key[order], return_index=True)
    parts = np.split(found.end[order], first[1:]) if len(keys) else []
    for key, ends in zip(keys.tolist(), parts, strict=True):
        yield key, np.unique(ends).tolist()


def _instances(
    found: Sequence[tuple[int, int, int, Sequence[tuple[int, int]]]],
    pool: Instances,
    moment: Moment,
) -> Instances:
    """(key, end, start, entries) of each detection, as instances in order of end."""
    found = sorted(found, key=lambda f: f[1])
    offsets, rows, roles = [0], [], []
    for *_, entries in found:
        inside = []
        for shift, item in entries:
            for e in range(pool.offsets[item], pool.offsets[item + 1]):
                row = int(pool.row[e])
                place = int(moment.time[row]), int(moment.rank[row]), row
                inside.append((*place, int(pool.role[e]) + shift))
        inside.sort()
        rows += [row for *_, row, _ in inside]
        roles += [role for *_, role in inside]
        offsets.append(len(rows))
    return Instances(
        np.array([f[0] for f in found], dtype=np.int32),
        np.array([f[2] for f in found], dtype=np.int64),
        np.array([f[1] for f in found], dtype=np.int64),
        np.array(offsets, dtype=np.int64),
        np.array(rows, dtype=np.int64),
        np.array(roles, dtype=np.int16),
    )
