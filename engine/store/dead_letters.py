"""Dead letters: entries that are not tried any more, until an operator skips or redrives them
(G18)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, NamedTuple

import sqlalchemy as sa

from tidegate.engine.core.text import json_text
from tidegate.engine.store import tables as t
from tidegate.engine.store.blobs import through_count
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.outbox import DEAD, HELD, to_entry
from tidegate.engine.store.status import entry_commands


class Stuck(NamedTuple):
    """An entry that is dead or held."""

    number: int
    rule: str
    state: str


class DeadLetters(Bound):
    """The dead letters of one rulebook."""

    def newest(self, rule: str | None, limit: int, rules: Collection[str]) -> list[dict[str, Any]]:
        """The newest ones, at most `limit`, of all rules or of one, oldest first. They hold no
        values of the user's tables. `rules`: the rules that exist now."""
        o, f = t.outbox.c, t.firings.c
        same = (f.rulebook == o.rulebook) & (f.bucket == o.bucket) & (f.rule == o.rule)
        query = sa.select(t.outbox, f.firing_count, f.outcomes).outerjoin(t.firings, same)
        query = query.where(*self._of(rule), o.state == DEAD)
        with self.database.read() as connection:
            rows = connection.execute(query.order_by(o.number.desc()).limit(limit)).all()
        return [_shown(row, rules) for row in reversed(rows)]

    def stuck(self, rule: str | None) -> list[Stuck]:
        """All entries that are dead or held, of all rules or of one."""
        c = t.outbox.c
        query = sa.select(c.number, c.rule, c.state)
        query = query.where(*self._of(rule), c.state.in_((DEAD, HELD))).order_by(c.number)
        with self.database.read() as connection:
            return [Stuck(*row) for row in connection.execute(query)]

    def counts(self) -> list[dict[str, Any]]:
        """How many are dead and held, by rule, most first: rule, dead, held."""
        c, found = t.outbox.c, dict[str, Counter[str]]()
        query = sa.select(c.rule, c.state, sa.func.count()).group_by(c.rule, c.state)
        query = query.where(*self._of(None), c.state.in_((DEAD, HELD)))
        with self.database.read() as connection:
            for rule, state, count in connection.execute(query):
                found.setdefault(rule, Counter())[state] = count
        some = sorted(found.items(), key=lambda item: (-item[1].total(), item[0]))
        return [{"rule": rule, DEAD: each[DEAD], HELD: each[HELD]} for rule, each in some]

    def _of(self, rule: str | None) -> list[sa.ColumnExpressionArgument[bool]]:
        c = t.outbox.c
        of_rule = [] if rule is None else [c.rule == rule]
        return [c.rulebook == self.rulebook, t.UNFINISHED, *of_rule]


def _shown(row: sa.Row[Any], rules: Collection[str]) -> dict[str, Any]:
    names = ("number", "rule", "bucket", "kind", "target", "attempts", "error")
    return {
        **{name: row._mapping[name] for name in names},
        "stored_at": json_text.instant(row.stored_at),
        "firings": _firings(row),
        "commands": entry_commands(to_entry(row), rules),
        "text": row.text,
    }


def _firings(row: sa.Row[Any]) -> int | None:
    """How many firings the entry is for; None if they are purged."""
    if row.firing_ids is not None:
        return len(row.firing_ids)
    count: int | None = row.firing_count
    return count if count is None or row.kind == "condition" else through_count(row.outcomes, count)
