"""The rulebooks of a store, and rules as data: list them, put them beside a rulebook's text, drop
them, whether an engine runs or not (G24).

engine.rules.put("alarm", "{on: placed, if: amount > 100, do: [{signal: alarmed}]}")
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tidegate.engine.core.parameters import key_schema
from tidegate.engine.core.text.json_text import key_text
from tidegate.engine.core.text.layout import pairs_text
from tidegate.engine.core.types.spark import spark_type
from tidegate.engine.store import KeptRulebook, SqlStore, open_store
from tidegate.rules.analysis.graph import table_events
from tidegate.rules.errors import EngineError, InputError, Problem, did_you_mean, word_place
from tidegate.rules.loader import is_text
from tidegate.rules.model import Rule, Rulebook
from tidegate.rules.yaml.files import read_file


class Rules:
    """The rules of one rulebook. Each change is a new version of the rulebook. The running engine
    takes it over between two buckets."""

    def __init__(
        self,
        store: SqlStore,
        rulebook: str,
        wake: Callable[[], None] = lambda: None,
        asked_by: str | None = None,
    ) -> None:
        self._store, self._rulebook, self._wake = store, rulebook, wake
        self._asked_by = asked_by  # None: the user of this process

    def put(self, name: str, text: str) -> int:
        """Put a rule beside the rulebook's text, or replace one that was put. `text`: its YAML, as
        under `rules:`. Returns the version. Raises InputError."""
        if "/" in name:  # `name/disabled_for` is how a part of a rule is kept
            message, hint = f"{name!r} is not a name", "letters, digits and _, not a keyword"
            raise InputError([Problem("name", message, word_place("NAME"), hint)])
        return self._ask(lambda kept: {**kept.added, name: text}, f"put {name}")

    def drop(self, name: str) -> int:
        """Drop a rule that was put; returns the version. Raises InputError."""
        return self._ask(lambda kept: _dropped(kept, name), f"drop {name}")

    def disable_for(self, rule: str, key: Mapping[str, str]) -> int:
        """Keep a rule from firing for a key; returns the version. Raises InputError."""
        said = f"disable {rule} for {pairs_text(key)}"
        return self._ask(lambda kept: _switched(kept, rule, key, off=True), said)

    def enable_for(self, rule: str, key: Mapping[str, str]) -> int:
        """Let a rule fire for a key again; returns the version. Raises InputError."""
        said = f"enable {rule} for {pairs_text(key)}"
        return self._ask(lambda kept: _switched(kept, rule, key, off=False), said)

    def check_switch(self, rule: str, key: Mapping[str, str], *, off: bool) -> None:
        """Raises InputError where `disable_for` (`off`) or `enable_for` would change nothing."""
        _switched(self._store.of(self._rulebook).versions.newest(), rule, key, off=off)

    def list(self) -> list[dict[str, Any]]:
        """A row for each rule: `rule`, `on`, `enabled`; `disabled_for`: the keys for which it does
        not fire; `put`: its YAML if it was put."""
        kept = self._store.of(self._rulebook).versions.newest()
        off = self._store.of(self._rulebook).rule_states.disabled()
        return [
            {
                "rule": rule.name,
                "on": rule.pattern.text,
                "enabled": rule.enabled and rule.name not in off,
                "disabled_for": [key_texts(key) for key in rule.disabled_for],
                "put": kept.added.get(rule.name),
            }
            for rule in kept.known().rules.values()
        ]

    def _ask(self, added: Callable[[KeptRulebook], Mapping[str, str]], said: str) -> int:
        """Propose the newest version with other rules beside its text. It starts again where
        somebody else has proposed a version meanwhile. `said`: what changes, for who looks later
        who has asked for what."""
        version = None
        while version is None:
            before = self._store.of(self._rulebook).versions.newest()
            kept = replace(before, added=added(before))
            self._store.of(self._rulebook).versions.judged(kept)
            versions = self._store.of(self._rulebook).versions
            version = versions.propose(kept, before.version, self._asked_by, said)
        self._wake()
        return version


def _dropped(kept: KeptRulebook, name: str) -> Mapping[str, str]:
    """The rules beside a text, without the rule `name` and its disabled keys. The rule itself may
    be gone already: then its disabled keys are dropped."""
    left = {n: text for n, text in kept.added.items() if n.partition("/")[0] != name}
    if name not in kept.added:
        book = kept.known()
        if name not in book.rules and left != kept.added:
            return left
        if name not in book.rules:
            raise InputError([unknown("rules", name, book, "NAME")])
        message = f"rule `{name}` stands in the rulebook's own text"
        hint = f"take it out there, or `tidegate disable {name}`"
        raise InputError([Problem("not-put", message, word_place("NAME"), hint)])
    return left


def _switched(
    kept: KeptRulebook, name: str, key: Mapping[str, str], *, off: bool
) -> Mapping[str, str]:
    """The rules beside a text, after a rule was disabled for a key (`off`), or enabled for it."""
    book = kept.known()
    rule = book.rules.get(name)
    if rule is None:
        raise InputError([unknown("rules", name, book, "RULE")])
    if {*key} != {*rule.pattern.key_names}:
        names = ", ".join(rule.pattern.key_names) or "none: it has no per:"
        message = f"the key columns of rule `{name}` are {names}"
        raise InputError([Problem("not-switched", message, word_place("--key"))])
    if off:
        _check_values(book, rule, key)
    known = [key_texts(key) for key in rule.disabled_for]
    if (dict(key) in known) is off:
        message = f"rule `{name}` is {'' if off else 'not '}disabled for this key"
        raise InputError([Problem("not-switched", message, word_place("--key"))])
    left = [one for one in known if one != key] + ([dict(key)] if off else [])
    return {**kept.added, f"{name}/disabled_for": json.dumps({"disabled_for": left})}


def key_texts(key: Mapping[str, Any]) -> dict[str, str]:
    """A key as texts, as commands take it."""
    return {name: key_text(value) for name, value in key.items()}


def _check_values(book: Rulebook, rule: Rule, key: Mapping[str, str]) -> None:
    """Raises InputError for a value that does not fit the declared type of its key column.

    Types of table columns are not known here. An empty struct stands for them: no key has that
    type, and key columns that get it are not checked.
    """
    read = {
        name
        for other in book.rules.values()
        for names in other.pattern.per.values()
        for name in names
    }
    read |= {name for event in table_events(book) for name in event.columns.values()}
    table = pa.schema([(name, pa.struct([])) for name in sorted(read)])
    for field in key_schema(rule, book, dict.fromkeys(book.tables, table), []):
        try:
            pa.array([key[field.name]]).cast(field.type)
        except pa.ArrowException:
            text = f"{field.name}={key[field.name]}"
            message = f"{text}: the values of {field.name} are {spark_type(field.type)}"
            hint = "write 2026-03-02T09:00:00Z" if pa.types.is_timestamp(field.type) else ""
            raise InputError([Problem("key-type", message, word_place("--key"), hint)]) from None


def ask_to_reload(
    store: SqlStore,
    book: Rulebook,
    source: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
    asked_by: str | None = None,
) -> int:
    """Propose another text of a rulebook: a path or YAML, by default its file as it is now. Returns
    the number of its version. `environment`: the engine's, where it is at hand; without it, a text
    with a new variable of the environment is refused. `asked_by`: None for the user of this
    process. Raises InputError."""
    while True:
        kept, changed = changed_text(store, book, source, environment)
        version = store.of(book.name).versions.propose(changed, kept.version, asked_by)
        if version is not None:
            return version


def changed_text(
    store: SqlStore,
    book: Rulebook,
    source: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[KeptRulebook, KeptRulebook]:
    """The newest version of a rulebook, and what would come after it, as `ask_to_reload` has it.
    Raises InputError."""
    kept = store.of(book.name).versions.newest()
    if source is None and kept.file is None:
        message = f"rulebook `{book.name}` came from no file"
        raise EngineError("no-rulebook", message, "name the file to take over")
    given = source if source is not None else kept.file or ""
    # Values that are known stay: who asks may have others in the environment
    variables = {name: value for name, value in kept.files.items() if name.startswith("${")}
    if isinstance(given, str) and is_text(given):
        changed = replace(kept, text=given, files=variables)
    else:
        path = os.path.abspath(given)
        changed = replace(kept, text=read_file(path), file=path, files=variables)
    files = store.of(book.name).versions.judged(changed, environment).files
    return kept, replace(changed, files=files)


def unknown(section: str, name: str, book: Rulebook, word: str) -> Problem:
    """The problem of a table or rule that the rulebook does not declare. `word`: the argument of
    the command that names it."""
    hint = did_you_mean(name, book.tables if section == "tables" else book.rules)
    if section == "rules" and name in book.scripts:
        hint = "it is a script, which only `enable` and `disable` take, without --key"
    message = f"the rulebook {book.name} has no {section[:-1]} `{name}`"
    return Problem(f"unknown-{section[:-1]}", message, word_place(word), hint)


def the_rulebooks(store: SqlStore, name: str | None) -> dict[str, Rulebook]:
    """All rulebooks of a store, or the one of a name. Raises EngineError `no-rulebook`."""
    known = store.rulebooks()
    if name is not None or len(known) < 2:
        book = the_rulebook(store, name)
        return {book.name: book}
    return {name: kept.known() for name, kept in sorted(known.items())}


def keep_given(store: SqlStore, book: Rulebook) -> None:
    """Register a rulebook that a command was given, unless an engine runs one of that name: the
    store must go on to name what runs."""
    if store.of(book.name).lease.holder() is None:
        store.of(book.name).versions.register(book.text, book.file, files=book.files)


@contextmanager
def opened(url: str, name: str | None) -> Iterator[tuple[SqlStore, Rulebook]]:
    """A store, and the rulebook in it that a command means."""
    with open_store(url, create=False) as store:
        yield store, the_rulebook(store, name)


def the_rulebook(store: SqlStore, name: str | None) -> Rulebook:
    """The rulebook that a command means, loaded from the store."""
    known = store.rulebooks()
    if name is None and len(known) == 1:
        name = next(iter(known))
    if name is None or name not in known:
        names = ", ".join(sorted(known)) or "none"
        what = f"rulebook {name!r} is not in this store" if name else "which rulebook is meant?"
        raise EngineError("no-rulebook", f"{what} (known: {names})", "give --rulebook NAME")
    return known[name].known()
