"""What is carried, in shares: one for each component of the event graph, and the driver's, one for
each stratum of its rules.

A share has the parts of its own nodes and known keys, and of the occurrences that these refer to.
Shares are stepped apart. Put together they are what one detector of all rules carries: a bucket may
be stepped by either.

A node of broadcasts may be in several shares. Then it is the same in all, but for what is of no use
any more: a share in which something happens drops that, another one does not. Where the rules of
one share that use it are parked, and those of another one are not, that share is without it.
An occurrence may be in several, ranked among others in each; where they meet it is ranked anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest

import numpy as np
import pyarrow as pa

from tidegate.engine.core.event_names import is_tick, shown_name
from tidegate.engine.core.state_parts import Shelf, loaded
from tidegate.engine.core.values import Carried, Int64
from tidegate.engine.detect.events.graph.graph import Graph
from tidegate.engine.detect.events.occurrences import order
from tidegate.engine.detect.events.occurrences.concatenation import stack
from tidegate.engine.detect.events.state.group import Group
from tidegate.engine.detect.events.state.held_back import held_for
from tidegate.engine.detect.events.state.partitions import (
    EVERY,
    Tables,
    count_of,
    due_of,
    marked,
    part_name,
    place,
    timers_of,
)
from tidegate.engine.detect.events.state.parts import Parts, stacked
from tidegate.engine.detect.events.state.tables import (
    SCHEMA,
    each_instance,
    each_once,
    flat,
    lists_in,
    numbers,
)

_OCCURRENCES, _APART, _NODE = "occ:", "apart:", "node:"
_SHARES = "shares"
"""The table that says what is of which share."""


class Sharing:
    """How what is carried is divided: a share for each graph."""

    def __init__(self, graphs: Sequence[Graph], digests: Sequence[str]) -> None:
        """`digests`: names of all shares but the last. What is kept apart is named by them."""
        self._graphs, self._digests = graphs, (*digests, "")
        self._names = [_names(graph) for graph in graphs]
        self._events = [frozenset().union(*graph.events.values()) for graph in graphs]
        count = Counter(n for own in self._names for n in own if n.startswith(_OCCURRENCES))
        self._several = frozenset(name for name, users in count.items() if users > 1)
        """The tables of occurrences to which more than one graph refers."""
        self._known = frozenset().union(*self._names)

    def divided(
        self, carried: Carried, asleep: Sequence[Collection[str]], shelf: Shelf | None = None
    ) -> list[Carried]:
        """The share of each graph. `asleep`: of each the nodes, by digest, that are not stepped
        (`Detector.asleep`). `shelf`: of the parts that lie in files; they are read where shares
        need what is in them. Raises as `Shelf.read`.

        What is of no graph is in the last share, but for occurrences: what a rule has detected
        refers to others, which are of another share."""
        tables, awake = Parts.of(carried.tables), self._awake(asleep)
        known = _shares_of(tables)
        owners = self._owners(tables, awake, known)
        if owners is None:
            tables = _met(tables, shelf)
        plain, apart = _split(tables)
        shares = []
        for own, graph, events, digest, owner in zip(
            awake, self._graphs, self._events, self._digests, owners or self._digests, strict=True
        ):
            groups = {
                whole: group
                for whole, group in plain.items()
                if whole in own
                or not (digest or whole in self._known or whole.startswith(_OCCURRENCES))
            }
            held = held_for(tables.rest, events)
            if not digest:
                others = {_SHARES, *held_for(tables.rest, frozenset().union(*self._events))}
                held |= {name: t for name, t in tables.rest.items() if name not in others}
            share = Parts(groups, held)
            if owners is None:
                share = _referred_to(share, graph, self._several)
            else:
                alone = {w: g for w, g in groups.items() if not self._met_by(w, owner, known)}
                theirs = {w: g for w, g in apart.get(owner, {}).items() if w in own}
                share = Parts({**alone, **theirs}, held)
            shares.append(Carried(share))
        return shares

    def beside_each_other(
        self, shares: Sequence[Carried], before: Sequence[Carried] = ()
    ) -> Carried:
        """`united`; occurrences do not meet. Tables of occurrences to which several graphs refer
        have names of their own for each share but the last. A table says of which share each of
        the others is: when rules come, several may refer to what one alone did."""
        each = [self._apart(*one) for one in zip(shares, self._digests, strict=True)]
        whole = Parts.of(united(each, before).tables)
        if len(self._graphs) == 1 or not whole.groups:
            return Carried(whole)
        rows = sorted(
            (digest, name)
            for share, digest in zip(shares, self._digests, strict=True)
            for name in Parts.of(share.tables).groups
            if not (digest and name in self._several)
        )
        columns = {"share": [row[0] for row in rows], "table": [row[1] for row in rows]}
        table = marked(pa.table(columns).replace_schema_metadata(SCHEMA), 1)
        return Carried(whole.beside({**whole.rest, _SHARES: table}))

    def _apart(self, share: Carried, digest: str) -> Carried:
        """A share whose tables of occurrences have names of its own, where others refer to them."""
        tables = Parts.of(share.tables)
        groups = {
            f"{_APART}{digest}:{whole}" if digest and whole in self._several else whole: group
            for whole, group in tables.groups.items()
        }
        return Carried(Parts(groups, tables.rest))

    def _owners(
        self,
        tables: Parts,
        awake: Sequence[frozenset[str]],
        known: Mapping[str, Collection[str]],
    ) -> list[str] | None:
        """By share the one that had its tables before: itself, or with other rules another. None:
        there is none, and shares cannot be made of tables without what is in them. `known`: see
        `_shares_of`.

        Example: rules come that look at one more event type. Their component has another digest
        then, and what was its own before lies under the old one."""
        plain, apart = _split(tables)
        several = self._several & plain.keys()
        if not (apart or several):
            return [*self._digests]
        if not several <= known.keys():
            return None
        found = []
        for names, digest in zip(awake, self._digests, strict=True):
            own = (n for n in names & plain.keys() if not n.startswith(_OCCURRENCES))
            able = [frozenset(known.get(name, ())) for name in own]
            both = frozenset.intersection(*able) if able else frozenset((digest,))
            if not both:
                return None
            found.append(digest if digest in both else min(both))
        return found

    def _met_by(self, whole: str, owner: str, known: Mapping[str, Collection[str]]) -> bool:
        """Whether a table has occurrences to which several graphs refer, of another share."""
        return whole in self._several and owner not in known[whole]

    def _awake(self, asleep: Sequence[Collection[str]]) -> list[frozenset[str]]:
        """The tables that each graph carries, without those that its own step leaves as they are
        and that of another one does not: of nodes of parked rules, and of keys that these alone
        know."""
        names = self._names
        if not any(asleep):
            return names
        left = list[set[str]]()
        for graph, own in zip(self._graphs, asleep, strict=True):
            known = {node.census for digest, node in graph.nodes.items() if digest not in own}
            left.append({f"node:{digest}" for digest in own} | (graph.censuses.keys() - known))
        stepped = frozenset().union(*(all_ - own for all_, own in zip(names, left, strict=True)))
        return [all_ - (own & stepped) for all_, own in zip(names, left, strict=True)]


def reunited(tables: Parts, shelf: Shelf | None) -> Parts:
    """Those tables that are cut by key, in which what was kept apart has met. They are in memory
    then."""
    if not any(whole.startswith(_APART) for whole in tables.groups):
        return tables.cut
    plain, apart = _split(Parts.of(loaded(tables.named(), shelf)))
    return Parts.of(united([Carried(Parts(own)) for own in (plain, *apart.values())]).tables)


def _met(tables: Parts, shelf: Shelf | None) -> Parts:
    """`reunited`, all in memory: what shares are made of that may not stay apart."""
    return Parts.of(loaded(reunited(tables, shelf).named(), shelf)).beside(tables.rest)


def _shares_of(tables: Parts) -> dict[str, set[str]]:
    """By table the shares that have it, as far as that is said; not what lies apart."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in tables.rest[_SHARES].to_pylist() if _SHARES in tables.rest else ():
        found[row["table"]].add(row["share"])
    return found


