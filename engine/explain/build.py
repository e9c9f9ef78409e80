"""A rulebook -> what `explain` says of it. Needs neither Spark nor the detector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256

from engine.explain.model import Explained, Node, Rule, Stores, Warned
from engine.explain.triggers import cycles, triggers, written
from rules import expression as x
from rules.bound import Bound, of_rule
from rules.durations import format_duration
from rules.errors import Problem
from rules.formatter import format_expression
from rules.model import ClockEvent, Context, Rulebook
from rules.model import Rule as Written
from rules.normalise import normalise
from rules.parser import unlabelled
from rules.stored import Stored, stored

_OPERATORS: Mapping[type[x.Expression], str] = {
    x.Or: "or",
    x.And: "and",
    x.AnyOf: "any",
    x.AnyRepeat: "any",
    x.Seq: ";",
    x.Minus: "without",
    x.Within: "within",
    x.Not: "not",
    x.Aperiodic: "A",
    x.AperiodicStar: "A*",
    x.Periodic: "P",
    x.PeriodicStar: "P*",
    x.Plus: "+",
    x.Nth: "[i]",
    x.Every: "every",
    x.BeginOf: "begin_of",
    x.EndOf: "end_of",
    x.Clock: "at",
    x.Cron: "cron",
}


def build(book: Rulebook, only: str | None = None) -> Explained:
    """Everything, or what belongs to the rule named `only`: its nodes, with those of rules that it
    uses as events, and the edges from and to it."""
    graph = _Graph(book)
    rules = [_rule(rule, book, graph) for rule in book.rules.values()]
    edges = tuple(triggers(book))
    nodes = tuple(graph.nodes.values())
    loops = cycles(edges)
    warnings = [*book.warnings, *_never_forget(book)]
    if only is not None:
        rules = [rule for rule in rules if rule.name == only]
        kept = graph.below(rules[0].root)
        nodes = tuple(node for node in nodes if node.id in kept)
        edges = tuple(edge for edge in edges if only in (edge.rule, edge.triggers))
        loops = tuple(loop for loop in loops if only in loop)
        warnings = [w for w in warnings if w.place.path.split(".")[:2] == ["rules", only]]
    said = tuple(
        Warned(w.code, w.place.line, w.place.column, w.place.path, w.message, w.hint)
        for w in warnings
    )
    return Explained(book.name, tuple(rules), nodes, edges, loops, said)


class _Graph:
    """The nodes of all rules' normal forms, operands first; equal ones with equal keys are one."""

    def __init__(self, book: Rulebook) -> None:
        self.book = book
        self.nodes: dict[str, Node] = {}
        self._roots: dict[str, str] = {}
        for rule in book.rules.values():
            self.root(rule)

    def root(self, rule: Written) -> str:
        """The id of a rule's whole expression."""
        if rule.name not in self._roots:
            tree = stored(normalise(unlabelled(rule.on)), self.book.rules)
            self._roots[rule.name] = self._add(tree, rule)
        return self._roots[rule.name]

    def below(self, root: str) -> set[str]:
        found: set[str] = set()
        ahead = [root]
        while ahead:
            id_ = ahead.pop()
            found.add(id_)
            ahead += self.nodes[id_].operands
        return found

    def _add(self, tree: Stored, rule: Written) -> str:
        operands = tuple(self._add(operand, rule) for operand in tree.operands)
        names = {n.name for n in tree.node.walk() if isinstance(n, x.Name)}
        keys = {name: columns for name, columns in rule.per.items() if name in names}
        text = format_expression(tree.node)
        operator = _OPERATORS.get(type(tree.node), "event")
        horizon = tree.horizon_micros if tree.operands else None
        if isinstance(tree.node, x.Name) and tree.node.name in self.book.rules:
            operator, operands = "rule", (self.root(self.book.rules[tree.node.name]),)
        digest = sha256(repr((text, sorted(keys.items()), horizon)).encode()).hexdigest()[:12]
        known = self.nodes.get(digest)
        holders = (*(known.rules if known else ()), rule.name)
        self.nodes[digest] = Node(
            digest,
            operator,
            text,
            operands,
            tuple(dict.fromkeys(holders)),
            keys,
            horizon,
            tree.instances.maximum,
            tree.occurrences.maximum,
            None if tree.instances.endless else tree.instances.span_micros,
        )
        return digest


def _rule(rule: Written, book: Rulebook, graph: _Graph) -> Rule:
    others = [context for context in Context if context is not rule.context]
    stores = {
        str(rule.context): _stores(of_rule(rule, book.rules)),
        **{str(c): _stores(of_rule(rule, book.rules, c)) for c in others},
    }
    return Rule(
        rule.name,
        format_expression(rule.on),
        format_expression(normalise(rule.on)),
        str(rule.context),
        rule.key_names,
        rule.enabled,
        graph.root(rule),
        stores,
        tuple(dict.fromkeys(_timers(rule.on, book))),
        tuple(sorted(written(rule, book))),
    )


def _stores(found: Bound) -> Stores:
    return Stores(
        found.instances_max,
        found.occurrences_max,
        found.span_micros,
        found.forgets_micros,
        found.why,
        found.advice,
    )


def _timers(on: x.Expression, book: Rulebook) -> Iterator[str]:
    """What happens at an instant that no event tells."""
    for node in on.walk():
        match node:
            case x.Clock() | x.Cron():
                yield format_expression(node)
            case x.Name(name=name) if isinstance(event := book.events.get(name), ClockEvent):
                yield f"{name}: {format_expression(event.expression)} ({event.timezone})"
            case x.Plus(base=base, duration=duration):
                yield f"{format_duration(duration)} after each `{format_expression(base)}`"
            case x.Seq(first=opener, then=x.Own(duration=duration)):
                yield f"{format_duration(duration)} after each `{format_expression(opener)}`"
            case x.Periodic(opener=opener) | x.PeriodicStar(opener=opener):
                period = format_duration(node.period)
                yield f"every {period} after each `{format_expression(opener)}`"
        match node:
            case (
                x.Not(opener=opener, closer=x.Own(duration=duration))
                | x.AperiodicStar(opener=opener, closer=x.Own(duration=duration))
                | x.Periodic(opener=opener, closer=x.Own(duration=duration))
                | x.PeriodicStar(opener=opener, closer=x.Own(duration=duration))
            ):
                yield f"{format_duration(duration)} after each `{format_expression(opener)}`"


def _never_forget(book: Rulebook) -> Iterator[Problem]:
    """G13: keyed rules that keep something of every key for ever, bounded as it may be."""
    for rule in book.rules.values():
        found = of_rule(rule, book.rules)
        if rule.key_names and found.exists and not found.forgets:
            message = f"{rule.name} never forgets: it keeps something of every key it has seen"
            yield Problem("never-forgets", message, rule.place, "; ".join(found.advice))
