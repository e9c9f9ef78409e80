"""What each node of an expression stores per key in `restricted` (semantics 4).

Of the instances that ended before some instant, a node needs the one with the latest start. The
instants that matter are now and the *pending starts* of the operand that follows. A pending start
is an instant in the past at which an instance that has not ended yet may have started: in
`a ; (b ; c)` that of a b that waits for its c. The law of each operator stands beside its step, in
`engine.detect.events.graph.operators`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter

from tidegate.rules.algebra.amount import ENDLESS, NOTHING, ONE, Amount, total
from tidegate.rules.algebra.closers import chosen_closers
from tidegate.rules.algebra.detector_form import detected
from tidegate.rules.algebra.transformation import longest_micros, shorter, shortest_micros
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.parser import unlabelled
from tidegate.rules.model import Context, Rule

_SHIFT = 2 * 86_400_000_000  # no change of clocks makes a window of local days longer than this
_POINTS = (x.Name, x.Clock, x.Cron, x.Edge)
# Nodes that keep what is older than a `within` around them allows: they count, or keep what opened
# a window or started a timer.
_DROPS_NOTHING = (x.Aperiodic, x.Periodic, x.Plus, x.Every, x.Nth, x.Instant)


@dataclass(frozen=True, slots=True)
class Stored:
    """One node of an expression, and how much it stores without its operands.

    node            the expression, without labels
    horizon_micros  because of a `within` around it, the node drops what is older
    instances       how many instances it stores, at most
    occurrences     how many occurrences (and ticks) these hold, at most
    pending         how many pending starts it has, at most
    size            how many occurrences one instance of the node holds, at most
    oldest_micros   the greatest age of what is stored; None: the node never forgets
    pending_micros  the greatest age of a pending start; None: there is no limit
    counter         a count is stored, too
    reach           a `within` around this expression would let the node forget; None: only a
                    length of time that closes the window would
    chosen_among    all instances of the node are needed, not only the one with the latest start
    """

    node: x.Expression
    operands: tuple[Stored, ...]
    horizon_micros: int | None
    instances: Amount
    occurrences: Amount
    pending: Amount
    size: Amount
    oldest_micros: int | None
    pending_micros: int | None
    counter: bool
    reach: x.Expression | None = field(compare=False)
    chosen_among: bool = False

    @property
    def remembers(self) -> bool:
        """Whether it stores anything at all."""
        return self.instances != NOTHING or self.counter

    def __hash__(self) -> int:
        return hash(self.node)

    def walk(self) -> tuple[Stored, ...]:
        """All nodes, operands first. Equal nodes are one node of the event graph: each is given
        once."""
        found: dict[Stored, None] = {}

        def visit(node: Stored) -> None:
            if node not in found:
                for operand in node.operands:
                    visit(operand)
                found[node] = None

        visit(self)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Used:
    """The detections of a rule, as events of other rules. `pending`: its partial matches, each of
    which is a pending start. `size`: the occurrences in a detection."""

    pending: Amount
    size: Amount


def used_rules(rules: Mapping[str, Rule]) -> dict[str, Used]:
    """The rules that other rules use as events, each after the rules that it uses itself."""
    names = {rule: sorted(x.names_in(rules[rule].pattern.on) & rules.keys()) for rule in rules}
    wanted = frozenset().union(*names.values())
    found: dict[str, Used] = {}
    for name in TopologicalSorter(names).static_order() if wanted else ():
        if name in wanted:
            whole = stored(detected(rules[name].pattern, rules), found)
            chosen = rules[name].pattern.context is Context.RESTRICTED or not whole.remembers
            found[name] = Used(whole.pending if chosen else ENDLESS, whole.size)
    return found


def stored(node: x.Expression, used: Mapping[str, Used] | None = None) -> Stored:
    """What the nodes of an expression store. `used`: the rules that it may use as events."""
    plain, used = unlabelled(node), used or {}
    return _Recursion(used, chosen_closers(plain, Context.RESTRICTED, used)).of(plain, None, plain)


def chosen_among(part: Stored) -> Stored:
    """The same node where all its instances are needed: every occurrence in them is stored."""
    every = ENDLESS.within(part.horizon_micros)
    return replace(
        part,
        operands=(part,),
        instances=every,
        occurrences=every,
        pending=every,
        oldest_micros=part.horizon_micros,
        pending_micros=part.horizon_micros,
        chosen_among=True,
    )


def store(
    node: x.Expression,
    operands: Sequence[Stored],
    horizon_micros: int | None,
    reach: x.Expression | None = None,
) -> Stored:
    """What an operator stores. `operands`: its operands but `[d]`, which is no node."""
    kept = _kept(node, operands, horizon_micros)
    return _node(node, operands, kept, horizon_micros, reach)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What one operator stores, before the horizon is applied."""

    instances: Amount = NOTHING
    occurrences: Amount = NOTHING
    pending: Amount = NOTHING
    size: Amount = NOTHING
    oldest: int | None = None  # an age that the operator itself limits
    counter: bool = False
    closable: bool = False  # only a window closed by a length of time lets it forget


