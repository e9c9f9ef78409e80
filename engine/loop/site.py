"""Chooses where a bucket is detected: by the driver, or in Spark's executors what has a key (G26).

The choice is made when a bucket is planned, by what is visible then, however little of it the
bucket takes. It may change from bucket to bucket: what is carried is the same.

Example: `detect: auto`. Six million rows were committed while the engine was down. The first bucket
takes a million of them, in executors; so does the second. Then four million are left: from there on
the driver detects.
"""

from __future__ import annotations

from functools import cached_property

from tidegate.engine.capture.plan import Listing
from tidegate.engine.core.values import Carried, Site
from tidegate.engine.detect.events.graph.components import components
from tidegate.engine.detect.events.step.compile import compile_book
from tidegate.rules.analysis.graph import lateness_micros
from tidegate.rules.model import Rulebook


class Sites:
    """The choices for one rulebook. `executors`: whether there are any."""

    def __init__(self, book: Rulebook, *, executors: bool) -> None:
        self._book = book
        self._by_driver = not executors or book.settings.detect == "driver"

    def of(self, listing: Listing, carried: Carried) -> Site:
        """Where the bucket is detected that takes the first of what is listed."""
        if self._by_driver:
            return Site()
        limits, why = self._book.settings, "detect: spark"
        if limits.detect == "auto":
            rows = listing.rows
            instances = sum(len(t) for n, t in carried.tables.items() if n.startswith("node:"))
            if rows > limits.driver_rows_max:
                why = f"{rows:,} rows are visible, driver_rows_max is {limits.driver_rows_max:,}"
            elif instances > limits.driver_carried_max:
                most = limits.driver_carried_max
                why = f"{instances:,} instances are carried, driver_carried_max is {most:,}"
            else:
                return Site(False, "detect: auto, and the driver has room")
        if not self._some_keyed:
            return Site(False, "no rule can be cut by a key; `tidegate explain` says why")
        return Site(True, why)

    @cached_property
    def _some_keyed(self) -> bool:
        """Whether executors have anything to detect."""
        late = lateness_micros(self._book)
        _, graph = compile_book(self._book, dict.fromkeys(self._book.rules, 0), late)
        return bool(components(self._book, graph, late).keyed)
