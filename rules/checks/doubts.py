"""Forms of an expression that are valid, and probably not what their author means (S13)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from tidegate.rules.algebra.emptiness import every_instance, fires_never, takes_time
from tidegate.rules.algebra.plain_expressions import plain
from tidegate.rules.algebra.transformation import longest_micros
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.durations import format_duration
from tidegate.rules.expressions.formatter import format_expression, format_written
from tidegate.rules.model import Context, Pattern, Rule
from tidegate.rules.sql.tokens import sql_tokens

_USING_UP = (Context.RECENT, Context.CHRONICLE, Context.CUMULATIVE)
_UNITLESS = re.compile(
    r"\"[^\"]*\"|'[^']*'"
    r"|(?:\bwithin\s+|(?:[;,+]|\bthen)\s*\[\s*)(?P<number>\d+(?:\.\d+)?|\.\d+)"
    r"(?=\s*(?:\]|$|\)|,|-|(?:within|without)\b))"
)


@dataclass(frozen=True, slots=True)
class Doubt:
    """A warning about a part of an expression; the hint is what was probably meant."""

    code: str
    message: str
    hint: str
    node: x.Expression


def doubts(node: x.Expression, rule: Rule, rules: Mapping[str, Rule]) -> Iterator[Doubt]:
    """What is doubtful about a rule's expression, from the outside in; `rules` by name."""
    around: dict[int, x.Duration] = {}
    for below in node.walk():
        if isinstance(below, x.Within) and isinstance(below.part, x.Minus):
            around[id(below.part)] = below.duration
        match below:
            case x.Not() if fires_never(below):
                yield _closed_by_absent(below)
            case x.Minus():
                yield from _absence(below, around.get(id(below)), rules)
            case x.Periodic() | x.PeriodicStar() if fires_never(below.closer):
                yield _endless(below)
            case x.AnyOf() if below.count > len(below.parts):
                yield _above_operands(below)
            case x.AnyOf(count=1) | x.AnyRepeat(count=1) | x.Every(count=1):
                yield from _one_of(below)
            case x.Within(duration=x.Duration(0, 0)) if takes_time(below.part):
                yield _no_time(below)
            case x.Within(part=x.Seq() as part):
                yield from _looser(below, part)
            case x.AperiodicStar() | x.PeriodicStar():
                yield from _lost_windows(below, rule.pattern)


def may_be_empty(node: x.Expression, rules: Mapping[str, Rule]) -> bool:
    """Whether an instance may have no constituents, as an empty window or a point in time has."""

    def shows(node: x.Expression) -> bool | None:
        match node:
            case x.Name(name=name):
                return name not in rules or not may_be_empty(rules[name].pattern.on, rules)
            case x.Clock() | x.Cron() | x.Edge() | x.Periodic():
                return True
            case x.AperiodicStar() | x.PeriodicStar() | x.Plus():
                return False
        return None

    return not every_instance(node, shows)


def counts_rows_to_zero(condition: str) -> int | None:
    """Where a condition asks whether count(*) is zero: the offset of `count`."""
    found = sql_tokens(condition)
    texts = [token.text.lower() for token in found]
    for at in range(len(texts) - 3):
        if texts[at] != "count" or texts[at + 1] != "(" or texts[at + 3] != ")":
            continue
        if texts[at + 2] not in ("*", "1"):
            continue
        behind, before = "".join(texts[at + 4 : at + 8]), "".join(texts[max(at - 4, 0) : at])
        if re.match(r"(={1,2}|<=>?|!=|<>|>)0(?![\d.])|(<|>=)1(?![\d.])", behind):
            return found[at].offset
        if re.search(r"(?<![\d.])0(={1,2}|<=>|>=|!=|<>|<)$|(?<![\d.])1(>|<=)$", before):
            return found[at].offset
    return None


def unitless(text: str) -> Iterator[tuple[int, str]]:
    """(offset, number) of the lengths of time without a unit in an event expression."""
    for found in _UNITLESS.finditer(text):
        if found["number"] and float(found["number"]):
            yield found.start("number"), found["number"]


def _closed_by_absent(node: x.Not) -> Doubt:
    message = "not(b)[a, b] never fires: the b that closes the window is inside it"
    meant = f"not({_shown(node.absent)})[{_shown(node.opener)}, [5 min]]"
    hint = f"close it by another event, or by a length of time: {meant}"
    return Doubt("never", message, hint, node)


def _absence(node: x.Minus, around: x.Duration | None, rules: Collection[str]) -> Iterator[Doubt]:
    if fires_never(node):
        message = "this never fires: what must be absent is part of it"
        yield Doubt("never", message, "a without b: b is another event, or a longer pattern", node)
        return
    part = node.part
    if isinstance(part, x.Within):
        around, part = part.duration, part.part
    if not plain(part) or any(n.name in rules for n in part.walk() if isinstance(n, x.Name)):
        return
    if _silenced(part, node.absent):
        return
    shown, absent = _shown(part), _shown(node.absent)
    length = format_duration(around) if around else "5 min"
    yield Doubt(
        "instant-absence",
        f"{shown} takes no time: only {absent} at the same microsecond is absent here",
        f"no {absent} within a time after {shown}: not({absent})[{shown}, [{length}]]",
        node,
    )


