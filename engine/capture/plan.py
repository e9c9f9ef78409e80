"""Plans the next bucket: what it holds, before anything of it is read (G2, G4, G8, G9)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

from tidegate.engine.capture.commit_instants import Instants
from tidegate.engine.capture.schedule import NO_CLOCKS, Clocks
from tidegate.engine.capture.sources import Sources
from tidegate.engine.capture.switches import NOTHING, Switched
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.instants import (
    MILLISECOND,
    after_watermark,
    ceil_watermark,
    floor_watermark,
)
from tidegate.engine.core.ledger import Unplaced
from tidegate.engine.core.lifecycle import CATCHING_UP, Activity
from tidegate.engine.core.ports import Feed, TableHead
from tidegate.engine.core.state import State
from tidegate.engine.core.text.layout import counted
from tidegate.engine.core.text.logs import LOOKING, begin, go_on
from tidegate.engine.core.types.schemas import check_schema
from tidegate.engine.core.values import UNCHOSEN, Commit, Cursor, Plan, Signal, Site, TableRange
from tidegate.rules.analysis.graph import lateness_micros, table_events
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Change, Rulebook, Settings, TableEvent

log = logging.getLogger(__name__)
_BEFORE_COMMIT = 2  # us: from the last watermark before a commit to its instant


@dataclass(frozen=True, slots=True)
class Listing:
    """All sources of a rulebook, listed at `now` or a little later, with fixed instants.

    `slack`: how long late commits are waited for, microseconds. `earliest`: the first event time in
    the snapshots of a rulebook's first bucket. `received`: when the first waiting signal came.
    """

    now: int
    heads: Mapping[str, TableHead]
    slack: int = 0
    earliest: int | None = None
    received: int | None = None

    @property
    def rows(self) -> int:
        """How many rows the listed commits have, as far as their logs say so."""
        heads = self.heads.values()
        return sum(c.rows_estimate for head in heads for c in head.commits if not c.skip)

    @property
    def limit(self) -> int:
        """The latest watermark at which late commits have been waited for."""
        return floor_watermark(self.now - self.slack)


def list_sources(
    rulebook: Rulebook,
    sources: Sources,
    state: State,
    feed: Feed,
    instants: Instants,
    now: int,
    clock: Callable[[], int],
    after: Mapping[str, int] | None = None,
) -> Listing:
    """List all sources. `now` must be read from the engine's `clock` before the call: else a commit
    could be missed. The clock is read again after each listing, so that a commit made during a slow
    one is not taken for one of the future (G1). Commits are placed after the last bucket, and after
    the instants in `after`, by table.

    Raises EngineError if a table cannot go on (G10).
    """
    heads = {}
    begin(LOOKING, len(sources.tables))
    for name in sources.tables:
        go_on(LOOKING)
        head = feed.head(rulebook.tables[name], state.cursors.get(name))
        cursor = head.cursor
        listed = head.commits + ((head.left_out,) if head.left_out else ())
        previous = cursor.instant if name in state.cursors else None
        before = state.watermark
        if before is not None and after is not None:
            before = max(before, after.get(name, before))
        fixed = instants.fix(cursor.table_id, listed, previous, before, now, listed_at=clock())
        taken = len(head.commits)
        left_out = fixed[taken] if head.left_out else None
        heads[name] = replace(head, commits=fixed[:taken], left_out=left_out)
        failpoint("list.table")
    earliest = None
    if state.watermark is None:
        asked = ((rulebook.tables[n], heads[n], column) for n, column in _times(rulebook))
        found = (feed.earliest(t, head.cursor, c) for t, head, c in asked if head.snapshot)
        earliest = min((instant for instant in found if instant is not None), default=None)
    return Listing(now, heads, sources.slack_micros(heads), earliest)


def _times(rulebook: Rulebook) -> Iterator[tuple[str, str]]:
    """The columns with event times, by table."""
    for event in rulebook.events.values():
        if isinstance(event, TableEvent) and event.time is not None:
            yield event.table, event.time


def watermark_before(state: State, listing: Listing) -> int:
    """The watermark before the next plan. That of a rulebook's first plan lies before all that the
    tables' `start` reads: before commits, event times of snapshot rows, and waiting signals. So
    each of these stands at its own instant."""
    if state.watermark is not None:
        return state.watermark
    limit, heads = listing.limit, listing.heads.values()
    first = [head.commits[0].instant - _BEFORE_COMMIT for head in heads if head.commits]
    if any(head.snapshot for head in heads):
        first.append(limit - MILLISECOND)
    if listing.earliest is not None:
        first.append(floor_watermark(listing.earliest - MILLISECOND))
    if listing.received is not None:
        first.append(floor_watermark(listing.received - MILLISECOND))
    return min(limit, *first) if first else limit


def make_plan(
    rulebook: Rulebook,
    state: State,
    listing: Listing,
    unplaced: Unplaced,
    used: Mapping[str, Collection[str]],
    until: int | None = None,
    switched: Switched = NOTHING,
    timer: int | None = None,
    clocks: Clocks = NO_CLOCKS,
    site: Site = UNCHOSEN,
) -> Plan | None:
    """The next bucket, or None if it would hold nothing and set nothing.

    `used`: by table, the columns that the rulebook reads (G12). `until`: an upper bound of the
    watermark, after failures or to have fewer timers (G8). `timer`: when the next timer is due, or
    the next of `clocks` occurs. `site`: where it is detected. Tables that raise no events are
    pinned later, by `pin`. The function has no effects. Raises EngineError `schema-incompatible`.
    """
    _check_schemas(listing.heads, used)
    limit, before = listing.limit, watermark_before(state, listing)
    if until is not None:
        limit = min(limit, until)
    latest = limit
    if unplaced.left_out is not None:
        latest = min(limit, floor_watermark(unplaced.left_out - 1))
    told = {e.table for e in table_events(rulebook) if e.change is Change.COMMIT}
    limits = rulebook.settings
    watermark = max(before, _watermark(listing.heads, told, before, latest, limits, site))
    watermark = clocks.cut(before, watermark, listing.now)
    ranges = tuple(_ranges(state, listing.heads, before, watermark))
    placed = tuple(_place(unplaced.signals, before, watermark))
    active = [rule.name for rule in rulebook.rules.values() if rule.enabled]
    active += [script.name for script in rulebook.scripts.values() if script.enabled]
    new = [r for r in active if r not in state.activations or r in switched.anew]
    behind = lateness_micros(rulebook) if new else {}
    activations = {rule: before + 1 - behind.get(rule, 0) for rule in new}
    activations |= {
        rule: max(before, asked_at) + 1 for rule, asked_at in switched.anew.items() if rule in new
    }
    ringing = timer is not None and timer <= watermark
    if not (ranges or placed or activations or switched.any or ringing or state.watermark is None):
        return None
    taken = {r.table: r.cursor for r in ranges}
    waiting = (*_listed(listing), *_received(unplaced))
    return Plan(
        rulebook=rulebook.name,
        bucket=state.bucket + 1,
        watermark_before=before,
        watermark=watermark,
        now=listing.now,
        ranges=ranges,
        signals=placed,
        activations=activations,
        pinned={name: taken.get(name, head.cursor).version for name, head in listing.heads.items()},
        latest={name: head.head for name, head in listing.heads.items()},
        enabled=switched.enabled,
        disabled=switched.disabled,
        passed_over=clocks.passed_over(before, watermark, listing.now),
        more=any(watermark < instant <= limit for instant in waiting),
        site=site,
    )


def pin(plan: Plan, rulebook: Rulebook, feed: Feed) -> Plan:
    """The plan with the latest versions of the tables that raise no events. Missing tables are only
    logged: statements that use them fail."""
    others = {}
    for name, table in rulebook.tables.items():
        if name not in plan.pinned:
            try:
                others[name] = feed.version(table)
            except EngineError as error:
                if error.code != "table-missing":
                    raise
                log.warning("%s", error.message)
    return replace(plan, pinned={**plan.pinned, **others}, latest={**plan.latest, **others})


def due(listing: Listing, unplaced: Unplaced, before: int, timer: int | None = None) -> int | None:
    """When the next plan can take something: the first of what is visible, or the next timer. On
    the clock of `Listing.now`. None if there is neither."""
    timers = () if timer is None else (timer,)
    first = min((*_listed(listing), *_received(unplaced), *timers), default=None)
    if first is None:
        return None
    return ceil_watermark(max(first, before + 1)) + listing.slack


def behind(listing: Listing, unplaced: Unplaced, taken: Plan | None = None) -> Activity:
    """The activity of an engine that catches up: how much is visible and not taken yet. `taken`: a
    plan that counts as taken already."""
    read = {r.table: r.cursor.version for r in taken.ranges} if taken else {}
    ahead = (head.head - read.get(t, head.cursor.version) for t, head in listing.heads.items())
    left = (*_listed(listing), *_received(unplaced))
    return Activity(
        CATCHING_UP,
        commits=sum(max(0, count) for count in ahead),
        signals=len(unplaced.signals) - (len(taken.signals) if taken else 0),
        oldest=min((at for at in left if not (taken and at <= taken.watermark)), default=None),
        looked_at=listing.now,
    )


def half(plan: Plan) -> int | None:
    """A watermark in the middle of a plan's instants. None if all of them are in one cell of the
    grid, which no watermark parts."""
    instants = {instant for span in plan.ranges for instant in span.instants.values()}
    instants |= {signal.instant for signal in plan.signals if signal.instant is not None}
    cells = [min(cell) for _, cell in groupby(sorted(instants), key=ceil_watermark)]
    if len(cells) < 2:
        return None
    return floor_watermark(cells[len(cells) // 2] - 1)


def stuck(plan: Plan, error: Exception) -> EngineError:
    """The error of an engine that cannot carry out a plan."""
    spans = (
        ", ".join(f"{r.table} version {r.first} to {r.last}" for r in plan.ranges)
        or "signals, timers"
    )
    return EngineError(
        "bucket-failed",
        f"bucket {plan.bucket} of {plan.rulebook} ({spans}) cannot be taken: "
        f"{type(error).__name__}: {error}",
        "the cursors stay before it; remove the cause and run again"
        + (", or `tidegate reset TABLE --from VERSION` to go on behind it" if plan.ranges else ""),
    )


def given_up_text(plan: Plan | None) -> str:
    """The log line of a stop: what the next start takes again."""
    if plan is None:
        return "stopped before a bucket was planned; the next start goes on from here"
    commits = sum(len(span.instants) for span in plan.ranges)
    held = f"{counted(commits, 'commit')}, {counted(len(plan.signals), 'signal')}"
    return (
        f"bucket {plan.bucket:,} is given up before its transaction: the next start takes what it "
        f"would have held ({held}) anew"
    )


def _listed(listing: Listing) -> Iterator[int]:
    for head in listing.heads.values():
        for commit in (*head.commits, *filter(None, [head.left_out])):
            yield commit.instant


def _received(unplaced: Unplaced) -> Iterator[int]:
    yield from (signal.received_at for signal in unplaced.signals)
    if unplaced.left_out is not None:
        yield unplaced.left_out


def _check_schemas(heads: Mapping[str, TableHead], used: Mapping[str, Collection[str]]) -> None:
    """Check the schema change of a table's first commit. A later one ends the bucket before it."""
    for name, head in heads.items():
        if head.commits and (schema := head.commits[0].schema) is not None:
            version = head.commits[0].version
            check_schema(name, version, head.cursor.schema, schema, used.get(name, ()))


