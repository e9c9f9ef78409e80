"""Words of Spark SQL texts, outside strings and comments: enough for static checks of names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

KEPT_MAX = 10_000  # texts: each is looked at several times while a rulebook is read

_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?\*/"""
    r"""|(?P<string>(?i:r)'[^']*'|(?i:r)"[^"]*\"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\")"""
    r"""|`(?P<quoted>(?:[^`]|``)*)`"""
    r"""|(?P<word>[A-Za-z_]\w*)|(?P<other>/\*|\S)""",
    re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")

# Functions whose value is not a function of the row: G25 refuses them where SQL filters events.
_UNSTEADY_WITHOUT_PARENTHESES = {
    "current_date",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtimestamp",
    "session_user",
}
_UNSTEADY = _UNSTEADY_WITHOUT_PARENTHESES | {
    "curdate",
    "input_file_name",
    "monotonically_increasing_id",
    "now",
    "rand",
    "randn",
    "random",
    "randstr",
    "shuffle",
    "spark_partition_id",
    "uniform",
    "user",
    "uuid",
}
QUERIES = ("SELECT", "VALUES", "TABLE", "FROM", "WITH")  # how a query begins
_UNSTEADY_WITHOUT_ARGUMENTS = {"unix_timestamp", "to_unix_timestamp"}


class Word(NamedTuple):
    """An identifier at `offset`; `qualifies`: a dot follows; `member`: a dot stands before;
    `called`: an opening parenthesis follows; `called_empty`: a closing one right behind it."""

    text: str
    offset: int
    quoted: bool
    qualifies: bool
    member: bool
    called: bool
    called_empty: bool


@lru_cache(maxsize=16)  # one text is looked at for several things, one after the other
def sql_tokens(text: str) -> tuple[re.Match[str], ...]:
    """Strings, identifiers and single characters of a SQL text; comments are left out, of one
    that is not closed its first two characters stay."""
    at, tokens = 0, []
    while found := _TOKEN.search(text, at):
        at = found.end()
        if found.lastgroup:
            tokens.append(found)
        elif found[0].startswith("/*"):
            at = _comment_end(text, found.start())
            if not at:
                tokens += _TOKEN.finditer(text, found.start(), found.start() + 2)
                break
    return tuple(tokens)


def _comment_end(text: str, begin: int) -> int:
    """Where a comment ends that may hold others; 0 if it does not."""
    depth = 0
    for mark in _COMMENT.finditer(text, begin):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return 0


@lru_cache(maxsize=KEPT_MAX)
def sql_words(text: str) -> tuple[Word, ...]:
    """The identifiers of a SQL text in order, backquoted ones included."""
    return tuple(_words(text))


def _words(text: str) -> Iterator[Word]:
    found = sql_tokens(text)
    for n, token in enumerate(found):
        name = token["word"] or token["quoted"]
        if not name:
            continue
        after = [t[0] for t in found[n + 1 : n + 3]]
        before = found[n - 1][0] if n else ""
        yield Word(
            name,
            token.start(),
            quoted=not token["word"],
            qualifies=after[:1] == ["."],
            member=before == ".",
            called=after[:1] == ["("],
            called_empty=after == ["(", ")"],
        )


def unsteady_words(text: str) -> list[Word]:
    """Calls whose value depends on when or where they run, not on the row (G25)."""
    return [word for word in sql_words(text) if _is_unsteady(word)]


def _is_unsteady(word: Word) -> bool:
    name = word.text.lower()
    if word.called:
        return name in _UNSTEADY or (name in _UNSTEADY_WITHOUT_ARGUMENTS and word.called_empty)
    bare = not (word.quoted or word.member or word.qualifies)
    return bare and name in _UNSTEADY_WITHOUT_PARENTHESES


def insert_without_columns(text: str) -> Word | None:
    """The table of an INSERT INTO that names neither columns nor BY NAME, if the text is one."""
    words = sql_words(text)
    plain = _plain(words)
    for n in range(len(words) - 1):
        if plain[n : n + 2] != ["INSERT", "INTO"]:
            continue
        at = _named_after(plain, n)
        while at < len(words) and words[at].qualifies:
            at += 1
        following = plain[at + 1 : at + 2]
        if following in [[word] for word in QUERIES]:
            return words[at]
    return None


def target_word(text: str) -> Word | None:
    """The table that an INSERT, MERGE, UPDATE or DELETE writes, if its name is a single word."""
    words = sql_words(text)
    plain = _plain(words)
    for n, word in enumerate(plain):
        begins = plain[n + 1 : n + 2] in (["INTO"], ["OVERWRITE"])
        deletes = plain[n : n + 2] == ["DELETE", "FROM"]
        if not ((word in ("INSERT", "MERGE") and begins) or deletes):
            continue
        at = _named_after(plain, n)
        found = words[at] if at < len(words) else None
        return found if found and not found.qualifies else None
    if plain[:1] == ["UPDATE"] and len(words) > 1 and not words[1].qualifies:
        return words[1]
    return None


def _plain(words: Sequence[Word]) -> list[str]:
    """The words that may be keywords, in capitals; empty texts for the others."""
    return ["" if word.quoted or word.member else word.text.upper() for word in words]


def _named_after(plain: list[str], n: int) -> int:
    """Where the table is named, of `INSERT INTO [TABLE] name` or `MERGE INTO name` at n."""
    return n + 3 if plain[n + 2 : n + 3] == ["TABLE"] else n + 2


def image_words(text: str) -> list[Word]:
    """Mentions of the pre- and post-image, `old.x` and `new.x` (G11)."""
    words = sql_words(text)
    return [w for w in words if w.text.lower() in ("old", "new") and w.qualifies and not w.member]
