"""Controls: requests of operators, kept until a plan carries them out (G24)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from tidegate.engine.core.entries import Control
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import mappings, server_now
from tidegate.engine.store.holder import this_user
from tidegate.engine.store.tables import controls

RELOAD = "reload"
VERBS = ("disable", "enable", "put", "drop")
"""What a reload may do to one rule, as its option says."""
_OF_ACTION = re.compile(r"rule (\w+), entry \d+")


class Controls(Bound):
    """Implements `engine.core.ledger.Controls`."""

    def ask(
        self,
        kind: str,
        subject: str,
        version: int | None = None,
        option: str | None = None,
        asked_by: str | None = None,
    ) -> None:
        """Ask the engine for something (`engine.core.entries.Control`). `asked_by`: None for the
        user of this process."""
        with self.database.write() as connection:
            add(connection, self.rulebook, kind, subject, version, option, asked_by=asked_by)

    def ask_each(
        self,
        kind: str,
        subjects: Iterable[str],
        option: str | None,
        asked_by: str | None = None,
    ) -> None:
        """Ask for the same of several subjects at once."""
        with self.database.write() as connection:
            for subject in subjects:
                add(connection, self.rulebook, kind, subject, option=option, asked_by=asked_by)

    def note(self, kind: str, subject: str, text: str) -> None:
        """Store a request that did not come through the store, with its answer."""
        with self.leased() as connection:
            add(connection, self.rulebook, kind, subject, answer=text)

    def pending(self) -> tuple[Control, ...]:
        with self.database.read() as connection:
            return pending(connection, self.rulebook)

    def count(self, wanted: Mapping[str, str | None]) -> int:
        """How many requests there are. `wanted`: kind, subject, asked_by; None: any. A reload that
        disables a rule for a key is found as what it does, too: `disable`, and the rule."""
        query = sa.select(sa.func.count()).select_from(controls).where(*self._where(wanted))
        with self.database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def newest(self, wanted: Mapping[str, str | None], most: int) -> list[dict[str, Any]]:
        """The newest of them, at most so many, newest first."""
        c = controls.c
        columns = (c.id, c.asked_at, c.asked_by, c.kind, c.subject, c.version, c.option, c.bucket)
        query = sa.select(*columns, c.answer).where(*self._where(wanted))
        query = query.order_by(c.asked_at.desc(), c.id.desc()).limit(most)
        with self.database.read() as connection:
            rows = mappings(connection, query, "asked_at")
        for row in rows:  # a bucket that carried it out says nothing
            row["answer"] = row["answer"] or (None if row["bucket"] is None else "done")
        return rows

    def _where(self, wanted: Mapping[str, str | None]) -> list[sa.ColumnElement[bool]]:
        c = controls.c
        given = {name: text for name, text in wanted.items() if text is not None}
        same = {name: c[name] == text for name, text in given.items()}
        if kind := given.get("kind"):
            same["kind"] |= _says(kind)
        if subject := given.get("subject"):
            same["subject"] |= sa.or_(*(_says(f"{verb} {subject}") for verb in VERBS))
        return [c.rulebook == self.rulebook, *same.values()]

    def answer(self, control: int, text: str) -> None:
        with self.leased() as connection:
            answer(connection, self.rulebook, control, text)
            failpoint("answer.before")


def _says(words: str) -> sa.ColumnElement[bool]:
    """Whether a request is a reload whose option begins with these words."""
    begin = sa.func.substr(controls.c.option + " ", 1, len(words) + 1)
    return sa.and_(controls.c.kind == RELOAD, begin == f"{words} ")


def add(
    connection: sa.Connection,
    rulebook: str,
    kind: str,
    subject: str,
    version: int | None = None,
    option: str | None = None,
    answer: str | None = None,
    asked_by: str | None = None,
) -> None:
    """Store a request, or one that has its `answer` already. `asked_by`: None for the user of this
    process."""
    asked_at = server_now(connection)
    row = {"rulebook": rulebook, "kind": kind, "subject": subject, "version": version}
    row |= {"option": option, "answer": answer, "asked_by": asked_by or this_user()}
    connection.execute(sa.insert(controls).values(asked_at=asked_at, **row))


def pending(connection: sa.Connection, rulebook: str) -> tuple[Control, ...]:
    """The requests that are neither carried out nor answered, in the order of asking."""
    c = controls.c
    query = sa.select(c.id, c.kind, c.subject, c.version, c.option, c.asked_at, c.asked_by)
    query = query.where(c.rulebook == rulebook, c.bucket.is_(None), c.answer.is_(None))
    return tuple(Control(*row) for row in connection.execute(query.order_by(c.id)))


def of_action(rule: str, entry: int) -> str:
    """Who asked, where an action did."""
    return f"rule {rule}, entry {entry}"


def asking_rule(asked_by: str | None) -> str | None:
    """The rule whose action asked, None: somebody else did."""
    found = _OF_ACTION.fullmatch(asked_by or "")
    return found and found[1]


def answer(connection: sa.Connection, rulebook: str, control: int, text: str) -> None:
    """Store what came of a request."""
    one = sa.update(controls).filter_by(rulebook=rulebook, id=control)
    connection.execute(one.values(answer=text))
