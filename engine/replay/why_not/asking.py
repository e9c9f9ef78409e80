"""Asks a store, and the sources again where that must be, why a rule did not fire.

The question is bounded: it looks back for a day, or for as long as the rule remembers, if that is
longer. The sources are read from so long before that what was begun then has ended, and no more of
them than `bucket_rows_max` rows.

Example: `quick` remembers 5 min. Asked at 9:10, it is looked for since 9:10 of the day before; read
is what came since 8:20 of that day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.entries import Entry
from tidegate.engine.core.event_names import EventKey
from tidegate.engine.core.parameters import key_schema
from tidegate.engine.core.ports import LOST, Feed, OutageError
from tidegate.engine.core.text.printable import in_line
from tidegate.engine.core.text.times import of_option
from tidegate.engine.core.types.spark import arrow_schema
from tidegate.engine.core.values import Batch, Firings, Writer
from tidegate.engine.evaluate.action_events import with_action_events
from tidegate.engine.replay.why.texts import Texts
from tidegate.engine.replay.why_not.answer import WhyNot
from tidegate.engine.replay.why_not.evidence import Evidence, Key
from tidegate.engine.replay.why_not.keys import rows_of, typed_key
from tidegate.engine.replay.why_not.ladder import check, climbed, needs_sources
from tidegate.engine.replay.why_not.reading import Reader, held, refused_row
from tidegate.engine.replay.why_not.sources import Nothing
from tidegate.engine.replay.why_not.spans import active_spans
from tidegate.engine.replay.why_not.texts import (
    damped_micros,
    detected_by,
    remembered_micros,
    says,
    used_by,
)
from tidegate.engine.replay.why_not.words import Words
from tidegate.engine.store.ledger import Ledger
from tidegate.engine.store.past import PastBucket
from tidegate.rules.analysis.graph import lateness_micros, table_events
from tidegate.rules.errors import EngineError, InputError, Problem, word_place
from tidegate.rules.model import Rulebook, SignalEvent, TableEvent

Bools = npt.NDArray[np.bool_]
DAY_MICROS = 86_400_000_000
LATER_MICROS = 3_600_000_000
"""So long after the instant is looked, too: what was missed may have come later."""
WARM_UP = 10
"""So many times what a rule remembers is read before the time that is asked for: what a context has
consumed depends on what came before."""
_LINES = re.compile(r"\s*\n\s*")
Opened = Callable[[Rulebook], AbstractContextManager[Feed]]
"""From a rulebook to the feed of its tables."""


class Question(NamedTuple):
    """Why did `rule` not fire for `key`? `at`, `since`: microseconds, or a time as `of_question`
    reads it in the rulebook's zone; None: as far as is seen, and so long before that as the rule
    remembers, a day at least. Texts in the key are read in the types of its columns."""

    rule: str
    key: Mapping[str, Any]
    at: int | str | datetime | None = None
    since: int | str | datetime | None = None


def asked(ledger: Ledger, question: Question, opened: Opened, now: int) -> WhyNot:
    """The answer. `opened` is called where the sources must be read. `now`: of the clock,
    microseconds. Raises InputError for a rule that is not there, a wrong key or time."""
    return _Asking(ledger, question, opened, now).answer()


class _Asking:
    """One question."""

    def __init__(self, ledger: Ledger, question: Question, opened: Opened, clock: int) -> None:
        self._ledger, self._past, self._opened = ledger, ledger.past, opened
        self._standing = standing = self._past.standing()
        self._rule, self._gone = question.rule, list[str]()
        self._texts = Texts(ledger.versions)
        self._now = now = self._texts.now(question.rule)
        at = of_option(question.at, "--at", now.timezone, clock)
        since = of_option(question.since, "--since", now.timezone, clock)
        if at is not None and since is not None and since > at:
            message = "--since is later than --at"
            raise InputError([Problem("time", message, word_place("--since"))])
        behind = lateness_micros(now).get(question.rule, 0)
        self._at = at if at is not None else max((standing.seen or 0) - behind, since or 0)
        until = self._at + behind
        last = self._past.reaching(until)
        newest = next(iter(self._past.back_from(last)), None)
        self._last = None if last is None else self._past.reaching(until + LATER_MICROS)
        self._by_now = last is None  # the text that runs now, of which there may be no bucket yet
        then = now if newest is None or self._by_now else self._text(newest.version)
        if then is None or question.rule not in then.rules:
            then = now
        schemas = {n: arrow_schema(c.schema) for n, c in standing.cursors.items()}
        self._schemas = dict.fromkeys(then.tables, pa.schema([])) | schemas
        self._book = book = with_action_events(then, self._schemas)
        self._key: Key = question.key
        if question.rule in book.rules:
            types = key_schema(book.rules[question.rule], book, self._schemas, [])
            self._key = typed_key(question.key, types, book.timezone)
        check(Evidence(book, None, {}, Nothing()), question.rule, self._key)
        self._words = Words(book, self._key, self._at)
        self._behind = lateness_micros(book).get(question.rule, 0)
        self._used = used_by(book, question.rule)
        self._remembered = remembered_micros(book, self._used)
        if since is None:
            since = self._at - max(self._remembered or 0, DAY_MICROS)
        self._since = min(since, self._at)

    def _text(self, version: int) -> Rulebook | None:
        """A version; None if it is not kept, or cannot be read any more."""
        return self._texts.book(version, self._rule)

    def answer(self) -> WhyNot:
        """The rungs, and what cannot be told."""
        lower = None
        if self._remembered is not None:
            lower = self._since - WARM_UP * self._remembered
        buckets, begin, known_from = self._buckets(lower)
        evidence = self._evidence(buckets, begin, known_from)
        asked = (self._rule, self._key, self._at, self._since)
        if needs_sources(evidence, *asked):
            evidence = self._with_sources(evidence, buckets)
        rungs, timeline = climbed(evidence, *asked)
        said = (*self._gone, *self._changed())
        notes = tuple(dict.fromkeys(said))
        return WhyNot(*asked, rungs, notes, self._words, self._book.rules[self._rule], timeline)

    # -- what the store kept ------------------------------------------------------------------

    def _buckets(self, lower: int | None) -> tuple[list[PastBucket], int | None, int | None]:
        """The buckets that are looked at, the oldest first; from where on occurrences are; and from
        where on is known what was active."""
        timed = [self._book.events[name] for name in self._used.events]
        ahead = [e.ahead_micros for e in timed if isinstance(e, TableEvent) and e.time]
        most, rows = self._book.settings.bucket_rows_max, 0
        found: list[PastBucket] = []
        begin = None
        for bucket in self._past.back_from(self._last):
            if rows > most // 2 and bucket.watermark_before >= self._at:
                rows, self._last = 0, bucket.number
                found.clear()
            if lower is not None and bucket.watermark < lower - max(ahead, default=0):
                begin = lower
                break
            if found and rows > most:
                begin = found[-1].watermark_before + 1
                self._gone.append(
                    f"what came before {self._words.at(begin)} is not looked at: after it came more"
                    f" than {most:,} rows (bucket_rows_max)"
                )
                break
            found.append(bucket)
            rows += max(1, bucket.rows)
            if bucket.activations.get(self._rule, self._at + 1) <= self._at:
                break
        if not found:
            return [], None, None
        oldest, known_from = found[-1], None
        if self._rule not in oldest.activations and oldest.number > 1:
            known_from = oldest.watermark_before + 1 - self._behind
            if begin is None:
                begin = oldest.watermark_before + 1
                if lower is None or lower < begin:
                    self._gone.append(
                        f"what was before {self._words.at(begin)} is not kept any more"
                        " (history_retention_days)"
                    )
        found.reverse()
        return found, self._after_edit(found, begin), known_from

    def _after_edit(self, buckets: Sequence[PastBucket], begin: int | None) -> int | None:
        """From where on the rule detects what it detects at the instant."""
        versions = [(one.watermark_before, one.version) for one in buckets]
        if self._by_now:
            versions.append((buckets[-1].watermark, self._texts.running.version))
        for (_, before), (watermark, version) in pairwise(versions):
            if watermark < self._at and self._detects_otherwise(before, version):
                begin = watermark + 1 - self._behind
                self._gone.append(
                    f"`on`, `per` or the context was edited at {self._words.at(begin)} (version"
                    f" {version}): what came before is not looked at"
                )
        return begin

    def _detects_otherwise(self, one: int, other: int) -> bool:
        before, after = self._text(one), self._text(other)
        if before is None or after is None:
            return False
        names = self._used.makers
        return detected_by(before, names) != detected_by(after, names)

    def _evidence(
        self, buckets: Sequence[PastBucket], begin: int | None, known_from: int | None
    ) -> Evidence:
        """What the store alone tells."""
        book, rule, standing = self._book, self._rule, self._standing
        books = {number: self._text(number) for number in {bucket.version for bucket in buckets}}
        spans, gone = active_spans(rule, self._used.makers, buckets, books, standing, self._behind)
        self._gone += gone
        began = standing.activations.get(rule)
        if spans and spans[0].begin == known_from and began is not None and began < known_from:
            spans[0], known_from = replace(spans[0], begin=began), None
        most = book.settings.bucket_rows_max
        first = self._since - damped_micros(book.rules[rule])
        fired, firings_from = self._past.firings(rule, first, self._at, self._mine, most)
        if firings_from is not None:
            self._gone.append(
                f"firings before {self._words.at(firings_from)} are not looked at: after them come"
                f" more than {most:,} (bucket_rows_max)"
            )
        late = [n for n, one in fired.items() if _last_end(one) >= self._since]
        entries = [
            replace(one, firing_ids=_ids(fired.get(one.bucket), one))
            for one in self._past.entries(rule, late)
        ]
        days = book.settings.firings_retention_days
        return Evidence(
            book,
            standing.seen,
            {rule: spans} if spans else {},
            Nothing(),
            (),
            {rule: [*fired.values()]},
            entries,
            {
                id: entry.progress.error or ""
                for entry in entries
                if (entry.kind, entry.state) == ("condition", "dead")
                for id in entry.firing_ids or ()
            },
            begin=begin,
            end=None if self._last is None else buckets[-1].watermark,
            known_from=known_from,
            firings_from=max(firings_from or 0, standing.now - days * DAY_MICROS),
            ended_at=self._ended_at,
        )

    def _mine(self, firings: pa.Table) -> Bools:
        """Which firings are of the key."""
        numbers = np.arange(len(firings))
        mine = rows_of(Batch("", numbers, numbers, firings), tuple(self._key), self._key).row
        return np.isin(numbers, mine)

    def _ended_at(self, instant: int) -> str | None:
        """The last firing of the key that ended at an instant."""
        found, _ = self._past.firings(self._rule, instant, instant, self._mine, 0)
        ids = [
            id.hex()
            for fired in found.values()
            for id, end in zip(
                fired.firings["firing_id"].to_pylist(),
                fired.firings["detected_at"].cast(pa.int64()).to_pylist(),
                strict=True,
            )
            if end == instant
        ]
        return ids[-1] if ids else None

    # -- what the sources hold ----------------------------------------------------------------

    def _with_sources(self, evidence: Evidence, buckets: Sequence[PastBucket]) -> Evidence:
        """The evidence with what the sources hold, or why they cannot be read."""
        book, past = self._used.only(self._book), self._past
        tables = {event.table for event in table_events(book)}
        first, last = buckets[0].number, buckets[-1].number
        signals = [n for n, event in book.events.items() if isinstance(event, SignalEvent)]
        instants = past.instants(tables, first, last)
        what = held(
            book,
            buckets,
            instants,
            self._standing.cursors,
            tables,
            past.signals(signals, first, last),
            self._writers(buckets, tables),
        )
        spans = [span for span in evidence.active[self._rule] if span.begin <= self._at]
        begin = max(spans[-1].begin, evidence.begin or spans[-1].begin)
        end = evidence.end if evidence.end is not None else max(self._at, evidence.watermark or 0)
        unread, kept = "", evidence.kept
        try:
            with self._opened(book) as feed:
                read = Reader(book, self._schemas, feed).read(what, begin, end)
                read.keep_dropped()
                kept = read
        except (EngineError, InputError) as error:
            if isinstance(error, OutageError) or getattr(error, "code", "") in LOST:
                raise
            unread = in_line(_LINES.sub("; ", str(error)))
        unread, errors = unread or what.lost, what.errors
        self._gone += what.notes
        begin = max(begin, what.begin or begin)
        if begin > self._at and not unread:
            unread = [*self._gone, "nothing of that time is kept"][0]
        self._gone = [note for note in self._gone if note != unread]
        names = {name for n in self._used.events for name in (n, EventKey.of(n).shown)}
        rejected = past.rejected(names, first, last)
        refused = [refused_row(self._book, one, instants) for one in rejected]
        return replace(
            evidence, kept=kept, begin=begin, unread=unread, errors=errors, refused=refused
        )

    def _writers(
        self, buckets: Sequence[PastBucket], tables: Collection[str]
    ) -> dict[str, dict[int, Writer]]:
        """Whose action wrote a version that the buckets hold: of rules that do not see their own
        changes."""
        rules = {EventKey.of(name).but_of for name in self._used.events} - {""}
        found: dict[str, dict[int, Writer]] = {}
        for table in tables if rules else ():
            spans = [one for bucket in buckets for one in bucket.ranges if one.table == table]
            if not spans:
                continue
            first, last = min(one.first for one in spans), max(one.last for one in spans)
            for rule in rules:
                wrote = self._past.writers(rule, table, first, last)
                found.setdefault(table, {}).update(dict.fromkeys(wrote, (self._book.name, rule)))
        return found

    def _changed(self) -> Iterator[str]:
        """Whether the rule says something else now."""
        now, rule = self._now.rules.get(self._rule), self._rule
        then = self._book.rules[rule]
        if now is None:
            yield f"rule {rule} is not in the rulebook any more"
        elif says(now) != says(then):
            yield f"rule {rule} was edited since: its `on` is `{now.pattern.text}` now"


def _last_end(fired: Firings) -> int:
    return int(pc.max(fired.firings["detected_at"].cast(pa.int64())).as_py())


def _ids(fired: Firings | None, entry: Entry) -> tuple[str, ...]:
    """The firings that an entry may be for. `fired`: of the key, in its bucket. One without ids is
    for all that are acted on; of the others the condition or damping is told."""
    if entry.firing_ids is not None or fired is None:
        return entry.firing_ids or ()
    return tuple(fired.hex_ids().to_pylist())
