"""The functions, tables and columns that a text of Spark SQL calls, reads and writes, by sqlglot.

sqlglot knows most of Spark's SQL, but not all. What it cannot read is left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from tidegate.rules.model import Reaction, Rulebook, Sql
from tidegate.rules.sql.tokens import GRAMMAR, KEPT_MAX, image_words, sql_words

if TYPE_CHECKING:
    from tidegate.rules.sql.tree import Mention
    from tidegate.rules.sql.writes import Writes

LIST = "functions.txt"
_OF_THE_GRAMMAR = {"identifier", "timestampadd", "timestampdiff", "try_cast"}


@cache
def functions() -> dict[str, str]:
    """Spark's functions, each with its group: `sum` is in `agg_funcs`."""
    lines = files("tidegate.rules.sql").joinpath(LIST).read_text(encoding="utf-8").splitlines()
    named = (line.split(" ", 1) for line in lines if not line.startswith("# "))
    return dict.fromkeys(_OF_THE_GRAMMAR, "-") | dict(named)


def aggregates(name: str) -> bool:
    """Whether a function aggregates rows."""
    return functions().get(name.lower()) == "agg_funcs"


@dataclass(frozen=True, slots=True)
class Statement:
    """What a text calls, reads and writes.

    calls        functions that are called by an unqualified name
    relations    unqualified names that are read as tables
    targets      unqualified names of tables that are written
    by_position  the table of an INSERT without column names
    writes       what each writing statement does
    columns      the columns of an expression, with what stands before them: `a.b`
    """

    calls: Sequence[Mention] = ()
    relations: Sequence[Mention] = ()
    targets: Sequence[Mention] = ()
    by_position: str | None = None
    writes: Sequence[Writes] = ()
    columns: Sequence[Mention] = ()


def calls(
    text: str, wanted: Callable[[str], bool], *, expression: bool = False
) -> Sequence[Mention]:
    """The calls of functions whose name is wanted. If no word of the text is such a name, sqlglot
    need not read it."""
    if not any(map(wanted, _called(text))):
        return ()
    read = expression_of(text) if expression else statement(text)
    return [call for call in read.calls if wanted(call.name)] if read else ()


@lru_cache(maxsize=KEPT_MAX)
def _called(text: str) -> frozenset[str]:
    """The words with a bracket behind them."""
    return frozenset(word.name for word in sql_words(text) if word.called)


@lru_cache(maxsize=KEPT_MAX)
def statement(text: str) -> Statement | None:
    """A statement or query, read; None if sqlglot cannot."""
    from tidegate.rules.sql import tree
    from tidegate.rules.sql.writes import written

    root = tree.tree_of(text)
    if root is None:
        return None
    nodes = list(root.walk())
    found = tree.writing(nodes)
    targets = [table for each in found if (table := tree.target(each)) is not None]
    relations = sorted(tree.relations(nodes, targets))
    tables = {each.name.lower() for each in relations}
    parts = [nodes] if len(found) == 1 else [list(each.walk()) for each in found]
    writes = (written(each, part, tables) for each, part in zip(found, parts, strict=True))
    return Statement(
        sorted(tree.calls(nodes, text)),
        relations,
        [tree.mention(table) for table in targets if not table.db],
        next((each.this.name for each in found if tree.is_by_position(each)), None),
        [each for each in writes if each is not None],
    )


@lru_cache(maxsize=KEPT_MAX)
def expression_of(text: str) -> Statement | None:
    """An expression, read: its calls and columns; None if sqlglot cannot."""
    from tidegate.rules.sql import tree

    root = tree.tree_of(text, expression=True)
    if root is None:
        return None
    nodes = list(root.walk())
    return Statement(sorted(tree.calls(nodes, text)), columns=sorted(tree.columns(nodes)))


def unknown_columns(text: str, known: Collection[str]) -> Sequence[Mention]:
    """The columns of an expression that are not `known`. `a.b` is taken for a field of a known
    column. If all words of the text are known, sqlglot need not read it."""
    spelt = {name.lower() for name in known} | GRAMMAR
    words = (word for word in sql_words(text) if not (word.called or word.member))
    if all(word.name.lower() in spelt for word in words):
        return ()
    read = expression_of(text)
    return [
        column
        for column in (read.columns if read else ())
        if "." not in column.name and column.name.lower() not in spelt
    ]


def with_names(text: str, names: Mapping[str, str]) -> str:
    """A text with other names of columns, `x`, `old.x` and `new.x`: by name, what stands for it.
    Of a word that Spark's grammar has, too, as in `date > DATE '2026-03-02'`, sqlglot says where it
    is a column."""
    by_name = {name.lower(): meant for name, meant in names.items()}
    words = [word for word in sql_words(text) if word.name.lower() in by_name and not word.called]
    qualified = {word.offset + len(word.text) + 1 for word in image_words(text) if words}
    words = [word for word in words if not word.member or word.offset in qualified]
    if any(word.text.lower() in GRAMMAR for word in words):
        from tidegate.rules.sql.tree import column_offsets

        columns = column_offsets(text)
        if columns is not None:
            words = [w for w in words if w.text.lower() not in GRAMMAR or w.offset in columns]
    for word in reversed(words):
        quoted = "`" + by_name[word.name.lower()].replace("`", "``") + "`"
        text = text[: word.offset] + quoted + text[word.offset + len(word.text) :]
    return text


def rule_writes(reaction: Reaction, book: Rulebook, *, otherwise: bool = True) -> Iterator[Writes]:
    """What the statements of a rule do to the rulebook's tables."""
    declared = {name.lower() for name in book.tables}
    for action in (*reaction.actions, *(reaction.otherwise if otherwise else ())):
        if isinstance(action, Sql) and (found := statement(action.text)):
            yield from (writes for writes in found.writes if writes.table in declared)
