"""Whether a rule in context `restricted` can fire again for one initiator, and at which events;
whether one occurrence counts in several of its detections; what would make it fire once.

`restricted` consumes nothing: `missing ; hb` fires at every hb after one missing. An expression
*fires once* if no two of its detections share an initiator (S2: the occurrence that a detection
starts with). The detections of a node have two properties, which follow from its operands:

    later   each detection starts after all that ended before it, as points in time do
    once    no two detections share an initiator; what is `later` is `once`

    node                      later                               once
    event, clock, + [d], P    yes (a point)                       yes
    a rule's name             -                                   yes: each is an occurrence
    within, -, A, label       as its part: it leaves out some     as its part
    (p ; q) - (q ; q)         -                                   yes: the second q is absent
    p ; [d], not(b)[p, [d]]   as p                                if `later`
    A*(p, b, c), P*           as p: each window closes once       if `later`
    fa(p, q, c), times(..)    -                                   if p is `later`
    p ; q, not(b)[p, q]       if q renews p                       if `later`, or q happens once
    or                        if all parts are points             if all are and start differently
    and, any(m, ..)           if all parts are the same event     if `later`, or all happen once
    any(m, p*)                if p is, and is composite           if `later`, or p is an event
    every(n, p)               if n is 1 and p is                  if p is
    p[i], what never fires    -                                   yes

q *renews* p if every q ends an instance of p that starts later than the one before. Either p and q
are the same event, as in `a ; a`, or p is `p' ; q` and q renews p'. So `fail ; fail ; fail` fires
once for each first fail, and `placed ; close ; close` fires at every close.

An expression that fires once may still count an occurrence twice: as the end of one detection and
as the beginning of the next. This is so where one event fills two roles (`shared`). A context that
consumes what it detects prevents both, but there is nothing to consume of a point in time: neither
of one that begins an instance (`timers`: `(a + [5 min]) ; c`) nor of what the timer counts from
(`looked_at`: the a and b of `(a and b) + [5 min]`). If that part is a rule of its own, each of its
detections is an occurrence, which is consumed.
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
    """The events at which an expression can fire again for an initiator that it has fired for, in
    the order of the text; none if it fires once. Example: hb, of `missing ; hb`. `rules`: the rules
    that it may use as events."""
    found = {*_Again(rules).events(normalise(unlabelled(on)))}
    texts = (format_expression(node) for node in on.walk() if not node.operands())
    return tuple(dict.fromkeys(text for text in texts if text in found))


def initiators(on: x.Expression) -> tuple[str, ...]:
    """The events and timers with which an expression may start, in the order of the text."""
    return tuple(dict.fromkeys(map(format_expression, _beginnings(unlabelled(on)))))


def timers(on: x.Expression, rules: Collection[str]) -> tuple[x.Expression, ...]:
    """The timers that an expression starts with if it fires again in context `recent`, too: no
    context consumes a point in time."""
    on = unlabelled(on)
    if _Again(rules).spent(normalise(on)):
        return ()
    return tuple(dict.fromkeys(node for node in _beginnings(on) if isinstance(node, _TIMERS)))


def shared(on: x.Expression, rules: Collection[str]) -> tuple[str, ...]:
    """Of an expression that fires once, the events of which one occurrence can count in several
    detections, in the order of the text. Example: a, of `a ; a`."""
    on, again = normalise(unlabelled(on)), _Again(rules)
    never = isinstance(on, x.Within) and on.duration == x.Duration(0, 0) and takes_time(on.part)
    if never or happens_once(on) or fires_never(on):
        return ()
    return tuple(event for event, count in again.roles(on).items() if count > 1)


def looked_at(node: x.Expression) -> Iterator[tuple[x.Expression, x.Expression]]:
    """(timer or window, what begins it) of every part whose beginning no context consumes."""
    if happens_once(node):
        return
    match node:
        case x.Plus(base=begun) | x.Periodic(opener=begun) | x.Aperiodic(opener=begun):
            yield node, begun
    for operand in _counting(node):
        yield from looked_at(operand)


def _counting(node: x.Expression) -> tuple[x.Expression, ...]:
    """The operands that count towards an instance, without what must be absent and what closes a
    window."""
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
            case x.Within() | x.Minus() | x.Aperiodic() | x.Every():
                return self.events(node.part)
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
            case x.Within() | x.Minus() | x.Aperiodic() | x.Every():
                return self.once(node.part)
            case x.AnyRepeat(part=part):
                return plain(part) and self._point(part)
            case x.Not(opener=opener) if _first_only(node):
                return self.later(opener)
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
            case x.AnyRepeat() | x.Every():
                return self.later(node.part) and (node.count == 1 or not plain(node.part))
        return False

    def spent(self, node: x.Expression) -> bool:
        """Whether no two detections share an initiator in a context that consumes what it detects:
        all start with an occurrence, or the expression fires once anyway."""
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
            case x.Clock() | x.Cron() | x.Edge() | x.Plus() | x.Periodic() | x.Instant():
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
        """Whether `last` renews `node`: see the top of the module."""
        if plain(node):
            return self._point(node) and _types(last) <= _types(node)
        match node:
            case x.Seq(first=first, then=then) if plain(then) and self._point(then):
                return _types(last) <= _types(then) and self._renews(then, first)
        return False

    def _rivals(self, parts: Collection[x.Expression]) -> list[x.Expression]:
        """The parts of an `or` that may share an initiator with another part."""
        if all(map(self._point, parts)):
            return []
        firsts = [_firsts(part) for part in parts]
        return [
            part
            for number, part in enumerate(parts)
            if any(firsts[number] & other for n, other in enumerate(firsts) if n != number)
        ]


def _first_only(node: x.Not) -> bool:
    """Whether the next closer must be absent, too: so `fa` and `times` are made."""
    closer = node.closer
    again = closer.part if isinstance(closer, x.AnyRepeat) else closer
    absent = node.absent.parts if isinstance(node.absent, x.Or) else (node.absent,)
    return x.Seq(closer, x.Instant(again)) in absent


def happens_once(node: x.Expression) -> bool:
    """Whether, in a whole history, instances end at one instant at most."""
    match node:
        case x.Nth():
            return True
        case x.And(parts=parts):
            return all(map(happens_once, parts))
        case x.Seq(first=first, then=last) | x.Not(opener=first, closer=last):
            return happens_once(first if isinstance(last, x.Own) else last)
        case (
            (x.AperiodicStar(opener=part) | x.PeriodicStar(opener=part))
            | (x.Within(part=part) | x.Minus(part=part) | x.Aperiodic(part=part))
            | x.Plus(base=part)
        ):
            return happens_once(part)
    return False


def _types(node: x.Expression) -> frozenset[str]:
    """The events that a plain expression is."""
    return frozenset(format_expression(e) for e in node.walk() if not e.operands())


def _ends(node: x.Expression) -> list[str]:
    """The events with which an instance ends; where a length of time ends it, those from which it
    is counted."""
    match node:
        case (
            x.Seq(first=first, then=last)
            | x.Not(opener=first, closer=last)
            | x.AperiodicStar(opener=first, closer=last)
            | x.PeriodicStar(opener=first, closer=last)
        ):
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
