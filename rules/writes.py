"""What a statement of an action writes and reads, as far as its words show it.

The target and the kind are taken from the text, as `explain` and the warnings of a rulebook need
them without Spark: what a view or a function would read is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from tidegate.rules.model import Change, Rule, Rulebook, Sql
from tidegate.rules.sqlwords import KEPT_MAX, Word, sql_tokens, sql_words

_CHANGES = {"insert": Change.INSERT, "update": Change.UPDATE, "delete": Change.DELETE}
_LITERAL = re.compile(r"(?i:true|false)|\d+|'.*'", re.DOTALL)
_STAR_BEFORE = ("select", "distinct", "all", ",", ".")

Token = re.Match[str]


@dataclass(frozen=True, slots=True)
class Writes:
    """One statement. `table`: its target, in small letters, with all the parts of its name;
    `changes`: what it may do there; `appends`: it is a plain INSERT.

    `sets`: the columns that it updates, in small letters, each with the literal that it becomes,
    empty for any other value; None where they are not listed. `names`: the identifiers of all the
    rest, `tables` among them those that may be read; `star`: all columns of something are.
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
        """Whether what the other does may be another once this one has run."""
        if self.table in other.tables:
            return not self._spares(other) or other.star
        if self.table != other.table or (self.appends and other.appends):
            return False
        return not (self._spares(other) and other._spares(self) and self._agrees(other))

    def _spares(self, other: Writes) -> bool:
        """Whether it changes nothing but columns that the other does not look at."""
        only = self.changes == {Change.UPDATE} and self.sets is not None
        return only and self.sets.keys().isdisjoint(other.names)  # type: ignore[union-attr]

    def _agrees(self, other: Writes) -> bool:
        """Whether columns that both set become the same."""
        mine, its = self.sets or {}, other.sets or {}
        return all(mine[column] == its[column] != "" for column in mine.keys() & its.keys())


def rule_writes(rule: Rule, book: Rulebook, *, otherwise: bool = True) -> Iterator[Writes]:
    """What the statements of a rule do to the rulebook's tables."""
    declared = {name.lower() for name in book.tables}
    for action in (*rule.actions, *(rule.otherwise if otherwise else ())):
        if isinstance(action, Sql):
            yield from (found for found in writes(action.text) if found.table in declared)


@lru_cache(maxsize=KEPT_MAX)
def writes(text: str) -> tuple[Writes, ...]:
    """Each INSERT INTO, MERGE INTO, UPDATE, DELETE FROM of a statement."""
    words = sql_words(text)
    lower = ["" if word.quoted else word.text.lower() for word in words]
    return tuple(
        found for n in range(len(words)) if (found := _written(text, words, lower, n)) is not None
    )


def _written(text: str, words: Sequence[Word], lower: Sequence[str], n: int) -> Writes | None:
    """What begins at the n-th word."""
    after = lower[n + 1 : n + 3]
    skipped, appends = 2, False
    if lower[n] == "insert" and after[:1] in (["into"], ["overwrite"]):
        skipped += after[1:] == ["table"]
        appends = after[0] == "into" and "replace" not in lower[n + skipped + 1 : n + skipped + 4]
        changes = {Change.INSERT} if appends else {Change.INSERT, Change.DELETE}
    elif lower[n] == "merge" and after[:1] == ["into"]:
        then = {b for a, b in pairwise(lower) if a == "then"}
        changes = {_CHANGES[word] for word in then & _CHANGES.keys()}
    elif lower[n] == "delete" and after[:1] == ["from"]:
        changes = {Change.DELETE}
    elif lower[n] == "update" and n == 0:
        changes, skipped = {Change.UPDATE}, 1
    else:
        return None
    target = words[n + skipped : n + skipped + 1]
    if not target:
        return None
    name = _name(words[n + skipped :])
    own = {name.rpartition(".")[2], _alias(words[n + skipped + name.count(".") + 1 :])}
    sets, others = _columns(text, own) if Change.UPDATE in changes else ({}, set())
    named = {w.text.lower() for w in words if w.offset not in others}
    read = _tables(words, target[0].offset)
    return Writes(
        name, frozenset(changes), appends, sets, frozenset(named), frozenset(read), _star(text)
    )


def _name(words: Iterable[Word]) -> str:
    """The name that begins here, with the parts after its dots."""
    parts: list[str] = []
    for word in words:
        if parts and not word.member:
            break
        parts.append(word.text.lower())
    return ".".join(parts)


def _alias(words: Sequence[Word]) -> str:
    """What the target is called, by what stands behind its name."""
    named = [word.text.lower() for word in words[:2]]
    return named[1] if named[:1] == ["as"] and named[1:] else "".join(named[:1])


def _tables(words: Sequence[Word], target: int) -> set[str]:
    """The names that may be tables which are read; `target`: where the one that is written is."""
    return {
        word.text.lower()
        for word in words
        if not (word.member or word.qualifies or word.called) and word.offset != target
    }


def _star(text: str) -> bool:
    """Whether all columns of something are selected; not count(*), nor a product."""
    tokens = [token[0].lower() for token in sql_tokens(text)]
    return any(b == "*" and a in _STAR_BEFORE for a, b in pairwise(tokens))


def _columns(text: str, own: Collection[str]) -> tuple[dict[str, str] | None, set[int]]:
    """The columns of the lists behind SET with the literals that they become, and where their names
    stand; None where there is `SET *`. `own`: what the target is called."""
    tokens = sql_tokens(text)
    found: dict[str, str] = {}
    at: set[int] = set()
    for n, token in enumerate(tokens):
        if token[0].lower() != "set" or token["quoted"]:
            continue
        for names, value in _assignments(tokens[n + 1 :]):
            if not names:
                return None, set()
            parts = [(name["word"] or name["quoted"]).lower() for name in names]
            if len(parts) > 1 and parts[0] in own:
                del parts[0]
            literal = value[0][0] if len(value) == 1 and _LITERAL.fullmatch(value[0][0]) else ""
            literal = "" if parts[1:] else literal  # a field of the column
            same = found.setdefault(parts[0], literal) == literal
            found[parts[0]] = literal if same else ""
            at.update(name.start() for name in names)
    return found, at


def _assignments(tokens: Sequence[Token]) -> Iterator[tuple[list[Token], list[Token]]]:
    """(the parts of a column's name, the tokens of its value) of `a.x = 1, y = z + 1 WHERE ..`."""
    begin = 0
    while begin < len(tokens):
        equals = next((n for n in range(begin, len(tokens)) if tokens[n][0] == "="), len(tokens))
        named = tokens[begin:equals]
        names = [token for token in named if token["word"] or token["quoted"]]
        if any(token[0] == "*" for token in named):
            names = []
        end = _value_end(tokens, equals + 1)
        yield names, [*tokens[equals + 1 : end]]
        if end >= len(tokens) or tokens[end][0] != ",":
            return
        begin = end + 1


def _value_end(tokens: Sequence[Token], begin: int) -> int:
    """Where a value of an assignment ends: at a comma, WHERE, WHEN, or with the statement."""
    depth = 0
    for n in range(begin, len(tokens)):
        mark = tokens[n][0].lower()
        if mark in ("(", "[", "case"):
            depth += 1
        elif mark in (")", "]", "end"):
            depth -= 1
        elif depth == 0 and mark in (",", "where", "when", ";"):
            return n
        if depth < 0:
            return n
    return len(tokens)
