"""The span of a backtest as it is asked for: times, or versions of a table.

Example: `--from 2026-03-01 --to orders@80`. The span begins at midnight in the rulebook's zone, and
ends when version 80 of `orders` was committed; both are in it. Where one table alone raises events,
`80` is enough.
"""

from __future__ import annotations

import re
from datetime import datetime
from itertools import dropwhile
from typing import NamedTuple

from tidegate.engine.capture.sources import sources
from tidegate.engine.core.ports import Feed
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.times import of_question
from tidegate.engine.replay.backtest.past import Stored, cursor_before, listed
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.model import Rulebook

FORMS = "write 2026-03-01T09:00:00, `7 d` for that long ago, or TABLE@VERSION"
_VERSION = re.compile(r"(?:(?P<table>.*)@)?(?P<version>\d+)", re.DOTALL)


class TableVersion(NamedTuple):
    """An end of the span that is a version of a table."""

    table: str
    version: int


End = int | TableVersion


def end_of(said: str | datetime, option: str, book: Rulebook, now: int) -> End:
    """What an end of the span means: an instant, microseconds, or a version. Raises InputError."""
    if isinstance(said, datetime):
        said = said.isoformat()
    if found := _VERSION.fullmatch(said.strip()):
        version = int(found["version"])
        return TableVersion(_table(found["table"], version, option, book), version)
    try:
        return of_question(said, book.timezone, now)
    except ValueError:
        message = f"{said!r} is neither a time nor a version"
        raise InputError([Problem("time", message, word_place(option), FORMS)]) from None


def ends_of(
    begin: str | datetime, end: str | datetime | None, book: Rulebook, now: int
) -> tuple[End, End]:
    """What the ends of the span mean; None: it ends `now`, as it does if its end is later. Raises
    InputError, also where the tables need not be asked whether it ends before it begins."""
    first = end_of(begin, "--from", book, now)
    last = now if end is None else end_of(end, "--to", book, now)
    last = min(now, last) if isinstance(last, int) else last
    if isinstance(first, int) and isinstance(last, int):
        check_order(first, last)
    if isinstance(first, TableVersion) and isinstance(last, TableVersion):
        _check_versions(first, last)
    return first, last


def check_order(begin: int, end: int) -> None:
    """Raises InputError for a span that ends before it begins."""
    if end < begin:
        message = f"the span ends at {json_text.instant(end)}, before it begins"
        hint = f"it begins at {json_text.instant(begin)}"
        raise InputError([Problem("span", message, word_place("--to"), hint)])


def _check_versions(first: TableVersion, last: TableVersion) -> None:
    """Raises InputError if they are of one table, and the last one comes first."""
    if last.table == first.table and last.version < first.version:
        message = f"version {last.version} comes before version {first.version}"
        hint = f"--from takes the first of them; for a time {FORMS}"
        raise InputError([Problem("span", message, word_place("--to"), hint)])


def _table(said: str | None, version: int, option: str, book: Rulebook) -> str:
    """The table whose version is meant."""
    known = sources(book).tables
    if said is None and len(known) == 1:
        return known[0]
    if said in known:
        return said
    if said is None:
        names = " or ".join(f"{name}@{version}" for name in known)
        message = f"{version} may be a version of several tables"
        hint = f"say {names}, or a time" if known else "no table raises events here: say a time"
    else:
        message = f"no table `{said}` raises events in this rulebook"
        hint = did_you_mean(said, known)
    raise InputError([Problem("which-table", message, word_place(option), hint)])


def known_instant(
    feed: Feed, book: Rulebook, end: TableVersion, option: str, stored: Stored
) -> int:
    """The instant of a version as a store knows it, else as the log says: it stands there, or a
    little later (G1). Raises InputError where there is no such version, HistoryError where the log
    does not reach back."""
    name, version = end
    if version in stored:
        return stored[version]
    table, head = book.tables[name], feed.version(book.tables[name])
    if version > head:
        message = f"table `{name}` has no version {version} yet: its last one is {head}"
        raise InputError([Problem("no-version", message, word_place(option), FORMS)])
    cursor = cursor_before(feed, table, version, stored)
    commits = dropwhile(lambda each: each.version < version, listed(feed, table, cursor))
    return next(commits).instant
