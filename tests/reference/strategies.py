"""Hypothesis strategies: expressions, rulebooks, the reference's answers. Small, so that ties,
duplicates and simultaneous occurrences are common, and the reference stays fast.

Instants and durations are whole seconds, in microseconds. Everything shrinks towards one
operator over plain event types, no key, one bare instance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.golden.load import default_context
from tests.reference.evaluate import Detection, Line, canonical, evaluate
from tests.reference.hits import small
from tests.reference.keys import needs_keyed
from tidegate.rules.errors import Place
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.nodes import (
    And,
    AnyOf,
    AnyRepeat,
    Aperiodic,
    AperiodicStar,
    Clock,
    Duration,
    Every,
    Expression,
    Instant,
    Labelled,
    Minus,
    Name,
    Not,
    Nth,
    Or,
    Own,
    Periodic,
    PeriodicStar,
    Plus,
    Seq,
    Within,
)
from tidegate.rules.expressions.parser import parse
from tidegate.rules.model import Context, EventType, Pattern, Rule, Rulebook, SignalEvent

SECOND = 1_000_000
NAMES = ("a", "b", "c")
PLACE = Place()

Operator = type[Expression]
Operands = st.SearchStrategy[Expression]

CARLSON_LISPER: tuple[Operator, ...] = (Or, And, Seq, Minus, Within)
FIRST_SLICE: tuple[Operator, ...] = (*CARLSON_LISPER, AnyOf, Labelled)
UNTIMED: tuple[Operator, ...] = (
    *FIRST_SLICE,
    AnyRepeat,
    Not,
    Aperiodic,
    AperiodicStar,
    Nth,
    Every,
)
TIMED: tuple[Operator, ...] = (Own, Plus, Periodic, PeriodicStar, Clock)
EVERYTHING: tuple[Operator, ...] = UNTIMED + TIMED


def durations(least: int = 1) -> st.SearchStrategy[Duration]:
    return st.integers(least, 4).map(lambda seconds: Duration(0, seconds * SECOND))


def _clock(second: int, minute: int | None) -> Clock:
    return Clock(0, minute, second, None, None, None)


# Most of them are every minute of an hour: there is a next one.
_CLOCKS = (_clock(1, None), _clock(3, None), _clock(5, None), _clock(2, 0))
_LABELS = st.sampled_from(["L", "M"])
_COUNTS = st.integers(1, 3)

# Each: (operands, operands or an own terminator) -> expressions with that operator at the root.
_BUILD: Mapping[Operator, Callable[[Operands, Operands], Operands]] = {
    Or: lambda e, _: st.builds(Or, _parts(e)),
    And: lambda e, _: st.builds(And, _parts(e)),
    Seq: lambda e, last: st.builds(Seq, e, last),
    Minus: lambda e, _: st.builds(Minus, e, e),
    Within: lambda e, _: st.builds(Within, e, durations(0)),
    AnyOf: lambda e, _: st.builds(AnyOf, _COUNTS, _parts(e)),
    Labelled: lambda e, _: st.builds(Labelled, _LABELS, e),
    AnyRepeat: lambda e, _: st.builds(AnyRepeat, _COUNTS, e),
    Not: lambda e, last: st.builds(Not, e, e, last),
    Aperiodic: lambda e, last: st.builds(Aperiodic, e, e, last),
    AperiodicStar: lambda e, last: st.builds(AperiodicStar, e, e, last),
    Nth: lambda e, _: st.builds(Nth, e, _COUNTS),
    Instant: lambda e, _: st.builds(Instant, e),
    Every: lambda e, _: st.builds(Every, _COUNTS, e),
    Plus: lambda e, _: st.builds(Plus, e, durations()),
    Periodic: lambda e, last: st.builds(Periodic, e, durations(), last),
    PeriodicStar: lambda e, last: st.builds(PeriodicStar, e, durations(), last),
}


def _parts(operands: Operands) -> st.SearchStrategy[tuple[Expression, ...]]:
    return st.lists(operands, min_size=2, max_size=3).map(tuple)


def _over(
    builders: Sequence[Callable[[Operands, Operands], Operands]],
    found: Operands,
    leaves: Operands,
    closers: Operands,
    *,
    own: bool,
) -> Operands:
    """One more operator, or rarely none; every other operand is a leaf, and every third closer an
    own terminator."""
    operands = _one_in(2, leaves, found)
    last = operands | closers
    if own:
        last = _one_in(3, st.builds(Own, durations()), last)
    built = [build(operands, last) for build in builders]
    return st.one_of(*built, leaves) if len(built) != 1 else built[0]


def _one_in(number: int, seldom: Operands, usual: Operands) -> Operands:
    """Not `|`, which counts the branches of both."""
    return st.integers(1, number).flatmap(lambda drawn: seldom if drawn == number else usual)


@cache  # a strategy is checked at its first use: build each once
def expressions(
    operators: tuple[Operator, ...] = FIRST_SLICE,
    names: tuple[str, ...] = NAMES,
    depth: int = 2,
    root: Operator | None = None,
) -> Operands:
    """Expressions of `depth` nested operators, all of them among `operators`, or with that `root`
    over such; what closes a window may have one more. `Own` and `Clock` there allow own terminators
    and clock literals."""
    plain: list[Expression] = [Name(name) for name in names]
    leaves = st.sampled_from([*plain * 6, *_CLOCKS] if Clock in operators else plain)
    builders = [build for operator, build in _BUILD.items() if operator in operators]
    closers = st.one_of(leaves, *(build(leaves, leaves) for build in builders))
    found: Operands = leaves
    for _ in range(depth):
        found = _over(builders, found, leaves, closers, own=Own in operators)
    if root is not None:
        found = _over([_BUILD[root]], found, leaves, closers, own=Own in operators)
    return found.map(written)


@cache
def compared_windows(names: tuple[str, ...]) -> Operands:
    """Windows that something composite closes, among instances that start with them: there it can
    be seen which of several c's does (S4)."""
    leaf = st.sampled_from(names).map(Name)
    pair = st.builds(Seq, leaf, leaf)
    some = st.one_of(pair, st.builds(Seq, pair, leaf), st.builds(Seq, leaf, pair))
    closer = st.one_of(
        some,
        st.builds(And, st.tuples(leaf, leaf)),
        st.builds(Or, st.tuples(leaf, pair)),
        st.builds(Minus, pair, leaf),
        st.builds(Within, pair, durations()),
        st.builds(AnyRepeat, st.just(2), leaf),
        leaf,
    )
    opener = st.one_of(leaf, leaf, pair, st.builds(Or, st.tuples(leaf, pair)))
    window = st.builds(AperiodicStar, opener, leaf, closer) | st.builds(
        PeriodicStar, opener, durations(), closer
    )
    rival = some | window
    either = st.builds(Or, st.tuples(window, rival)) | st.builds(
        AnyOf, _COUNTS, st.tuples(window, rival, rival)
    )
    found = st.one_of(
        either,
        either,
        st.builds(Within, either, durations(3)),
        st.builds(Seq, either, leaf),
        st.builds(Seq, st.builds(And, st.tuples(leaf, window)), leaf),
        st.builds(Seq, st.builds(Every, _COUNTS, window), leaf),
        st.builds(AperiodicStar, opener, window, closer),
        st.builds(Not, leaf, window, closer),
    )
    return found.map(written)