def _watermark(
    heads: Mapping[str, TableHead],
    told: Collection[str],
    before: int,
    limit: int,
    limits: Settings,
    site: Site,
) -> int:
    """The latest watermark before the first commit that is left out, and with no more rows than
    the driver takes of its tables, and executors of theirs. `told`: tables of which each commit
    counts as a row, because it is an occurrence."""
    apart, most = site.tables, (limits.bucket_rows_max, site.rows_max)
    rows: list[tuple[int, bool, int]] = []
    for table, head in heads.items():
        least = int(table in told)
        if head.left_out:
            limit = min(limit, head.left_out.instant - _BEFORE_COMMIT)
        if head.snapshot:
            rows.append((after_watermark(before), table in apart, 1))
        for at, commit in enumerate(head.commits):
            if at and commit.schema is not None:
                limit = min(limit, commit.instant - _BEFORE_COMMIT)
                break
            count = least if commit.skip else max(1, commit.rows_estimate)
            rows.append((commit.instant, table in apart, count))
    totals = [0, 0]
    for instant, simultaneous in groupby(sorted(rows), key=itemgetter(0)):
        more = [*totals]
        for _, is_apart, count in simultaneous:
            more[is_apart] += count
        if any(totals) and any(n > m for n, m in zip(more, most, strict=True)):
            return int(min(limit, instant - _BEFORE_COMMIT))
        totals = more
    return limit


