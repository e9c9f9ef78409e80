"""Faults that the tokens of a Spark SQL text show: quotes and brackets, a missing operand, the
first word, several statements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from tidegate.rules.errors import nearest
from tidegate.rules.sql.deletes import MESSAGE, delete_as_merge
from tidegate.rules.sql.tokens import (
    GRAMMAR,
    KEPT_MAX,
    QUERIES,
    Token,
    UnclosedError,
    read_tokens,
    sql_tokens,
    sql_words,
)

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
    "write the value or a column, or vars: {x: ..} for ${x}; with for_each: firing a key is a"
    " parameter, as in :account_id"
)
_ENDS = re.compile(r"(?i:and|or|not)|[=<>+/%,.(\[!|:-]+")
_BEFORE_A_VALUE = {
    *("", "(", "[", ",", "=", "==", "<>", "!=", "<", ">", "<=", ">=", "<=>"),
    *("/", "%", "^", "||", "+", "-", "~", "AND", "OR"),
}
_BEHIND_A_VALUE = _BEFORE_A_VALUE - {"", "(", "[", "+", "-", "~"} | {")", "]"}
_PAIRS = {("(", ")"), ("[", "]"), (">", ">"), ("<", "<")}  # `f()`, `a >> 2`
_MEANT = {"=<": "<=", "><": "<>", "==": "=", "<=": "<=", ">=": ">=", "<>": "<>", "=>": ">="}
_ANGLES = {"<", ">"}
_QUOTES = ("'", '"')
_QUOTED = (*_QUOTES, "`")
_NESTED_TYPES = {"array", "map", "struct"}
_BEGIN = Token("", 0, "", "")
_CURLY = re.compile("[‘’‚“”„«»´]")
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
    """The fault of a text that should be one INSERT, MERGE or UPDATE. `unmarked`: DELETE is
    allowed, too, though it may leave no marker."""
    found = _form(text)
    if found and found.code == "sql-several":
        return replace(found, hint="make it two items, each behind a dash of its own")
    return found or _begins_an_action(text, unmarked=unmarked)


def query_fault(text: str) -> SqlFault | None:
    """The fault of a text that should be one query."""
    found = _form(text)
    first = next(iter(sql_tokens(text)), None)
    if found or first is None or first.text == "(" or first.text.upper() in QUERIES:
        return found
    message = f"{first.text!r} begins no query"
    hint = "write SELECT firing_id FROM event ..; an expression stands without sql:"
    return SqlFault("sql-kind", message, first.offset, hint)


def expression_fault(text: str) -> SqlFault | None:
    """The fault of a text that should be one expression."""
    found = _form(text)
    tokens = sql_tokens(text)
    if found is None and tokens and tokens[-1].text == ";":
        message = "an expression does not end in a semicolon"
        return SqlFault("sql-syntax", message, tokens[-1].offset, "leave the ; out")
    return found or _other_kind(text) or _side_by_side(tokens)


def _other_kind(text: str) -> SqlFault | None:
    """A query in place of an expression, or a condition with its WHERE or IF."""
    first = next(iter(sql_words(text)), None)
    if first is None or first.called or first.quoted or first.qualifies:
        return None
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


@lru_cache(maxsize=KEPT_MAX)
def _form(text: str) -> SqlFault | None:
    """The first fault of a text, whatever it should be."""
    try:
        tokens = read_tokens(text)
    except UnclosedError as unclosed:
        what = {"/*": "the comment", "": "a quote or comment"}.get(unclosed.mark, "the quote")
        message = " ".join(f"{what} {unclosed.mark} is not closed".split())
        return SqlFault("sql-syntax", message, unclosed.offset)
    if tokens is None:
        return None
    if all(token.text == ";" for token in tokens):
        return SqlFault("sql-syntax", "there is nothing but comments", 0)
    checks = (_curly, _bracketed, _several, _substituted, _ends_early, _lacks_operand)
    found = (check(text, tokens) for check in checks)
    return next(filter(None, found), None)


def _curly(text: str, tokens: Sequence[Token]) -> SqlFault | None:
    """A curly quote, as word processors write it."""
    for token in tokens if _CURLY.search(text) else ():
        quoted = token.text.startswith(_QUOTED)
        found = None if quoted else _CURLY.search(token.text)
        if found:
            message = f"{found[0]} is no quote of SQL"
            hint = "write straight quotes: '..' around a text, `..` around a name"
            return SqlFault("sql-syntax", message, token.offset + found.start(), hint)
    return None


def _bracketed(_: str, tokens: Sequence[Token]) -> SqlFault | None:
    opened: list[Token] = []
    for token in tokens:
        if token.text in _CLOSES:
            opened.append(token)
        elif token.text in _CLOSES.values():
            if not opened:
                return SqlFault("sql-syntax", f"{token.text!r} closes nothing", token.offset)
            begun = opened.pop()
            if _CLOSES[begun.text] != token.text:
                message = f"{begun.text!r} is closed by {token.text!r}"
                return SqlFault("sql-syntax", message, begun.offset)
    if not opened:
        return None
    return SqlFault("sql-syntax", f"{opened[-1].text!r} is not closed", opened[-1].offset)


def _several(text: str, tokens: Sequence[Token]) -> SqlFault | None:
    """A statement behind the semicolon."""
    for token, then in pairwise(tokens) if ";" in text else ():
        if token.text == ";":
            message = "something stands behind the semicolon"
            return SqlFault("sql-several", message, then.offset, "write one alone")
    return None


def _ends_early(_: str, tokens: Sequence[Token]) -> SqlFault | None:
    """A text whose last word or character needs something behind it."""
    last = next(token for token in reversed(tokens) if token.text != ";")
    if not _ENDS.fullmatch(last.text) or last.member:
        return None
    if last.text == ">" and _has_nested_types(tokens):
        return None
    message = f"the text ends behind {last.text!r}"
    return SqlFault("sql-syntax", message, last.offset, f"complete it, or leave {last.text} out")


def _lacks_operand(_: str, tokens: Sequence[Token]) -> SqlFault | None:
    """An operator or a comma without a value on one side. AND and OR are taken for operators,
    though Spark lets columns have these names. At the beginning `_other_kind` refuses them."""
    before, last = _BEGIN, "" if tokens[0].text.upper() not in ("AND", "OR") else "a name"
    typed = _has_nested_types(tokens)
    for token in tokens:
        listed = last in ("(", ",") and token.after[:1] in (",", ")")  # `(a, or, b)`: three names
        named = token.member or (token.text.isidentifier() and (listed or token.qualifies))
        kind = "a name" if named else token.text.upper()
        if kind == "&&":
            return SqlFault("sql-syntax", "&& is no operator of SQL", token.offset, "write AND")
        lacks = kind in _BEHIND_A_VALUE and last in _BEFORE_A_VALUE and (last, kind) not in _PAIRS
        if lacks and not (typed and _ANGLES & {last, kind}):
            behind = f" behind {before.text!r}" if last else ""
            message = f"a value is missing{behind} before {token.text!r}"
            meant = _MEANT.get(last + kind)
            hint = f"did you mean {meant}?" if meant else ""
            return SqlFault("sql-syntax", message, token.offset, hint)
        before, last = token, kind
    return None


def _has_nested_types(tokens: Sequence[Token]) -> bool:
    """Whether `<` and `>` may be those of array<int>."""
    return any(t.after[:1] == "<" and t.text.lower() in _NESTED_TYPES for t in tokens)


def _side_by_side(tokens: Sequence[Token]) -> SqlFault | None:
    """Two values with nothing between them, outside of all brackets: `kind 'x'`, `a b`."""
    depth = 0
    for one, then in pairwise(tokens):
        depth += (one.text in _CLOSES) - (one.text in _CLOSES.values())
        if depth == 0 and then.text == "=>":
            message = "=> is no operator of an expression"
            return SqlFault("sql-syntax", message, then.offset, "did you mean >=?")
        if depth == 0 and (one.text in _CLOSES.values() or _is_value(one)) and _is_value(then):
            if one.text.startswith(_QUOTES) and then.text.startswith(_QUOTES):
                continue  # texts one after the other are one
            message = f"an operator is missing between {one.text!r} and {then.text!r}"
            return SqlFault("sql-syntax", message, then.offset)
    return None


def _is_value(token: Token) -> bool:
    """Whether a token is a value, and cannot be anything else."""
    text = token.text
    if text.isidentifier():
        return text.lower() not in GRAMMAR and not token.called
    return text[:1].isdigit() or text.startswith(_QUOTED)


def _substituted(text: str, tokens: Sequence[Token]) -> SqlFault | None:
    """`${x}` outside of quotes."""
    at = next((token.offset for token in tokens if token.text == "$"), None)
    found = _SUBSTITUTED.match(text, at) if at is not None else None
    if found is None:
        return None
    message = f"{found[0]}: nothing is substituted in SQL"
    return SqlFault("sql-substitution", message, found.start(), NO_SUBSTITUTION)


def substituted(text: str) -> re.Match[str] | None:
    """`${x}` inside of quotes, which Spark takes literally."""
    if "${" not in text:
        return None
    quoted = (token for token in sql_tokens(text) if token.text.endswith(_QUOTES))
    inside = (_SUBSTITUTED.search(text, t.offset, t.offset + len(t.text)) for t in quoted)
    return next(filter(None, inside), None)


def _begins_an_action(text: str, *, unmarked: bool) -> SqlFault | None:
    first = next(iter(sql_tokens(text)), None)
    if first is None:
        return None
    word, at = first.text.upper(), first.offset
    if word in ("WITH", "FROM"):
        later = [token.text.upper() for token in _outside(text)]
        word = next((one for one in later if one in (*_WRITES, "DELETE")), "SELECT")
    if word in _WRITES or (unmarked and word == "DELETE"):
        return None
    if word == "DELETE":
        return SqlFault("sql-delete", MESSAGE, at, delete_as_merge(text))
    if word in QUERIES or word == "(":
        hint = "write INSERT INTO a table (its columns) and then the query"
        return SqlFault("sql-kind", "a query alone writes nothing", at, hint)
    if word in _OTHERS:
        return SqlFault("sql-kind", f"{first.text} is no action", at, _AN_ACTION)
    return SqlFault("sql-kind", f"{first.text!r} begins no statement", at, _meant(first.text))


def _meant(word: str) -> str:
    if word.lower() in ("signal", "raise", "emit"):
        return "an action that raises an event is {signal: NAME}"
    meant = nearest(word.upper(), _WRITES)
    return f"did you mean {meant!r}?" if meant else _AN_ACTION


def _outside(text: str) -> Iterator[Token]:
    """The tokens outside of all brackets."""
    depth = 0
    for token in sql_tokens(text):
        depth -= token.text == ")"
        if not depth:
            yield token
        depth += token.text == "("
