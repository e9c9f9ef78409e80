"""Plans a bucket: looks at clock and store, lists the sources, chooses the watermark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tidegate.engine.capture.commit_instants import Instants
from tidegate.engine.capture.plan import (
    Listing,
    behind,
    due,
    list_sources,
    make_plan,
    pin,
    watermark_before,
)
from tidegate.engine.capture.resets import read_again_after, with_resets
from tidegate.engine.capture.schedule import Clocks
from tidegate.engine.capture.sources import sources
from tidegate.engine.capture.switches import switched
from tidegate.engine.core.clocks import running_clocks
from tidegate.engine.core.entries import Control
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.ledger import Arrivals, Unplaced
from tidegate.engine.core.lifecycle import IDLE, STARTING, Activity
from tidegate.engine.core.outage import looking_at_tables
from tidegate.engine.core.state import State
from tidegate.engine.core.values import Plan
from tidegate.engine.detect.events.state.partitions import next_due
from tidegate.engine.loop.compiled_rulebook import CompiledRulebook
from tidegate.engine.loop.pace import Pace
from tidegate.engine.loop.ports import Ports
from tidegate.engine.loop.site import Sites
from tidegate.rules.model import Rulebook

FIRST_BUCKET = "taking its first bucket"


class Planner:
    """Plans the buckets of one rulebook. Not for use by several threads."""

    def __init__(self, book: Rulebook, ports: Ports, instants: Instants) -> None:
        self.ports, self.instants = ports, instants
        self.sources = sources(book)
        self.clocks = Clocks(running_clocks(book), book.settings)
        self.idle = False  # nothing more was visible when last looked
        self.due: int | None = None  # when what is visible can be planned
        self.left = Activity(STARTING)  # what is left once the last plan is taken, if any
        self._pace = Pace()
        self.sites = Sites(book, executors=ports.executors is not None)

    def look(self) -> tuple[int, Arrivals]:
        """The clock, and only then what waits in the store: what comes later is of a later plan."""
        now = self.ports.now()
        arrived = self.ports.ledger.signals.arrivals(self.sources.signals)
        failpoint("look.after")
        return now, arrived

    def controls(self, arrived: Arrivals) -> tuple[Control, ...]:
        """What operators asked for; no later than now, whatever the store's clock says."""
        if not arrived.controls:
            return ()
        controls = self.ports.ledger.controls.pending()
        now = self.ports.now()
        return tuple(replace(one, asked_at=min(one.asked_at, now)) for one in controls)

    def listing(
        self, book: Rulebook, state: State, now: int, controls: Iterable[Control]
    ) -> Listing:
        """All sources, read from the places that the state and the controls say."""
        ports, again = self.ports, read_again_after(state, controls)
        with looking_at_tables():
            return list_sources(
                book, self.sources, state, ports.feed, self.instants, now, ports.now, again
            )

    def plan(
        self,
        compiled: CompiledRulebook,
        state: State,
        now: int,
        arrived: Arrivals,
        until: int | None,
    ) -> Plan | None:
        """The next bucket; None if there is nothing to take yet. `now` and `arrived` are of
        `look`. `until` bounds its watermark."""
        controls = self.controls(arrived)  # 1. the clock was read,
        book, state = with_resets(compiled.rulebook, state, controls)
        failpoint("list.before")
        listing = self.listing(book, state, now, controls)  # 2. then every source is listed
        listing = replace(listing, received=arrived.first_received)
        before = watermark_before(state, listing)
        unplaced = Unplaced()
        if arrived.first_received is not None:
            limit = book.settings.signals_max
            unplaced = self.ports.ledger.signals.unplaced(self.sources.signals, before, limit)
        used_of = compiled.capture.used
        used = {name: used_of(name, head.cursor.schema) for name, head in listing.heads.items()}
        switches = switched(controls, state, book, self.ports.quarantine.rules(book.rules))
        timer = self.next_timer(compiled, state, before)
        whole = not ((state.stopped - switches.enabled) | switches.disabled)
        site = self.sites.of(listing, state.carried, compiled.capture, before, whole=whole)
        plan = make_plan(  # 3. choose W
            book, state, listing, unplaced, used, until, switches, timer, self.clocks, site
        )
        self.due = due(listing, unplaced, before, timer)
        visible = due(listing, unplaced, before, timer if timer and timer <= now else None)
        self.idle = plan is None and visible is None
        if plan is None:
            if self.idle:
                self._pace.rested()
                seen_until = max(before, listing.limit)
                self.left = Activity(IDLE, next_timer=timer, looked_at=now, seen_until=seen_until)
            return None
        said = behind(listing, unplaced)
        losing_since = self._pace.planned(plan, said.oldest)
        said = replace(said, losing_since=losing_since)
        self.left = replace(behind(listing, unplaced, plan), losing_since=losing_since)
        self.ports.say(said if state.bucket else replace(said, state=STARTING, doing=FIRST_BUCKET))
        failpoint("plan.chosen")
        with looking_at_tables():
            plan = pin(plan, book, self.ports.feed)
        failpoint("plan.after")
        controlled = carried_out_by_a_bucket(controls, listing) - switches.answers.keys()
        return replace(plan, controls=tuple(sorted(controlled)))

    def next_timer(self, compiled: CompiledRulebook, state: State, before: int) -> int | None:
        """When something happens by itself next: a timer of the detector is due, or a clock of a
        rule occurs after `before`."""
        known = compiled.detector
        carried = known.next_due(state.carried, state.stopped) if known else next_due(state.carried)
        found = (carried, self.clocks.following(before))
        return min((instant for instant in found if instant is not None), default=None)


def carried_out_by_a_bucket(controls: Iterable[Control], listing: Listing) -> frozenset[int]:
    """The ids of these controls. A reset waits until its table raises events."""
    reset = {c.id for c in controls if c.kind == "reset" and c.subject in listing.heads}
    return frozenset(reset | {c.id for c in controls if c.kind in ("enable", "disable")})
