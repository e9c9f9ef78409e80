"""Stands in for `engine.control.console` until that is merged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.engine.control.firings import FiringFilter
from tidegate.engine.control.status import status_of
from tidegate.engine.core.text.times import of_option
from tidegate.engine.explain.sentences import Sentences
from tidegate.engine.store import SqlStore
from tidegate.rules.model import Rulebook

Books = Mapping[str, Rulebook]


def _chosen(books: Books, rulebook: str | None) -> Books:
    return {n: b for n, b in books.items() if rulebook in (None, n)}


def _zones(books: Books) -> dict[str, str]:
    return {name: book.timezone for name, book in books.items()}


def overview(store: SqlStore, books: Books, now: int) -> dict[str, Any]:
    rows = []
    troubles = []
    for book in books.values():
        s = status_of(store, book)
        rows.append(
            {
                **{k: s[k] for k in ("rulebook", "state", "doing", "state_since", "looked_at",
                   "seen_until", "version", "lag", "losing_ground_since", "standby",
                   "lease_holder", "stopped", "next_timer", "store_bytes")},
                "last_hour": {k: s[k] for k in ("fired", "condition_failed", "damped", "dead")},
                "next": [],
            }
        )  # fmt: skip
        troubles += [
            {
                "rulebook": book.name,
                "kind": e["state"],
                "subject": f"entry {e['number']} of {e['rule']}",
                "said": e["error"] or "",
                "since": None,
                "commands": e["commands"],
                "severity": "stop",
            }
            for e in s["entries"]
            if e["state"] in ("held", "dead")
        ]
        troubles += [
            {
                "rulebook": book.name,
                "kind": "parked",
                "subject": p["rule"],
                "said": p["reason"],
                "since": p["since"],
                "commands": p["commands"],
                "severity": "stop",
            }
            for p in s["parked_rules"]
        ]
    return {
        "zones": _zones(books),
        "rulebooks": rows,
        "troubles": troubles,
        "troubles_more": 0,
        "store_bytes": rows[0]["store_bytes"] if rows else 0,
        "retention": [],
    }


def rules(
    store: SqlStore,
    books: Books,
    now: int,
    rulebook: str | None = None,
    state: str | None = None,
    find: str | None = None,
    sort: str | None = None,
    page: str | None = None,
) -> dict[str, Any]:
    rows = []
    for book in _chosen(books, rulebook).values():
        s = status_of(store, book)
        for row in s["rules"]:
            rule = book.rules.get(row["rule"])
            said = ""
            if rule is not None:
                said = next(iter(Sentences(rule, book.rules).detection()), "")
            rows.append(
                {
                    "rulebook": book.name,
                    **{
                        k: row[k]
                        for k in ("rule", "state", "severity", "last_fired", "held", "pending")
                    },
                    "sentence": said,
                    "hours": [0] * 24,
                    **row["last_day"],
                    "lag_seconds": s["lag"]["seconds"],
                }
            )
    rows = [r for r in rows if state in (None, r["state"]) and (find or "") in r["rule"]]
    key = (sort or "rule").removeprefix("-")
    rows.sort(key=lambda r: (r.get(key) is None, r.get(key)), reverse=(sort or "").startswith("-"))
    return {"zones": _zones(books), "rows": rows[:100], "page": 1, "pages": 1, "found": len(rows)}


def rule(store: SqlStore, books: Books, now: int, rulebook: str, rule: str) -> dict[str, Any]:
    row = next(
        r for r in rules(store, books, now, rulebook, find=rule)["rows"] if r["rule"] == rule
    )
    of = store.of(rulebook)
    return {
        "zones": _zones(books),
        **row,
        "carried": of.recorded.carried_by_node(),
        "hours": of.hours.of_rule(rule, now - 23 * 3_600_000_000),
        "next_timers": [],
        "disabled_for": [],
        "versions": [],
    }


def firings(
    store: SqlStore,
    books: Books,
    now: int,
    rulebook: str | None = None,
    rule: str | None = None,
    key: str | None = None,
    state: str | None = None,
    since: str | None = None,
    until: str | None = None,
    before: str | None = None,
    limit: str | None = None,
) -> dict[str, Any]:
    rows = []
    most = 50
    for book in _chosen(books, rulebook).values():
        pairs = dict(part.split("=", 1) for part in (key or "").split(",") if "=" in part)
        chosen = FiringFilter(rule, pairs, state, since, until, before, most)
        if rule and rule not in book.rules:
            continue
        chosen.check(book)
        found = store.of(book.name).firings.listed(
            rule=rule,
            since=of_option(since, "since", book.timezone, now),
            until=of_option(until, "until", book.timezone, now),
            before=before,
            limit=most,
            match=chosen.matches if pairs or state else None,
        )
        rows += [{"rulebook": book.name, **one} for one in found]
    rows.sort(key=lambda r: r["end"], reverse=True)
    older = rows[most - 1]["firing_id"] if len(rows) >= most else None
    return {"zones": _zones(books), "rows": rows[:most], "before": older}


def stuck(store: SqlStore, books: Books, now: int, rulebook: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "entries": [],
        "parked": [],
        "disabled": [],
        "quarantined": [],
        "rejected": [],
    }
    for book in _chosen(books, rulebook).values():
        s = status_of(store, book)
        own = {"rulebook": book.name}
        for e in s["entries"]:
            if e["state"] in ("held", "dead"):
                may = [c.split()[1] for c in e["commands"]]
                found["entries"].append({**own, **e, "may": may})
        found["parked"] += [{**own, **p} for p in s["parked_rules"]]
        found["disabled"] += [{**own, **p} for p in s["disabled_rules"]]
        found["quarantined"] += [{**own, **p} for p in s["quarantined"]]
        found["rejected"] += [{**own, **p} for p in s["rejected"]]
    return {"zones": _zones(books), **found}


def sources(store: SqlStore, books: Books, now: int, rulebook: str | None = None) -> dict[str, Any]:
    tables, signals = [], []
    for book in _chosen(books, rulebook).values():
        s = status_of(store, book)
        tables += [
            {
                "rulebook": book.name,
                **t,
                "path": book.tables[t["table"]].path if t["table"] in book.tables else None,
            }
            for t in s["tables"]
        ]
        signals.append({"rulebook": book.name, "event": None, "waiting": s["unplaced_signals"]})
    return {"zones": _zones(books), "tables": tables, "signals": signals}


def audit(
    store: SqlStore,
    books: Books,
    now: int,
    rulebook: str | None = None,
    kind: str | None = None,
    subject: str | None = None,
    by: str | None = None,
    page: str | None = None,
) -> dict[str, Any]:
    rows = []
    for book in _chosen(books, rulebook).values():
        s = status_of(store, book)
        rows += [
            {"rulebook": book.name, "asked_at": None, "bucket": None, "answer": None, **r}
            for r in s["asked_for"]
        ]
        rows += [{"rulebook": book.name, **r} for r in reversed(s["answered"])]
    rows = [
        r
        for r in rows
        if kind in (None, r["kind"])
        and by in (None, r["asked_by"])
        and subject in (None, r["subject"])
    ]
    return {"zones": _zones(books), "rows": rows, "page": 1, "pages": 1}
