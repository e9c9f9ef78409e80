"""Commands that need the store only: `run` keeps the active rulebook in it. No Spark here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tidegate import rules
from tidegate.engine.control.askrule import ask_for_rule
from tidegate.engine.control.everywhere import make_signals
from tidegate.engine.control.firings import Chosen, unknown
from tidegate.engine.control.locallog import ahead
from tidegate.engine.control.rulebooks import Rules, ask_to_reload
from tidegate.engine.control.status import held_back, next_timers
from tidegate.engine.core.lifecycle import IDLE
from tidegate.engine.quarantine.rulebook_texts import texts_of
from tidegate.engine.store import FINISHED, SqlStore, open_store
from tidegate.engine.store import migrate as migrate_schema
from tidegate.engine.store.address import parse_url, redacted
from tidegate.engine.store.status import CARRIED
from tidegate.engine.store.totals import Total
from tidegate.rules.analysis.table_events import table_events
from tidegate.rules.errors import EngineError, InputError, Problem, word_place
from tidegate.rules.model import ClockEvent, Rulebook, Table
from tidegate.rules.yaml.files import read_file

_NOTHING: Mapping[str, Any] = {
    "last_fired": None,
    **Total().shown,
    "damped_by": {},
    "pending": 0,
    "held": 0,
    **dict.fromkeys(CARRIED, 0),
}


def raise_signal(
    url: str,
    name: str | None,
    rulebook_file: Path | None,
    event: str,
    fields: Mapping[str, str | None],
    signal_id: str | None,
) -> dict[str, Any]:
    """Insert one explicit occurrence, unplaced (G4), into every rulebook that declares it, or into
    the one of a `name`; `rulebook_file` is registered first, and meant then.

    Raises InputError for an unknown event or field, EngineError `signal-conflict` for an id that
    stands for another body.
    """
    loaded = rules.load(rulebook_file) if rulebook_file else None
    with open_store(url, create=loaded is not None) as store:
        books = {loaded.name: loaded} if loaded else the_rulebooks(store, name)
        raised = make_signals(books, event, fields, signal_id, store.wall(), text=True)
        if loaded:
            keep_given(store, loaded)
        fresh = store.raise_everywhere(raised)
        id = next(iter(raised.values())).id
        return {"event": event, "id": id, "inserted": fresh, "rulebooks": [*raised]}


def the_rulebooks(store: SqlStore, name: str | None) -> dict[str, Rulebook]:
    """All rulebooks of a store, or the one of a name. Raises EngineError `no-rulebook`."""
    known = store.rulebooks()
    if name is not None or len(known) < 2:
        book = the_rulebook(store, name)
        return {book.name: book}
    return {name: kept.load() for name, kept in sorted(known.items())}


def keep_given(store: SqlStore, book: Rulebook) -> None:
    """Keep a rulebook that a command was given, unless an engine runs one of its name: then what
    runs stays what the store says that runs."""
    if store.holder(book.name) is None:
        store.register(book.name, book.text, book.file, files=book.files)


def the_rulebook(store: SqlStore, name: str | None) -> Rulebook:
    """The rulebook that a command means, from the text kept in the store."""
    known = store.rulebooks()
    if name is None and len(known) == 1:
        name = next(iter(known))
    if name is None or name not in known:
        names = ", ".join(sorted(known)) or "none"
        what = f"rulebook {name!r} is not in this store" if name else "which rulebook is meant?"
        raise EngineError("no-rulebook", f"{what} (known: {names})", "give --rulebook NAME")
    return known[name].load()


def rulebook_status(url: str, name: str | None) -> dict[str, Any]:
    """`tidegate status`: what the store knows of a rulebook, and how far tables on this machine are
    ahead of it."""
    with open_store(url, create=False) as store:
        return whole_status(store, the_rulebook(store, name))


def all_status(url: str, name: str | None) -> list[dict[str, Any]]:
    """What `tidegate status` shows: of the one rulebook that is meant all there is, of several what
    can be asked each second."""
    with open_store(url, create=False) as store:
        books = the_rulebooks(store, name)
        if len(books) == 1:
            return [whole_status(store, book) for book in books.values()]
        return [status_of(store, book) for book in books.values()]


def whole_status(store: SqlStore, book: Rulebook) -> dict[str, Any]:
    """The same of an open store. The next timers take the rulebook's event graph."""
    status = status_of(store, book)
    status["next_timers"] = next_timers(store, book, status.pop("watermark_micros"))
    status["held_back"] = held_back(book, status)
    return status


