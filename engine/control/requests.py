"""Requests of operators: skip or redrive entries, switch rules, reset tables, reload, put and drop
rules. They are kept in the store; an engine carries them out at its next look. No Spark here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tidegate.engine.control.firings import check_rule, no_entry
from tidegate.engine.control.rulebooks import Rules, ask_to_reload, opened, unknown
from tidegate.engine.control.table_log import log_of
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.suspect import STRIKES_MAX
from tidegate.engine.store import FINISHED, SqlStore
from tidegate.engine.store import migrate as migrate_schema
from tidegate.engine.store.address import parse_url, redacted
from tidegate.engine.store.dead_letters import Stuck
from tidegate.rules.analysis.graph import table_events
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.model import Rulebook, Table
from tidegate.rules.yaml.files import read_file


def pass_over(
    url: str, name: str | None, kind: str, number: int, option: str | None
) -> dict[str, Any]:
    """Ask for `skip` or `redrive` of an entry (G16b, G18)."""
    with opened(url, name) as (store, book):
        entry = open_entry(store, book, number)
        store.of(book.name).controls.ask(kind, str(number), option=option)
        asked = {"asked_for": kind, "entry": number, "rule": entry.rule, "state": entry.state}
        return _answer(store, book, asked)


def open_entry(store: SqlStore, book: Rulebook, number: int) -> Entry:
    """An entry that may be skipped or redriven. Raises InputError for another one."""
    entry = store.of(book.name).outbox.entry(number)
    if entry is None:
        raise InputError([no_entry(number)])
    if entry.state in FINISHED:
        message = f"entry {number} of rule {entry.rule} is {entry.state} already"
        place = word_place("ENTRY")
        raise InputError([Problem("entry-finished", message, place, "nothing is to be done")])
    return entry


def redrive_all(url: str, name: str | None, rule: str | None, option: str | None) -> dict[str, Any]:
    """Ask for `redrive` of every entry that is dead or held, of all rules or of one
    (`open_to_redrive`)."""
    with opened(url, name) as (store, book):
        some, gone = open_to_redrive(store, book, rule, option)
        ask_to_redrive(store, book, some, option)
        told: dict[str, Any] = {"asked_for": "redrive", "entries": len(some)}
        if gone:
            told["only_to_be_skipped"] = gone  # their rules do not exist any more
        return _answer(store, book, told) if some else {"rulebook": book.name, **told}


def open_to_redrive(
    store: SqlStore, book: Rulebook, rule: str | None, option: str | None
) -> tuple[list[Stuck], list[int]]:
    """The entries that are dead or held, of all rules or of one, without those that such a request
    waits for; and the numbers of those whose rule is gone, which are not among them. Raises
    InputError for an unknown rule."""
    found = store.of(book.name).dead_letters.stuck(rule)
    if not found:
        check_rule(book, rule)
    pending = store.of(book.name).controls.pending()
    asked = {c.subject for c in pending if (c.kind, c.option) == ("redrive", option)}
    known = [one for one in found if one.rule in book.rules]
    gone = [one.number for one in found if one.rule not in book.rules]
    return [one for one in known if str(one.number) not in asked], gone


def ask_to_redrive(
    store: SqlStore,
    book: Rulebook,
    some: Iterable[Stuck],
    option: str | None,
    asked_by: str | None = None,
) -> None:
    """Ask for `redrive` of each of some entries."""
    numbers = [str(one.number) for one in some]
    store.of(book.name).controls.ask_each("redrive", numbers, option, asked_by)


def switch_rule(
    url: str,
    name: str | None,
    kind: str,
    rule: str,
    *,
    purge: bool = False,
    key: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Ask to enable or disable a rule (G13, G24), for all keys or for one."""
    with opened(url, name) as (store, book):
        if key:
            of = Rules(store, book.name)
            version = (of.disable_for if kind == "disable" else of.enable_for)(rule, key)
            return _proposed(store, book, version, {"rule": rule, "key": dict(key)})
        ask_for_rule(store, book, kind, rule, purge=purge)
        return _answer(store, book, {"asked_for": kind, "rule": rule})


def reset_table(url: str, name: str | None, table: str, start: str) -> dict[str, Any]:
    """Ask to set a table's cursor: `now`, its head, or the version to read next (G10, G24)."""
    with opened(url, name) as (store, book):
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
        cursor = store.of(book.name).buckets.cursor(table)
        told = _passed_over(book.tables[table], start, cursor)
        store.of(book.name).controls.ask("reset", table, None if start == "now" else int(start))
        return _answer(store, book, {"asked_for": "reset", "table": table, "from": start, **told})


