"""What can be said of a Spark SQL text without Spark: quotes, brackets, how it begins, how many
statements it is, whether it reads the firing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from tidegate.rules.deletes import MESSAGE, delete_as_merge
from tidegate.rules.nearest import nearest
from tidegate.rules.sqlwords import QUERIES, Word, sql_tokens, sql_words

_CLOSES = {"(": ")", "[": "]"}
_WRITES = ("INSERT", "MERGE", "UPDATE")
# fmt: off
_OTHERS = {
    "ADD", "ALTER", "ANALYZE", "BEGIN", "CACHE", "CALL", "CLEAR", "COMMENT", "CONVERT", "COPY",
    "CREATE", "DECLARE", "DESC", "DESCRIBE", "DROP", "EXECUTE", "EXPLAIN", "GRANT", "LIST",
    "LOAD", "MSCK", "OPTIMIZE", "REFRESH", "REPLACE", "RESET", "RESTORE", "REVOKE", "SET", "SHOW",
    "TRUNCATE", "UNCACHE", "USE", "VACUUM",
}
# fmt: on
_AN_ACTION = "an action is one INSERT, MERGE or UPDATE that reads event"
NO_SUBSTITUTION = (
    "write the value or a column; with for_each: firing a key is a parameter, as in :account_id"
)
_ENDS = re.compile(r"(?i:and|or|not)|[=<>+/%,.(\[-]")
_SUBSTITUTED = re.compile(r"\$\{[^}'\"]*\}?")
_EXPRESSION_ONLY = ("WHERE", "IF", "HAVING", "WHEN", "AND", "OR")


@dataclass(frozen=True, slots=True)
class SqlFault:
    """One thing wrong with a SQL text, at `offset`."""

    code: str
    message: str
    offset: int
    hint: str = ""


def action_fault(text: str, *, unmarked: bool = False) -> SqlFault | None:
    """What keeps a text from being one INSERT, MERGE or UPDATE, or one DELETE where the rule lets
    in what leaves no marker."""
    found = _form(text)
    if found and found.code == "sql-several":
        return replace(found, hint="make it two items, each behind a dash of its own")
    return found or _begins_an_action(text, unmarked=unmarked)


def query_fault(text: str) -> SqlFault | None:
    """What keeps a text from being one query."""
    found = _form(text)
    first = next(iter(sql_tokens(text)), None)
    if found or first is None or first[0] == "(" or first[0].upper() in QUERIES:
        return found
    message = f"{first[0]!r} begins no query"
    hint = "write SELECT firing_id FROM event ..; an expression stands without sql:"
    return SqlFault("sql-kind", message, first.start(), hint)


def expression_fault(text: str) -> SqlFault | None:
    """What keeps a text from being one expression."""
    found = _form(text)
    first = next(iter(sql_words(text)), None)
    if found or first is None or first.called or first.quoted or first.qualifies:
        return found
    word = first.text.upper()
    if text[: first.offset].strip():
        return None
    if word in ("SELECT", "WITH", "VALUES"):
        message = "this is a query, not an expression"
        return SqlFault("sql-kind", message, first.offset, "write an expression: amount > 100")
    if word in _EXPRESSION_ONLY:
        message = f"an expression does not begin with {first.text}"
        return SqlFault("sql-kind", message, first.offset, f"leave {first.text} out")
    return None


def unread(text: str, names: Collection[str]) -> str | None:
    """None where a text mentions one of these relations; else the hint for one that does not."""
    words = sql_words(text)
    if any(word.text.lower() in names for word in words if not word.called):
        return None
    read = [then.text for word, then in pairwise(words) if _reads(word)]
    meant = next((name for name in map(str.lower, read) if nearest(name, sorted(names))), None)
    if meant:
        return f"did you mean {nearest(meant, sorted(names))!r} for {meant!r}?"
    return "select from event: a row for each constituent of what fired"


def _reads(word: Word) -> bool:
    return not word.quoted and word.text.upper() in ("FROM", "JOIN", "USING")


def _form(text: str) -> SqlFault | None:
    """Quotes, comments and brackets that are not closed, and a second statement."""
    opened: list[tuple[str, int]] = []
    ended = None
    previous = None
    for token in sql_tokens(text):
        mark, at = token[0], token.start()
        if ended is not None:
            message = "something stands behind the semicolon"
            return SqlFault("sql-several", message, at, "write one alone")
        if mark in "'\"`":
            return SqlFault("sql-syntax", f"the quote {mark} is not closed", at)
        if mark == "/*":
            return SqlFault("sql-syntax", "the comment /* is not closed", at)
        if mark in _CLOSES:
            opened.append((mark, at))
        elif mark in _CLOSES.values():
            if not opened:
                return SqlFault("sql-syntax", f"{mark!r} closes nothing", at)
            bracket, begun = opened.pop()
            if _CLOSES[bracket] != mark:
                message = f"{bracket!r} is closed by {mark!r}"
                return SqlFault("sql-syntax", message, begun)
        elif mark == ";" and not opened:
            ended = at
        previous = token
    if fault := _substituted(text):
        return fault
    if opened:
        return SqlFault("sql-syntax", f"{opened[-1][0]!r} is not closed", opened[-1][1])
    if previous is None or (ended is not None and len(sql_tokens(text)) == 1):
        return SqlFault("sql-syntax", "there is nothing but comments", 0)
    return _ends_early(text)


def _ends_early(text: str) -> SqlFault | None:
    """A text whose last word or character needs something behind it."""
    tokens = [token for token in sql_tokens(text) if token[0] != ";"]
    last = tokens[-1]
    if last["quoted"] or not _ENDS.fullmatch(last[0]) or (tokens[:-1] and tokens[-2][0] == "."):
        return None
    message = f"the text ends behind {last[0]!r}"
    return SqlFault("sql-syntax", message, last.start(), f"complete it, or leave {last[0]} out")


def _substituted(text: str) -> SqlFault | None:
    """`${x}` outside of quotes."""
    at = next((token.start() for token in sql_tokens(text) if token[0] == "$"), None)
    found = _SUBSTITUTED.match(text, at) if at is not None else None
    if found is None:
        return None
    message = f"{found[0]}: nothing is substituted in SQL"
    return SqlFault("sql-substitution", message, found.start(), NO_SUBSTITUTION)


def substituted(text: str) -> re.Match[str] | None:
    """`${x}` inside of quotes, where it is written as it stands."""
    quoted = (token for token in sql_tokens(text) if token["string"])
    inside = (_SUBSTITUTED.search(text, token.start(), token.end()) for token in quoted)
    return next(filter(None, inside), None)


def _begins_an_action(text: str, *, unmarked: bool) -> SqlFault | None:
    first = sql_tokens(text)[0]
    word, at = first[0].upper(), first.start()
    if word in ("WITH", "FROM"):
        later = [token[0].upper() for token in _outside(text)]
        word = next((one for one in later if one in (*_WRITES, "DELETE")), "SELECT")
    if word in _WRITES or (unmarked and word == "DELETE"):
        return None
    if word == "DELETE":
        return SqlFault("sql-delete", MESSAGE, at, delete_as_merge(text))
    if word in QUERIES or word == "(":
        hint = "write INSERT INTO a table (its columns) and then the query"
        return SqlFault("sql-kind", "a query alone writes nothing", at, hint)
    if word in _OTHERS:
        return SqlFault("sql-kind", f"{first[0]} is no action", at, _AN_ACTION)
    return SqlFault("sql-kind", f"{first[0]!r} begins no statement", at, _meant(first[0]))


def _meant(word: str) -> str:
    if word.lower() in ("signal", "raise", "emit"):
        return "an action that raises an event is {signal: NAME}"
    meant = nearest(word.upper(), _WRITES)
    return f"did you mean {meant!r}?" if meant else _AN_ACTION


def _outside(text: str) -> Iterator[re.Match[str]]:
    """The tokens outside of all brackets."""
    depth = 0
    for token in sql_tokens(text):
        depth -= token[0] == ")"
        if not depth:
            yield token
        depth += token[0] == "("
