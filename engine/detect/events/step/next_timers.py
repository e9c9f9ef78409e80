"""The next timers of what is carried, as people read them: when, of which rules, for which key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.engine.core.event_names import EventKey, with_edges, without_own
from tidegate.engine.core.text.times import python_values
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.graph import Graph, Node
from tidegate.engine.detect.events.graph.timers import Timed
from tidegate.engine.detect.events.state.partitions import place
from tidegate.engine.detect.events.state.tables import read_spans
from tidegate.engine.detect.events.step.compile import compile_book
from tidegate.rules.analysis.graph import lateness_micros
from tidegate.rules.model import Rulebook


@dataclass(frozen=True, slots=True)
class Upcoming:
    """A timer at `at`, microseconds, of some rules and one key (none: of every key)."""

    at: int
    rules: tuple[str, ...]
    key: Mapping[str, Any]


def upcoming(
    book: Rulebook, activations: Mapping[str, int], parts: Iterable[tuple[str, pa.Table]], most: int
) -> list[Upcoming]:
    """The first timers, at most so many, in some parts of carried tables, given by name."""
    running, graph = _compiled(book, activations)
    found = []
    for name, table in parts:
        node = graph.nodes.get(place(name)[0].removeprefix("node:"))
        if node is not None and isinstance(node.shape, Timed):
            rules = tuple(_rules_of(graph, node))
            keys = next(
                (running.rules[r].pattern.key_names for r in rules if r in running.rules), ()
            )
            row, due = _due(node, node.shape, table)
            first = np.argsort(due, kind="stable")[:most]
            of_each = _keys(table, row[first], keys)
            found += [
                Upcoming(at, rules, key)
                for at, key in zip(due[first].tolist(), of_each, strict=True)
            ]
    return sorted(found, key=lambda timer: (timer.at, timer.rules, str(timer.key)))[:most]


def timed_nodes(book: Rulebook, activations: Mapping[str, int]) -> list[str]:
    """The digests of the nodes that may have timers."""
    _, graph = _compiled(book, activations)
    return [digest for digest, node in graph.nodes.items() if isinstance(node.shape, Timed)]


def _compiled(book: Rulebook, activations: Mapping[str, int]) -> tuple[Rulebook, Graph]:
    """The active rules as they run, and their event graph."""
    active = {name: rule for name, rule in book.rules.items() if name in activations}
    book = without_own(with_edges(replace(book, rules=active), {*book.events, *active}))
    return compile_book(book, activations, lateness_micros(book))


def _rules_of(graph: Graph, node: Node) -> Iterator[str]:
    for rule, root in graph.roots.items():
        if EventKey.of(rule).event == rule and any(
            below.digest == node.digest for below in root.walk()
        ):
            yield rule


def _keys(table: pa.Table, row: Int64, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """The keys of some rows, by name."""
    columns = {f"k{n}": name for n, name in enumerate(keys) if f"k{n}" in table.column_names}
    shown = table.select([*columns]).take(pa.array(row))
    values = {name: python_values(shown.column(k)) for k, name in columns.items()}
    return [{name: of_key[n] for name, of_key in values.items()} for n in range(len(row))]


def _due(node: Node, shape: Timed, table: pa.Table) -> tuple[Int64, Int64]:
    """The rows that have a timer, and when it is due."""
    row = np.flatnonzero(table.column("slot").to_numpy() == 0)
    at = shape.due(read_spans(node, table))
    if len(at) == len(row):
        return row, at
    single = [shape.due(read_spans(node, table.slice(n, 1))) for n in row.tolist()]
    return np.repeat(row, [len(due) for due in single]), np.concatenate([at[:0], *single])
