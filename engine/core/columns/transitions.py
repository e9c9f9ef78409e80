"""Transition tables: the net effect of a firing's constituents on a table, by its key. With
`net: bucket`, the net effect of all firings of a bucket that are acted on together.

`inserted` and `new_updated` hold rows as they are after all changes, `deleted` and `old_updated` as
they were before. If a rule reads several tables, the names begin with the table's:
`accounts_inserted`.

Example: key 1 is inserted with 5 and updated to 6, key 3 goes from 5 to 6 to 7, key 2 is inserted
and deleted. Then `inserted` has 1: 6, `old_updated` has 3: 5, `new_updated` has 3: 7.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.columns.hashing import row_hash
from tidegate.engine.core.parameters import CHANGE_TYPE, OLD
from tidegate.engine.core.values import Int64
from tidegate.rules.model import TRANSITION_TABLES, Change

_METADATA = b"transitions"
_ORDER = (Change.DELETE, Change.UPDATE, Change.INSERT)  # of one commit's changes of one key
_DELETE, _UPDATE, _INSERT = range(3)
_ANY = 3  # `_change_type` says which
_NONE = -1  # no change of the table


@dataclass(frozen=True, slots=True)
class Transitions:
    """How the transition tables of one table are made from the parameter relation.

    `prefix`: of their names. `key`: of the table. `columns`: by column of the table, the column of
    the relation. `events`: by event type, the kind of change. `per_firing`: the net effect of each
    firing, else of all together. `refused`: why the rule has no transition tables, `hint`: the
    remedy. It is stored in the metadata of the relation's schema.
    """

    table: str
    prefix: str
    key: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    events: Mapping[str, str] = field(default_factory=dict)
    per_firing: bool = True
    refused: str = ""
    hint: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The transition tables, in small letters."""
        return frozenset(self.prefix.lower() + name for name in TRANSITION_TABLES)

    @property
    def reads(self) -> frozenset[str]:
        """The columns of the relation that they are made of."""
        changes = {*self.events.values()}
        old = {OLD} if changes & {Change.UPDATE, Change.CHANGE} else set()
        kind = {CHANGE_TYPE} if Change.CHANGE in changes else set()
        return frozenset({"event_type", "occurred_at", *self.columns.values(), *old, *kind})


def with_transitions(schema: pa.Schema, found: Collection[Transitions]) -> pa.Schema:
    """The schema of a relation with its transition tables in the metadata."""
    if not found:
        return schema
    return schema.with_metadata({_METADATA: json.dumps([asdict(one) for one in found])})


def transitions_of(schema: pa.Schema) -> list[Transitions]:
    """The transition tables in the metadata of a relation's schema."""
    told = json.loads((schema.metadata or {}).get(_METADATA, b"[]"))
    return [Transitions(**{**one, "key": tuple(one["key"])}) for one in told]


def named_transitions(schema: pa.Schema) -> frozenset[str]:
    """The names of the transition tables that a relation has."""
    return frozenset[str]().union(*(one.names for one in transitions_of(schema)))


def transition_table(relation: pa.Table, name: str) -> pa.Table:
    """A transition table by its name in small letters. Its columns are `firing_id`, of the row's
    first change, and those of the table; rows are in order of their first change. Raises KeyError
    if the relation has no such table."""
    of = {n: one for one in transitions_of(relation.schema) for n in one.names}[name]
    return _net(relation, of, name.removeprefix(of.prefix.lower()))


def _net(relation: pa.Table, of: Transitions, kind: str) -> pa.Table:
    codes = _changes(relation, of)
    first, last = _ends(relation, of, codes)
    was, left = codes[first] != _INSERT, codes[last] != _DELETE
    if kind == "inserted":
        chosen = ~was & left
    elif kind == "deleted":
        chosen = was & ~left
    else:
        chosen = was & left
        before = _before(relation, of, first[chosen], codes)
        after = _after(relation, of, last[chosen])
        chosen[chosen] = (row_hash(before) != row_hash(after)).any(axis=1)
    first, last = first[chosen], last[chosen]
    order = np.argsort(first, kind="stable")
    first, last = first[order], last[order]
    old = kind in ("deleted", "old_updated")
    found = _before(relation, of, first, codes) if old else _after(relation, of, last)
    return found.add_column(0, "firing_id", relation["firing_id"].take(pa.array(first)))


def _changes(relation: pa.Table, of: Transitions) -> Int64:
    """The change of each row of the relation, as its index in `_ORDER`. `_NONE` for a row that is
    no whole change of the table, such as the beginning of an update, which has no row after it."""
    known = {**{change: code for code, change in enumerate(_ORDER)}, Change.CHANGE: _ANY}
    codes = np.array([*(known[Change(change)] for change in of.events.values()), _NONE])
    event = _index(relation["event_type"], list(of.events))
    found: Int64 = codes[event]
    if (found == _ANY).any():
        said = _index(relation[CHANGE_TYPE], [str(change) for change in _ORDER])
        found = np.where(found == _ANY, said, found)
    if (found == _UPDATE).any():
        whole = relation[OLD].is_valid().to_numpy()
        found = np.where((found == _UPDATE) & ~whole, _NONE, found)
    return found


def _index(values: pa.ChunkedArray, known: Sequence[str]) -> Int64:
    found = pc.index_in(values, pa.array(known, pa.string()))
    index: Int64 = found.fill_null(-1).to_numpy().astype(np.int64)
    return index


def _ends(relation: pa.Table, of: Transitions, codes: Int64) -> tuple[Int64, Int64]:
    """The rows of the first and the last change of each key, in each firing or in all together.
    Changes are in order of time, then of `_ORDER`."""
    rows = np.flatnonzero(codes != _NONE)
    changes = relation.take(pa.array(rows))
    columns = [changes[of.columns[name]] for name in of.key]
    if of.per_firing:
        columns.append(changes["firing_id"])
    group = row_hash(pa.table(columns, names=[str(n) for n in range(len(columns))]))
    time = changes["occurred_at"].cast(pa.int64()).to_numpy()
    order = np.lexsort((codes[rows], time, *group.T))
    differs = (np.diff(group[order].astype(np.int64), axis=0) != 0).any(axis=1)
    some = np.ones(min(len(rows), 1), np.bool_)
    rows = rows[order]
    return rows[np.append(some, differs)], rows[np.append(differs, some)]


def _after(relation: pa.Table, of: Transitions, rows: Int64) -> pa.Table:
    """The rows after changes; for a delete, the deleted row."""
    taken = relation.select([*dict.fromkeys(of.columns.values())]).take(pa.array(rows))
    return pa.table({name: taken[column] for name, column in of.columns.items()})


def _before(relation: pa.Table, of: Transitions, rows: Int64, codes: Int64) -> pa.Table:
    """The rows before changes. For an update it is in `old`."""
    after = _after(relation, of, rows)
    updated = codes[rows] == _UPDATE
    if not updated.any():
        return after
    old = relation[OLD].take(pa.array(rows)).combine_chunks()
    fields = {f.name.lower(): part for f, part in zip(old.type, old.flatten(), strict=True)}
    columns = {
        name: pc.if_else(
            pa.array(updated), fields[name.lower()].cast(column.type, safe=False), column
        )
        for name, column in zip(after.column_names, after.columns, strict=True)
    }
    return pa.table(columns)
