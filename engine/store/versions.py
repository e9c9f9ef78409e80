"""The versions of a rulebook's text, and which of them runs (G24).

Example: `run` registers version 1. `reload` proposes 2; the engine takes it over between two
buckets, and registers it. Buckets and entries name the version they were made by.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from tidegate import rules
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.store import controls
from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.controls import RELOAD
from tidegate.engine.store.database import insert_new, server_now, upsert
from tidegate.rules.errors import InputError, Problem, word_place
from tidegate.rules.model import Rulebook

TAKEN = {"yaml_bytes_max": str(2**62), "script_markers_max": str(2**62)}
"""Limits on the size of texts, for one that the engine has taken."""


@dataclass(frozen=True, slots=True)
class KeptRulebook:
    """A version of a rulebook. `text`: its YAML. `file`: where it came from. `added`: the YAML of
    the rules that were put beside it, by name. `version`: 0 for one that has not run yet. `files`:
    the contents of its scripts' files and of those that it includes, by the names in the text, and
    the values of the environment that it uses, by `${NAME}`; a missing one is read anew."""

    text: str
    file: str | None
    added: Mapping[str, str] = field(default_factory=dict)
    version: int = 0
    files: Mapping[str, str] = field(default_factory=dict)

    def load(
        self,
        settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = os.environ,
    ) -> Rulebook:
        """The rulebook, read and checked. Raises InputError."""
        return rules.load(
            self.text,
            settings=settings,
            file=self.file,
            added=self.added,
            files=self.files,
            environment=environment,
        )

    def known(self) -> Rulebook:
        """As `load`, of a text that the engine has taken: how long it may be was judged then, by
        what `--set` said. Raises InputError."""
        return self.load(TAKEN)

    def says(self, book: Rulebook) -> bool:
        """Whether a rulebook has this text and these files of scripts."""
        return (self.text, self.files) == (book.text, book.files)

    def judged(
        self,
        name: str,
        settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = os.environ,
    ) -> Rulebook:
        """The rulebook, read and checked to replace `name`. Its text must also be valid without the
        added rules, because a start reads it alone first. Raises InputError."""
        if self.added:
            replace(self, added={}).load(settings, environment)
        loaded = self.load(settings, environment)
        if loaded.name != name:
            message = f"this is the rulebook `{loaded.name}`, not `{name}`"
            place = word_place(self.file or "<text>")
            hint = "a rulebook keeps its name: its state in the store is under it"
            raise InputError([Problem("other-rulebook", message, place, hint)])
        return loaded


class Versions(Bound):
    """The texts of one rulebook."""

    def register(
        self,
        text: str,
        file: str | None,
        added: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> int:
        """Store that the rulebook runs, or is to run. Returns the number of its version: a new one,
        unless it equals the last version. `added` None: the added rules stay as they are."""
        with self.database.write() as connection:
            self._lock(connection)
            if added is None:
                before = current(connection, self.rulebook).get(self.rulebook)
                added = before.added if before is not None else {}
            kept = KeptRulebook(text, file, added, files=files or {})
            number = self._numbered(connection, kept)
            row = {"name": self.rulebook, **_row(connection, kept, number)}
            upsert(connection, t.rulebooks, [row])
            failpoint("register.before")
        return number

    def introduce(self, kept: KeptRulebook, settings: Mapping[str, str]) -> None:
        """Store a rulebook that is new to the store, so that the store can say why it did not
        start. A known one stays as it is. `settings`: the engine's own; those that bound texts
        hold for whatever proposes one to it."""
        limits = json.dumps({name: settings[name] for name in TAKEN if name in settings})
        with self.database.write() as connection:
            row = {"name": self.rulebook, **_row(connection, kept, 0)}
            insert_new(connection, t.rulebooks, row)
            mine = sa.update(t.rulebooks).where(t.rulebooks.c.name == self.rulebook)
            connection.execute(mine.values(limits=limits))

    def judged(
        self, kept: KeptRulebook, environment: Mapping[str, str] | None = os.environ
    ) -> Rulebook:
        """A version that is to be proposed, judged within the limits of the engine that runs, or
        ran last. Raises InputError."""
        query = sa.select(t.rulebooks.c.limits).where(t.rulebooks.c.name == self.rulebook)
        with self.database.read() as connection:
            limits = json.loads(connection.execute(query).scalar_one_or_none() or "{}")
        return kept.judged(self.rulebook, limits, environment)

    def propose(
        self,
        kept: KeptRulebook,
        after: int | None = None,
        asked_by: str | None = None,
        option: str | None = None,
    ) -> int | None:
        """Ask the engine to take over a new version. Returns its number. `after`: the version that
        it was made from. If that is not the newest any more, nothing is asked for, and the result
        is None. `asked_by`: None for the user of this process. `option`: of the request."""
        with self.database.write() as connection:
            self._lock(connection)
            if after is not None and self._newest(connection).version != after:
                return None
            number = self._numbered(connection, kept)
            asked = (self.rulebook, RELOAD, str(number))
            controls.add(connection, *asked, option=option, asked_by=asked_by)
        return number

    def running(self) -> KeptRulebook:
        """The version that runs, or ran last. Raises KeyError if there is none."""
        with self.database.read() as connection:
            return current(connection, self.rulebook)[self.rulebook]

    def newest(self) -> KeptRulebook:
        """The version that was asked for last, else the running one. Raises KeyError if there is
        none."""
        with self.database.read() as connection:
            return self._newest(connection)

    def latest(self, most: int) -> list[tuple[KeptRulebook, int]]:
        """The last versions, at most so many, newest first, each with when it was registered."""
        query = sa.select(t.versions).where(t.versions.c.rulebook == self.rulebook)
        query = query.order_by(t.versions.c.version.desc()).limit(most)
        with self.database.read() as connection:
            return [(_kept(row), row.registered_at) for row in connection.execute(query)]

    def version(self, number: int) -> KeptRulebook | None:
        """A version by its number; None if there is none."""
        with self.database.read() as connection:
            return self._version(connection, number)

    def _newest(self, connection: sa.Connection) -> KeptRulebook:
        asked = [c for c in controls.pending(connection, self.rulebook) if c.kind == RELOAD]
        found = self._version(connection, int(asked[-1].subject)) if asked else None
        return found or current(connection, self.rulebook)[self.rulebook]

    def _version(self, connection: sa.Connection, number: int) -> KeptRulebook | None:
        query = sa.select(t.versions).filter_by(rulebook=self.rulebook, version=number)
        row = connection.execute(query).one_or_none()
        return None if row is None else _kept(row)

    def _lock(self, connection: sa.Connection) -> None:
        """Lock the rulebook, so that two transactions do not give it the same next version."""
        named = sa.select(t.rulebooks.c.name).filter_by(name=self.rulebook)
        connection.execute(named.with_for_update())

    def _numbered(self, connection: sa.Connection, kept: KeptRulebook) -> int:
        c = t.versions.c
        mine = sa.select(t.versions).where(c.rulebook == self.rulebook).order_by(c.version.desc())
        last = connection.execute(mine.limit(1)).one_or_none()
        number = 1
        if last is not None:
            before = _kept(last)
            if before == replace(kept, version=before.version):
                return before.version
            number = before.version + 1
        row = {"rulebook": self.rulebook, **_row(connection, kept, number)}
        connection.execute(sa.insert(t.versions).values(row))
        return number


def current(connection: sa.Connection, rulebook: str | None = None) -> dict[str, KeptRulebook]:
    """By name, the rulebooks as they run, or ran last; or that of one name alone."""
    query = sa.select(t.rulebooks)
    if rulebook is not None:
        query = query.where(t.rulebooks.c.name == rulebook)
    return {row.name: _kept(row) for row in connection.execute(query)}


def numbers(connection: sa.Connection) -> dict[str, int]:
    """By name, the number of the version that runs, or ran last; 0 if none has run yet."""
    query = sa.select(t.rulebooks.c.name, t.rulebooks.c.version)
    return {row.name: row.version for row in connection.execute(query)}


def running(connection: sa.Connection, rulebook: str) -> int:
    """The number of the version that runs, 0 if none has run yet."""
    query = sa.select(t.rulebooks.c.version).where(t.rulebooks.c.name == rulebook)
    return connection.execute(query).scalar_one_or_none() or 0


def _row(connection: sa.Connection, kept: KeptRulebook, number: int) -> dict[str, object]:
    return {
        "text": kept.text,
        "file": kept.file,
        "added": json.dumps(dict(kept.added)),
        "files": json.dumps(dict(kept.files)),
        "version": number,
        "registered_at": server_now(connection),
    }


def _kept(row: sa.Row[*tuple[Any, ...]]) -> KeptRulebook:
    added, files = json.loads(row.added), json.loads(row.files)
    return KeptRulebook(row.text, row.file, added, row.version, files)
