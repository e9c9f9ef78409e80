"""Whether a rule in context `restricted` can fire again for one initiator, and at which events;
whether one occurrence counts in several of its detections; what would make it fire once.

`restricted` uses nothing up: `missing ; hb` fires at every hb after one missing. An expression
*fires once* where no two of its detections share an initiator (S2: the occurrence that it starts
with). Two properties of the detections of a node, from those of its operands:

    later   each starts after all that ended before it; so does what is a point in time
    once    no two share an initiator; what is `later` is `once`

    node                      later                               once
    event, clock, + [d], P    yes (a point)                       yes
    a rule's name             -                                   yes: each is an occurrence
    within, -, A, label       as its part: it leaves out some     as its part
    (p ; q) - (q ; q)         -                                   yes: the second q is absent
    p ; [d], not(b)[p, [d]]   as p                                as `later`
    A*(p, b, c), P*           as p: each window closes once       as `later`
    p ; q, not(b)[p, q]       q renews p                          so, or q happens once
    or                        all parts are points                all parts, of other events first
    and, any(m, ..)           all are one and the same event      so, or each part happens once
    any(m, p*)                p is `later`, composite             so, or p is an event
    every(n, p)               n is 1 and p is `later`             as p
    p[i], what never fires    -                                   yes

q *renews* p if with every q, after an instance of p, another instance of p ends that starts later:
p and q are the same event, as in `a ; a`, or p is `p' ; q` whose q renews p'. So `fail ; fail ;
fail` fires once for each first fail, and `placed ; close ; close` at every close.

What fires once may still count an occurrence several times, as the end of one detection and the
beginning of the next: where one event fills two roles (`shared`). Contexts that use up what they
detect end both, except that they use up nothing of a point in time: neither of one that begins an
instance (`timers`: `(a + [5 min]) ; c`) nor of what it counts from (`looked_at`: the a and b of
`(a and b) + [5 min]`). A rule of its own makes an occurrence of either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from functools import reduce
from operator import add, or_

from tidegate.rules.algebra.emptiness import fires_never, takes_time
from tidegate.rules.algebra.normal_form import normalise
from tidegate.rules.algebra.plain_expressions import plain
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.parser import unlabelled

_TIMERS = x.Plus | x.Periodic
_INSTANT = "the instant"  # what initiates an instance that starts with no occurrence


def fires_again(on: x.Expression, rules: Collection[str]) -> tuple[str, ...]:
    """The events at every later one of which an expression can fire again for one initiator, in the
    order of the text; none if it fires once. `rules`: those that it may use as events."""
    found = {*_Again(rules).events(normalise(unlabelled(on)))}
    texts = (format_expression(node) for node in on.walk() if not node.operands())
    return tuple(dict.fromkeys(text for text in texts if text in found))


def initiators(on: x.Expression) -> tuple[str, ...]:
    """The events and timers with which an expression may start, in the order of the text."""
    return tuple(dict.fromkeys(map(format_expression, _beginnings(unlabelled(on)))))


def timers(on: x.Expression, rules: Collection[str]) -> tuple[x.Expression, ...]:
    """The timers of an expression that fires again in context `recent`, too: it starts with one,
    and no context uses up a point in time."""
    on = unlabelled(on)
    if _Again(rules).spent(normalise(on)):
        return ()
    return tuple(dict.fromkeys(node for node in _beginnings(on) if isinstance(node, _TIMERS)))


def shared(on: x.Expression, rules: Collection[str]) -> tuple[str, ...]:
    """The events of an expression that fires once of which one occurrence can count in several
    detections, in the order of the text."""
    on, again = normalise(unlabelled(on)), _Again(rules)
    never = isinstance(on, x.Within) and on.duration == x.Duration(0, 0) and takes_time(on.part)
    if never or happens_once(on) or fires_never(on):
        return ()
    return tuple(event for event, count in again.roles(on).items() if count > 1)


def looked_at(node: x.Expression) -> Iterator[tuple[x.Expression, x.Expression]]:
    """(timer or window, what begins it) of all that an expression looks at and never uses up."""
    if happens_once(node):
        return
    match node:
        case x.Plus(base=begun) | x.Periodic(opener=begun) | x.Aperiodic(opener=begun):
            yield node, begun
    for operand in _counting(node):
        yield from looked_at(operand)


def _counting(node: x.Expression) -> tuple[x.Expression, ...]:
    """The operands of which an instance adds to what happens: not what must be absent, nor what
    closes a window."""
    match node:
        case x.Minus(part=part):
            return (part,)
        case x.Not(opener=opener, closer=closer):
            return opener, closer
        case x.Aperiodic(opener=opener, part=part) | x.AperiodicStar(opener=opener, part=part):
            return opener, part
        case x.Periodic(opener=opener) | x.PeriodicStar(opener=opener):
            return (opener,)
    return node.operands()


class _Again:
    def __init__(self, rules: Collection[str]) -> None:
        self.rules = rules

    def events(self, node: x.Expression) -> list[str]:
        """See `fires_again`."""
        if self.once(node):
            return []
        match node:
            case x.Within(part=part) | x.Minus(part=part) | x.Aperiodic(part=part):
                return self.events(part)
            case x.Every(part=part):
                return self.events(part)
            case x.Or(parts=parts):
                again = [event for part in parts for event in self.events(part)]
                return [*again, *(e for part in self._rivals(parts) for e in _ends(part))]
            case x.Seq(first=opener, then=closer) | x.Not(opener=opener, closer=closer):
                if isinstance(closer, x.Own):
                    return self.events(opener) or _ends(opener)
                return _ends(closer)
            case x.AperiodicStar(opener=opener) | x.PeriodicStar(opener=opener):
                return self.events(opener) or _ends(opener)
        return _ends(node)

    def once(self, node: x.Expression) -> bool:
        """Whether no two detections share an initiator."""
        if self.later(node) or plain(node) or happens_once(node) or fires_never(node):
            return True
        match node:
            case x.Within(part=part, duration=x.Duration(0, 0)) if takes_time(part):
                return True
            case x.Minus(part=x.Seq(then=last), absent=x.Seq(first=one, then=two)) if (
                self._point(last)
                and plain(last)
                and plain(one)
                and plain(two)
                and _types(last) <= _types(one) & _types(two)
            ):
                return True
            case x.Within(part=part) | x.Minus(part=part) | x.Aperiodic(part=part):
                return self.once(part)
            case x.Every(part=part):
                return self.once(part)
            case x.AnyRepeat(part=part):
                return plain(part) and self._point(part)
            case x.Seq(then=closer) | x.Not(closer=closer):
                return happens_once(closer)
            case x.Or(parts=parts):
                return all(map(self.once, parts)) and not self._rivals(parts)
            case x.AnyOf(count=1, parts=parts):
                return self.once(x.Or(parts))
        return False

    def later(self, node: x.Expression) -> bool:
        """Whether each detection starts after all those that ended before it."""
        if self._point(node):
            return True
        match node:
            case x.Within(part=part) | x.Minus(part=part) | x.Aperiodic(part=part):
                return self.later(part)
            case x.Seq(first=opener, then=closer) | x.Not(opener=opener, closer=closer):
                if isinstance(closer, x.Own):
                    return self.later(opener)
                return plain(closer) and self._point(closer) and self._renews(closer, opener)
            case x.AperiodicStar(opener=opener) | x.PeriodicStar(opener=opener):
                return self.later(opener)
            case x.AnyRepeat(count=count, part=part):
                return self.later(part) and (count == 1 or not plain(part))
            case x.Every(count=count, part=part):
                return self.later(part) and (count == 1 or not plain(part))
        return False

    def spent(self, node: x.Expression) -> bool:
        """Whether no two detections share an initiator in a context that uses up what it detects:
        where all start with an occurrence, or fire once anyway."""
        if self.once(node) or _INSTANT not in _firsts(node):
            return True
        match node:
            case x.Within(part=part) | x.Minus(part=part) | x.Aperiodic(part=part):
                return self.spent(part)
            case x.Or(parts=parts):
                timed = tuple(part for part in parts if _INSTANT in _firsts(part))
                return all(map(self.spent, parts)) and (len(timed) == 1 or self.once(x.Or(timed)))
        return False

    def roles(self, node: x.Expression) -> Counter[str]:
        """How many roles of an instance each event fills; alternatives count as one role where
        each is a point in time."""
        match node:
            case x.Nth() | x.Own() | x.Plus() | x.Periodic():
                return Counter()
            case x.AnyRepeat(count=count, part=part):
                return Counter({event: n * count for event, n in self.roles(part).items()})
            case x.Minus(part=part) | x.Aperiodic(part=part):
                return self.roles(part)
            case x.AperiodicStar(opener=opener) | x.PeriodicStar(opener=opener):
                return self.roles(opener)
            case x.Not(opener=opener, closer=closer):
                return self.roles(opener) + self.roles(closer)
        operands = node.operands()
        if not operands:
            return Counter([format_expression(node)])
        found = map(self.roles, operands)
        return reduce(or_ if self._point(node) else add, found, Counter[str]())

    def _point(self, node: x.Expression) -> bool:
        """Whether every instance starts when it ends."""
        match node:
            case x.Name(name=name):
                return name not in self.rules
            case x.Clock() | x.Cron() | x.Edge() | x.Plus() | x.Periodic():
                return True
            case x.Within() | x.Minus() | x.Aperiodic() | x.Nth():
                return self._point(node.part)
            case x.Or(parts=parts):
                return all(map(self._point, parts))
            case x.And(parts=parts) | x.AnyOf(parts=parts):
                alike = all(plain(part) and _types(part) == _types(parts[0]) for part in parts)
                single = alike and len(_types(parts[0])) == 1
                return single and all(map(self._point, parts))
        return False

    def _renews(self, last: x.Expression, node: x.Expression) -> bool:
        """Whether with each `last`, after an instance of `node`, one ends that starts later."""
        if plain(node):
            return self._point(node) and _types(last) <= _types(node)
        match node:
            case x.Seq(first=first, then=then) if plain(then) and self._point(then):
                return _types(last) <= _types(then) and self._renews(then, first)
        return False

    def _rivals(self, parts: Collection[x.Expression]) -> list[x.Expression]:
        """The parts of an `or` whose instances may start with the initiator of another part's."""
        if all(map(self._point, parts)):
            return []
        firsts = [_firsts(part) for part in parts]
        return [
            part
            for number, part in enumerate(parts)
            if any(firsts[number] & other for n, other in enumerate(firsts) if n != number)
        ]


