"""`tidegate simulate`: detection over a trace, in simulated time, without Spark and store,
and how far it is, told on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO

import numpy as np
import pyarrow as pa

from tidegate import rules
from tidegate.engine.core.clocks import clock_batches
from tidegate.engine.core.event_names import shown_name
from tidegate.engine.core.policy import load_policy
from tidegate.engine.core.scratch_folder import scratch_folder
from tidegate.engine.core.text.layout import counted, screen_width, wrapped
from tidegate.engine.core.text.times import INSTANTS, check_no_date, of_argument
from tidegate.engine.core.values import FOREVER, Batch, Carried, Detections
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.stratified_detector import Detect, by_stratum
from tidegate.engine.detect.pipeline import Flow
from tidegate.engine.replay import json_values
from tidegate.engine.replay.changes import Schemas
from tidegate.engine.replay.damping import Damper
from tidegate.engine.replay.detection_lines import Printer
from tidegate.engine.replay.diagnosis import (
    check_calendar,
    doubtful,
    nothing_detected,
    rejections,
)
from tidegate.engine.replay.json_values import EVENT, TIME
from tidegate.engine.replay.scripts import Scripts, Through, texts
from tidegate.engine.replay.trace import Trace, read, times
from tidegate.rules.algebra.asked_columns import asked_columns
from tidegate.rules.checks.gaps import SIMULATED
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.model import LATEST, Context, Rulebook, in_context

if TYPE_CHECKING:
    from tidegate.engine.detect.pipeline import Flow
    from tidegate.engine.replay.conditions import Conditions

_LIVE_SECONDS = (1.0, 0.2)  # the first line after, and then every
_PLAIN_SECONDS = (10.0, 10.0)


def simulate(
    path: Path,
    trace: Path,
    *,
    context: str | None = None,
    until: str | None = None,
    bucket: int | None = None,
    conditions: bool = False,
    schemas: Schemas = lambda _: None,
    out: IO[bytes],
    progress: Progress | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Write what the rulebook at `path` detects over the lines of `trace`, one JSON object a
    detection, to `out`.

    `context` overrides every rule's; lines after `until` (seconds, or ISO 8601) are skipped;
    `bucket` cuts the trace into buckets of so many instants and keeps the state as bytes between
    them, which makes no difference to the output; `conditions` asks each rule's `if`; `schemas`
    looks up those of tables whose changes are lines, else their types are those of their values.
    Memory is bounded by the rules and not by the trace, which is read and checked first: one that
    does not fit is sorted on disk. `tell` is called with the rulebook's warnings, with what is
    rejected and, where nothing is detected, with what could be why.
    Raises `InputError`, before anything is written.
    """
    book = replace(rules.load(path, features=SIMULATED), python=load_policy(None).python)
    if context is not None:
        chosen = _context(context)
        overridden = {n: in_context(r, chosen) for n, r in book.rules.items()}
        book = replace(book, rules=overridden)
    for warning in book.warnings:
        tell(f"warning: {warning}")
    last = instant(until, book.timezone)
    told = progress or Progress()
    with told, scratch_folder() as folder:
        occurrences = read(trace, book, last, folder, told.read, schemas)
        if until is not None and occurrences.iso:
            check_no_date(until, "--until", INSTANTS)
        check_calendar(book, occurrences, str(trace))
        asked = None
        if conditions:
            from tidegate.engine.replay.conditions import Conditions  # sqlglot takes a tenth of 1 s

            asked = Conditions(book, occurrences)
        count = run(book, occurrences, bucket, out, last, told.detected, tell, asked)
    for said in rejections(occurrences):
        tell(f"warning: {said}")
    if not count:
        tell("\n".join(wrapped(nothing_detected(book, occurrences, last), screen_width())))
        return
    for said in doubtful(book, occurrences):
        tell(f"warning: {said}")


def run(
    book: Rulebook,
    trace: Trace,
    bucket: int | None,
    out: IO[bytes],
    until: int | None = None,
    progress: Callable[[int, int], None] = lambda _, __: None,
    tell: Callable[[str], None] = lambda _: None,
    asked: Conditions | None = None,
) -> int:
    """Detect over a trace that has been read, active from its first instant on; returns how many
    detections and emissions there are.

    After the last line time goes on to `until`; without it own terminators and `+ [d]` run out.
    """
    if trace.first is None or trace.last is None:
        return 0
    activation = min(trace.first, trace.earliest)  # a transaction begins before its line's instant
    rules, scripts = Rules(book, activation), Scripts(book, activation, trace.key_types)
    printer, damper = Printer(book, trace.iso), Damper(book, levels=asked is not None)

    typed = typing(book, trace)
    begin, done, count = trace.first, 0, 0

    def write(found: Sequence[Detections], emitted: Flow) -> int:
        said = {} if asked is None else asked.outcomes(found)
        lines = texts(emitted, book, iso=trace.iso)
        shown = {rule: one.condition for rule, one in said.items()}
        printer.write(found, out, damper.damp(found, said), lines, shown)
        return sum(map(len, found)) + sum(map(len, emitted.emissions))

    for window in buckets(trace, bucket):
        watermark = int(times(window)[-1])
        last = min(watermark, trace.last if until is None else until)
        arrived = batches(trace, typed(window)) | clock_batches(book, begin, last)
        emitted = scripts.step(arrived, watermark, rules.begin(arrived, watermark, last))
        count += write(rules.found, emitted)
        begin = max(begin, watermark + 1)
        done += len(window)
        progress(done, trace.count)
        if bucket is not None:
            rules.through(_through_bytes)
            scripts.through(_through_bytes)
    clocks = {} if until is None else clock_batches(book, begin, until)
    if until is None:
        emitted = scripts.finish(rules.begin(clocks, FOREVER, trace.last))
    else:
        emitted = scripts.step(clocks, until, rules.begin(clocks, until, until))
    if rules.found or emitted.emissions:
        count += write(rules.found, emitted)
    for warning in scripts.warnings():
        tell(f"warning: {warning}")
    return count


