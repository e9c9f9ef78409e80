"""How long the console's pages take over HTTP, with 1,000 rules and 1,000,000 firings in the store:
the first page 0.3 s at most, each other one 0.5 s.

    python -m benchmarks.console [FIRINGS]

Each page is asked for `TIMES` times, as HTML, from a server in this process; pages of one thing,
for another one each time. A page that lacks what it should show is an error.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from benchmarks import console_store
from benchmarks.console_store import FIRED, NAME, RULES_FIRED, Made, rule_of
from benchmarks.figure import Figure, percentile
from tests.support import postgres
from tidegate.connectors.http import Inbox, parse_address
from tidegate.engine.app.serve import console_of
from tidegate.engine.core.policy import Policy
from tidegate.engine.core.text.json_text import instant
from tidegate.engine.replay.backtest.report.card import Card, element

FIRINGS = 1_000_000
TIMES = 7
REPORTS = 100
OVERVIEW_SECONDS, PAGE_SECONDS = 0.3, 0.5
_WAIT_SECONDS = 60


class View(NamedTuple):
    """A page. `paths`: asked for in turn. `shows`: what stands in each."""

    name: str
    paths: Sequence[str]
    shows: str


def views(made: Made) -> Iterator[View]:
    """All pages, with what a store of `made` has to show there."""
    last = len(made.times)
    rules = [rule_of(last, place) for place in range(TIMES)]
    yield View("overview", ["overview"], "is held")
    yield View("rules", ["rules"], "Fires")
    yield View("rules, by dead", ["rules?sort=-dead&page=3"], "Fires")
    yield View("rule", [f"rules/{NAME}/{rule}" for rule in rules], "The event graph")
    asked = urlencode({"key.k": FIRED // 2, "at": instant(made.end(last))})
    why_not = [f"rules/{NAME}/{rule}/why-not?{asked}" for rule in rules]
    yield View("why not, detected", why_not, "It was detected for k")
    before = urlencode({"key.k": FIRED // 2, "at": instant(made.end(1) - 10**12)})
    why_not = [f"rules/{NAME}/{rule}/why-not?{before}" for rule in rules]
    yield View("why not, not active", why_not, "<strong>active</strong>: no")
    some = [max(1, last - n * last // TIMES) for n in range(TIMES)]
    ids = [made.firing(bucket, RULES_FIRED - 1) for bucket in some]
    of_book = [f"firings/{one}?rulebook={NAME}" for one in ids]
    yield View("firing", of_book, "2 occurrences")
    yield View("firing, by its first digits", [f"firings/{one[:12]}" for one in ids], "2 occ")
    yield View("firings", ["firings"], "e9, s9")
    yield View("firings of a rule", [f"firings?rule={rule}" for rule in rules], f"/rules/{NAME}/r")
    yield View("firings of a key", ["firings?key=k%3D3"], "k=3")
    yield View("firings of no key", ["firings?key=k%3D99"], "None.")
    yield View("firings, held", ["firings?state=held"], "held")
    yield View("stuck", ["stuck"], "PERMISSION_DENIED")
    yield View("sources", ["sources"], "/bench/t7")
    yield View("backtests", ["backtests"], f"{REPORTS} reports")
    yield View("audit", ["audit"], "user3@m1")
    yield View("audit of one", ["audit?by=user3%40m1&page=2"], "user3@m1")


def measured(url: str, reports: Path, wanted: Sequence[View]) -> dict[str, list[float]]:
    """How long each page took, each of `TIMES` times, in seconds."""
    found: dict[str, list[float]] = {}
    with Inbox(parse_address("127.0.0.1:0"), Policy(), console_of(reports)) as inbox:
        inbox.begin(url)
        connection = HTTPConnection("127.0.0.1", inbox.address.port, timeout=_WAIT_SECONDS)
        for view in wanted:
            for n in range(TIMES):
                path = f"/console/{view.paths[n % len(view.paths)]}"
                begun = time.perf_counter()
                connection.request("GET", path)
                answer = connection.getresponse()
                text = answer.read().decode()
                found.setdefault(view.name, []).append(time.perf_counter() - begun)
                if answer.status != 200 or view.shows not in text:
                    raise RuntimeError(f"{path}: {answer.status}, without {view.shows!r}")
        connection.close()
    return found


def run(folder: Path, count: int = FIRINGS) -> list[Figure]:
    """For each database and page, the median."""
    folder.mkdir(parents=True, exist_ok=True)
    reports = folder / "reports"
    _write_reports(reports)
    file = folder / "console.db"
    begun = time.perf_counter()
    made = console_store.build(file, count)
    built = time.perf_counter() - begun
    wanted = [*views(made)]
    figures = _figures("sqlite", measured(f"sqlite:///{file}", reports, wanted), built)
    if postgres.find("initdb") and postgres.find("postgres"):
        server = postgres.start()
        try:
            url, begun = server.new_url(), time.perf_counter()
            console_store.copy(file, url)
            built = time.perf_counter() - begun
            figures += _figures("postgresql", measured(url, reports, wanted), built)
        finally:
            server.stop()
    return figures


def _figures(database: str, took: dict[str, list[float]], built: float) -> list[Figure]:
    figures = []
    for name, seconds in took.items():
        most = OVERVIEW_SECONDS if name == "overview" else PAGE_SECONDS
        median = percentile(seconds, 0.5)
        numbers = {"median, ms": 1e3 * median, "first, ms": 1e3 * seconds[0], "built, s": built}
        figures.append(Figure(f"console: {database}, {name}", median / most, 1.0, numbers))
    return figures


def _write_reports(folder: Path) -> None:
    folder.mkdir()
    for n in range(REPORTS):
        at = f"2026-04-02T09:{n // 60:02}:{n % 60:02}Z"
        counts = (120, 11, 2, 0, 0)
        span = ("2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", "UTC")
        card = Card(NAME, "bench.yaml", *span, *counts, None, None, at)
        (folder / f"report{n}.html").write_text(f"<!doctype html>{element(card)}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        for figure in run(Path(temporary), int(sys.argv[1]) if len(sys.argv) > 1 else FIRINGS):
            ms = ", ".join(f"{name} {number:,.1f}" for name, number in figure.numbers.items())
            print(f"{figure.name}: {ms}{'' if figure.met else ' MISSED'}")
