"""sqlglot's trees of Spark SQL texts: its functions, and the tables that it reads and writes.

Imported with the first text: a tenth of a second that a rulebook without SQL spares.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from sqlglot import exp

from tidegate.rules.sql.tokens import raw_tokens, spark_dialect, sql_tokens

# sqlglot tries `int(x)` as a type and then as a call, each of them twice where they are nested.
TYPES_NESTED_MAX = 6
_WRITES = (exp.Insert, exp.Merge, exp.Update, exp.Delete)
_NAMED = ("by_name", "overwrite", "where", "partition")


class Mention(NamedTuple):
    """A name, as written, at an offset of the text."""

    offset: int
    name: str


def tree_of(text: str, *, expression: bool = False) -> exp.Expr | None:
    """The tree of a statement, query or `expression`, without hints; None if sqlglot has none."""
    if text.count("(") > TYPES_NESTED_MAX < _types_nested(text):
        return None
    parser = spark_dialect().parser()
    try:
        tokens = raw_tokens(text)
        with _unheard():
            found = (
                parser.parse_into(exp.Condition, tokens, text)
                if expression
                else parser.parse(tokens, text)
            )
    except Exception:  # whatever it trips over, Spark has the verdict
        return None
    trees = [tree for tree in found if tree is not None]
    if len(trees) != 1 or isinstance(trees[0], exp.Command):
        return None
    for hint in [*trees[0].find_all(exp.Hint)] if "/*+" in text else ():
        hint.pop()
    return trees[0]


def calls(nodes: Sequence[exp.Expr], text: str) -> Iterator[Mention]:
    """The functions that are called by an unqualified name."""
    for node in nodes:
        begin = node.meta.get("start") if isinstance(node, exp.Func) else None
        if begin is not None and not isinstance(node.parent, exp.Dot):
            yield Mention(begin, text[begin : node.meta["end"] + 1].strip("`"))


def columns(nodes: Sequence[exp.Expr]) -> Iterator[Mention]:
    """The columns that are named, with their qualifiers: `a.b`, which may be a field of a."""
    for node in nodes:
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
            whole = ".".join(part.name for part in node.parts)
            yield Mention(node.parts[0].meta.get("start", 0), whole)


def writing(nodes: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The statements of a text that write: one, or those of `FROM event INSERT .. INSERT ..`."""
    found = (node for node in nodes if isinstance(node, _WRITES))
    return [node for node in found if not isinstance(node.parent, exp.When)]


def target(statement: exp.Expr) -> exp.Table | None:
    """The table that an INSERT, MERGE, UPDATE or DELETE writes."""
    named = statement.this.this if isinstance(statement.this, exp.Schema) else statement.this
    return named if isinstance(named, exp.Table) else None


def relations(nodes: Sequence[exp.Expr], written: Collection[exp.Table]) -> Iterator[Mention]:
    """The unqualified names that are read as tables."""
    targets = set(map(id, written))
    own = {node.alias.lower() for node in nodes if isinstance(node, exp.CTE)}
    for node in (node for node in nodes if isinstance(node, exp.Table) and not node.db):
        named = isinstance(node.this, exp.Identifier) and node.name.lower() not in own
        if named and id(node) not in targets:
            yield mention(node)


def mention(table: exp.Table) -> Mention:
    return Mention(table.this.meta.get("start", 0), table.name)


def is_by_position(statement: exp.Expr) -> bool:
    """Whether it is an INSERT that names no columns."""
    plain = isinstance(statement, exp.Insert) and isinstance(statement.this, exp.Table)
    return plain and not any(statement.args.get(key) for key in _NAMED)


def columns_of(text: str) -> tuple[str, ...]:
    """The columns that a predicate names; of `a.b` only `a`. None of a text that sqlglot cannot
    read, or that binds names of its own: a subquery, a lambda."""
    tree = tree_of(text, expression=True)
    if tree is None or tree.find(exp.Query, exp.Lambda) is not None:
        return ()
    return (*dict.fromkeys(column.parts[0].name for column in tree.find_all(exp.Column)),)


def column_offsets(text: str) -> frozenset[int] | None:
    """Where the names of columns stand in an expression, those behind a dot too; None if sqlglot
    cannot read it."""
    tree = tree_of(text, expression=True)
    named = [] if tree is None else tree.find_all(exp.Column)
    offsets = (part.meta.get("start", -1) for column in named for part in column.parts)
    return None if tree is None else frozenset(offsets)


@contextmanager
def _unheard() -> Iterator[None]:
    """Silences sqlglot's log: that it cannot read a text is expected."""
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _types_nested(text: str) -> int:
    """How many calls by names of types, `int(..)`, stand inside each other."""
    types = _type_names()
    opened: list[bool] = []
    most, before = 0, ""
    for token in sql_tokens(text):
        if token.text == "(":
            opened.append(before in types)
            most = max(most, sum(opened))
        elif token.text == ")" and opened:
            opened.pop()
        before = token.text.lower()
    return most


@cache
def _type_names() -> frozenset[str]:
    dialect = spark_dialect()
    types = dialect.parser_class.TYPE_TOKENS
    keywords = dialect.tokenizer_class.KEYWORDS.items()
    return frozenset(word.lower() for word, kind in keywords if kind in types)
