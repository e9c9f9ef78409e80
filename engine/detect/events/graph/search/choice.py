"""The node that chooses among instances by searching: the root of a rule in a context other than
`restricted`, and a part with a condition in `restricted`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.search import chosen_instances, contexts, selection
from tidegate.engine.detect.events.graph.search.backlog import Backlog
from tidegate.engine.detect.events.graph.search.candidate_instants import Where, instants
from tidegate.engine.detect.events.graph.search.chosen_instances import ChosenInstance
from tidegate.engine.detect.events.graph.search.history import Found, Sought
from tidegate.engine.detect.events.graph.search.latest import latest
from tidegate.engine.detect.events.graph.search.pruning import Looking, pruned
from tidegate.engine.detect.events.graph.search.streams import Point, ends
from tidegate.engine.detect.events.graph.search_limits import LimitError, check_carried
from tidegate.engine.detect.events.kernels.columns import LAST, NEVER
from tidegate.engine.detect.events.occurrences.instances import (
    EVERY_KEY,
    Carry,
    Flow,
    Instances,
    Int32,
    Moment,
    bare,
    concat,
    pending_of,
)
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Context


@dataclass(frozen=True, slots=True)
class Choice:
    """Chooses among the instances of `tree` that end now and hold no consumed occurrence.

    Operands are the streams of `search.streams`, every row of them, then the `looked` that are only
    looked at. `roles` has the first role of each of the former. `where` tells at which instants to
    look. If it has no paths, one more operand does: the whole expression in `restricted`, which has
    an instance wherever there is one (semantics 4). An instance of all keys there makes each key
    look.

    Carries per key, a slot each:
    - each stream, without what is consumed, what is older than `horizon_micros`, and what can only
      end an instance (`passing`); with `latest` a few occurrences (`search.latest`);
    - consumed occurrences that may come again: broadcasts, which other keys may not have consumed,
      and those in the `remembered` roles, which are in something given; in `continuous` what has
      initiated;
    - if the tree has points, those that have initiated;
    - the instants to come.

    Months count in `zone`. `silent`: the roles that are no parameters. `windows`: the streams of
    each `A(a, b, c)`. first[role]: the first role of the same event, by which marks name an
    occurrence. Bound: what arrives in the `within` of the expression, and in that of each x of an
    `instant(x)`, whose occurrences may be older.
    """

    context: Context | selection.Selecting
    tree: x.Expression
    zone: str
    roles: tuple[int, ...]
    looked: int
    where: Where
    passing: frozenset[int]
    remembered: frozenset[int]
    silent: frozenset[int]
    windows: frozenset[Looking]
    horizon_micros: int | None
    first: tuple[int, ...] = field(repr=False)
    carried_per_key_max: int = field(repr=False)
    search_steps_max: int = field(repr=False)
    latest: bool = False

    @property
    def slots(self) -> int:
        return len(self.roles) + self.looked + self._marks + 1

    @property
    def _marks(self) -> int:
        """How many slots have marks."""
        return 1 + any(isinstance(node, Point) for node in self.tree.walk())

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        filled = len(self.roles)
        arrived = [
            flow.instances.shifted(role) for flow, role in zip(operands, self.roles, strict=False)
        ]
        log = self._open(arrived, operands, carry, moment)
        if self.where.paths:
            due, later = instants(self.where, self.zone, arrived, carry[-1], log.keys(), moment)
            moment.timers.fire(due.end)
        else:
            due, later = _of_each_key(operands[-1].instances, log.keys()), carry[-1]
        found = [
            ChosenInstance(key, now, *chosen)
            for key, times in _by_key(due)
            for now, chosen in self._choose(log, key, times)
        ]
        if not self.where.paths:
            found = [*_once(found)]
        kept = self._carry(log, moment)
        carried = (*kept, later)
        check_carried(carried, self.carried_per_key_max)
        pending = pending_of(kept[:filled], operands[:filled])
        return Flow(chosen_instances.instances(found, log.ticks, moment), pending), carried

    def due(self, carry: Carry, /) -> Int64:
        return carry[-1].end

    def _open(
        self, arrived: Sequence[Instances], operands: Sequence[Flow], carry: Carry, moment: Moment
    ) -> Backlog:
        filled = len(self.roles)
        marks = filled + self.looked
        looked = [
            concat([old, flow.instances])
            for old, flow in zip(carry[filled:marks], operands[filled:], strict=False)
        ]
        tree, context = self.tree, self.context if isinstance(self.context, Context) else None
        return Backlog(
            Sought(tree, context, self.zone, self.silent, [*ends(tree)], self.search_steps_max),
            [concat([old, new]) for old, new in zip(carry, arrived, strict=False)],
            [bare(part.key, part.start, part.end) for part in looked],
            carry[marks:-1],
            self.remembered,
            self.first,
            _pending(operands[:filled], moment.keys),
            moment,
        )

    def _choose(self, log: Backlog, key: int, times: Sequence[int]) -> Iterator[tuple[int, Found]]:
        """What is detected of a key, with the instant."""
        history = log.touched[key] = log.history(key)
        by, horizon = self.context, self.horizon_micros
        try:
            for now in times:
                history.advance(now, NEVER if horizon is None else now - horizon)
                chosen = (
                    contexts.CONTEXTS[by](history)
                    if isinstance(by, Context)
                    else selection.choose(history, by)
                )
                for start, entries in chosen:
                    yield now, (start, history.order.expanded(entries))
        except LimitError as error:
            error.key = key
            raise

    def _carry(self, log: Backlog, moment: Moment) -> Carry:
        kept = log.left(self._oldest(log, moment), self.passing)
        if self.latest:
            kept = latest(self.tree, kept, moment)
        oldest = min(
            moment.watermark + 1,
            int(log.pending.min()),
            *(int(part.start.min(initial=LAST)) for part in kept),
        )
        return (*kept, *pruned(log.looked, oldest, self.windows, self.zone), *log.marked(kept))

    def _oldest(self, log: Backlog, moment: Moment) -> Int64:
        """By key: what starts before it is of no use after this step."""
        oldest = np.full(moment.keys + 1, NEVER, dtype=np.int64)
        if self.horizon_micros is not None:
            oldest[:] = moment.watermark + 1 - self.horizon_micros
        by = self.context
        if not isinstance(by, Context) and by.longest is not None:
            pair, operand = by.longest
            young = moment.watermark + 1 - 2 * pair
            oldest[:] = min(young, moment.watermark + 1 - operand)
            for key in np.intersect1d(log.keys(before=young), log.keys(since=young)).tolist():
                history = log.touched.get(key) or log.history(key)
                history.advance(moment.watermark, NEVER)
                oldest[key] = min(oldest[key], selection.since(history, young))
            oldest[0] = oldest.min()
        return oldest


def _pending(streams: Sequence[Flow], keys: int) -> Int64:
    """By key the earliest start of what is still to come."""
    found = np.full(keys + 1, LAST, dtype=np.int64)
    for flow in streams:
        np.minimum.at(found, flow.pending.key, flow.pending.start)
    return np.asarray(np.minimum(found, found[0]))


def _of_each_key(found: Instances, keys: Int32) -> Instances:
    """With the instances of all keys as such of each key, which may have another one then: under
    a condition the greatest of all keys may not be left.

    Example: `any(2, p:(a), q:(b), r:(a))` with `q.v = 0`, where b has a key and a has none. Two a's
    are an instance of all keys, of which it is not true; a b before them makes another.
    """
    shared = np.unique(found.end[found.key == EVERY_KEY])
    own = keys[keys != EVERY_KEY]
    if not len(shared) or not len(own):
        return found
    times = np.tile(shared, len(own))
    return concat([found, bare(np.repeat(own, len(shared)), times, times)])


def _once(found: Iterable[ChosenInstance]) -> Iterator[ChosenInstance]:
    """Without what a key finds as all keys do. All keys stand first."""
    shared: set[ChosenInstance] = set()
    for one in found:
        if one.key == EVERY_KEY:
            shared.add(one)
        elif one._replace(key=EVERY_KEY) in shared:
            continue
        yield one


def _by_key(found: Instances) -> Iterator[tuple[int, list[int]]]:
    """The instants at which instances of each key end."""
    order = np.argsort(found.key, kind="stable")
    keys, first = np.unique(found.key[order], return_index=True)
    parts = np.split(found.end[order], first[1:]) if len(keys) else []
    for key, times in zip(keys.tolist(), parts, strict=True):
        yield key, np.unique(times).tolist()
