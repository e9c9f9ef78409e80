"""From the other end: the firings behind a commit of a table.

Example: `why --commit refunds@12` names the firings for which entry 9 made version 12 of `refunds`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tidegate.engine.core.text.json_text import instant
from tidegate.engine.core.text.layout import counted, wrapped
from tidegate.engine.replay.why.links import LINKS_MAX
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.model import Rulebook

_COMMIT = re.compile(r"(.+)@(\d{1,18})")


def behind(store: SqlStore, book: Rulebook, commit: str) -> dict[str, Any]:
    """The entries that made a commit `TABLE@VERSION`, each with its firings. Raises InputError."""
    match = _COMMIT.fullmatch(commit)
    if match is None:
        message = f"{commit!r} is no commit"
        problem = Problem("bad-commit", message, word_place("--commit"), "write TABLE@VERSION")
        raise InputError([problem])
    table, version = match[1], int(match[2])
    if table not in book.tables:
        message = f"the rulebook {book.name} has no table `{table}`"
        hint = did_you_mean(table, book.tables) or f"it has {', '.join(book.tables) or 'none'}"
        raise InputError([Problem("unknown-table", message, word_place("--commit"), hint)])
    traces = store.of(book.name).traces
    return {
        "rulebook": book.name,
        "table": table,
        "version": version,
        "entries": [_entry(traces, row) for row in traces.behind(table, version)],
    }


def _entry(traces: Any, row: Mapping[str, Any]) -> dict[str, Any]:
    firings, more = traces.firings_of(row, LINKS_MAX)
    return {
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
            f"No entry of rulebook {found['rulebook']} in this store made {commit}: somebody else "
            "wrote it, or what made it is forgotten (firings_retention_days).",
            width,
        )
    for entry in found["entries"]:
        rows = "" if entry["rows"] is None else f" and wrote {counted(entry['rows'], 'row')}"
        some = counted(len(entry["firings"]), "firing")
        more = "more than " * entry["more"]
        said = f"Entry {entry['number']} of rule {entry['rule']} made {commit}{rows}, for "
        yield from wrapped(f"{said}{more}{some} of bucket {entry['bucket']}:", width)
        yield from (f"  tidegate why {one}" for one in entry["firings"])
        if not entry["firings"]:
            yield "  they are forgotten (firings_retention_days)"
