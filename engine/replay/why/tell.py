"""The story of a firing, from what the store has of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tidegate.engine.core.event_names import EventKey
from tidegate.engine.core.parameters import ENGINE_COLUMNS
from tidegate.engine.core.statement import decode
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import DAMPED
from tidegate.engine.explain.reactions import act_words
from tidegate.engine.explain.sentences import Sentences
from tidegate.engine.replay.why import links as linked
from tidegate.engine.replay.why.model import (
    Asked,
    AskedAgain,
    Condition,
    Constituent,
    Edited,
    Entry,
    Story,
)
from tidegate.engine.replay.why.neighbours import Neighbours
from tidegate.engine.replay.why.rule_words import sentence
from tidegate.engine.replay.why.texts import Texts, meaning, tables_of
from tidegate.engine.store import SqlStore
from tidegate.engine.store.firings import constituents_of
from tidegate.engine.store.outbox import PENDING, REDRIVEN
from tidegate.engine.store.status import entry_commands
from tidegate.engine.store.traces import Place, Trace, Traces, source_of
from tidegate.rules.analysis.graph import table_events
from tidegate.rules.expressions.windows import Window
from tidegate.rules.model import Coupling, Rule, Rulebook, ScriptEvent, TableEvent

AskAgain = Callable[[Trace, Rule, Rulebook, Mapping[str, int]], AskedAgain]
"""Asks a query again of the versions that it saw. Given are those that the store has, by table."""


def told(store: SqlStore, rulebook: str, place: Place, ask_again: AskAgain | None = None) -> Story:
    """The story of the firing at a place. Raises EngineError `firing-gone` if it was purged
    meanwhile."""
    with store.snapshot():
        traces = store.of(rulebook).traces
        texts = Texts(store.of(rulebook).versions)
        trace = traces.trace(place)
        book = texts.book(trace.version, place.rule)
        now = texts.book(texts.running.version, place.rule)
        rule = book.rules.get(trace.place.rule) if book is not None else None
        gone: list[str] = [] if rule is not None else ["sentence"]
        notes = [] if rule is not None else ["The rulebook's text of then cannot be read any more."]
        if rule is not None and now is None:
            version = texts.running.version
            said = "Whether the rule was edited since is not known"
            notes.append(f"{said}: version {version} cannot be read.")
        constituents = _constituents(traces, trace, book, gone)
        entries = tuple(_entries(trace, texts.rules()))
        books = {id(one): one for one in (book, now) if one is not None}.values()
        others = Neighbours(store, rulebook)
        causes = linked.causes(traces, trace, book, others, constituents)
        effects = linked.effects(traces, trace, books, others, entries)
        acts = rule is not None and rule.reaction.actions and not rule.reaction.dry
        if acts and trace.through and not entries:
            gone.append("entries")
        notes += [*causes.notes, *effects.notes, *_deep(trace, causes.found, constituents)]
        row = python_rows(trace.one.firings)[0]
        seen = _seen(store, rulebook, trace, rule, book)
        condition = _condition(trace, rule, row["condition"], *seen)
    if ask_again is not None and condition.query and rule is not None and book is not None:
        again = ask_again(trace, rule, book, condition.versions)
        left = tuple(table for table in condition.in_log if table not in again.versions)
        condition = replace(condition, versions=again.versions, in_log=left, asked_again=again.said)
    kind = (row.get(DAMPED) or None) if DAMPED in row else None
    return Story(
        firing_id=trace.place.firing_id,
        rulebook=rulebook,
        timezone=book.timezone if book is not None else "UTC",
        rule=trace.place.rule,
        key=json_text.value({name: row[name] for name in trace.one.key_names}),
        start=_micros(trace, "started_at"),
        end=_micros(trace, "detected_at"),
        detected_at=trace.now,
        bucket=trace.place.bucket,
        sentence=sentence(rule) if rule is not None else None,
        constituents=constituents,
        condition=condition,
        damped=kind,
        entries=entries,
        causes=tuple(causes.found.values()),
        effects=tuple(effects.found.values()),
        depth=row["depth"],
        dry=rule is not None and rule.reaction.dry,
        context=_context(rule),
        window=rule is not None and isinstance(rule.pattern.on, Window),
        sentences=_sentences(rule, book),
        rulebook_version=trace.version,
        edited=_edited(rule, book, now, texts.running.version),
        notes=tuple(notes),
        gone=(*gone, *causes.gone, *effects.gone),
    )


def _sentences(rule: Rule | None, book: Rulebook | None) -> tuple[str, ...]:
    """When the rule fires, and with what."""
    if rule is None or book is None:
        return ()
    return tuple(Sentences(rule, book.rules).detection())


def _context(rule: Rule | None) -> str | None:
    """The parameter context that chose, if one did: a window takes all its rows."""
    if rule is None or rule.pattern.selection or isinstance(rule.pattern.on, Window):
        return None
    return str(rule.pattern.context)


def _micros(trace: Trace, name: str) -> int:
    found: int = trace.one.firings[name].cast(pa.int64())[0].as_py()
    return found


def _edited(
    rule: Rule | None, book: Rulebook | None, now: Rulebook | None, version: int
) -> Edited | None:
    """What the rule says now, if it or an event type of it says something else. `book`: of then.
    `now`, `version`: the running rulebook."""
    if rule is None or book is None or now is None:
        return None
    other = now.rules.get(rule.name)
    if other is None:
        return Edited(version, None)
    return None if meaning(other, now) == meaning(rule, book) else Edited(version, sentence(other))


# -- constituents -------------------------------------------------------------------------------


def _constituents(
    traces: Traces, trace: Trace, book: Rulebook | None, gone: list[str]
) -> tuple[Constituent, ...]:
    relation, sources = trace.one.rows, trace.one.sources
    events = relation["event_type"].to_pylist()
    times = relation["occurred_at"].cast(pa.int64()).to_pylist()
    nothing: list[Any] = [None] * len(events)
    versions = nothing if sources is None else sources["version"].to_pylist()
    signals = nothing if sources is None else sources["signal"].to_pylist()
    rows = constituents_of(relation)
    tables, late, scripts = _kinds(book)
    end = _micros(trace, "detected_at")
    made = []
    for event, time, version, signal, row in zip(
        events, times, versions, signals, rows, strict=True
    ):
        if event is None:
            continue
        name = _declared(event)
        namespace, signal_id = source_of(signal)
        made.append(
            Constituent(
                event,
                time,
                tables.get(name) if version is not None else None,
                version,
                signal_id,
                namespace,
                scripts.get(name),
                None,
                round((end - time) / 1e6, 6),
                {key: item for key, item in row.items() if key not in ("event", "time")},
            )
        )
    buckets = _arrivals(traces, trace, made, late)
    gone += [f"constituents.{n}.bucket" for n, bucket in enumerate(buckets) if bucket is None]
    return tuple(_in_bucket(one, bucket) for one, bucket in zip(made, buckets, strict=True))


def _in_bucket(one: Constituent, bucket: int | None) -> Constituent:
    values = {name: getattr(one, name) for name in Constituent.__dataclass_fields__}
    return Constituent(**{**values, "bucket": bucket})


def _declared(event: str) -> str:
    """The event type in the rulebook of a name that an occurrence shows."""
    return EventKey.of(event).event


def _kinds(
    book: Rulebook | None,
) -> tuple[dict[str, str], set[str], dict[str, str]]:
    """By event type its table, those with a time of their own, and by event type its script."""
    if book is None:
        return {}, set(), {}
    of_tables = {event.name: event for event in table_events(book)}
    late = {
        name for name, event in of_tables.items() if isinstance(event, TableEvent) and event.time
    }
    scripts = {n: e.script for n, e in book.events.items() if isinstance(e, ScriptEvent)}
    return {name: event.table for name, event in of_tables.items()}, late, scripts


def _arrivals(
    traces: Traces, trace: Trace, made: Sequence[Constituent], late: set[str]
) -> list[int | None]:
    """The bucket in which each arrived: that of its commit where it has a time of its own, else
    that of its instant."""
    own = [one.table is not None and _declared(one.event) in late for one in made]
    instants = traces.arrived(one.time for one, has in zip(made, own, strict=True) if not has)
    versions: dict[str, set[int]] = {}
    for one, has in zip(made, own, strict=True):
        if has and one.table is not None and one.version is not None:
            versions.setdefault(one.table, set()).add(one.version)
    took = {
        (table, version): bucket
        for table, some in versions.items()
        for version, bucket in traces.took(table, some, trace.place.bucket).items()
    }
    return [
        took.get((one.table or "", one.version or 0)) if has else instants.get(one.time)
        for one, has in zip(made, own, strict=True)
    ]


def _deep(
    trace: Trace, causes: Mapping[str, Any], constituents: Sequence[Constituent]
) -> Iterator[str]:
    """What is known of a cause that is not found."""
    if trace.one.firings["depth"][0].as_py() > 1 and not causes:
        if any(one.script for one in constituents):
            yield "What caused it went through a script, which does not say of what it emits."
        else:
            yield (
                "An action caused it, but no entry that this store still has: one of another "
                "store, a statement without a marker, or is forgotten."
            )


# -- condition ----------------------------------------------------------------------------------


def _seen(
    store: SqlStore, rulebook: str, trace: Trace, rule: Rule | None, book: Rulebook | None
) -> tuple[Mapping[str, int], Sequence[str]]:
    """The versions that a query saw, by table, as far as the store has them; and the tables of
    which their log tells, as for `engine.evaluate.samples.AsOf`."""
    condition = rule.condition if rule is not None else None
    if rule is None or book is None or condition is None or not condition.query:
        return {}, ()
    tables = tables_of(condition.text, book)
    if rule.condition_coupling is Coupling.DEFERRED:
        return {table: trace.pinned[table] for table in tables if table in trace.pinned}, ()
    if rule.condition_coupling is Coupling.DETACHED:
        return {}, ()
    at, buckets = _micros(trace, "detected_at"), store.of(rulebook).buckets
    found = {table: buckets.version_at(table, at) for table in tables}
    seen = {table: version for table, version in found.items() if version is not None}
    return seen, [table for table in tables if table not in seen]


def _condition(
    trace: Trace,
    rule: Rule | None,
    outcome: str,
    seen: Mapping[str, int],
    in_log: Sequence[str],
) -> Condition:
    condition = rule.condition if rule is not None else None
    if rule is None or condition is None:
        return Condition(None, outcome)
    values: dict[str, Any] = {}
    if not condition.query:
        from tidegate.engine.replay.why_not.fate import condition_values  # it reads SQL

        found = condition_values(condition.text, trace.one.rows, trace.one.key_names)
        values = {
            name: json_text.value(value)
            for name, value in found.items()
            if name not in ENGINE_COLUMNS or name == "detected_at"
        }
    coupling = str(rule.condition_coupling)
    return Condition(
        condition.text, outcome, values, condition.query, coupling, seen, tuple(in_log)
    )


# -- entries ------------------------------------------------------------------------------------


def _entries(trace: Trace, rules: Collection[str] | None) -> Iterator[Entry]:
    by_place: dict[int, list[Mapping[str, Any]]] = {}
    for row in trace.entries:
        by_place.setdefault(row["place"], []).append(row)
    for row in trace.entries:
        same = [other["number"] for other in by_place[row["place"]]]
        at = same.index(row["number"])
        statement = decode(row["kind"], row["text"], row["action"], **_of_sql(row))
        waits = row["state"] == PENDING and row["next_attempt_at"]
        yield Entry(
            row["number"],
            row["kind"],
            row["state"],
            row["attempts"],
            row["target"],
            row["effect_version"],
            row["rows_written"],
            row["error"],
            act_words(statement),
            bool(row["alternative"]),
            row["fate"],
            trace.acted_on if row["firing_ids"] is None else len(row["firing_ids"]),
            trace.raised.get(row["number"], 0),
            row["stored_at"],
            row["begun_at"],
            row["settled_at"],
            row["next_attempt_at"] if waits else None,
            same[at - 1] if at and by_place[row["place"]][at - 1]["state"] == REDRIVEN else None,
            same[at + 1] if row["state"] == REDRIVEN and at + 1 < len(same) else None,
            tuple(
                Asked(one["kind"], one["option"], one["asked_by"], one["asked_at"], one["answer"])
                for one in trace.asked
                if one["subject"] == str(row["number"])
            ),
            tuple(entry_commands(row["entry"], rules)),
        )


def _of_sql(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"target": row["target"]} if row["kind"] in ("sql", "unmarked") else {}