def _node(
    node: x.Expression,
    operands: Sequence[Stored],
    kept: _Kept,
    horizon: int | None,
    reach: x.Expression | None,
) -> Stored:
    passed = horizon
    if isinstance(node, x.Within):
        passed = shorter(horizon, longest_micros(node.duration))
    return Stored(
        node,
        tuple(operands),
        horizon,
        kept.instances.within(horizon),
        kept.occurrences.within(horizon),
        kept.pending.within(passed),
        kept.size.within(passed),
        shorter(kept.oldest, horizon),
        shorter(_pending_age(node, operands, kept), passed),
        kept.counter,
        None if kept.closable or kept.counter else reach,
    )


@dataclass(frozen=True, slots=True)
class _Recursion:
    used: Mapping[str, Used]
    chosen_closers: Collection[x.Expression]

    def of(self, node: x.Expression, horizon: int | None, reach: x.Expression) -> Stored:
        """`reach`: the expression around which a `within` sets the node's horizon."""
        operands = [self.of(*operand) for operand in _operands(node, horizon, reach)]
        if self.chosen_closers and node in self.chosen_closers:
            operands[-1] = chosen_among(operands[-1])
        if isinstance(node, _POINTS):
            return _node(node, (), self._point(node), horizon, reach)
        return store(node, operands, None if isinstance(node, _DROPS_NOTHING) else horizon, reach)

    def _point(self, node: x.Expression) -> _Kept:
        """An event. Only a rule's detections have pending starts."""
        used = self.used.get(node.name) if isinstance(node, x.Name) else None
        return _Kept(pending=used.pending, size=used.size) if used else _Kept(size=ONE)


def _operands(
    node: x.Expression, horizon: int | None, reach: x.Expression
) -> Iterator[tuple[x.Expression, int | None, x.Expression]]:
    """The operands that are nodes, with their horizon and reach. A `within` does not reach what is
    counted, what opens or closes a window of `A` or `P`, and the base of `+ [d]`."""
    if isinstance(node, x.Within):
        horizon = shorter(horizon, longest_micros(node.duration))
    for number, operand in enumerate(node.operands()):
        if isinstance(operand, x.Own):
            continue
        inside = isinstance(node, x.Aperiodic) and number == 1
        free = isinstance(node, _DROPS_NOTHING) and not inside
        yield (operand, None, operand) if free else (operand, horizon, reach)


def _kept(node: x.Expression, operands: Sequence[Stored], horizon: int | None) -> _Kept:
    pending, size = total([o.pending for o in operands]), total([o.size for o in operands])
    match node:
        case x.Or():
            return _Kept(pending=pending, size=_largest(operands, 1))
        case x.And(parts=parts):
            return _slots(operands, len(parts))
        case x.AnyOf(count=count, parts=parts):
            return _slots(operands, min(count, len(parts)))
        case x.AnyRepeat(count=count):
            return _several(operands[0], Amount(count - 1), Amount(count))
        case x.Every(count=count):
            kept = _several(operands[0], Amount(count - 1), Amount(count))
            return replace(kept, counter=True)
        case x.Nth():
            return _Kept(pending=pending, size=size, counter=True)
        case x.Seq(then=last) | x.Not(closer=last) if isinstance(last, x.Own):
            return _own(operands[-1], last, operands[-1].size)
        case x.Seq():
            return _before(operands[0], ONE + operands[1].pending, size)
        case x.Minus():
            part = operands[0]
            latest = NOTHING if part.pending == NOTHING else ONE
            return _Kept(latest, pending=part.pending, size=part.size, oldest=part.pending_micros)
        case x.Not():
            absent, opener, closer = operands
            ends = (ONE + closer.pending) * (ONE + absent.pending)
            return _before(opener, ends, opener.size + closer.size)
        case x.Within():
            return _Kept(pending=pending, size=size)
        case x.Instant():
            return _Kept(size=size)
        case w.Window():
            return _collected(node, operands)
        case _:
            return _window(node, operands, horizon)


def _pending_age(node: x.Expression, operands: Sequence[Stored], kept: _Kept) -> int | None:
    """The greatest age of a pending start; None: there is no limit."""
    if kept.pending == NOTHING:
        return 0
    passing = operands[:1] if isinstance(node, x.Minus | x.Within) else operands
    ages = [operand.pending_micros for operand in passing]
    if not isinstance(node, x.Or | x.Minus | x.Within) or None in ages:
        return None
    return max(age for age in ages if age is not None)