def _silenced(part: x.Expression, absent: x.Expression) -> bool:
    """Whether what must be absent is the event itself in a window: `a without during(b, a, [d])`,
    each a but for those that a b silences."""
    parts = absent.parts if isinstance(absent, x.Or) else (absent,)
    return all(isinstance(each, x.Aperiodic) and each.part == part for each in parts)


def _no_time(node: x.Within) -> Doubt:
    message = f"within 0 this never fires: {_shown(node.part)} takes time"
    meant = _shown(replace(node, duration=x.Duration(0, 300_000_000)))
    return Doubt("never", message, f"say how long it may take: {meant}", node)


def _looser(node: x.Within, part: x.Seq) -> Iterator[Doubt]:
    """`(any(3, a*) within 5 min) ; b within 10 min`: the ten minutes begin with the first a."""
    opener, later = _split(part)
    if not isinstance(opener, x.Within) or isinstance(later, x.Own) or plain(opener.part):
        return
    if longest_micros(node.duration) <= longest_micros(opener.duration):
        return
    length = format_duration(node.duration)
    message = f"{length} counts from the first event of {_shown(opener.part)}, not from its last"
    meant = _shown(x.Aperiodic(opener, later, x.Own(node.duration)))
    hint = f"{_shown(later)} within {length} after it: {meant},"
    hint += f" which fires at each {_shown(later)} and has rows of that alone"
    yield Doubt("within-from-first", message, hint, node)


def _split(node: x.Seq) -> tuple[x.Expression, x.Expression]:
    """The first operand of a chain of `;`, and the rest of the chain."""
    first, rest = node.first, node.then
    while isinstance(first, x.Seq):
        rest = x.Seq(first.then, rest)
        first = first.first
    return (first.part if isinstance(first, x.Labelled) else first), rest


def _endless(node: x.Periodic | x.PeriodicStar) -> Doubt:
    message = "nothing closes this window: it ticks forever"
    meant = _shown(replace(node, closer=x.Own(x.Duration(0, 3_600_000_000))))
    hint = f"close it by an event that happens, or by a length of time: {meant}"
    return Doubt("endless", message, hint, node)


def _above_operands(node: x.AnyOf) -> Doubt:
    many = len(node.parts)
    message = f"any({node.count}, ..) of {many}: more than there are, so all of them"
    if many == 1:
        repeated = _shown(x.AnyRepeat(node.count, node.parts[0]))
        hint = f"{node.count} occurrences of one: {repeated}"
    else:
        repeated = _shown(x.AnyRepeat(node.count, x.Or(node.parts)))
        hint = f"{node.count} of any of them: {repeated};"
        hint += f" each once: all({', '.join(map(_shown, node.parts))})"
    return Doubt("above-operands", message, hint, node)


def _one_of(node: x.AnyOf | x.AnyRepeat | x.Every) -> Iterator[Doubt]:
    """`any(1, ..)` or `every(1, ..)`: each occurrence by itself. A composite is no case of it,
    for it is counted once an instant (S9)."""
    if isinstance(node, x.AnyOf):
        meant: x.Expression = x.Or(node.parts)
    elif plain(node.part):
        meant = node.part
    else:
        return
    name = "every" if isinstance(node, x.Every) else "any"
    message = f"{name}(1, ..) is each one by itself: {_shown(meant)}"
    yield Doubt("counts-one", message, "write that, or a count of 2 or more", node)


def _lost_windows(node: x.AperiodicStar | x.PeriodicStar, pattern: Pattern) -> Iterator[Doubt]:
    if pattern.context not in _USING_UP or pattern.selection:
        return
    both = _types(node.opener) & _types(node.closer)
    if not both:
        return
    name = min(both)
    message = (
        f"{name} closes a window and opens the next, but context {pattern.context} uses it up:"
        " every second window is lost"
    )
    hint = "use nothing up: context: restricted (the default), or context: continuous"
    yield Doubt("lost-windows", message, hint, node)


def _types(node: x.Expression) -> set[str]:
    """The event types that instances of an opener or a closer hold, and consume."""
    match node:
        case x.Name() | x.Edge() | x.Clock() | x.Cron():
            return {format_expression(node)}
        case x.Plus() | x.Periodic():
            return set()
        case x.Minus(part=part) | x.Aperiodic(part=part):
            return _types(part)
        case x.Not(opener=opener, closer=closer):
            return _types(opener) | _types(closer)
    return set().union(*(_types(part) for part in node.operands()))


_shown = format_written
