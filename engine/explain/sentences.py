"""What a rule does, in plain sentences: when it fires, what pairs with what, what is consumed,
broadcast and remembered, and what becomes of a firing.

The texts stand in `sentences.toml`, one for each (operator, context).
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib import resources

from tidegate.engine.core.text.layout import counted, listed
from tidegate.engine.explain.clauses import Clause, Names, clause
from tidegate.engine.explain.reactions import reaction
from tidegate.rules.algebra.bound import Bound
from tidegate.rules.algebra.emptiness import fires_never
from tidegate.rules.algebra.plain_expressions import plain
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.durations import length
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.model import Context, Pattern, Rule, Selection

PARTS_MAX = 6
"""Parts of an expression that have a sentence of their own."""
_ANY = frozenset({"event", "P", "P [d]", "+"})
"""The operators that choose in the same way whatever their operands are. So do windows."""
_PAIRED = frozenset({";", "not"})
"""The operators of which something can be said that holds with a `where`, too."""
_LATEST = (Context.RESTRICTED, Context.RECENT)
_TAKEN = {"first": "the first is", "last": "the last is", "all": "all are"}
_PAIRS = {
    "unique": "A run pairs with the next one only.",
    "all": "A run pairs with every later one.",
}


@cache
def templates() -> Mapping[str, Mapping[str, str]]:
    """The texts: operator -> `when`, `keeps`, or the name of a context -> text."""
    text = resources.files("tidegate.engine.explain").joinpath("sentences.toml").read_text("utf-8")
    read = tomllib.loads(text)
    found: dict[str, dict[str, str]] = {}
    for operator, given in read.items():
        others = {"like": given["like"]} if "like" in given else {}
        texts = {name: text for key, text in given.items() for name in key.split(", ")}
        if "*" in texts:
            others |= dict.fromkeys(map(str, Context), texts["*"])
        found[operator] = others | texts
    return found


def sentences(rule: Rule, rules: Collection[str], stores: Bound) -> tuple[str, ...]:
    """What a rule does. `rules`: the names of all rules of its rulebook. `stores`: its bound."""
    remembers = _memory(rule.pattern, rules, stores)
    return (*detection(rule, rules), remembers, *reaction(rule))


def detection(rule: Rule, rules: Collection[str]) -> Iterator[str]:
    """When a rule fires, and with what: its expression, its key, its `where`, its choice."""
    pattern = rule.pattern
    names = Names(pattern.on)
    found = clause(pattern.on, names)
    if fires_never(pattern.on):
        yield f"Never fires: no history has {names.of(pattern.on)}."
        return
    yield f"Fires {_text(found, pattern)}."
    yield from _parts(names)
    if broadcast := [*dict.fromkeys(_broadcast(pattern))]:
        key = listed(pattern.key_names)
        are = "is broadcast" if len(broadcast) == 1 else "are broadcast"
        yield f"{listed(broadcast)} {are}: one counts for every {key}."
    if pattern.where is not None:
        where = " ".join(pattern.where.text.split())
        yield f"Only matches of which `{where}` is true count: it is asked before the choice."
    yield choice(rule, rules, pattern.context)


def choice(rule: Rule, rules: Collection[str], context: Context) -> str:
    """Which instances a rule takes in a context, and what it consumes. A window has no context, and
    a `select` stands for one."""
    pattern = rule.pattern
    found = clause(_core(pattern.on), Names(pattern.on), again=False)
    operator, values = found.operator, {**found.values, **_key_words(pattern), "rule": rule.name}
    if pattern.selection is not None and context is pattern.context:
        operator, values = "select", {**_sides(found), **_selected(pattern.selection)}
    elif operator not in _ANY and not _simple(pattern, found, rules):
        operator = "instances"
    while str(context) not in templates()[operator]:
        operator = templates()[operator]["like"]
    return templates()[operator][str(context)].format(**values)


def _core(e: x.Expression) -> x.Expression:
    """The expression among whose instances the context chooses: filters leave some of them out."""
    while isinstance(e, x.Within | x.Minus | x.Labelled | x.Aperiodic):
        e = e.part
    return e


def _simple(pattern: Pattern, found: Clause, rules: Collection[str]) -> bool:
    """Whether an operator's own sentences hold: of points, and with all that the choice sees."""
    asked = pattern.where is not None and found.operator not in _PAIRED
    return isinstance(pattern.on, w.Window) or (_of_points(found, rules) and not asked)


def _of_points(found: Clause, rules: Collection[str]) -> bool:
    """Whether the operands are plain, and points: a rule's detection takes time."""
    return all(plain(e) and x.names_in(e).isdisjoint(rules) for e in found.operands)