def _window(node: x.Expression, operands: Sequence[Stored], horizon: int | None) -> _Kept:
    opener, last = operands[0], node.operands()[-1]
    own = longest_micros(last.duration) if isinstance(last, x.Own) else None
    if isinstance(node, x.Aperiodic | x.Periodic):
        own = _length(node.opener, last)
    age = None if own is None else _later(opener, own)
    match node:
        case x.Aperiodic():
            part = operands[1]  # the latest opening before each start that a b may have
            starts = ONE + part.pending
            return _Kept(starts, NOTHING, part.pending, part.size, age, closable=own is None)
        case x.Periodic():  # each opening has ticks of its own
            open_ = ENDLESS if own is None else Amount(0, own)
            return _Kept(open_, size=ONE, oldest=age, closable=own is None)
        case x.Plus(duration=duration):
            wait = longest_micros(duration)
            return _Kept(Amount(0, wait), oldest=_later(opener, wait))
        case x.AperiodicStar():  # the openers, and every b since the first
            held = ENDLESS if own is None else Amount(0, own)
            windows = held if own is not None else _openings(operands[2])
            instances = windows + held
            return _Kept(instances, instances, windows + opener.pending, instances, age)
        case x.PeriodicStar(period=period):
            longest = horizon if own is None else own
            ticks = ENDLESS
            if longest is not None:
                ticks = Amount(longest // (shortest_micros(period) or 1))
            if isinstance(last, x.Own):
                return _own(opener, last, opener.size + ticks)
            closer = operands[1]
            return _before(opener, _openings(closer), opener.size + closer.size + ticks)
    raise TypeError(f"no bound for {type(node).__name__}")


def _collected(node: w.Window, operands: Sequence[Stored]) -> _Kept:
    """A window keeps its rows: of what is open one instance with all of them, or one for each."""
    size = operands[0].size
    match node:
        case w.Tumbling(length=length):
            span = longest_micros(length) + (_SHIFT if w.calendar(length) else 0)
            held = Amount(0, span) * size
            return _Kept(ONE, held, ONE, held, span)
        case w.Sliding(length=length, every=every):
            local = w.calendar(length) and w.calendar(every)
            span = longest_micros(length) + (_SHIFT if local else 0)
            rows = Amount(0, span)
            return _Kept(rows, rows * size, rows, rows * size, span)
        case w.Session():
            return _Kept(ONE, ENDLESS, ONE, ENDLESS)
        case w.Crossing(length=length):
            rows = Amount(0, length.micros)
            return _Kept(ONE + rows, rows * size, rows, rows * size)
        case w.Holding(length=length):  # what waits, and that it has fired
            rows = Amount(0, length.micros) * (ONE + size + operands[1].size)
            return _Kept(ONE + ONE, rows, ONE, rows)
    raise TypeError(f"no bound for {type(node).__name__}")


def _length(opener: x.Expression, closer: x.Expression) -> int | None:
    """How long a window is open at most: `[d]`, or `a + [d]` over its own opener in an `or`."""
    match closer:
        case x.Own(duration=duration):
            return longest_micros(duration)
        case x.Plus(base=base, duration=duration) if base == opener:
            return longest_micros(duration)
        case x.Or(parts=parts):
            lengths = [_length(opener, part) for part in parts]
            return min((length for length in lengths if length is not None), default=None)
    return None


def _openings(closer: Stored) -> Amount:
    """How many windows a c to come may be the first to close, at most. For each start that this c
    may have and each start that the c before it may have, it is the last window opened in between.
    """
    starts = ONE + closer.pending
    return starts * starts


def _before(first: Stored, ends: Amount, size: Amount) -> _Kept:
    """One instance of `first` for each of the `ends`."""
    return _Kept(ends, ends * first.size, ends + first.pending, size)


def _own(opener: Stored, last: x.Own, size: Amount) -> _Kept:
    """Each opener waits for its own terminator."""
    wait = longest_micros(last.duration)
    held = Amount(0, wait)
    return _Kept(held, held, held + opener.pending, size, _later(opener, wait))


def _later(opener: Stored, wait: int) -> int:
    """The greatest age of an opener that waits for a time after its end. When an opener ends, it is
    as old as what its own nodes store. (A node that never forgets has no age: it says so itself.)
    """
    ages = [node.oldest_micros or 0 for node in opener.walk() if node.remembers]
    return wait + max(ages, default=0)


def _slots(operands: Sequence[Stored], count: int) -> _Kept:
    """The latest instance of each operand."""
    instances = Amount(len(operands))
    return _Kept(
        instances,
        total([operand.size for operand in operands]),
        instances + total([operand.pending for operand in operands]),
        _largest(operands, count),
    )


def _several(part: Stored, instances: Amount, held: Amount) -> _Kept:
    """An operator that keeps the last `instances` of one operand, and has `held` of them in each
    instance of its own."""
    return _Kept(instances, instances * part.size, instances + part.pending, held * part.size)


def _largest(operands: Sequence[Stored], count: int) -> Amount:
    """The most occurrences in one instance each of `count` operands."""
    sizes = [operand.size for operand in operands]
    counts = sorted((size.count for size in sizes), reverse=True)[:count]
    return Amount(sum(counts), total(sizes).span_micros, any(size.endless for size in sizes))
