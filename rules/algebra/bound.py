"""The static bound: how much a rule stores per key, at most, in each parameter context.

In `restricted` a node stores a few instances, whatever arrives (semantics 4; Carlson's thesis,
re-derived). The other contexts keep the occurrences that are not consumed yet, and only a `within`
bounds how many these are. There are two exceptions, which the form of the expression shows
(`rules.algebra.forms`): `recent` keeps a few occurrences where a detection takes one of each event
type, and every context keeps a few for `any(m, a*)` (`rules.algebra.stages`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tidegate.rules.algebra.amount import ENDLESS, Amount, total
from tidegate.rules.algebra.detector_form import KEPT_MAX, detected
from tidegate.rules.algebra.forms import Flat, Forms, Nested, Operators, Single, forms
from tidegate.rules.algebra.named_parts import asked_parts
from tidegate.rules.algebra.points import reach_micros
from tidegate.rules.algebra.storage import Stored, Used, stored, used_rules
from tidegate.rules.algebra.transformation import longest_micros
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.durations import format_duration
from tidegate.rules.expressions.formatter import format_written
from tidegate.rules.expressions.parser import unlabelled
from tidegate.rules.model import Context, Pattern, Rule


@dataclass(frozen=True, slots=True)
class Bound:
    """How much is stored per key. What is made of broadcasts alone is stored once, like one more
    key.

    instances_max    a number that is never exceeded; None: see `span_micros`
    occurrences_max  the same for the occurrences (and ticks) in the instances
    span_micros      what arrives in a time of this length is kept; None: there is no such limit
    forgets_micros   nothing stored gets older; None: something is kept for ever for every key
    why              the nodes or the context that make up the bound
    advice           what would give a bound, or let the rule forget
    pause_micros     after so long without an occurrence a key is forgotten, however old what is
                     stored of it may be
    """

    instances_max: int | None
    occurrences_max: int | None
    span_micros: int | None
    forgets_micros: int | None
    why: str
    advice: tuple[str, ...] = ()
    pause_micros: int | None = None

    @property
    def exists(self) -> bool:
        """Whether there is a bound, be it a number or a length of time."""
        counted = None not in (self.instances_max, self.occurrences_max)
        return counted or self.span_micros is not None

    @property
    def forgets(self) -> bool:
        """Whether a key that is not seen again is forgotten."""
        return self.forgets_micros is not None or self.pause_micros is not None


def bound(
    expression: x.Expression, context: Context, rules: Mapping[str, Rule] | None = None
) -> Bound:
    """The bound of this very expression in this context. `rules`: the rules that it may use as
    events, of which the own storage is not counted."""
    return _bound(_form(expression, used_rules(rules or {}), ()), context)


class Bounds:
    """The bounds of a rulebook's rules, in the form in which they are detected."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules
        self.used = used_rules(rules)

    def of_rule(self, rule: Rule) -> Bound:
        """The bound in the rule's own context. A selection counts as `unrestricted`, for it chooses
        among all instances."""
        own = own_context(rule.pattern)
        return self.in_contexts(rule, (own,))[own]

    def in_contexts(self, rule: Rule, contexts: Iterable[Context]) -> dict[Context, Bound]:
        """The bounds that the rule would have in these contexts."""
        on = detected(rule.pattern, self._rules)
        form = _form(on, self.used, rule.pattern.per)
        if (where := rule.pattern.where) is None:
            return {context: _bound(form, context) for context in contexts}
        parts = asked_parts(on, where.tree, frozenset(self._rules))
        return {context: _asked(form, context, parts) for context in contexts}


def own_context(pattern: Pattern) -> Context:
    """The context whose bound a rule has."""
    return Context.UNRESTRICTED if pattern.selection else pattern.context


@dataclass(frozen=True)
class _Form:
    """What is the same in all contexts. `nodes`: the nodes that store something; `instances` and
    `occurrences`: their sums; `restricted`: the bound of the operators, as they run in that
    context; `forgets_micros`: nothing that is searched gets older; None: there is no limit."""

    expression: x.Expression
    forms: Forms
    nodes: Sequence[Stored]
    instances: Amount
    occurrences: Amount
    restricted: Bound
    forgets_micros: int | None


def _form(expression: x.Expression, used: Mapping[str, Used], keyed: Collection[str]) -> _Form:
    if used and not used.keys().isdisjoint(x.names_in(expression)):
        return _made(expression, used, keyed)
    return _of_events(expression, frozenset(keyed), format_written(expression))


