"""Delta's names for the operations of commits, and which of them change no row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

# fmt: off
ROWLESS = frozenset({
    "ADD COLUMNS", "ADD CONSTRAINT", "CHANGE COLUMN", "CHANGE COLUMNS", "CLUSTER BY",
    "COMPUTE STATS", "CREATE TABLE", "DOMAIN METADATA CLEANUP", "DROP COLUMNS", "DROP CONSTRAINT",
    "DROP FEATURE", "OPTIMIZE", "OPTIMIZE CHECKPOINT", "REMOVE COLUMN MAPPING", "RENAME COLUMN",
    "REORG", "REPLACE COLUMNS", "ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL",
    "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "UPDATE COLUMN METADATA", "UPDATE SCHEMA",
    "UPGRADE PROTOCOL", "VACUUM END", "VACUUM START",
})
# fmt: on
"""Operations whose commits never change a row."""
# fmt: off
OPERATIONS = ROWLESS | {
    "CLONE", "CONVERT", "COPY INTO", "CREATE OR REPLACE TABLE", "CREATE OR REPLACE TABLE AS SELECT",
    "CREATE TABLE AS SELECT", "DELETE", "FSCK", "MANUAL UPDATE", "MERGE", "REPLACE TABLE",
    "REPLACE TABLE AS SELECT", "RESTORE", "STREAMING UPDATE", "TRUNCATE", "UPDATE", "WRITE",
}
# fmt: on
"""All names that Delta on Spark has. Other writers and later versions may have more."""


def unknown_operations(where: str) -> Sequence[str]:
    """The texts that a `where` over commits compares `operation` with, and that Delta has not."""
    from tidegate.rules.sql.tree import tree_of

    tree = tree_of(where, expression=True)
    compared = (_compared(node) or () for node in tree.walk()) if tree is not None else ()
    named = dict.fromkeys(name for names in compared for name in names)
    return [name for name in named if name not in OPERATIONS]


def only_rowless(where: str) -> Sequence[str]:
    """The operations of the commits that a `where` lets pass, if none of them changes a row; else
    (). Example: OPTIMIZE, of `operation = 'OPTIMIZE' and version > 3`."""
    from sqlglot import exp

    from tidegate.rules.sql.tree import tree_of

    tree = tree_of(where, expression=True)
    if tree is None:
        return ()
    texts = [literal.this for literal in tree.find_all(exp.Literal) if literal.is_string]
    another = "".join(texts) + "?"  # an operation that it does not name
    met = [name for name in dict.fromkeys([*texts, another]) if _met(tree, name) is not False]
    return met if ROWLESS.issuperset(met) else ()


def _met(node: exp.Expr, operation: str) -> bool | None:
    """Whether a predicate holds for a commit of this operation. None: other columns decide."""
    from sqlglot import exp

    if isinstance(node, exp.Paren):
        return _met(node.this, operation)
    if isinstance(node, exp.Not):
        inner = _met(node.this, operation)
        return None if inner is None else not inner
    if isinstance(node, exp.And | exp.Or):
        parts = {_met(part, operation) for part in node.flatten()}
        decisive = isinstance(node, exp.Or)
        return decisive if decisive in parts else None if None in parts else not decisive
    compared = _compared(node)
    if compared is None:
        return None
    return (operation in compared) is not isinstance(node, exp.NEQ)


def _compared(node: exp.Expr) -> Sequence[str] | None:
    """The texts that the column `operation` is compared with; None for anything else."""
    from sqlglot import exp

    if isinstance(node, exp.In):
        column, values = node.this, node.expressions
    elif isinstance(node, exp.EQ | exp.NEQ | exp.NullSafeEQ):
        column, values = node.this, [node.expression]
        if isinstance(column, exp.Literal):
            column, values = node.expression, [column]
    else:
        return None
    of_commit = isinstance(column, exp.Column) and column.name.lower() == "operation"
    texts = [value.this for value in values if isinstance(value, exp.Literal) and value.is_string]
    return texts if of_commit and values and len(texts) == len(values) else None