def _passed_over(table: Table, start: str, cursor: int | None) -> dict[str, str]:
    """Which versions a reset skips or repeats, as far as this machine can tell. Raises InputError
    for a version beyond the head."""
    log = log_of(table)
    seen = log.ahead(-1 if cursor is None else cursor) if log is not None else None
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


def _answer(store: SqlStore, book: Rulebook, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request, which says when the engine will carry it out."""
    effective = "at the engine's next look"
    if store.of(book.name).lease.holder() is None:
        effective = "no engine runs: `tidegate run` carries it out"
    return {"rulebook": book.name, **asked, "effective": effective}


def _proposed(
    store: SqlStore, book: Rulebook, version: int, asked: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The answer to a request for another version of a rulebook. Only the engine will know whether
    it fits the tables."""
    answer = _answer(store, book, {**(asked or {}), "version": version})
    answer["effective"] += ", if it fits; `tidegate status` has the answer"
    return answer


def reload_rulebook(url: str, name: str | None, file: Path | None) -> dict[str, Any]:
    """`tidegate reload`. Raises InputError with all that is wrong with the file."""
    with opened(url, name) as (store, book):
        return _proposed(store, book, ask_to_reload(store, book, file))


def rules_of(url: str, name: str | None) -> list[dict[str, Any]]:
    """`tidegate rules list`."""
    with opened(url, name) as (store, book):
        return Rules(store, book.name).list()


def put_rule(
    url: str, name: str | None, rule: str, text: str | None, file: Path | None
) -> dict[str, Any]:
    """`tidegate rules put`. Raises InputError with all that is wrong with the rule."""
    definition = text if text is not None else read_file(str(file))
    with opened(url, name) as (store, book):
        return _proposed(store, book, Rules(store, book.name).put(rule, definition))


def drop_rule(url: str, name: str | None, rule: str) -> dict[str, Any]:
    """`tidegate rules drop`."""
    with opened(url, name) as (store, book):
        return _proposed(store, book, Rules(store, book.name).drop(rule))


def ask_for_rule(
    store: SqlStore,
    book: Rulebook,
    kind: str,
    rule: str,
    *,
    purge: bool = False,
    asked_by: str | None = None,
) -> None:
    """Ask to enable or disable a rule. Raises InputError where that would change nothing."""
    check_switch(store, book, kind, rule, purge=purge)
    option = "purge" if purge else None
    store.of(book.name).controls.ask(kind, rule, option=option, asked_by=asked_by)


def check_switch(
    store: SqlStore, book: Rulebook, kind: str, rule: str, *, purge: bool = False
) -> None:
    """Raises InputError where enabling or disabling a rule would change nothing."""
    named = book.rules.get(rule) or book.scripts.get(rule)
    what = "script" if rule in book.scripts else "rule"
    if named is None:
        hint = did_you_mean(rule, [*book.rules, *book.scripts])
        message = f"the rulebook {book.name} has no rule or script `{rule}`"
        raise InputError([Problem("unknown-rule", message, word_place("RULE"), hint)])
    if not named.enabled:
        message = f"{what} `{rule}` is disabled in the rulebook"
        raise _refused(message, "write `enabled: true` there, and run it again")
    asked = [c.kind for c in store.of(book.name).controls.pending() if c.subject == rule]
    states = store.of(book.name).rule_states
    off = rule in states.disabled()
    at_rest = off or asked or rule in states.parked() or _quarantined(store, book, rule)
    if kind == "enable" and not at_rest:
        hint = "`tidegate status` lists the rules that are"
        raise _refused(f"{what} `{rule}` is not parked, and not disabled", hint)
    if kind == "disable" and off and not asked and not purge:
        raise _refused(f"{what} `{rule}` is disabled already", f"`tidegate enable {rule}` ends it")


def _quarantined(store: SqlStore, book: Rulebook, rule: str) -> bool:
    """Whether enabling a rule releases a text: one of its own, or one that no single rule owns."""
    struck = store.of(book.name).suspects.strikes()
    return any(one.count >= STRIKES_MAX and one.suspect.owner in (None, rule) for one in struck)


def _refused(message: str, hint: str) -> InputError:
    return InputError([Problem("not-switched", message, word_place("RULE"), hint)])