@lru_cache(maxsize=KEPT_MAX)
def _of_events(expression: x.Expression, keyed: Collection[str], _written: str) -> _Form:
    """The form of an expression that uses no rules. It is needed again when a rulebook that was
    read is explained. `_written`: the expression's text. Equal expressions may be written in other
    words, and each is told in its own."""
    return _made(expression, {}, keyed)


def _made(expression: x.Expression, used: Mapping[str, Used], keyed: Collection[str]) -> _Form:
    nodes = [node for node in stored(expression, used).walk() if node.remembers]
    instances = total([node.instances for node in nodes])
    occurrences = total([node.occurrences for node in nodes])
    lasting = [node for node in nodes if node.oldest_micros is None]
    oldest = None if lasting else max([node.oldest_micros or 0 for node in nodes], default=0)
    advice = tuple(dict.fromkeys(_advice(node, expression) for node in lasting))
    why = _why(nodes, instances + occurrences)
    restricted = _said_of(instances, occurrences, oldest, why, advice)
    match expression:
        case w.Session(gap=gap):
            restricted = replace(restricted, pause_micros=longest_micros(gap))
        case w.Crossing(length=length) if _rests(expression):
            restricted = replace(restricted, pause_micros=longest_micros(length), advice=())
    by_context = forms(expression, keyed, used)
    forgets = restricted.forgets_micros
    if by_context.has_points and forgets is not None:
        reach = reach_micros(expression, used.keys())
        forgets = None if reach is None else max(reach, forgets)
    return _Form(expression, by_context, nodes, instances, occurrences, restricted, forgets)


def _rests(node: w.Crossing) -> bool:
    """Whether a window that has run empty is armed again."""
    if node.rearm is None:
        return not p.true_of_nothing(node.fire.tree)
    return p.true_of_nothing(node.rearm.tree)


def _bound(form: _Form, context: Context) -> Bound:
    found = form.restricted
    advice = found.advice
    match form.forms.of(context) if form.nodes else Operators():
        case Operators() | Single():
            return found
        case Flat(kept=(instances, occurrences)):
            why = f"context {context} keeps {instances.count} of {_BEGUN[context]}"
        case Nested(kept=(instances, occurrences)):
            count = instances.count
            more = f"context {context} keeps {count} of the occurrences not consumed yet"
            why = f"{found.why}; {more}"
            instances, occurrences = form.instances + instances, form.occurrences + occurrences
        case chosen:
            advice = _beside_counters(form) or advice
            instances = occurrences = ENDLESS.within(form.forgets_micros)
            kept = _FLAT_KEEPS.get(context) if isinstance(chosen, Flat) else None
            why = f"context {context} keeps {kept or _KEEPS[context]}"
    return _said_of(instances, occurrences, form.forgets_micros, why, advice)


def _asked(form: _Form, context: Context, parts: Mapping[x.Expression, int]) -> Bound:
    """The bound of a rule with a `where`: every occurrence may be in a match that it leaves. In
    `restricted` that is so of the parts alone of which it is asked."""
    found = form.restricted
    if context is not Context.RESTRICTED or form.forms.has_points:
        kept = ENDLESS.within(form.forgets_micros)
        why = f"context {context} keeps {_KEEPS[context]}"
        return _said_of(kept, kept, form.forgets_micros, why, found.advice)
    said = [f"`{format_written(part)}`" for part in parts]
    why = f"where keeps every occurrence that may be in {', '.join(said)}"
    kept = ENDLESS.within(max(parts.values(), default=0))
    instances, occurrences = form.instances + kept, form.occurrences + kept
    why = f"{found.why}; {why}" if found.why else why
    return _said_of(instances, occurrences, found.forgets_micros, why, found.advice)


def _said_of(
    instances: Amount,
    occurrences: Amount,
    oldest: int | None,
    why: str,
    advice: tuple[str, ...],
) -> Bound:
    whole = instances + occurrences
    span = None if whole.endless else whole.span_micros
    return Bound(instances.maximum, occurrences.maximum, span, oldest, why, advice)


_KEEPS = {
    Context.RESTRICTED: "every occurrence, for an `instant` is chosen among all of them",
    Context.RECENT: "the occurrences that it has not consumed yet",
    Context.CHRONICLE: "every occurrence until it is consumed",
    Context.CONTINUOUS: "every occurrence, for it can end what any initiator began",
    Context.CUMULATIVE: "every occurrence until it is consumed",
    Context.UNRESTRICTED: "every occurrence, for it consumes nothing",
}