def _ranges(
    state: State, heads: Mapping[str, TableHead], before: int, watermark: int
) -> Iterator[TableRange]:
    for name, head in heads.items():
        cursor = head.cursor
        commits = [commit for commit in head.commits if commit.instant <= watermark]
        if head.snapshot:
            if (instant := after_watermark(before)) <= watermark:
                at = cursor.version
                yield TableRange(name, at, at, {at: instant}, cursor, snapshot=True)
        elif commits:
            yield _range(name, cursor, commits)
        elif name not in state.cursors:
            yield TableRange(name, cursor.version + 1, cursor.version, {}, cursor)


def _range(name: str, cursor: Cursor, commits: Sequence[Commit]) -> TableRange:
    last = commits[-1]
    schema = next((c.schema for c in reversed(commits) if c.schema is not None), cursor.schema)
    return TableRange(
        table=name,
        first=commits[0].version,
        last=last.version,
        instants={c.version: c.instant for c in commits},
        cursor=Cursor(name, cursor.table_id, last.version, last.instant, schema, last.digest),
        depths={c.version: c.depth for c in commits if c.depth},
        skipped=frozenset(c.version for c in commits if c.skip),
        rows_estimate=sum(c.rows_estimate for c in commits if not c.skip),
        writers={c.version: c.writer for c in commits if c.writer is not None},
        logged={c.version: c.logged for c in commits if c.logged is not None},
    )


def _place(signals: Sequence[Signal], before: int, watermark: int) -> Iterator[Signal]:
    """The signals that the bucket holds, at their instants (G4)."""
    for signal in signals:
        instant = max(signal.received_at, before + 1)
        if instant <= watermark:
            yield replace(signal, instant=instant)