def happens_once(node: x.Expression) -> bool:
    """Whether there is one instant at most at which an instance ends, in all of a history."""
    match node:
        case x.Nth():
            return True
        case x.And(parts=parts):
            return all(map(happens_once, parts))
        case x.Seq(first=first, then=last) | x.Not(opener=first, closer=last):
            return happens_once(first if isinstance(last, x.Own) else last)
        case x.AperiodicStar(opener=opener) | x.PeriodicStar(opener=opener):
            return happens_once(opener)
        case x.Within(part=part) | x.Minus(part=part) | x.Aperiodic(part=part):
            return happens_once(part)
        case x.Plus(base=base):
            return happens_once(base)
    return False


def _types(node: x.Expression) -> frozenset[str]:
    """The events that a plain expression is."""
    return frozenset(format_expression(e) for e in node.walk() if not e.operands())


def _ends(node: x.Expression) -> list[str]:
    """The events with which an instance ends, or from which it waits for its end."""
    match node:
        case x.Seq(first=first, then=last) | x.Not(opener=first, closer=last):
            return _ends(first if isinstance(last, x.Own) else last)
        case x.AperiodicStar(opener=first, closer=last):
            return _ends(first if isinstance(last, x.Own) else last)
        case x.PeriodicStar(opener=first, closer=last):
            return _ends(first if isinstance(last, x.Own) else last)
        case x.Periodic(opener=opener):
            return _ends(opener)
        case x.Minus(part=part) | x.Aperiodic(part=part):
            return _ends(part)
    operands = node.operands()
    if not operands:
        return [format_expression(node)]
    return [event for operand in operands for event in _ends(operand)]


def _firsts(node: x.Expression) -> frozenset[str]:
    """What an instance may have at its start: events, or nothing but the instant."""
    return frozenset(
        _INSTANT if isinstance(first, _TIMERS) else format_expression(first)
        for first in _beginnings(node)
    )


def _beginnings(node: x.Expression) -> list[x.Expression]:
    """The events and timers with which an instance may start."""
    match node:
        case x.Seq(first=first) | x.Not(opener=first) | x.PeriodicStar(opener=first):
            return _beginnings(first)
        case x.AperiodicStar(opener=opener, part=part):
            return _beginnings(opener) + _beginnings(part)
        case x.Minus(part=part) | x.Aperiodic(part=part):
            return _beginnings(part)
        case x.Plus() | x.Periodic():
            return [node]
    operands = node.operands()
    return [first for operand in operands for first in _beginnings(operand)] or [node]