_FLAT_KEEPS = {Context.CONTINUOUS: "every initiator until it has ended, with what it took"}
_BEGUN = {
    Context.RECENT: "the matches begun",
    Context.CHRONICLE: "the occurrences not consumed yet",
    Context.CONTINUOUS: "the matches begun",
    Context.CUMULATIVE: "the occurrences not consumed yet",
}


def _why(nodes: Sequence[Stored], whole: Amount) -> str:
    """The nodes that make up the sum. If some of them keep it from being a number, only these."""
    if not nodes:
        return "nothing has to be remembered"
    if whole.endless:
        nodes = [node for node in nodes if _whole(node).endless]
    elif whole.span_micros is not None:
        nodes = [node for node in nodes if _whole(node).span_micros is not None]
    return "; ".join(map(_said, nodes))


def _whole(node: Stored) -> Amount:
    return node.instances + node.occurrences


def _said(node: Stored) -> str:
    text = f"`{format_written(node.node)}`"
    amount = node.instances
    if isinstance(node.node, w.Tumbling | w.Session):
        return f"{text} keeps the rows of the window that is open"
    if amount.maximum == 0:
        return f"{text} keeps a count"
    if amount.maximum is not None:
        held = "" if node.occurrences.maximum is not None else " with all that its window holds"
        return f"{text} keeps {amount.maximum}{held}" + (" and a count" if node.counter else "")
    window = node.node.length if isinstance(node.node, w.Sliding) else None
    length = format_duration(window or x.Duration(0, amount.span_micros or 0))
    since = "" if amount.endless else f" of the last {length}"
    kept, why = _each(node)
    return f"{text} keeps {kept}{since}" + (f", for {why}" if why else "")


def _each(node: Stored) -> tuple[str, str]:
    """What a node keeps if there is no number, and why."""
    if node.chosen_among:
        return "every occurrence", "the lowest in rank of all its instances closes a window"
    match node.node:
        case x.AperiodicStar():
            return "every occurrence of an open window", ""
        case x.Periodic():
            return "every opening", "each has ticks of its own"
        case x.Plus():
            return "every instant", "it counts from each"
        case x.Seq(then=x.Own()) | x.Not(closer=x.Own()) | x.PeriodicStar(closer=x.Own()):
            return "every opening", "each has an end of its own"
        case w.Sliding() | w.Crossing():
            return "every row", ""
        case _:
            return "an instance for every start that its last operand may have", ""


def _advice(node: Stored, whole: x.Expression) -> str:
    """What would let a node forget. No length of time is proposed: how long a match may take is the
    author's choice."""
    text = format_written(node.node)
    if isinstance(node.node, w.Session):
        day = format_written(w.Tumbling(node.node.part, x.Duration(0, 86_400_000_000)))
        return f"a key that never pauses has one session without end: `{day}` ends each day"
    if isinstance(node.node, w.Holding):
        return f"`{text}` knows of a key that it has fired, until an end comes"
    if isinstance(node.node, w.Window):
        return f"`{text}` knows of every key whether it has fired"
    if node.counter:
        return f"`{text}` counts since activation: a number for every key stays"
    if node.reach is None and isinstance(node.node, x.Aperiodic | x.Periodic):
        return f"close the window after a time of your choice, too: `{_also_closed(node.node)}`"
    part = next((p for p in whole.walk() if unlabelled(p) == node.reach), node.reach or node.node)
    match part:
        case x.Seq(first=opener, then=x.Own()) | x.Not(opener=opener, closer=x.Own()):
            part = opener  # the rest has a length
    return f"say how long `{format_written(part)}` may take: a `within` of your choice"


def _also_closed(node: x.Aperiodic | x.Periodic) -> str:
    """The same window, which a length of time closes, too. The length stands in an `or`, so that
    the event still closes the window."""
    either = x.Or((node.closer, x.Plus(node.opener, x.Duration(0, 86_400_000_000))))
    return format_written(replace(node, closer=either))


def _beside_counters(form: _Form) -> tuple[str, ...]:
    """The advice where a node counts since activation, for a context that keeps what is not
    consumed: a `within` would bound nothing there."""
    counters = tuple(_advice(node, form.expression) for node in form.nodes if node.counter)
    bounded = counters and form.restricted.exists and not form.forms.has_points
    return (*counters, "choose context: restricted, which keeps few") if bounded else counters
