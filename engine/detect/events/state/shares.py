"""What is carried, in shares: one for each component of the event graph, and the driver's.

A share has the parts of its own nodes and known keys, and of the occurrences that these refer to.
Shares are stepped apart. Put together they are what one detector of all rules carries: a bucket may
be stepped by either.

A node of broadcasts may be in several shares. Then it is the same in all in which it was stepped.
An occurrence may be in several, ranked among others in each; where they meet it is ranked anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa

from tidegate.engine.core.event_names import is_tick, shown_name
from tidegate.engine.core.state_parts import Shelf, loaded
from tidegate.engine.core.values import Carried, Int64
from tidegate.engine.detect.events.graph.graph import Graph
from tidegate.engine.detect.events.occurrences import order
from tidegate.engine.detect.events.occurrences.concatenation import stack
from tidegate.engine.detect.events.state.partitions import EVERY, Tables, part_name, place
from tidegate.engine.detect.events.state.tables import each_once, flat, lists_in, numbers

_OCCURRENCES, _APART = "occ:", "apart:"


def several(graphs: Sequence[Graph]) -> frozenset[str]:
    """The tables of occurrences to which more than one graph refers."""
    seen = Counter(n for graph in graphs for n in _names(graph) if n.startswith(_OCCURRENCES))
    return frozenset(name for name, count in seen.items() if count > 1)


def divided(
    carried: Carried, graphs: Sequence[Graph], digests: Sequence[str], both: Collection[str]
) -> list[Carried]:
    """The share of each graph; the last is the driver's: what is held back is in that, and what is
    of no graph. `digests`: of the others. What is kept apart is of theirs. `both`: `several`."""
    names = [_names(graph) for graph in graphs]
    known = frozenset().union(*names)
    plain, apart = _split(carried.tables)
    shares = []
    for own, graph, digest in zip(names, graphs, [*digests, ""], strict=True):
        tables = {
            name: table
            for name, table in plain.items()
            if place(name)[0] in own or (not digest and place(name)[0] not in known)
        }
        if not apart:
            tables = _referred_to(tables, graph, both)
        elif digest:
            tables = {n: t for n, t in tables.items() if place(n)[0] not in both}
            tables |= apart.get(digest, {})
        shares.append(Carried(tables))
    return shares


def kept_apart(share: Carried, digest: str, both: Collection[str]) -> Carried:
    """A share whose tables of occurrences have names of its own, where others refer to `both`."""
    return Carried(
        {
            f"{_APART}{digest}:{name}" if place(name)[0] in both else name: table
            for name, table in share.tables.items()
        }
    )


def may_stay_apart(tables: Tables, digests: Collection[str], both: Collection[str]) -> bool:
    """Whether shares can be made of tables as they are, without what is in them: all that is kept
    apart is of these digests, or nobody refers to what others do."""
    plain, apart = _split(tables)
    if apart:
        return apart.keys() <= {*digests}
    return not any(n.startswith(_OCCURRENCES) and place(n)[0] in both for n in plain)


def reunited(tables: Tables, shelf: Shelf | None) -> Tables:
    """The tables in which what was kept apart has met. They are in memory then."""
    if not any(name.startswith(_APART) for name in tables):
        return tables
    plain, apart = _split(loaded(tables, shelf))
    return united([Carried(plain), *map(Carried, apart.values())]).tables


def _split(tables: Tables) -> tuple[dict[str, pa.Table], dict[str, dict[str, pa.Table]]]:
    """The tables of all, and by digest those that are kept apart, as they are named there."""
    plain: dict[str, pa.Table] = {}
    apart: dict[str, dict[str, pa.Table]] = defaultdict(dict)
    for name, table in tables.items():
        if name.startswith(_APART):
            digest, _, own = name.removeprefix(_APART).partition(":")
            apart[digest][own] = table
        else:
            plain[name] = table
    return plain, apart


def _referred_to(tables: Tables, graph: Graph, both: Collection[str]) -> dict[str, pa.Table]:
    """Tables without occurrences, in those of `both`, that nothing else in them refers to."""
    if not any(n.startswith(_OCCURRENCES) and place(n)[0] in both for n in tables):
        return dict(tables)
    named: dict[str, list[Int64]] = defaultdict(list)
    for name, table in tables.items():
        whole, partition = place(name)
        if "numbers" not in table.column_names:
            continue
        (_, time), (_, number) = (lists_in(table, column) for column in ("times", "numbers"))
        if whole.startswith("node:"):
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
    return found


def _names(graph: Graph) -> frozenset[str]:
    """The tables that a graph carries."""
    roles = {role for node in graph.nodes.values() for role in node.roles}
    return frozenset(
        {f"node:{digest}" for digest in graph.nodes}
        | {*graph.censuses}
        | {_OCCURRENCES + role for role in roles}
    )


def united(shares: Sequence[Carried], asleep: Sequence[Collection[str]] = ()) -> Carried:
    """What all shares carry. `asleep`: of each share the nodes, by digest, that were not stepped
    (`Detector.asleep`): another one knows better."""
    parts: dict[str, list[pa.Table]] = defaultdict(list)
    late: dict[str, pa.Table] = {}
    for number, share in enumerate(shares):
        old = {f"node:{digest}" for digest in asleep[number]} if asleep else set()
        for name, table in share.tables.items():
            if place(name)[0] in old:
                late.setdefault(name, table)
            else:
                parts[name].append(table)
    tables = {**late, **{name: some[0] for name, some in parts.items()}}
    met = [n for n, some in parts.items() if n.startswith(_OCCURRENCES) and len(some) > 1]
    for name in met:
        tables[name] = _joined(name, parts[name])
    for shown in {shown_name(_event(name)) for name in met}:
        alike = {n: t for n, t in tables.items() if n.startswith(_OCCURRENCES)}
        alike = {n: t for n, t in alike.items() if shown_name(_event(n)) == shown}
        tables |= _ranked({n: t for n, t in alike.items() if not is_tick(_event(n))})
    return Carried(tables, frozenset(tables))


def _event(name: str) -> str:
    return place(name)[0].removeprefix(_OCCURRENCES)


def _joined(name: str, tables: Sequence[pa.Table]) -> pa.Table:
    """The occurrences of one part, each once."""
    return each_once(_event(name), tables).replace_schema_metadata(tables[0].schema.metadata)


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


def of_task(share: Carried, task: int, tasks: int) -> Tables:
    """The parts of a task's partitions, with that of every key. Partition p is of task
    p % tasks."""
    found = ((name, place(name)[1], table) for name, table in share.tables.items())
    return {name: table for name, p, table in found if p == EVERY or p % tasks == task}


def after_tasks(share: Carried, left: Sequence[tuple[Tables, Collection[str]]]) -> Carried:
    """A share after its tasks: of each, the tables that it has changed, and the names of those that
    are gone. Each has changed the parts of every key in the same way."""
    gone = frozenset[str]().union(*(names for _, names in left))
    tables = {name: table for name, table in share.tables.items() if name not in gone}
    every: dict[str, list[pa.Table]] = defaultdict(list)
    for changed, _ in left:
        for name, table in changed.items():
            if place(name)[1] == EVERY:
                every[name].append(table)
            else:
                tables[name] = table
    for name, some in every.items():
        tables[name] = _joined(name, some) if name.startswith(_OCCURRENCES) else some[0]
    return Carried(tables)
