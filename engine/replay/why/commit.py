"""From the other end: the firings behind a commit of a table.

Example: `why --commit refunds@12` names the firings for which entry 9 made version 12 of `refunds`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tidegate.engine.control.rulebooks import the_rulebook
from tidegate.engine.core.text.json_text import instant
from tidegate.engine.core.text.layout import counted, wrapped
from tidegate.engine.replay.why.links import LINKS_MAX
from tidegate.engine.replay.why.neighbours import Neighbour, Neighbours, location
from tidegate.engine.replay.why.texts import read
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.model import Rulebook

_COMMIT = re.compile(r"(.+)@(\d{1,18})")


def behind(store: SqlStore, name: str | None, commit: str) -> dict[str, Any]:
    """The entries that made a commit `TABLE@VERSION`, each with its firings. `name`: the rulebook
    that calls the table so, None: the one that does. Other rulebooks of the store that have the
    table are asked, too. Raises InputError, EngineError `no-rulebook`."""
    match = _COMMIT.fullmatch(commit)
    if match is None:
        message = f"{commit!r} is no commit"
        problem = Problem("bad-commit", message, word_place("--commit"), "write TABLE@VERSION")
        raise InputError([problem])
    table, version = match[1], int(match[2])
    book = _declaring(store, name, table)
    own = Neighbour(store.of(book.name).traces, book, table)
    every = (own, *Neighbours(store, book.name).of(book.tables[table]))
    return {
        "rulebook": book.name,
        "table": table,
        "version": version,
        "entries": [
            _entry(one, row) for one in every for row in one.traces.behind(one.table, version)
        ],
    }


def _declaring(store: SqlStore, name: str | None, table: str) -> Rulebook:
    """The rulebook that has a table. Of several that mean one table, the first."""
    known = store.rulebooks()
    if name is not None or len(known) < 2:
        books = [the_rulebook(store, name)]
    else:
        books = [book for kept in known.values() if (book := read(kept)) is not None]
    found = [book for book in books if table in book.tables]
    if len({location(book.tables[table]) for book in found}) > 1:
        return the_rulebook(store, None)  # raises
    if found:
        return min(found, key=lambda book: book.name)
    tables = sorted({name for book in books for name in book.tables})
    whose = f"the rulebook {books[0].name}" if len(books) == 1 else "this store"
    message = f"{whose} has no table `{table}`"
    hint = did_you_mean(table, tables) or f"there is {', '.join(tables) or 'none'}"
    raise InputError([Problem("unknown-table", message, word_place("--commit"), hint)])


def _entry(of: Neighbour, row: Mapping[str, Any]) -> dict[str, Any]:
    firings, more = of.traces.firings_of(row, LINKS_MAX)
    return {
        "rulebook": of.book.name,
        "number": row["number"],
        "rule": row["rule"],
        "bucket": row["bucket"],
        "rows": row["rows_written"],
        "settled_at": instant(row["settled_at"]),
        "firings": firings,
        "more": more,
    }


def lines(found: Mapping[str, Any], width: int) -> Iterator[str]:
    """For people: a sentence an entry, then its firings."""
    commit = f"version {found['version']} of {found['table']}"
    if not found["entries"]:
        yield from wrapped(
            f"No entry of this store made {commit}: somebody else wrote it, or what made it is "
            "forgotten (firings_retention_days).",
            width,
        )
    for entry in found["entries"]:
        rows = "" if entry["rows"] is None else f" and wrote {counted(entry['rows'], 'row')}"
        some = counted(len(entry["firings"]), "firing")
        more = "more than " * entry["more"]
        rule = f"rule {entry['rule']}"
        if entry["rulebook"] != found["rulebook"]:
            rule += f" of rulebook {entry['rulebook']}"
        said = f"Entry {entry['number']} of {rule} made {commit}{rows}, for "
        yield from wrapped(f"{said}{more}{some} of bucket {entry['bucket']}:", width)
        yield from (f"  tidegate why {one}" for one in entry["firings"])
        if not entry["firings"]:
            yield "  they are forgotten (firings_retention_days)"
