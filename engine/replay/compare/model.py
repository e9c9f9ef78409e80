"""One rule in every context, side by side: the values that are shown."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidegate.engine.core.event_names import is_tick
from tidegate.engine.core.values import Batch, Detections
from tidegate.engine.replay.detection_lines import Printer, key_texts
from tidegate.engine.replay.json_values import LINE
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Context, Pattern, Rule, Rulebook

Place = tuple[int, int]
"""An occurrence of a step: the code of its event type, its row in the type's batch."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An occurrence, or a tick. `number` tells simultaneous ones of a type apart, from 1; `key` is
    JSON text, `{}` for a broadcast."""

    event: str
    time: int
    number: int
    key: str = "{}"


@dataclass(frozen=True, slots=True)
class ComparedDetection:
    """A detection; `text` is the JSON line that `simulate` prints, `used_up_text` the list of what
    is consumed in the same form."""

    key: str
    start: int
    end: int
    constituents: tuple[Occurrence, ...]
    used_up: tuple[Occurrence, ...]
    text: str
    used_up_text: str


@dataclass(frozen=True, slots=True)
class Column:
    """What one context detects, in the order of `simulate`; or why it cannot."""

    context: Context
    found: tuple[ComparedDetection, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A rule in every context; `occurrences` are those of the event types that it looks at."""

    rule: Rule
    iso: bool
    occurrences: tuple[Occurrence, ...]
    columns: tuple[Column, ...]

    def instants(self) -> list[tuple[int, str]]:
        """(instant, key) of all detections, in order."""
        return sorted({(f.end, f.key) for column in self.columns for f in column.found})


def occurrences_of(
    rule: Rule, book: Rulebook, arrived: Mapping[str, Batch]
) -> tuple[Occurrence, ...]:
    """All occurrences, by time and event type."""
    keyed = _keyed(rule, book)
    found = [o for batch in arrived.values() for o in _named(rule.pattern, keyed, batch)]
    return tuple(sorted(found, key=lambda o: (o.time, o.event, o.number)))


def found_in(
    context: Context, rule: Rule, book: Rulebook, iso: bool, shown: Detections
) -> Iterator[ComparedDetection]:
    """The detections of a rule, which tell what they use."""
    whole = shown.used or shown
    keyed = _keyed(rule, book)
    named = [
        [] if is_tick(n) else _named(rule.pattern, keyed, whole.batches[n]) for n in whole.events
    ]
    keys = _texts(whole.keys, len(whole))
    own = {node.name for node in rule.pattern.on.walk() if isinstance(node, x.Name)}
    used = [*_used_up(context, own, whole, keys, named)]
    flat = np.array([place for places in used for place in places], dtype=np.int64).reshape(-1, 2)
    offsets = np.cumsum([0, *map(len, used)])
    printed = _lines(book, iso, shown)
    uses = _lines(
        book,
        iso,
        replace(
            whole, offsets=offsets, event_code=flat[:, 0].astype(np.int16), event_row=flat[:, 1]
        ),
    )
    for i, (key, text, use) in enumerate(zip(keys, printed, uses, strict=True)):
        yield ComparedDetection(
            key,
            int(shown.start[i]),
            int(shown.end[i]),
            tuple(_shown(shown, i, named)),
            tuple(named[code][row] for code, row in used[i]),
            text,
            use[use.index('"constituents":') + len('"constituents":') : -1],
        )


def _used_up(
    context: Context,
    events: set[str],
    whole: Detections,
    keys: list[str],
    named: list[list[Occurrence]],
) -> Iterator[list[Place]]:
    """What each detection consumes that was not consumed before (semantics 3, S3)."""
    before: dict[str, set[Place]] = defaultdict(set)
    for i, key in enumerate(keys):
        entries = range(int(whole.offsets[i]), int(whole.offsets[i + 1]))
        own = [(int(whole.event_code[e]), int(whole.event_row[e])) for e in entries]
        own = [place for place in own if not is_tick(whole.events[place[0]])]
        if context in (Context.RESTRICTED, Context.UNRESTRICTED):
            own = []
        elif context is Context.CONTINUOUS:  # the first at the start, as initiator
            own = [p for p in own if named[p[0]][p[1]].time == whole.start[i]][:1]
        elif context is Context.RECENT:
            own += _older([p for p in own if whole.events[p[0]] in events], key, named)
        yield sorted({*own} - before[key], key=lambda p: (named[p[0]][p[1]].time, p))
        before[key].update(own)


def _older(own: list[Place], key: str, named: list[list[Occurrence]]) -> Iterator[Place]:
    """Some occurrences of a key, and every older or simultaneous one of their event types."""
    newest: dict[int, int] = {}
    for code, row in own:
        newest[code] = max(newest.get(code, -(2**63)), named[code][row].time)
    for code, time in newest.items():
        for row, occurrence in enumerate(named[code]):
            if occurrence.time <= time and occurrence.key in (key, "{}"):
                yield code, row


def _shown(found: Detections, i: int, named: list[list[Occurrence]]) -> Iterator[Occurrence]:
    for e in range(int(found.offsets[i]), int(found.offsets[i + 1])):
        code, row = int(found.event_code[e]), int(found.event_row[e])
        if is_tick(found.events[code]):
            yield Occurrence("tick", int(found.batches[found.events[code]].time[row]), 1)
        else:
            yield named[code][row]


def _keyed(rule: Rule, book: Rulebook) -> Mapping[str, tuple[str, ...]]:
    """The key fields of the event types that a rule, or a rule that it is made of, looks at."""
    made = (
        r
        for r in book.rules.values()
        if r.enabled and len(r.pattern.key_names) == len(rule.pattern.key_names)
    )
    return {event: fields for each in (*made, rule) for event, fields in each.pattern.per.items()}


def _named(
    pattern: Pattern, keyed: Mapping[str, tuple[str, ...]], batch: Batch
) -> list[Occurrence]:
    """The occurrences of a batch, in its order."""
    keys = ["{}"] * len(batch)
    fields = keyed.get(batch.event)
    if fields and LINE in batch.table.column_names:
        columns = batch.table.select(fields).take(batch.row).rename_columns(pattern.key_names)
        keys = _texts(columns, len(batch))
    count: dict[tuple[int, str], int] = defaultdict(int)
    found = []
    for time, key in zip(batch.time.tolist(), keys, strict=True):
        count[time, key] += 1
        found.append(Occurrence(batch.event, time, count[time, key], key))
    return found


def _lines(book: Rulebook, iso: bool, found: Detections) -> list[str]:
    out = io.BytesIO()
    Printer(book, iso).write([found], out)
    return out.getvalue().decode().splitlines()


def _texts(keys: pa.Table, count: int) -> list[str]:
    return [key.decode() for key in key_texts(keys, count).to_pylist()]
