"""Whether a rule in context `restricted` can fire again for one initiator, and at which events.

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
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tidegate.rules.algebra.emptiness import fires_never, takes_time
from tidegate.rules.algebra.normal_form import normalise
from tidegate.rules.algebra.plain import plain
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.parser import unlabelled
from tidegate.rules.model import Rule

_INSTANT = "the instant"  # what initiates an instance that starts with no occurrence


def fires_again(on: x.Expression, rules: Mapping[str, Rule]) -> tuple[str, ...]:
    """The events at every later one of which an expression can fire again for one initiator, in the
    order of the text; none if it fires once. `rules`: those that it may use as events."""
    found = {*_Again(rules).events(normalise(unlabelled(on)))}
    texts = (format_expression(node) for node in on.walk() if not node.operands())
    return tuple(dict.fromkeys(text for text in texts if text in found))


def initiators(on: x.Expression) -> tuple[str, ...]:
    """The events with which an expression may start, in the order of the text."""
    texts = (format_expression(node) for node in on.walk() if not node.operands())
    return tuple(dict.fromkeys(text for text in texts if text in _firsts(unlabelled(on))))


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
    match node:
        case x.Seq(first=first) | x.Not(opener=first) | x.PeriodicStar(opener=first):
            return _firsts(first)
        case x.AperiodicStar(opener=opener, part=part):
            return _firsts(opener) | _firsts(part)
        case x.Minus(part=part) | x.Aperiodic(part=part):
            return _firsts(part)
        case x.Plus() | x.Periodic():
            return frozenset({_INSTANT})
    operands = node.operands()
    return frozenset().union(*map(_firsts, operands)) if operands else _types(node)