def status_of(store: SqlStore, book: Rulebook) -> dict[str, Any]:
    """What of it can be asked each second: no next timers, and not what is held back."""
    texts = texts_of(book)
    status = store.status(book.name, declared=book.events, rules=book.rules, texts=texts)
    for row in status["tables"]:
        table = book.tables.get(row["table"])
        seen = ahead(table, row["version"]) if table is not None else None
        idle = status["state"] == IDLE  # the engine has seen what this machine cannot
        row["commits_behind"] = seen.commits if seen else 0 if idle else None
        row["seconds_behind"] = seen.seconds if seen else 0.0 if idle else None
    status["lag"] = _lag(status)
    for row in status["rules"]:
        rule = book.rules.get(row["rule"])
        if rule is not None and rule.dry and row["state"] == "active":
            row["state"] = "dry"
    clocks = (name for name, event in book.events.items() if isinstance(event, ClockEvent))
    status["misfires"] = {**dict.fromkeys(clocks, 0), **status["misfires"]}
    known = {row["rule"]: row for row in status["rules"]}
    status["rules"] = [row for row in status["rules"] if row["rule"] not in book.scripts]
    status["scripts"] = [
        {
            "script": name,
            "state": row.get("state", "not active" if script.enabled else "disabled"),
            **{carried: row.get(carried, 0) for carried in CARRIED},
        }
        for name, script in sorted(book.scripts.items())
        for row in [known.get(name, {})]
    ]
    status["rules"] += [
        {"rule": rule.name, "state": "not active" if rule.enabled else "disabled", **_NOTHING}
        for rule in book.rules.values()
        if rule.name not in known
    ]
    return status


def _lag(status: Mapping[str, Any]) -> dict[str, Any]:
    """What is visible and not taken, as far as it is known: commits, signals; and for how long the
    oldest of it, a timer that is due included, has been so."""
    commits = [row["commits_behind"] for row in status["tables"]]
    seconds = [row["seconds_behind"] or 0.0 for row in status["tables"]]
    seconds += [status["behind"]["seconds"], status["oldest_signal_seconds"]]
    return {
        "commits": max(sum(filter(None, commits)), status["behind"]["commits"]),
        "signals": status["unplaced_signals"],
        "seconds": max(*seconds, status["next_timer_late_seconds"]),
    }


def list_firings(
    url: str,
    name: str | None,
    chosen: Chosen = Chosen(),  # noqa: B008, it is frozen
) -> Iterator[Mapping[str, Any]]:
    """`tidegate firings`: one mapping each, as `language.md` 3 has it."""
    with open_store(url, create=False) as store:
        book = the_rulebook(store, name)
        chosen.check(book)
        yield from store.firings(
            book.name,
            rule=chosen.rule,
            since=chosen.since,
            until=chosen.until,
            before=chosen.before,
            limit=chosen.limit,
            match=chosen.matches if chosen.key or chosen.state else None,
        )


def count_detections(url: str, name: str | None, rule: str | None) -> Total:
    """What became of all detections, of all rules or of one."""
    with open_store(url, create=False) as store:
        return store.totals(the_rulebook(store, name).name, rule)


def show_entry(url: str, name: str | None, number: int) -> dict[str, Any]:
    """`tidegate firings --entry`: an entry with all that was said of its failure."""
    with open_store(url, create=False) as store:
        book = the_rulebook(store, name)
        found = store.entry(book.name, number, book.rules)
    if found is None:
        raise InputError([_no_entry(number, "--entry")])
    return found


