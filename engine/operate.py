"""Commands that need the store only: `run` keeps the active rulebook in it. No Spark here."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import rules
from engine.sparktypes import parse_fields
from engine.store import SqlStore, open_store
from engine.store import migrate as migrate_schema
from engine.values import Signal
from rules.errors import EngineError, InputError, Place, Problem
from rules.model import Rulebook, SignalEvent


def raise_signal(
    url: str,
    name: str | None,
    rulebook_file: Path | None,
    event: str,
    fields: Mapping[str, str],
    signal_id: str | None,
) -> dict[str, Any]:
    """Insert one explicit occurrence, unplaced (G4).

    Raises InputError for an unknown event or field, EngineError `signal-conflict` for an id that
    stands for another body.
    """
    if rulebook_file is not None:
        book = rules.load(rulebook_file)
        store = open_store(url, create=True)
        store.register(book.name, book.text, book.file)
    else:
        store = open_store(url, create=False)
        book = the_rulebook(store, name)
    with store:
        signal = make_signal(book, event, fields, signal_id, store.wall())
        fresh = store.raise_signal(book.name, signal)
        return {"rulebook": book.name, "event": event, "id": signal.id, "inserted": fresh}


def make_signal(
    book: Rulebook, event: str, fields: Mapping[str, Any], signal_id: str | None, wall: int
) -> Signal:
    """Check a signal against its declaration; InputError names the event or field that is wrong."""
    declared = book.events.get(event)
    if not isinstance(declared, SignalEvent):
        signals = sorted(n for n, e in book.events.items() if isinstance(e, SignalEvent))
        hint = rules.did_you_mean(event, signals) or f"signals are: {', '.join(signals) or 'none'}"
        place = Place(file=book.file or "<text>", path=f"events.{event}")
        what = "is no signal" if declared else "is not declared"
        raise InputError([Problem("unknown-signal", f"event {event!r} {what}", place, hint)])
    values = parse_fields(declared, fields)
    return Signal(signal_id or str(uuid.uuid4()), event, values, received_at=wall)


def the_rulebook(store: SqlStore, name: str | None) -> Rulebook:
    """The rulebook a command means, from the text kept in the store."""
    known = store.rulebooks()
    if name is None and len(known) == 1:
        name = next(iter(known))
    if name is None or name not in known:
        names = ", ".join(sorted(known)) or "none"
        wanted = "which rulebook?" if name is None else f"rulebook {name!r} is not in this store"
        raise EngineError("no-rulebook", f"{wanted} Known: {names}", "give --rulebook NAME")
    kept = known[name]
    return rules.load(kept.text, file=kept.file)


def rulebook_status(url: str, name: str | None) -> dict[str, Any]:
    """`tidegate status`: what the store knows of a rulebook."""
    with open_store(url, create=False) as store:
        return store.status(the_rulebook(store, name).name)


def list_firings(
    url: str, name: str | None, rule: str | None, limit: int | None
) -> Iterator[Mapping[str, Any]]:
    """`tidegate firings`: one mapping each, as `language.md` 3 has it."""
    with open_store(url, create=False) as store:
        yield from store.firings(the_rulebook(store, name).name, rule=rule, limit=limit)


def reset_table(url: str, name: str | None, table: str, start: str) -> dict[str, Any]:
    """Record that a table's cursor is to be set: `now` or a version (G10, G24)."""
    with open_store(url, create=False) as store:
        book = the_rulebook(store, name)
        if table not in book.tables:
            place = Place(file=book.file or "<text>", path=f"tables.{table}")
            hint = rules.did_you_mean(table, book.tables)
            raise InputError([Problem("unknown-table", f"no table {table!r}", place, hint)])
        version = None if start == "now" else _version(start)
        store.add_reset(book.name, table, version)
        return {"rulebook": book.name, "table": table, "from": start, "effective": "next run"}


def _version(text: str) -> int:
    if not text.isdigit():
        place = Place(file="--from", path=text)
        raise InputError([Problem("bad-version", f"{text!r} is no version", place, "now|VERSION")])
    return int(text)


def migrate_store(url: str) -> dict[str, Any]:
    """Bring a store's schema to this version."""
    before, after = migrate_schema(url)
    return {"store": url, "from": before, "to": after}
