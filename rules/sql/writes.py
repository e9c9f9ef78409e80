"""What a statement of an action writes and reads, as far as its text shows.

`explain` and the warnings of a rulebook need this without Spark. So what a view or a function reads
is not known, nor a statement that sqlglot cannot read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from tidegate.rules.model import Change
from tidegate.rules.sql.tree import target

_CHANGES: Mapping[type[exp.Expr], Change] = {
    exp.Insert: Change.INSERT,
    exp.Update: Change.UPDATE,
    exp.Delete: Change.DELETE,
    exp.Var: Change.DELETE,  # of a MERGE: `THEN DELETE`
}


@dataclass(frozen=True, slots=True)
class Writes:
    """What one statement writes and reads. All names are in small letters.

    table    the target, with all parts of its name
    changes  what the statement may do there
    appends  it is a plain INSERT
    sets     the columns that it updates, each with the literal that it becomes, "" for another
             value; None: the columns are not listed
    names    all other identifiers in the statement
    tables   the tables that are read
    star     all columns of something are read
    """

    table: str
    changes: frozenset[Change]
    appends: bool = False
    sets: Mapping[str, str] | None = None
    names: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()
    star: bool = False

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns that an update changes; None: any."""
        return None if self.sets is None else frozenset(self.sets)

    def disturbs(self, other: Writes) -> bool:
        """Whether the other statement may have another effect after this one has run."""
        if self.table in other.tables:
            return not self._spares(other) or other.star
        if self.table != other.table or (self.appends and other.appends):
            return False
        return not (self._spares(other) and other._spares(self) and self._agrees(other))

    def _spares(self, other: Writes) -> bool:
        """Whether this one only changes columns that the other does not read."""
        only = self.changes == {Change.UPDATE} and self.sets is not None
        return only and self.sets.keys().isdisjoint(other.names)  # type: ignore[union-attr]

    def _agrees(self, other: Writes) -> bool:
        """Whether columns that both set become the same."""
        mine, its = self.sets or {}, other.sets or {}
        return all(mine[column] == its[column] != "" for column in mine.keys() & its.keys())


def written(
    statement: exp.Expr, nodes: Sequence[exp.Expr], tables: Collection[str]
) -> Writes | None:
    """What a statement writes. `nodes`: its nodes; `tables`: the tables that it reads."""
    table = target(statement)
    if table is None:
        return None
    parts = [statement]
    if isinstance(statement, exp.Merge):
        parts = [when.args["then"] for when in statement.args["whens"].expressions]
    changes = {change for each in parts if (change := _CHANGES.get(type(each)))}
    if statement.args.get("overwrite") or (
        isinstance(statement, exp.Insert) and statement.args.get("where")
    ):
        changes.add(Change.DELETE)
    updates = [each for each in parts if isinstance(each, exp.Update)]
    name = ".".join(part.name.lower() for part in table.parts)
    sets, set_names = _sets(updates, {name.rpartition(".")[2], table.alias.lower()})
    named = {
        node.name.lower()
        for node in nodes
        if isinstance(node, exp.Identifier) and id(node) not in set_names
    }
    return Writes(
        name,
        frozenset(changes),
        isinstance(statement, exp.Insert) and changes == {Change.INSERT},
        sets,
        frozenset(named),
        frozenset(tables),
        any(isinstance(n, exp.Star) and not isinstance(n.parent, exp.Count) for n in nodes),
    )


def _sets(
    updates: Collection[exp.Update], own: Collection[str]
) -> tuple[dict[str, str] | None, set[int]]:
    """The columns behind SET with the literals that they become, and the nodes of their names; None
    where there is `SET *`. `own`: what the target is called."""
    found: dict[str, str] = {}
    nodes: set[int] = set()
    for each in (each for update in updates for each in update.expressions):
        if not isinstance(each, exp.EQ) or not isinstance(each.this, exp.Column | exp.Dot):
            return None, set()
        identifiers = list(each.this.find_all(exp.Identifier, bfs=False))
        parts = [part.name.lower() for part in each.this.parts]
        if len(parts) > 1 and parts[0] in own:
            del parts[0]
        literal = "" if parts[1:] else _literal(each.expression)  # parts: a field of the column
        same = found.setdefault(parts[0], literal) == literal
        found[parts[0]] = literal if same else ""
        nodes.update(map(id, identifiers))
    return found, nodes


def _literal(node: exp.Expr) -> str:
    if isinstance(node, exp.Boolean):
        return str(node.this).lower()
    if not isinstance(node, exp.Literal):
        return ""
    return f"'{node.this}'" if node.is_string else node.name