def list_rejected(url: str, name: str | None, limit: int, *, whole: bool) -> list[dict[str, Any]]:
    """`tidegate rejected`: the newest rows and signals that could not become occurrences."""
    with open_store(url, create=False) as store:
        return store.rejected(the_rulebook(store, name).name, limit, whole=whole)


def pass_over(
    url: str, name: str | None, kind: str, number: int, option: str | None
) -> dict[str, Any]:
    """Ask for `skip` or `redrive` of an entry (G16b, G18)."""
    with open_store(url, create=False) as store:
        book = the_rulebook(store, name)
        entry = store.one_entry(book.name, number)
        if entry is None:
            raise InputError([_no_entry(number)])
        if entry.state in FINISHED:
            message = f"entry {number} of rule {entry.rule} is {entry.state} already"
            place = word_place("ENTRY")
            raise InputError([Problem("entry-finished", message, place, "nothing is to be done")])
        store.ask(book.name, kind, str(number), option=option)
        asked = {"asked_for": kind, "entry": number, "rule": entry.rule, "state": entry.state}
        return {"rulebook": book.name, **asked, "effective": _effective(store, book.name)}


def list_dead(url: str, name: str | None, rule: str | None, limit: int) -> list[dict[str, Any]]:
    """`tidegate dead`: the newest entries that are not tried any more."""
    with open_store(url, create=False) as store:
        book = the_rulebook(store, name)
        found = store.dead_letters(book.name, rule, limit, book.rules)
        if not found:
            _check_rule(book, rule)
        return found


def redrive_all(url: str, name: str | None, rule: str | None, option: str | None) -> dict[str, Any]:
    """Ask for `redrive` of every entry that is dead or held, of all rules or of one. Those of rules
    that are gone are left out, and those for which it is asked already."""
    with open_store(url, create=False) as store:
        book = the_rulebook(store, name)
        found = store.stuck_entries(book.name, rule)
        if not found:
            _check_rule(book, rule)
        asked = {
            c.subject
            for c in store.pending_controls(book.name)
            if (c.kind, c.option) == ("redrive", option)
        }
        some = [str(n) for n, of_rule in found if of_rule in book.rules and str(n) not in asked]
        store.ask_each(book.name, "redrive", some, option)
        told: dict[str, Any] = {"rulebook": book.name, "asked_for": "redrive", "entries": len(some)}
        if gone := [n for n, of_rule in found if of_rule not in book.rules]:
            told["only_to_be_skipped"] = gone  # their rules are gone
        return told | ({"effective": _effective(store, book.name)} if some else {})