def _text(found: Clause, pattern: Pattern | None = None) -> str:
    """A clause, with what filters it. pattern: of a whole rule, whose key it is said for."""
    when = templates()[found.operator]["when"]
    return "".join([when.format(**found.values, **_key_words(pattern)), *found.filters])


def _parts(names: Names) -> Iterator[str]:
    """A sentence for each composite operand, and for labels. Operands of operands follow."""
    labels: dict[str, list[str]] = {}
    composites = 0
    for part, name in names.parts():
        inner = part.part if isinstance(part, x.Labelled) else part
        if plain(inner):
            labels.setdefault(names.of(inner), []).append(name)
        elif composites < PARTS_MAX:
            composites += 1
            yield f"{name[0].upper()}{name[1:]} happens {_text(clause(inner, names))}."
        else:
            yield "Further parts: see the graph of `explain`."
            break
    for event, given in labels.items():
        yield f"{listed(given)} stand{'s' if len(given) == 1 else ''} for {event}."


# -- keys ---------------------------------------------------------------------------------------


def _leaves(pattern: Pattern) -> Iterator[x.Expression]:
    for node in pattern.on.walk():
        if isinstance(node, x.Name | x.Edge | x.Clock | x.Cron):
            yield node


def _keyed(pattern: Pattern, leaf: x.Expression) -> bool:
    return isinstance(leaf, x.Name | x.Edge) and leaf.name in pattern.per


def _key_words(pattern: Pattern | None) -> Mapping[str, str]:
    """The key in the words of the templates. pattern: None, or without a key: they are empty."""
    if pattern is None or not pattern.key_names:
        return dict.fromkeys(("each", "same", "per", "of_one", "of"), "")
    key = listed(pattern.key_names)
    each, same = f" for each {key}", f" for the same {key}"
    alone = sum(_keyed(pattern, leaf) for leaf in _leaves(pattern)) == 1
    per = each if alone else same
    words = {"each": each, "same": same, "per": per, "of_one": f" of one {key}"}
    return {**words, "of": f" of each {key}"}


def _broadcast(pattern: Pattern) -> Iterator[str]:
    if pattern.key_names:
        for leaf in _leaves(pattern):
            if not _keyed(pattern, leaf):
                yield f"`{format_expression(leaf)}`"


# -- select -------------------------------------------------------------------------------------


def _sides(found: Clause) -> Mapping[str, str]:
    """The two operands of a `select`, which is for `a ; b` and `a and b`."""
    sides = [found.names.of(operand) for operand in found.operands]
    return {"a": sides[0], "b": sides[-1]}


def _selected(selection: Selection) -> Mapping[str, str]:
    repeat = " What is left is paired again, until nothing matches." if selection.repeat else ""
    over = " It fires when the time of `within` is over." if selection.evaluate == "at_end" else ""
    return {
        "first": _TAKEN[selection.first],
        "then": _TAKEN[selection.then],
        "pairs": _PAIRS[selection.pairs],
        "repeat": repeat + over,
    }


# -- memory -------------------------------------------------------------------------------------


def _memory(pattern: Pattern, rules: Collection[str], stores: Bound) -> str:
    """What is stored of each key, and for how long."""
    forgets, of = stores.forgets_micros, _key_words(pattern)["of"]
    if stores.instances_max == 0:
        return f"Remembers a count{of}, for ever." if forgets is None else "Remembers nothing."
    found = clause(pattern.on, Names(pattern.on), again=False)
    until = ", for ever" if forgets is None else f", for {length(forgets)}"
    if isinstance(pattern.on, w.Window):
        if stores.pause_micros is not None:
            until = f", and forgets a key {length(stores.pause_micros)} after its last row"
        elif forgets is not None:
            until = ""
    return f"Remembers {_kept(pattern, rules, stores, found).format(**found.values, of=of)}{until}."


def _kept(pattern: Pattern, rules: Collection[str], stores: Bound, found: Clause) -> str:
    """A text of what is stored, with the names of `found`."""
    texts, latest = templates()[found.operator], pattern.context in _LATEST
    if isinstance(pattern.on, w.Window):
        return texts["keeps"]
    simple = not found.without and _of_points(found, rules) and not pattern.selection
    simple = simple and latest and not pattern.where
    if simple and "keeps" in texts and stores.instances_max == found.instances:
        return texts["keeps"]
    if simple and "waits" in texts:
        return texts["waits"]
    if stores.instances_max is not None and stores.occurrences_max is not None:
        instances = counted(stores.instances_max, "instance")
        return f"at most {instances}{{of}} with {counted(stores.occurrences_max, 'occurrence')}"
    if pattern.context in (Context.RECENT, Context.CHRONICLE, Context.CUMULATIVE):
        return "the occurrences{of} that are not consumed yet"
    return "every occurrence{of} that may still match"
