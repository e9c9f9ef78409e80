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
from tidegate.rules.expressions.formatter import format_expression, format_written
from tidegate.rules.model import Context, Pattern, Rule, Selection

PARTS_MAX = 4
"""Parts of an expression that have a sentence of their own."""
_ANY = frozenset({"event", "P", "P [d]", "+"})
"""The operators that choose in the same way whatever their operands are. So do windows."""
_PAIRED = frozenset({";", "; again", "not", "not again"})
"""The operators of which something can be said that holds with a `where`, too."""
_LEAVES = (x.Name, x.Edge, x.Clock, x.Cron)
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


class Sentences:
    """What a rule does, in sentences. `rules`: the names of all rules of its rulebook."""

    def __init__(self, rule: Rule, rules: Collection[str]) -> None:
        self._rule, self._rules = rule, rules
        self._pattern = rule.pattern
        self._keys = _Keys(rule.pattern)
        self._core = _core(rule.pattern.on)
        self._found = clause(self._core, Names(), again=False)
        self._points = _points(self._found, rules)

    def all(self, stores: Bound) -> tuple[str, ...]:
        """When it fires, what it remembers, what becomes of a firing. `stores`: its bound."""
        return (*self.detection(), self._memory(stores), *reaction(self._rule))

    def detection(self) -> Iterator[str]:
        """When it fires, and with what: its expression, its key, its `where`, its choice."""
        pattern = self._pattern
        if fires_never(pattern.on):
            yield f"Never fires: no history has `{format_written(pattern.on)}`."
            return
        names = Names()
        yield f"Fires {_text(clause(pattern.on, names), self._keys.words)}."
        yield from _parts(names)
        if broadcast := self._keys.broadcast:
            are = "is broadcast" if len(broadcast) == 1 else "are broadcast"
            yield f"{listed(broadcast)} {are}: one counts for every {listed(pattern.key_names)}."
        if pattern.where is not None:
            where = " ".join(pattern.where.text.split())
            yield f"Only matches of which `{where}` is true count: it is asked before the choice."
        yield self.choice(pattern.context)

    def choice(self, context: Context) -> str:
        """Which instances it takes in a context, and what it consumes. A window has no context, and
        a `select` stands for the rule's own."""
        pattern, operator = self._pattern, self._found.operator
        values = {**self._found.values, **self._keys.words, "rule": self._rule.name}
        if pattern.selection is not None and context is pattern.context:
            first, then = map(Names().of, self._core.operands())
            operator, values = "select", {"a": first, "b": then, **_selected(pattern.selection)}
        elif not isinstance(pattern.on, w.Window) and operator not in _ANY and not self._simple():
            operator = "instances"
        while str(context) not in templates()[operator]:
            operator = templates()[operator]["like"]
        return templates()[operator][str(context)].format(**values)

    def _simple(self) -> bool:
        """Whether an operator's own sentences hold: of points, with all that the choice sees."""
        return self._points and (self._pattern.where is None or self._found.operator in _PAIRED)

    def _memory(self, stores: Bound) -> str:
        """What is stored of each key, and for how long."""
        forgets, of = stores.forgets_micros, self._keys.words["of"]
        if stores.instances_max == 0:
            return f"Remembers a count{of}, for ever." if forgets is None else "Remembers nothing."
        until = ", for ever" if forgets is None else f", for {length(forgets)}"
        if isinstance(self._pattern.on, w.Window):
            if stores.pause_micros is not None:
                until = f", and forgets a key {length(stores.pause_micros)} after its last row"
            elif forgets is not None:
                until = ""
        return f"Remembers {self._kept(stores).format(**self._found.values, of=of)}{until}."

    def _kept(self, stores: Bound) -> str:
        """A text of what is stored, to be filled in."""
        pattern, texts = self._pattern, templates()[self._found.operator]
        if isinstance(pattern.on, w.Window):
            return texts["keeps"]
        filtered = pattern.where or pattern.selection or not _only_within(pattern.on)
        if pattern.context in _LATEST and self._points and not filtered:
            if "keeps" in texts and stores.instances_max == self._found.instances:
                return texts["keeps"]
            if "waits" in texts:
                return texts["waits"]
        if stores.instances_max is not None and stores.occurrences_max is not None:
            instances = counted(stores.instances_max, "instance")
            return f"at most {instances}{{of}} with {counted(stores.occurrences_max, 'occurrence')}"
        if pattern.context in (Context.RECENT, Context.CHRONICLE, Context.CUMULATIVE):
            return "the occurrences{of} that are not consumed yet"
        return "every occurrence{of} that may still match"


def _core(e: x.Expression) -> x.Expression:
    """The expression among whose instances the context chooses: filters leave some of them out."""
    while isinstance(e, x.Within | x.Minus | x.Labelled | x.Aperiodic):
        e = e.part
    return e


def _only_within(e: x.Expression) -> bool:
    """Whether what stands around the core remembers nothing."""
    while isinstance(e, x.Within | x.Labelled):
        e = e.part
    return not isinstance(e, x.Minus | x.Aperiodic)


def _points(found: Clause, rules: Collection[str]) -> bool:
    """Whether the operands are plain, and points: a rule's detection takes time."""
    return all(plain(e) and x.names_in(e).isdisjoint(rules) for e in found.operands)


def _text(found: Clause, keys: Mapping[str, str]) -> str:
    """A clause, with what filters it. keys: the words for its key."""
    when = templates()[found.operator]["when"]
    return "".join([when.format(**found.values, **keys), *found.filters])


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
            yield f"{name[0].upper()}{name[1:]} happens {_text(clause(inner, names), _NO_KEY)}."
        else:
            yield "Further parts: see the graph of `explain`."
            break
    for event, given in labels.items():
        yield f"{listed(given)} stand{'s' if len(given) == 1 else ''} for {event}."


_NO_KEY = dict.fromkeys(("each", "same", "per", "of_one", "of"), "")


class _Keys:
    """The key of a rule. words: it in the words of the templates; without a key they are empty.
    broadcast: the event types that have none."""

    def __init__(self, pattern: Pattern) -> None:
        self.words: Mapping[str, str] = _NO_KEY
        self.broadcast: tuple[str, ...] = ()
        if not pattern.key_names:
            return
        leaves = [e for e in pattern.on.walk() if isinstance(e, _LEAVES)]
        keyed = [isinstance(e, x.Name | x.Edge) and e.name in pattern.per for e in leaves]
        others = (leaf for leaf, has in zip(leaves, keyed, strict=True) if not has)
        self.broadcast = tuple(dict.fromkeys(f"`{format_expression(leaf)}`" for leaf in others))
        key = listed(pattern.key_names)
        each, same = f" for each {key}", f" for the same {key}"
        per = each if sum(keyed) == 1 else same
        words = {"each": each, "same": same, "per": per, "of_one": f" of one {key}"}
        self.words = {**words, "of": f" of each {key}"}


def _selected(selection: Selection) -> Mapping[str, str]:
    repeat = " What is left is paired again, until nothing matches." if selection.repeat else ""
    over = " It fires when the time of `within` is over." if selection.evaluate == "at_end" else ""
    return {
        "first": _TAKEN[selection.first],
        "then": _TAKEN[selection.then],
        "pairs": _PAIRS[selection.pairs],
        "repeat": repeat + over,
    }
