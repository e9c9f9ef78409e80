"""A text of Spark SQL as sqlglot reads it: what it calls, reads and writes.

sqlglot knows most of Spark's SQL and not all of it: what it cannot read is left to Spark's verdict.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from tidegate.rules.model import Rule, Rulebook, Sql
from tidegate.rules.sql.words import KEPT_MAX, raw_tokens, spark_dialect, sql_tokens, sql_words

if TYPE_CHECKING:
    from sqlglot import exp

    from tidegate.rules.sql.writes import Writes

# sqlglot tries `int(x)` as a type and then as a call, each of them twice where they are nested.
TYPES_NESTED_MAX = 6


@dataclass(frozen=True, slots=True)
class Mention:
    """A name, as written, at an offset of the text."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class Statement:
    """`calls`: the functions called by an unqualified name; `relations`: the unqualified names that
    are read as tables; `targets`: those that are written; `by_position`: the table of an INSERT
    that names no columns; `writes`: what each of its statements does."""

    calls: tuple[Mention, ...] = ()
    relations: tuple[Mention, ...] = ()
    targets: tuple[Mention, ...] = ()
    by_position: str | None = None
    writes: tuple[Writes, ...] = ()


def calls(
    text: str, wanted: Callable[[str], bool], *, expression: bool = False
) -> Sequence[Mention]:
    """The calls of functions whose name is wanted. What no word suggests is not looked for."""
    if not any(word.called and wanted(word.name) for word in sql_words(text)):
        return ()
    read = statement(text, expression=True) if expression else statement(text)
    return [call for call in read.calls if wanted(call.name)] if read else ()


@lru_cache(maxsize=KEPT_MAX)
def statement(text: str, *, expression: bool = False) -> Statement | None:
    """What a statement or query, or an `expression`, is; None where sqlglot cannot tell."""
    tree = tree_of(text, expression=expression)
    if tree is None:
        return None
    nodes = list(tree.walk())
    if expression:
        return Statement(_calls(nodes, text))
    from tidegate.rules.sql.writes import statements, target, written

    found = list(statements(nodes))
    targets = [table for each in found if (table := target(each)) is not None]
    relations = _relations(nodes, targets)
    tables = {each.name.lower() for each in relations}
    each_of = [nodes] if len(found) == 1 else [list(each.walk()) for each in found]
    writes = (written(each, own, tables) for each, own in zip(found, each_of, strict=True))
    return Statement(
        _calls(nodes, text),
        relations,
        tuple(_mention(table) for table in targets if not table.db),
        next((each.this.name for each in found if _is_by_position(each)), None),
        tuple(filter(None, writes)),
    )


def rule_writes(rule: Rule, book: Rulebook, *, otherwise: bool = True) -> Iterator[Writes]:
    """What the statements of a rule do to the rulebook's tables."""
    declared = {name.lower() for name in book.tables}
    for action in (*rule.actions, *(rule.otherwise if otherwise else ())):
        if isinstance(action, Sql) and (found := statement(action.text)):
            yield from (writes for writes in found.writes if writes.table in declared)


def tree_of(text: str, *, expression: bool = False) -> exp.Expr | None:
    """sqlglot's tree of a statement, query or `expression`, without hints; None if it has none."""
    from sqlglot import exp

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


@contextmanager
def _unheard() -> Iterator[None]:
    """Without sqlglot's log: that it cannot read a text is no news."""
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


def _calls(nodes: Sequence[exp.Expr], text: str) -> tuple[Mention, ...]:
    from sqlglot import exp

    found = []
    for node in nodes:
        begin = node.meta.get("start") if isinstance(node, exp.Func) else None
        if begin is not None and not isinstance(node.parent, exp.Dot):
            name = text[begin : node.meta["end"] + 1].strip("`")
            found.append(Mention(name, begin))
    return tuple(sorted(found, key=lambda mention: mention.offset))


def _relations(nodes: Sequence[exp.Expr], targets: list[exp.Table]) -> tuple[Mention, ...]:
    from sqlglot import exp

    written = {id(table) for table in targets}
    named = {each.alias.lower() for each in nodes if isinstance(each, exp.CTE)}
    found = [
        _mention(table)
        for table in nodes
        if isinstance(table, exp.Table)
        and id(table) not in written
        and isinstance(table.this, exp.Identifier)
        and not table.db
        and table.name.lower() not in named
    ]
    return tuple(sorted(found, key=lambda mention: mention.offset))


def _mention(table: exp.Table) -> Mention:
    return Mention(table.name, table.this.meta.get("start", 0))


def _is_by_position(node: exp.Expr) -> bool:
    from sqlglot import exp

    if not isinstance(node, exp.Insert) or not isinstance(node.this, exp.Table):
        return False
    return not any(node.args.get(key) for key in ("by_name", "overwrite", "where", "partition"))
