"""Chooses where a bucket is detected: by the driver, or in Spark's executors what has a key (G26).

The choice is made before a bucket is cut, by what is visible then, however little of it the bucket
takes. It may change from bucket to bucket: what is carried is the same. Executors read a table
themselves if every rule and script that looks at its rows counts by a key of theirs.

Example: `detect: auto`. Six million rows were committed while the engine was down. Executors read
and detect them in one bucket. What is committed from then on is the driver's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import cached_property

from tidegate.engine.capture.apart import may_be_apart
from tidegate.engine.capture.plan import Listing
from tidegate.engine.capture.read import Capture
from tidegate.engine.core.lifecycle import HAS_ROOM
from tidegate.engine.core.values import Carried, Plan, Site, TableRange
from tidegate.engine.detect.events.graph.components import components, keyed_everywhere
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.step.compile import compile_book
from tidegate.engine.detect.scripts.programs import whole_reasons
from tidegate.rules.analysis.graph import lateness_micros
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook

log = logging.getLogger(__name__)

_NOT_FOR_AUTO = frozenset({"executors-differ", "state-apart"})
"""The errors of executors with which `auto` leaves all to the driver."""


class Sites:
    """The choices for one rulebook. `executors`: whether there are any."""

    def __init__(self, book: Rulebook, *, executors: bool) -> None:
        self._book = book
        self._by_driver = not executors or book.settings.detect == "driver"
        self._why_by_driver = ""
        self._read_here = 0  # up to this watermark the driver reads all rows
        self._rows_max = book.settings.spark_rows_max
        self._counted = Carried(), 0
        self._whole = 0  # a bucket up to this watermark takes all that is found

    def of(
        self, listing: Listing, carried: Carried, capture: Capture, before: int, *, whole: bool
    ) -> Site:
        """Where the bucket is detected that begins after the watermark `before` and takes the first
        of what is listed. `whole`: all rules run."""
        if self._by_driver:
            return Site(False, self._why_by_driver)
        limits, why = self._book.settings, "detect: spark"
        if limits.detect == "auto":
            rows, instances = listing.rows, self._instances(carried)
            if rows > limits.driver_rows_max:
                why = f"{rows:,} rows are visible, driver_rows_max is {limits.driver_rows_max:,}"
            elif instances > limits.driver_carried_max:
                most = limits.driver_carried_max
                why = f"{instances:,} instances are carried, driver_carried_max is {most:,}"
            else:
                return Site(False, HAS_ROOM)
        if not self._keyed[0]:
            return Site(False, self._nothing_keyed)
        if not whole or before < self._read_here:
            return Site(True, why)  # what rules that stand still pass over is counted here
        tables = frozenset(self._apart(listing, capture))
        if not tables:
            return Site(True, why)
        found_max = None if before < self._whole else limits.driver_rows_max
        why += f"; they read {', '.join(sorted(tables))}"
        return Site(True, why, tables, self._rows_max, found_max)

    def fewer(self, plan: Plan, found: int) -> None:
        """From now on a bucket has so few rows that what is found in them may be taken. One that
        can have no fewer, as they are of one instant, takes all."""
        most = self._book.settings.driver_rows_max
        own = _read_apart(plan)
        self._rows_max = _rows_for(own, most, found)
        read = {at for one in own for v, at in one.instants.items() if v not in one.skipped}
        alone = len(read) < 2
        if alone:
            self._whole = plan.watermark
        told = "bucket %d: %s detections, and the driver takes %s (driver_rows_max): %s"
        how = "all rows are of one instant" if alone else "the bucket ends earlier"
        log.info(told, plan.bucket, f"{found:,}", f"{most:,}", how)

    def took(self, plan: Plan, found: int) -> None:
        """So much was found in a bucket that is taken. Where it shows that more rows may be taken,
        as only timers had found so much, the next one may have them."""
        if (own := _read_apart(plan)) and self._rows_max < self._book.settings.spark_rows_max:
            more = _rows_for(own, self._book.settings.driver_rows_max, found)
            self._rows_max = min(max(self._rows_max, more), self._book.settings.spark_rows_max)

    def goes_on_without(self, plan: Plan, error: Exception) -> bool:
        """Whether the bucket can be planned anew for the driver, after an error in executors. The
        driver reads what they could not read, as far as this plan went. Under `auto` it detects
        all from now on where they have another installation, or see other files."""
        if not isinstance(error, EngineError):
            if plan.site.tables:
                self._read_here = plan.watermark
                told = "bucket %d: executors do not read its rows, the driver does: %s"
                log.warning(told, plan.bucket, error)
            return bool(plan.site.tables)
        alone = self._book.settings.detect == "auto" and error.code in _NOT_FOR_AUTO
        if alone:
            self._by_driver = True
            self._why_by_driver = f"executors cannot detect it ({error.code})"
            told = "bucket %d: the driver detects it, and all others: %s"
            log.warning(told, plan.bucket, error)
        return alone

    def _apart(self, listing: Listing, capture: Capture) -> Iterator[str]:
        """The tables that executors may read. Rows that raise a signal stand among the signals that
        the store has: these are the driver's."""
        signalled = {getattr(event, "from_table", None) for event in self._book.events.values()}
        for name, head in listing.heads.items():
            if name in signalled:
                continue
            if may_be_apart(capture.request(name, head.cursor.schema), self._keyed[1]):
                yield name

    def _instances(self, carried: Carried) -> int:
        """How many are carried: counted once for all looks until the next bucket."""
        if self._counted[0] is not carried:
            self._counted = carried, Parts.of(carried.tables).instances
        return self._counted[1]

    @cached_property
    def _keyed(self) -> tuple[bool, frozenset[str]]:
        """Whether executors have anything to detect; and the event types that have a key wherever
        they are looked at."""
        late = lateness_micros(self._book)
        _, graph = compile_book(self._book, dict.fromkeys(self._book.rules, 0), late)
        found = components(self._book, graph, late)
        whole, taken = whole_reasons(self._book), list[tuple[str, bool]]()
        for name, script in self._book.scripts.items():
            for read in script.program.inputs if script.enabled else ():
                keyed = name not in whole and bool(read.group)
                taken.append((script.inputs[read.name].event, keyed))
        return bool(found.keyed or any(k for _, k in taken)), keyed_everywhere(found, graph, taken)

    @property
    def _nothing_keyed(self) -> str:
        """Why executors have nothing to detect."""
        rules, scripts = self._book.rules.values(), self._book.scripts.values()
        if any(rule.pattern.per for rule in rules) or any(s.program.key_names for s in scripts):
            return "no rule and no script can be cut by its key; `tidegate explain` says why"
        return "no rule has a `per`, no script a `group`: there is no key to cut by"


def _read_apart(plan: Plan) -> list[TableRange]:
    """What executors read in a plan."""
    return [span for span in plan.ranges if span.table in plan.site.tables]


def _rows_for(spans: Sequence[TableRange], most: int, found: int) -> int:
    """In how many rows half as much is found as may be, by what was found in these."""
    rows = sum(max(one.rows_estimate, len(one.instants.keys() - one.skipped)) for one in spans)
    return max(1, rows * most // (2 * max(found, 1)))