def rooted() -> list[Operator]:
    """What may be the `root` of an expression that the engine detects."""
    return [operator for operator in _BUILD if operator is not Instant]


def written(expression: Expression) -> Expression:
    """As the parser gives it: `a + [d]` that closes its own a is an own terminator."""
    return parse(format_expression(expression))


@st.composite
def rulebooks(
    draw: st.DrawFn,
    operators: tuple[Operator, ...] = FIRST_SLICE,
    contexts: Sequence[Context] = (Context.RESTRICTED,),
    *,
    depth: int = 2,
    keyed: bool = True,
    rules_max: int = 1,
    root: Operator | None = None,
    last: Callable[[tuple[str, ...]], Operands] | None = None,
    broadcasts_min: int = 0,
) -> Rulebook:
    """A rulebook over the signals a, b, c: without keys, or keyed and broadcast ones mixed.

    Keyed signals declare `k` (or `k` and `j`), all declare `v`. With `rules_max` > 1 a rule may use
    earlier ones as events; `last` draws the expression of the last rule over some names. A rule
    that cannot be evaluated by key is evaluated without. Where signals are keyed, at least
    `broadcasts_min` of them are not.
    """
    choices: list[tuple[str, ...]] = [(), ("k",), ("k", "j")] if keyed else [()]
    keys = draw(st.sampled_from(choices))
    broadcast = draw(st.sets(st.sampled_from(NAMES), min_size=broadcasts_min, max_size=2))
    columns = {name: keys for name in NAMES if keys and name not in broadcast}
    events: dict[str, EventType] = {
        name: SignalEvent(name, PLACE, dict.fromkeys((*columns.get(name, ()), "v"), "bigint"))
        for name in NAMES
    }
    rules: dict[str, Rule] = {}
    count = draw(st.integers(1, rules_max))
    for number in range(count):
        name = f"r{number}"
        known = (*NAMES, *rules)
        drawn = expressions(operators, known, depth, root)
        on = draw(last(known) if last and number == count - 1 else drawn)
        per = {
            n.name: columns[n.name] for n in on.walk() if isinstance(n, Name) and n.name in columns
        }
        if not needs_keyed(on, per):
            per = {}
        usual = default_context(on)
        rules[name] = Rule(
            name,
            PLACE,
            Pattern(
                on,
                format_expression(on),
                context=draw(st.sampled_from([*contexts, usual])),
                key_names=keys if per else (),
                per=per,
            ),
        )
        if per:
            columns[name] = keys
    return Rulebook("generated", None, "", "UTC", {}, events, rules)


def answered(rulebook: Rulebook, history: Iterable[Line], **options: Any) -> list[Detection]:
    """The reference's answer; a case too large for it is given up."""
    with small():
        return evaluate(rulebook, history, instances_max=2_000, **options)


def expected(rulebook: Rulebook, history: Iterable[Line], **options: Any) -> list[str]:
    """The same, canonical."""
    return canonical(d.printed() for d in answered(rulebook, history, **options))


def of_last(rulebook: Rulebook, answer: Iterable[str]) -> list[str]:
    """The detections of the last rule, for which histories are planted."""
    name = [*rulebook.rules][-1]
    return [line for line in answer if f'"rule": "{name}"' in line]
