"""The root of a rule in a context other than `restricted`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.detector.contexts import (
    chronicle,
    continuous,
    cumulative,
    recent,
    selection,
    unrestricted,
)
from engine.detector.contexts import tree as t
from engine.detector.contexts.history import Found, History
from engine.detector.contexts.items import Streams
from engine.detector.contexts.limits import check_carried
from engine.detector.contexts.log import Log
from engine.detector.contexts.pruned import pruned
from engine.detector.contexts.selection import pairs
from engine.detector.instances import (
    Bools,
    Carry,
    Flow,
    Instances,
    Moment,
    bare,
    concat,
    no_pending,
)
from rules.errors import EngineError
from rules.expression import Expression
from rules.model import Context, Selection, Settings

CHOOSE: Mapping[Context, Callable[[History], Iterator[Found]]] = {
    Context.UNRESTRICTED: unrestricted.choose,
    Context.RECENT: recent.choose,
    Context.CHRONICLE: chronicle.choose,
    Context.CONTINUOUS: continuous.choose,
    Context.CUMULATIVE: cumulative.choose,
}
FOREVER = -(2**63)

Detected = tuple[int, int, Found]
"""Key code, instant, and what is detected."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Chooses among the instances of `tree` that end now, those that hold nothing used up.

    Operands: the whole expression in `restricted`; then the streams: the event types, every row of
    them; what is counted; what is only looked at. `roles` has the first role of each of the first
    two kinds, `events` says how many of them are event types. There is no instance where
    `restricted` finds none, so nothing is searched elsewhere; but windows of `A*` depend on what is
    used up: with them (`everywhere`) wherever something arrives.

    Carries per key, a slot each: the streams, without what is used up, older than
    `horizon_micros`, or an event type that only ever ends an instance (`passing`); the occurrences
    used up that may turn up again, as broadcasts (other keys may use them), or of a role
    that is counted (`remembered`); what has initiated. `windows` are pairs of streams, the a and c
    of each `A(a, b, c)`. Bound: what arrives in the `within` of the expression.
    """

    context: Context | Selection
    tree: t.Tree
    roles: tuple[int, ...]
    events: int
    looked: int
    passing: frozenset[int]
    remembered: frozenset[int]
    silent: frozenset[int]
    windows: frozenset[tuple[int, int]]
    everywhere: bool
    horizon_micros: int | None
    carried_per_key_max: int = field(repr=False)
    search_steps_max: int = field(repr=False)

    @property
    def slots(self) -> int:
        return len(self.roles) + self.looked + 2

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        log = self._open(operands, carry, moment)
        found = [
            (key, now, chosen)
            for key, instants in _by_key(self._instants(operands))
            for now, chosen in self._choose(log, key, instants)
        ]
        return Flow(_instances(found, moment), no_pending()), self._carry(log, operands)

    def _open(self, operands: Sequence[Flow], carry: Carry, moment: Moment) -> Log:
        entries = len(self.roles)
        shifted = [f.instances.shifted(r) for f, r in zip(operands[1:], self.roles, strict=False)]
        streams = [concat([a, b]) for a, b in zip(carry, shifted, strict=False)]
        looked = [
            _intervals(concat([a, b.instances]))
            for a, b in zip(carry[entries:-2], operands[1 + entries :], strict=True)
        ]
        remembered: Bools = np.zeros(len(moment.time), dtype=np.bool_)
        for part in (*streams, carry[-2]):
            remembered[part.row] = np.isin(part.role, list(self.remembered))
        events, counted = streams[: self.events], streams[self.events :]
        return Log(events, counted, looked, carry[-2], carry[-1], remembered, moment)

    def _instants(self, operands: Sequence[Flow]) -> Instances:
        """Where something may be detected: an instance for each key and instant."""
        if not self.everywhere:
            return operands[0].instances
        arrived = concat([_intervals(flow.instances) for flow in operands])
        own = np.unique(arrived.key[arrived.key > 0])
        general = arrived.where(arrived.key == 0)
        if not len(own) or not len(general):
            return arrived
        spread = general.take(np.tile(np.arange(len(general)), len(own)))
        key = np.repeat(own, len(general))
        return concat([arrived.where(arrived.key > 0), bare(key, spread.start, spread.end)])

    def _choose(self, log: Log, key: int, instants: Sequence[int]) -> Iterator[tuple[int, Found]]:
        coming, rank, used, initiated = log.open(key)
        nothing = Streams(
            [[] for _ in coming.events], [[] for _ in coming.counted], [[] for _ in coming.looked]
        )
        history = History(
            self.tree, coming, nothing, rank, self.silent, self.search_steps_max, used, initiated
        )
        for now in instants:
            horizon = self.horizon_micros
            history.advance(now, FOREVER if horizon is None else now - horizon)
            if isinstance(self.context, Selection):
                found = selection.choose(history, self.context)
            else:
                found = CHOOSE[self.context](history)
            for chosen in found:
                yield now, chosen
        log.close(key, history)

    def _carry(self, log: Log, operands: Sequence[Flow]) -> Carry:
        ends = [int(flow.instances.end[-1]) for flow in operands if len(flow.instances)]
        oldest = None
        if self.horizon_micros is not None and ends:
            oldest = max(ends) - self.horizon_micros
        kept = log.left(oldest, self.passing)
        carried = (*kept, *pruned(log.looked, kept, self.windows), *log.marks(kept))
        check_carried(carried, self.carried_per_key_max)
        return carried


def chosen(
    context: Context | Selection,
    expression: Expression,
    tree: t.Tree,
    streams: t.Streams,
    horizon_micros: int | None,
    limits: Settings,
) -> Choice:
    """The choice in `context` among the instances of an expression, read as `tree`."""
    if isinstance(context, Selection) and (context.evaluate != "early" or not pairs(tree)):
        raise EngineError(
            "not-detectable",
            "select is built for `a ; b` and `a and b`, evaluated early",
            "give a context's name",
        )
    selecting = isinstance(context, Selection)  # runs are of all occurrences
    lasting = [*tree.lasting()]
    needed = {leaf.stream for leaf in lasting if not isinstance(leaf, t.Counted)}
    counted = {name for part in streams.counted for name in t.names(part)}
    roles = enumerate(t.names(expression))
    nodes = [*t.walk(tree)]
    return Choice(
        context,
        tree,
        (*streams.roles, *streams.counted_roles),
        len(streams.events),
        len(streams.looked),
        frozenset() if selecting else frozenset(range(len(streams.events))) - needed,
        frozenset(role for role, name in roles if name in counted),
        t.silent(expression),
        frozenset((node.opener, node.closer) for node in nodes if isinstance(node, t.Aperiodic)),
        any(isinstance(node, t.AperiodicStar) for node in nodes),
        horizon_micros,
        limits.carried_per_key_max,
        limits.search_steps_max,
    )


def _intervals(found: Instances) -> Instances:
    return bare(found.key, found.start, found.end)


def _by_key(found: Instances) -> Iterator[tuple[int, list[int]]]:
    """The instants at which instances of each key end."""
    order = np.argsort(found.key, kind="stable")
    keys, first = np.unique(found.key[order], return_index=True)
    parts = np.split(found.end[order], first[1:]) if len(keys) else []
    for key, ends in zip(keys.tolist(), parts, strict=True):
        yield key, np.unique(ends).tolist()


def _instances(found: Sequence[Detected], moment: Moment) -> Instances:
    """Detections as instances in order of end, their entries in order."""
    found = sorted(found, key=lambda detected: detected[1])
    sizes = [len(entries) for _, _, (_, entries) in found]
    owner = np.repeat(np.arange(len(found)), sizes)
    flat = [entry for _, _, (_, entries) in found for entry in entries]
    role, row = np.array(flat, dtype=np.int64).reshape(-1, 2).T
    order = np.lexsort((role, row, moment.rank[row], moment.time[row], owner))
    offsets = np.cumsum([0, *sizes])
    return Instances(
        np.array([key for key, _, _ in found], dtype=np.int32),
        np.array([start for _, _, (start, _) in found], dtype=np.int64),
        np.array([end for _, end, _ in found], dtype=np.int64),
        offsets,
        row[order],
        role[order].astype(np.int16),
    )