def _split(tables: Parts) -> tuple[dict[str, Group], dict[str, dict[str, Group]]]:
    """The tables of all, and by digest those that are kept apart, as they are named there."""
    plain: dict[str, Group] = {}
    apart: dict[str, dict[str, Group]] = defaultdict(dict)
    for whole, group in tables.groups.items():
        if whole.startswith(_APART):
            digest, _, own = whole.removeprefix(_APART).partition(":")
            apart[digest][own] = group
        else:
            plain[whole] = group
    return plain, apart


def _referred_to(share: Parts, graph: Graph, both: frozenset[str]) -> Parts:
    """Tables without occurrences, in those of `both`, that nothing else in them refers to."""
    if both.isdisjoint(share.groups):
        return share
    tables = share.named()
    named: dict[str, list[Int64]] = defaultdict(list)
    for name, table in tables.items():
        whole, partition = place(name)
        if "numbers" not in table.column_names:
            continue
        (_, time), (_, number) = (lists_in(table, column) for column in ("times", "numbers"))
        if whole.startswith(_NODE):
            if whole[5:] not in graph.nodes:
                continue  # of a rule that begins anew: nothing of it is carried on
            events = np.array([*graph.nodes[whole[5:]].roles])[lists_in(table, "roles")[1]]
        else:
            events = flat(table, "events").to_numpy(zero_copy_only=False)
        for event in np.unique(events):
            mine = np.stack([time, number], axis=1)[events == event]
            named[part_name(_OCCURRENCES + str(event), partition)].append(mine)
    found = dict(tables)
    for name in tables:
        if place(name)[0] in both:
            table = tables[name]
            kept = {*map(tuple, np.concatenate(named[name]).tolist())} if name in named else ()
            columns = (numbers(table, name).tolist() for name in ("time", "number"))
            rows = zip(*columns, strict=True)
            found[name] = table.filter(pa.array([row in kept for row in rows], pa.bool_()))
            if not len(found[name]):
                del found[name]
    return Parts.of({**found, **share.rest})


