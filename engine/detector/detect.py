"""Detection over a table, without an engine: `tidegate.detect`."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa

from tidegate import rules
from tidegate.engine.detector import listing, result
from tidegate.engine.detector.clocks import clock_batches
from tidegate.engine.detector.comparable import incomparable
from tidegate.engine.detector.detector import FOREVER, Detector
from tidegate.engine.detector.edges import BEGIN, begun, edge_micros
from tidegate.engine.detector.log import Log, read_log, wrong
from tidegate.engine.detector.walk.found import Walked
from tidegate.engine.detector.walk.restricted import walk_restricted
from tidegate.engine.detector.walk.route import Route, route, walks
from tidegate.engine.values import Batch, Carried
from tidegate.rules.model import ClockEvent, Rule, Rulebook
from tidegate.rules.nearest import did_you_mean
from tidegate.rules.unbuilt import SIMULATED


def detect(rulebook: str | os.PathLike[str] | Rulebook, occurrences: pa.Table) -> pa.Table:
    """Every detection of every enabled rule over a table of occurrences, without Spark or store.

    `rulebook`: a path, YAML text or a `Rulebook`. `occurrences`, in any order: `event` (string or
    dictionary), `time` (int64 microseconds since the epoch, or a timestamp) and the parameters as
    columns. Rules are active from the first occurrence on. A transaction at T is two occurrences:
    its beginning at T - 1 us and its end, which its plain name means too, at T + 1 us.

    Returns `rule`, the key columns of all rules, `start`, `end` (timestamp[us, UTC]),
    `constituents` (list<int64>: row numbers in `occurrences`) and `ticks`
    (list<struct<event, time>>), ordered by end, rule, key, start, constituents.

    Raises `InputError` for a rulebook or occurrences that are wrong.
    """
    book = rulebook if isinstance(rulebook, Rulebook) else rules.load(rulebook, features=SIMULATED)
    log = read_log(occurrences)
    for event in log.present:
        _check_event(book, event)
    for rule in book.rules.values():
        _check_keys(rule, log)
    seen = _first(book, log)
    detector = Detector(book, dict.fromkeys(book.rules, seen))
    found = _walked(book, detector, log)
    left = {n: replace(r, enabled=r.enabled and n not in found) for n, r in book.rules.items()}
    if any(rule.enabled for rule in left.values()):
        if found:
            detector = Detector(replace(book, rules=left), dict.fromkeys(left, seen))
        batches = _batches(book, log)
        first, last = (int(log.time[0]), int(log.time[-1])) if len(log) else (0, 0)
        if len(log):
            batches |= clock_batches(book, first, last)
        stepped, _ = detector.step(Carried(), batches, FOREVER, last)
        found |= {d.rule: [result.of_detections(d, log.table)] for d in stepped}
    return result.joined(book, found, log.table)


def _first(book: Rulebook, log: Log) -> int:
    """The first instant at which something begins."""
    begins = [int(log.time[0])] if len(log) else [0]
    for event in begun(book):
        if event in log.present:
            first = np.argmax(log.code == log.names.index(event))
            begins.append(int(log.time[first]) - edge_micros(book, event))
    return min(begins)


def _walked(book: Rulebook, detector: Detector, log: Log) -> dict[str, list[pa.Table]]:
    """What is detected by the rules that are chains, by name."""
    graph = detector.graph
    used = frozenset[str]().union(*graph.uses.values())
    given = {
        name
        for name, event in book.events.items()
        if not isinstance(event, ClockEvent) and not edge_micros(book, name)
    }
    keyed = cache(log.keys)
    routes: dict[str, Route] = {}
    found: list[Walked | None] = []
    for name, root in graph.roots.items():
        if name in used or not given.issuperset(root.roles):
            continue
        if along := route(root):
            routes[name] = along
    found += [walk_restricted(w, log, keyed(w.longest.columns)) for w in walks(routes)]
    return {
        name: [result.of_walk(book.rules[name], part, keys, log) for part in parts]
        for rules_, keys in filter(None, found)
        for name, parts in rules_.items()
    }


def _batches(book: Rulebook, log: Log) -> dict[str, Batch]:
    """The occurrences by event type, in order of time; their rows are those of the table. One of a
    transaction gives its beginning and its end."""
    place, times, bounds = listing.split(log.code, log.time, len(log.names))
    row = log.rows(place)
    batches = {}
    for event, first, end in zip(log.names, bounds, bounds[1:], strict=False):
        if end > first:
            batch = Batch(event, times[first:end], row[first:end], log.table)
            batches[event] = batch
            if edge := edge_micros(book, event):
                batches[event] = replace(batch, time=batch.time + edge)
            if event in begun(book):
                batches[BEGIN + event] = replace(batch, time=batch.time - edge)
    return batches


def _check_keys(rule: Rule, log: Log) -> None:
    """Whether the occurrences have the columns that are the rule's key, of types that compare."""
    schema = log.table.schema
    for number, key in enumerate(rule.key_names if rule.enabled else ()):
        if key in result.COLUMNS:
            message = f"key {key} of rule {rule.name} is called as a column of what is returned"
            hint = f"rename the column; {', '.join(result.COLUMNS)} are taken"
            raise wrong("key-name", message, hint)
        columns = {e: names[number] for e, names in rule.per.items() if e in log.present}
        for event, name in columns.items():
            if name not in schema.names:
                message = f"occurrences of {event} lack the column {name}, a key of {rule.name}"
                raise wrong("no-column", message, f"add {name}; it may be null")
        if reason := incomparable(schema.field(name).type for name in columns.values()):
            listed = ", ".join(
                f"{name} of {event} ({schema.field(name).type})" for event, name in columns.items()
            )
            message = f"key {key} of rule {rule.name} cannot be compared: {listed}"
            raise wrong("key-type", message, f"{reason}; give these columns one type")


def _check_event(book: Rulebook, event: str) -> None:
    if event in book.events and not isinstance(book.events[event], ClockEvent):
        return
    if event in book.events or event in book.rules:
        raise wrong("not-an-occurrence", f"{event} cannot be given as an occurrence")
    raise wrong("unknown-event", f"unknown event {event!r}", did_you_mean(event, book.events))
