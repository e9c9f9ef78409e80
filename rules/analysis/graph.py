"""Directed graphs of names: which rule or script uses which event type, rule or script; cycles; the
lateness that users inherit; the order of rules that fire in one bucket (G15)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tidegate.rules.errors import Place
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import (
    Change,
    Rule,
    Rulebook,
    Script,
    ScriptEvent,
    SignalEvent,
    TableEvent,
)

if TYPE_CHECKING:
    from tidegate.rules.analysis.draft import Draft


T = TypeVar("T", bound=Hashable)
CYCLES_MAX = 20  # that are shown among names which can all reach each other


def tangles(follows: Mapping[T, Collection[T]]) -> Iterator[tuple[T, ...]]:
    """The strongly connected components, Tarjan's algorithm without recursion: O(nodes + edges).

    `follows`: by node, those that an edge leads to. A component of one node is given only if an
    edge leads from the node to itself.
    """
    number: dict[T, int] = {}  # in order of arrival
    low: dict[T, int] = {}  # the lowest number that is reached and still open
    open_: dict[T, None] = {}
    for root in follows:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        open_[root] = None
        way = [(root, iter(follows[root]))]
        while way:
            node, ahead = way[-1]
            for target in ahead:
                if target not in number:
                    number[target] = low[target] = len(number)
                    open_[target] = None
                    way.append((target, iter(follows.get(target, ()))))
                    break
                if target in open_:
                    low[node] = min(low[node], number[target])
            else:
                way.pop()
                if way:
                    above = way[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == number[node]:
                    yield from _closed(node, open_, follows)


def _closed(
    node: T, open_: dict[T, None], follows: Mapping[T, Collection[T]]
) -> Iterator[tuple[T, ...]]:
    """Take the component that began with `node` off the open nodes."""
    found = []
    while node in open_:
        found.append(open_.popitem()[0])
    if len(found) > 1 or node in follows.get(node, ()):
        yield tuple(found)


def cycles(follows: Mapping[str, Collection[str]]) -> Iterator[tuple[str, ...]]:
    """The first cycles of each tangle, from a name to itself, in the order of `follows`.

    `follows`: by name, those that an edge leads to.
    """
    at = {name: number for number, name in enumerate(follows)}
    found = [sorted(tangle, key=at.__getitem__) for tangle in tangles(follows)]
    for tangle in sorted(found, key=lambda names: at[names[0]]):
        inside = {*tangle}
        yield from _of(
            {name: [other for other in follows[name] if other in inside] for name in tangle}, at
        )


def _of(follows: dict[str, list[str]], at: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """The first cycles among names all of which can reach each other."""
    for _ in range(CYCLES_MAX):
        try:
            TopologicalSorter(follows).prepare()
            return
        except CycleError as error:
            cycle = list(reversed(error.args[1]))
        first = min(cycle[:-1], key=at.__getitem__)
        turned = cycle.index(first)
        yield (*cycle[turned:-1], *cycle[:turned], first)
        del follows[first]  # breaks it, to find the next one


def used_in(on: x.Expression, rules: Collection[str]) -> dict[str, None]:
    """The event types and rules that an expression names, in the order of its text. `end_of r`
    names the action of rule r, not the rule; `resolved r` names the rule."""
    return {
        node.name: None
        for node in on.walk()
        if isinstance(node, x.Name | x.Resolved)
        or (isinstance(node, x.Edge) and node.name not in rules)
    }


def uses_of(of: Rule | Script, rules: Collection[str]) -> dict[str, None]:
    """The event types and rules that a rule or script uses."""
    if isinstance(of, Script):
        return dict.fromkeys(each.event for each in of.inputs.values())
    return used_in(of.pattern.on, rules)


def users_of(event: str, book: Rulebook) -> Iterator[Rule | Script]:
    """The scripts and rules that use an event type or rule."""
    every: tuple[Rule | Script, ...] = (*book.scripts.values(), *book.rules.values())
    return (of for of in every if event in uses_of(of, book.rules))


def makers(names: Iterable[str], book: Rulebook | Draft) -> Iterator[Rule | Script]:
    """The scripts and rules that raise the events of these names."""
    for name in names:
        event = book.events.get(name)
        if isinstance(event, ScriptEvent) and event.script in book.scripts:
            yield book.scripts[event.script]
        elif name in book.rules:
            yield book.rules[name]


def in_order(book: Rulebook) -> Iterator[Rule | Script]:
    """All rules and scripts, each after those that it uses."""
    every: dict[str, Rule | Script] = {**book.rules, **book.scripts}
    uses = {
        name: [maker.name for maker in makers(uses_of(of, book.rules), book)]
        for name, of in every.items()
    }
    return (every[name] for name in TopologicalSorter(uses).static_order())


class Stratum(NamedTuple):
    """Scripts, each after those that it uses, and the rules that are detected after them. `used`:
    the same rules, and all rules that they use."""

    scripts: tuple[str, ...]
    rules: tuple[str, ...]
    used: tuple[str, ...]


def strata(book: Rulebook) -> tuple[Stratum, ...]:
    """The enabled scripts and rules in the order in which they are stepped. Scripts of a stratum
    take what rules of the strata before detect. There is one at least, and no stratum but the last
    is without a rule.

    Example: script `s` takes what rule `r` detects, rule `q` looks at what `s` emits. `r` is of the
    first stratum, `s` and `q` are of the second.
    """
    level: dict[str, int] = {}
    for one in in_order(book):
        if not one.enabled:
            continue
        level[one.name] = 0
        for maker in makers(uses_of(one, book.rules), book):
            if maker.enabled:
                after = isinstance(one, Script) and isinstance(maker, Rule)
                level[one.name] = max(level[one.name], level[maker.name] + after)

    def of(named: Iterable[str], number: int) -> tuple[str, ...]:
        return tuple(name for name in named if level.get(name) == number)

    def below(name: str) -> list[str]:
        return [m.name for m in makers(uses_of(book.rules[name], book.rules), book)
                if isinstance(m, Rule)]  # fmt: skip

    found = []
    for number in range(max(level.values(), default=0) + 1):
        rules = of(book.rules, number)
        used = reached(rules, below)
        scripts = tuple(name for name in of(level, number) if name in book.scripts)
        found.append(Stratum(scripts, rules, tuple(n for n in book.rules if n in used)))
    return tuple(found)


def reached(names: Iterable[T], follows: Callable[[T], Iterable[T]]) -> dict[T, None]:
    """Names, and all names that edges lead to from them. `follows`: the next names of one."""
    found: dict[T, None] = {}
    ahead = [*names]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found[name] = None
            ahead += follows(name)
    return found


def made_of(names: Iterable[str], book: Rulebook) -> dict[str, None]:
    """Rules or scripts, and all that they are made of: event types, scripts, the rules that they
    use, and those of whose actions they see the begin or end."""

    def below(name: str) -> list[str]:
        of = book.rules.get(name) or book.scripts.get(name)
        if of is None:
            return [maker.name for maker in makers([name], book)]
        edges = of.pattern.on.walk() if isinstance(of, Rule) else ()
        return [*uses_of(of, book.rules), *(n.name for n in edges if isinstance(n, x.Edge))]

    return reached(names, below)


def table_events(rulebook: Rulebook) -> Iterator[TableEvent]:
    """Every event type that changes of a table raise. A signal with `from_table:` is raised by the
    rows inserted there: its fields are their columns."""
    for event in rulebook.events.values():
        if isinstance(event, TableEvent):
            yield event
        elif isinstance(event, SignalEvent) and event.from_table is not None:
            yield TableEvent(
                event.name,
                event.place,
                Change.INSERT,
                event.from_table,
                where=event.where,
                where_place=event.where_place,
                columns={field: field for field in event.fields},
            )


def sample_texts(rulebook: Rulebook, rule: Rule) -> Iterator[tuple[str, Place]]:
    """The samples of the ticks among a rule's constituents, through rules that it uses: entries of
    `samples:`, or texts of their own."""
    for node in rule.pattern.on.walk():
        if isinstance(node, x.Periodic | x.PeriodicStar) and node.sample is not None:
            place = rulebook.sample_places.get(node.sample, rule.place)
            yield rulebook.samples.get(node.sample, node.sample), place
        elif isinstance(node, x.Name) and node.name in rulebook.rules:
            yield from sample_texts(rulebook, rulebook.rules[node.name])


def lateness_micros(book: Rulebook) -> Mapping[str, int]:
    """How far each rule and script runs behind the watermark, in whole milliseconds; rules and
    scripts that do not are left out. It is the largest lateness of the event types over event time
    that it uses, directly or through other rules and scripts.

    Example: `placed` has `time: at, lateness: 10 min` and `paid` has none; `placed ; paid` runs ten
    minutes behind, and a rule over `paid` alone does not.
    """
    found: dict[str, int] = {}
    for of in in_order(book):
        used = uses_of(of, book.rules)
        events = (book.events.get(name) for name in used)
        timed = (event for event in events if isinstance(event, TableEvent) and event.time)
        late = [event.lateness_micros for event in timed]
        late += [found[each.name] for each in makers(used, book) if each.name in found]
        if late:
            found[of.name] = max(late)
    return {name: -(-micros // 1_000) * 1_000 for name, micros in found.items()}


def edges(rules: Mapping[str, Rule]) -> Iterator[tuple[str, str]]:
    """(earlier, later) of every `precedes` and `follows`, as written."""
    for rule in rules.values():
        yield from ((rule.name, later) for later in rule.precedence.precedes)
        yield from ((earlier, rule.name) for earlier in rule.precedence.follows)


def later_ones(rules: Mapping[str, Rule]) -> dict[str, frozenset[str]]:
    """By rule, all rules that come after it; rules that precede none are left out.

    It is the transitive closure of `precedes` and `follows`, a partial order if there is no cycle.
    """
    direct: dict[str, list[str]] = {}
    for earlier, later in edges(rules):
        direct.setdefault(earlier, []).append(later)
    return {
        name: frozenset(reached(after, lambda other: direct.get(other, ())))
        for name, after in direct.items()
    }


def stages(fired: Collection[Rule], later: Mapping[str, Collection[str]]) -> dict[str, int]:
    """The stage of each rule that fired. Rules of one stage may overlap; the stages run one after
    the other.

    `later`: `later_ones` of the whole rulebook, so that the order holds through rules that did not
    fire. Of the rules that may come next, those of the highest priority do. A rule has at least the
    priority of the rules that it precedes; of equals, a higher priority of its own comes first.

    Example: c precedes b, b has priority 1, a and c have none: {c: 0, b: 1, a: 2}. The rule c takes
    the priority of b, which it precedes; so both come before a.
    """
    own = {rule.name: rule.precedence.priority for rule in fired}
    ahead = {name: [n for n in later.get(name, ()) if n in own] for name in own}
    rank = {name: (-max(own[n] for n in (name, *ahead[name])), -own[name]) for name in own}
    order = TopologicalSorter(dict.fromkeys(own, ()))
    for name, names in ahead.items():
        for following in names:
            order.add(following, name)
    order.prepare()
    ready: list[tuple[tuple[int, int], str]] = []
    found: dict[str, int] = {}
    stage = 0
    while order.is_active():
        for name in order.get_ready():
            heappush(ready, (rank[name], name))
        here, first = [], ready[0][0]
        while ready and ready[0][0] == first:
            here.append(heappop(ready)[1])
        found |= dict.fromkeys(here, stage)
        order.done(*here)
        stage += 1
    return found