def switch_rule(
    url: str,
    name: str | None,
    kind: str,
    rule: str,
    *,
    purge: bool = False,
    key: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Ask that a rule goes on or stops (G13, G24), for all keys or for one."""
    with open_store(url, create=False) as store:
        book = the_rulebook(store, name)
        if key:
            of = Rules(store, book.name)
            version = (of.disable_for if kind == "disable" else of.enable_for)(rule, key)
            return _proposed(store, book.name, rule=rule, key=dict(key), version=version)
        ask_for_rule(store, book, kind, rule, purge=purge)
        asked = {"asked_for": kind, "rule": rule}
        return {"rulebook": book.name, **asked, "effective": _effective(store, book.name)}


def reset_table(url: str, name: str | None, table: str, start: str) -> dict[str, Any]:
    """Ask that a table's cursor be set: `now` or the version to read next (G10, G24)."""
    with open_store(url, create=False) as store:
        book = the_rulebook(store, name)
        if table not in book.tables:
            raise InputError([unknown("tables", table, book, "TABLE")])
        if not any(event.table == table for event in table_events(book)):
            place = book.tables[table].place
            message = f"table `{table}` raises no events, so it has no cursor to set"
            raise InputError([Problem("no-cursor", message, place, "declare an event on it first")])
        if start != "now" and not re.fullmatch("[0-9]{1,18}", start):
            hint = "write now, or the version to read next"
            message = f"{start!r} is not a version"
            problem = Problem("bad-version", message, word_place("--from"), hint)
            raise InputError([problem])
        cursor = store.cursor(book.name, table)
        told = _passed_over(book.tables[table], start, cursor)
        store.ask(book.name, "reset", table, None if start == "now" else int(start))
        asked = {"asked_for": "reset", "table": table, "from": start, **told}
        return {"rulebook": book.name, **asked, "effective": _effective(store, book.name)}


def _passed_over(table: Table, start: str, cursor: int | None) -> dict[str, str]:
    """What a reset skips or repeats, as far as it can be said. Raises InputError for a version
    beyond the head."""
    seen = ahead(table, -1 if cursor is None else cursor)
    if start != "now" and seen is not None and int(start) > seen.head + 1:
        message = f"version {start} is beyond the head of `{table.name}`, version {seen.head}"
        hint = f"the next version is {seen.head + 1}; `now` goes on behind the head"
        raise InputError([Problem("beyond-head", message, word_place("--from"), hint)])
    if cursor is None:
        return {}
    first, read = cursor + 1, f"version {cursor} was read last"
    if start == "now":
        behind = f" ({seen.commits} now)" if seen is not None else ""
        return {"skips": f"all from version {first} on that is there by then{behind}; {read}"}
    if int(start) > first:
        return {"skips": f"versions {first} to {int(start) - 1}; {read}"}
    if int(start) < first:
        return {"repeats": f"versions {start} to {cursor}, as new occurrences; {read}"}
    return {}


def migrate_store(url: str) -> dict[str, Any]:
    """Bring a store's schema to this version."""
    before, after = migrate_schema(url)
    return {"store": redacted(parse_url(url)), "from": before, "to": after}


def _check_rule(book: Rulebook, rule: str | None) -> None:
    if rule is not None and rule not in book.rules:
        raise InputError([unknown("rules", rule, book, "RULE")])


def _proposed(store: SqlStore, rulebook: str, **asked: Any) -> dict[str, Any]:
    """A version that was asked for: the engine alone knows whether it fits the tables."""
    effective = f"{_effective(store, rulebook)}, if it fits; `tidegate status` has the answer"
    return {"rulebook": rulebook, **asked, "effective": effective}


def _effective(store: SqlStore, rulebook: str) -> str:
    """When the engine does what it was asked for."""
    if store.holder(rulebook) is None:
        return "no engine runs: `tidegate run` carries it out"
    return "at the engine's next look"


def _no_entry(number: int, word: str = "ENTRY") -> Problem:
    message = f"there is no entry {number} (any more)"
    hint = "`tidegate status` lists those that are not finished"
    return Problem("no-entry", message, word_place(word), hint)


def reload_rulebook(url: str, name: str | None, file: Path | None) -> dict[str, Any]:
    """`tidegate reload`. Raises InputError with all that is wrong with the file."""
    with open_store(url, create=False) as store:
        book = the_rulebook(store, name)
        return _proposed(store, book.name, version=ask_to_reload(store, book, file))


def rules_of(url: str, name: str | None) -> list[dict[str, Any]]:
    """`tidegate rules list`."""
    with open_store(url, create=False) as store:
        return Rules(store, the_rulebook(store, name).name).list()


def put_rule(
    url: str, name: str | None, rule: str, text: str | None, file: Path | None
) -> dict[str, Any]:
    """`tidegate rules put`. Raises InputError with all that is wrong with the rule."""
    definition = text if text is not None else read_file(str(file))
    with open_store(url, create=False) as store:
        book = the_rulebook(store, name).name
        return _proposed(store, book, version=Rules(store, book).put(rule, definition))


def drop_rule(url: str, name: str | None, rule: str) -> dict[str, Any]:
    """`tidegate rules drop`."""
    with open_store(url, create=False) as store:
        book = the_rulebook(store, name).name
        return _proposed(store, book, version=Rules(store, book).drop(rule))