class Rules:
    """The rules of a rulebook from `activation` on."""

    def __init__(self, book: Rulebook, activation: int) -> None:
        starts = dict.fromkeys(book.rules, activation)

        def make(only: Collection[str] | None) -> Detector:
            return Detector(book, starts, json_values, only=only)

        self._strata = by_stratum(book, make)
        self._carried = [Carried()] * len(self._strata)
        self.found: list[Detections] = []
        """Of the last step."""

    def begin(self, arrived: Mapping[str, Batch], watermark: int, last: int) -> Detect:
        """A step over what has arrived: to be asked for each stratum."""
        self.found = []

        def detect(stratum: int, shown: Mapping[str, Batch]) -> Sequence[Detections]:
            own, carried = self._strata[stratum], self._carried[stratum]
            if not (own.detector.timed or arrived or shown):
                return ()
            made, self._carried[stratum], _ = own.detector.step(
                carried, {**arrived, **shown}, watermark, last
            )
            found = own.some(made)
            self.found += found
            return found

        return detect

    def through(self, through: Through) -> None:
        """Put what is carried through a function."""
        self._carried = [
            Carried({name: through(table) for name, table in carried.tables.items()})
            for carried in self._carried
        ]


def typing(book: Rulebook, trace: Trace) -> Callable[[pa.Table], pa.Table]:
    """What adds to the lines of a step the values that rules' `where`, `fire` and `rearm` read."""
    asked = (asked_columns(rule.pattern) for rule in book.rules.values() if rule.enabled)
    if not any(True for columns in asked for _ in columns):
        return lambda window: window
    from tidegate.engine.replay.where_values import WhereValues  # as costly as conditions

    return WhereValues(book, trace).added


def buckets(trace: Trace, bucket: int | None) -> Iterator[pa.Table]:
    """The trace cut into `bucket` instants each; None: as they are read."""
    for window in trace.windows():
        if bucket is None:
            yield window
            continue
        starts = np.unique(times(window), return_index=True)[1][::bucket]
        for start, end in zip(starts, [*starts[1:], window.num_rows], strict=True):
            yield window.slice(start, end - start)


def batches(trace: Trace, window: pa.Table) -> dict[str, Batch]:
    """The occurrences of some lines by event type."""
    code, time = window.column(EVENT).to_numpy(), times(window)
    table = window.drop_columns([EVENT, TIME])
    found = {}
    for number in np.flatnonzero(np.bincount(code)):
        event, row = trace.events[number], np.flatnonzero(code == number)
        found[event] = Batch(shown_name(event), time[row], row, table)
    return found


def _through_bytes(table: pa.Table) -> pa.Table:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def _context(name: str) -> Context:
    try:
        return Context(name)
    except ValueError:
        hint = did_you_mean(name, [*Context, LATEST])
        place = word_place("--context")
        problem = Problem("unknown-context", f"unknown context {name!r}", place, hint)
        raise InputError([problem]) from None


def instant(text: str | None, zone: str) -> int | None:
    """The instant that `--until` names, without an offset in a zone. Raises `InputError`."""
    try:
        return None if text is None else of_argument(text, zone)
    except ValueError as error:
        message = f"{text!r} is no instant"
        message += ": out of range" if "out of range" in str(error) else ""
        raise InputError([Problem("time", message, word_place("--until"), INSTANTS)]) from None


class Progress:
    """On a terminal one line that is written over and taken away at the end; elsewhere a line now
    and then. Short runs tell nothing."""

    def __init__(self, to: TextIO | None = None) -> None:
        self._to = to or sys.stderr
        self._live = self._to.isatty()
        first, self._every = _LIVE_SECONDS if self._live else _PLAIN_SECONDS
        self._due = time.monotonic() + first
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live and self._shown:
            print("\r\x1b[K", end="", file=self._to, flush=True)

    def read(self, lines: int) -> None:
        """So many lines have been read and checked."""
        self._say(f"read {counted(lines, 'line')}")

    def detected(self, lines: int, count: int) -> None:
        """Detection is over with so many of the lines."""
        self._say(f"detected over {lines:,} of {counted(count, 'line')} ({lines / count:.0%})")

    def _say(self, text: str) -> None:
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + self._every
        self._shown = True
        if self._live:
            print(f"\r\x1b[K{text}", end="", file=self._to, flush=True)
        else:
            print(text, file=self._to, flush=True)