def _names(graph: Graph) -> frozenset[str]:
    """The tables that a graph carries."""
    roles = {role for node in graph.nodes.values() for role in node.roles}
    return frozenset(
        {f"node:{digest}" for digest in graph.nodes}
        | {*graph.censuses}
        | {_OCCURRENCES + role for role in roles}
    )


def united(shares: Sequence[Carried], before: Sequence[Carried] = ()) -> Carried:
    """What all shares carry. Of a node in several shares what each of them carries: each knows the
    occurrences of that. `before`: what they carried before the step; what one of them has dropped
    is not in all."""
    groups: dict[str, list[Group]] = defaultdict(list)
    rest: dict[str, pa.Table] = {}
    for share, given in zip_longest(shares, before, fillvalue=Carried()):
        tables = Parts.of(share.tables)
        rest |= tables.rest
        for whole, group in tables.groups.items():
            groups[whole].append(group)
        for whole in Parts.of(given.tables).groups.keys() - tables.groups.keys():
            if whole.startswith(_NODE):
                groups[whole].append(Group())
    alone = {whole: some[0] for whole, some in groups.items() if len(some) == 1 and some[0]}
    parts: dict[str, list[pa.Table]] = defaultdict(list)
    for whole, some in groups.items():
        for group in () if whole in alone else some:
            for partition in group.partitions.tolist():
                parts[part_name(whole, partition)].append(group[partition])
    met = [n for n, some in parts.items() if n.startswith(_OCCURRENCES) and len(some) > 1]
    joined = {name: _joined(name, parts[name]) for name in met}
    kept = {
        name: min(some, key=len) if name.startswith(_NODE) else some[0]
        for name, some in parts.items()
        if not name.startswith(_NODE) or len(some) == len(groups[place(name)[0]])
    }
    tables = Parts(alone, rest).with_(kept | joined)
    for shown in {_shown(place(name)[0]) for name in met} - {None}:
        same = {w: group for w, group in tables.groups.items() if _shown(w) == shown}
        tables = tables.with_(_ranked(Parts(same).named()))
    return Carried(tables)


def _shown(whole: str) -> str | None:
    """The name that the occurrences of a table go by; None: they are none, or ticks, which have no
    rank."""
    event = whole.removeprefix(_OCCURRENCES)
    return None if event == whole or is_tick(event) else shown_name(event)


def _joined(name: str, tables: Sequence[pa.Table]) -> pa.Table:
    """The occurrences of one part, each once."""
    return each_once(place(name)[0].removeprefix(_OCCURRENCES), tables).replace_schema_metadata(
        tables[0].schema.metadata
    )


def _ranked(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Occurrences of one name, ranked anew among those of their instant, whatever their partition
    is. They have all of their parameters with them."""
    if any("events" in table.column_names for table in tables.values()):
        return {}  # a rule's detections: they are of one share
    time = np.concatenate([numbers(table, "time") for table in tables.values()])
    own = [[n for n in table.column_names if n.startswith("p:")] for table in tables.values()]
    parameters = stack(t.select(names) for t, names in zip(tables.values(), own, strict=True))
    rank = order.refine(time, parameters)
    found, first = {}, 0
    for name, table in tables.items():
        mine = pa.array(rank[first : first + len(table)])
        first += len(table)
        found[name] = table.set_column(table.column_names.index("rank"), "rank", mine)
    return found


def after_tasks(share: Carried, left: Sequence[tuple[Tables, Collection[str]]]) -> Carried:
    """A share after its tasks: of each, the tables that it has changed, and the names of those that
    are gone. Each has left of every key what its own keys need; what one needs stays.

    Example: `(a ; b) without t` per k, two tasks, where t is a broadcast. No key of the first has
    an a from before the t: it drops the t. The second has one, and changes nothing. So the t stays.
    """
    before = Parts.of(share.tables)
    every, seen = before.named([EVERY]), set[str]()
    of_keys = {name for _, names in left for name in names if place(name)[1] != EVERY}
    changed = [Parts.of(tables) for tables, _ in left]
    for own, (_, gone) in zip(changed, left, strict=True):
        seen |= {*own.named([EVERY]), *gone} - of_keys
    after = stacked(changed).over(before.with_({}, of_keys))
    kept = {}
    for name in seen:
        some = [
            tables.get(name, None if name in gone else every.get(name))
            for tables, (_, gone) in zip(changed, left, strict=True)
        ]
        # tasks that had nothing to do have left one and the same table
        if there := {id(table): table for table in some if table is not None}:
            kept[name] = _needed(name, [*there.values()])
    return Carried(after.with_(kept, seen - kept.keys()))


def _needed(name: str, versions: Sequence[pa.Table]) -> pa.Table:
    """What is in any version of a part."""
    first, *others = versions
    if all(other.equals(first) for other in others):
        return first
    if name.startswith(_OCCURRENCES):
        return _joined(name, versions)
    due, timers = min(map(due_of, versions)), max(map(timers_of, versions))
    return marked(each_instance(versions), count_of(versions), due, timers)
