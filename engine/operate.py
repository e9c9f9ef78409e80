"""Commands that need the store only: `run` keeps the active rulebook in it. No Spark here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import rules
from engine.explicit import make_signal
from engine.store import SqlStore, open_store
from engine.store import migrate as migrate_schema
from rules.errors import EngineError, InputError, Place, Problem
from rules.kinds import did_you_mean
from rules.model import Rulebook, TableEvent


def raise_signal(
    url: str,
    name: str | None,
    rulebook_file: Path | None,
    event: str,
    fields: Mapping[str, str],
    signal_id: str | None,
) -> dict[str, Any]:
    """Insert one explicit occurrence, unplaced (G4); `rulebook_file` is registered first.

    Raises InputError for an unknown event or field, EngineError `signal-conflict` for an id that
    stands for another body.
    """
    loaded = rules.load(rulebook_file) if rulebook_file else None
    with open_store(url, create=loaded is not None) as store:
        book = loaded or the_rulebook(store, name)
        signal = make_signal(book, event, fields, signal_id, store.wall(), text=True)
        if loaded:
            store.register(loaded.name, loaded.text, loaded.file)
        fresh = store.raise_signal(book.name, signal)
        return {"rulebook": book.name, "event": event, "id": signal.id, "inserted": fresh}


def the_rulebook(store: SqlStore, name: str | None) -> Rulebook:
    """The rulebook that a command means, from the text kept in the store."""
    known = store.rulebooks()
    if name is None and len(known) == 1:
        name = next(iter(known))
    if name is None or name not in known:
        names = ", ".join(sorted(known)) or "none"
        what = f"rulebook {name!r} is not in this store" if name else "which rulebook is meant?"
        raise EngineError("no-rulebook", f"{what} (known: {names})", "give --rulebook NAME")
    return rules.load(known[name].text, file=known[name].file)


def rulebook_status(url: str, name: str | None) -> dict[str, Any]:
    """`tidegate status`: what the store knows of a rulebook."""
    with open_store(url, create=False) as store:
        return store.status(the_rulebook(store, name).name)


def list_firings(
    url: str, name: str | None, rule: str | None, limit: int | None
) -> Iterator[Mapping[str, Any]]:
    """`tidegate firings`: one mapping each, as `language.md` 3 has it."""
    with open_store(url, create=False) as store:
        book = the_rulebook(store, name)
        if rule is not None and rule not in book.rules:
            raise InputError([_unknown("rules", rule, book)])
        yield from store.firings(book.name, rule=rule, limit=limit)


def reset_table(url: str, name: str | None, table: str, start: str) -> dict[str, Any]:
    """Ask that a table's cursor be set: `now` or the version to read next (G10, G24)."""
    with open_store(url, create=False) as store:
        book = the_rulebook(store, name)
        if table not in book.tables:
            raise InputError([_unknown("tables", table, book)])
        if not any(isinstance(e, TableEvent) and e.table == table for e in book.events.values()):
            place = book.tables[table].place
            message = f"table `{table}` raises no events, so it has no cursor to set"
            raise InputError([Problem("no-cursor", message, place, "declare an event on it first")])
        if start != "now" and not start.isdecimal():
            place = Place(file="--from", path=start)
            problem = Problem("bad-version", f"{start!r} is not a version", place, "now|VERSION")
            raise InputError([problem])
        store.ask(book.name, "reset", table, None if start == "now" else int(start))
        return {"rulebook": book.name, "table": table, "from": start, "effective": "next plan"}


def migrate_store(url: str) -> dict[str, Any]:
    """Bring a store's schema to this version."""
    before, after = migrate_schema(url)
    return {"store": url, "from": before, "to": after}


def _unknown(section: str, name: str, book: Rulebook) -> Problem:
    known = book.tables if section == "tables" else book.rules
    hint = did_you_mean(name, known)
    place = Place(file=book.file or "<text>", path=f"{section}.{name}")
    return Problem(f"unknown-{section[:-1]}", f"`{name}` is not declared", place, hint)
