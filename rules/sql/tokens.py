"""The words of Spark SQL texts, outside strings and comments, by sqlglot's tokenizer."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from operator import add
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlglot.dialects.spark import Spark
    from sqlglot.tokenizer_core import Token as RawToken

KEPT_MAX = 10_000  # texts: each is looked at several times while a rulebook is read
QUERIES = ("SELECT", "VALUES", "TABLE", "FROM", "WITH")  # how a query begins

_MARK = re.compile(r"['\"`]|/\*")
_MARKS_MAX = 100  # that are looked through for the one that is not closed

# Functions whose value is not a function of the row: G25 refuses them where SQL filters events.
# fmt: off
_UNSTEADY_WITHOUT_PARENTHESES = {
    "current_date", "current_time", "current_timestamp", "current_user", "localtimestamp",
    "session_user",
}
_UNSTEADY_WITHOUT_ARGUMENTS = {"unix_timestamp", "to_unix_timestamp"}
_UNSTEADY = _UNSTEADY_WITHOUT_PARENTHESES | _UNSTEADY_WITHOUT_ARGUMENTS | {
    "curdate", "input_file_name", "monotonically_increasing_id", "now", "rand", "randn", "random",
    "randstr", "shuffle", "spark_partition_id", "uniform", "user", "uuid",
}
# fmt: on

# Words of Spark's grammar, of its literals and values, that may stand in an expression.
# fmt: off
GRAMMAR = frozenset(_UNSTEADY_WITHOUT_PARENTHESES | {
    "all", "and", "any", "as", "at", "between", "case", "collate", "current_catalog",
    "current_database", "current_schema", "date", "day", "dayofyear", "days", "distinct", "div",
    "else", "end", "escape", "exists", "false", "filter", "for", "from", "group", "grouping__id",
    "hour", "hours", "ignore", "ilike", "in", "interval", "is", "json", "like", "microsecond",
    "microseconds", "millisecond", "milliseconds", "minute", "minutes", "month", "months",
    "nanosecond", "nanoseconds", "not", "null", "nulls", "or", "over", "quarter", "quarters",
    "regexp", "respect", "rlike", "second", "seconds", "similar", "some", "then", "time",
    "timestamp", "timestamp_ltz", "timestamp_ntz", "to", "true", "unknown", "user", "week",
    "weeks", "when", "with", "within", "without", "year", "years", "zone",
})
# fmt: on


class Token(NamedTuple):
    """A token as written, at `offset`. `before`: the token before it; `after`: the two after it."""

    text: str
    offset: int
    before: str
    after: str

    @property
    def name(self) -> str:
        """The name that it may be, without backquotes; empty if it is no word."""
        if self.quoted:
            return self.text[1:-1].replace("``", "`")
        return self.text if self.text.isidentifier() else ""

    @property
    def quoted(self) -> bool:
        """Whether it is a name in backquotes."""
        return self.text.startswith("`")

    @property
    def qualifies(self) -> bool:
        return self.after.startswith(".")

    @property
    def member(self) -> bool:
        return self.before == "."

    @property
    def called(self) -> bool:
        return self.after.startswith("(")


class UnclosedError(Exception):
    """A quote or comment, begun by `mark` at `offset`, has no end."""

    def __init__(self, mark: str, offset: int) -> None:
        super().__init__(mark)
        self.mark = mark
        self.offset = offset


@cache
def spark_dialect() -> Spark:
    """Imported with the first text: a tenth of a second that a rulebook without SQL spares."""
    from sqlglot.dialects.spark import Spark

    return Spark()


@lru_cache(maxsize=16)  # one text is looked at for several things, one after the other
def raw_tokens(text: str) -> list[RawToken]:
    """sqlglot's tokens. Raises sqlglot's TokenError."""
    return spark_dialect().tokenize(text)


def sql_tokens(text: str) -> tuple[Token, ...]:
    """The tokens of a text, without comments and hints; none where sqlglot cannot tell.

    `a.b > 'x' -- why` has the tokens `a`, `.`, `b`, `>`, `'x'`.
    """
    try:
        return read_tokens(text) or ()
    except UnclosedError:
        return ()


@lru_cache(maxsize=16)
def read_tokens(text: str) -> tuple[Token, ...] | None:
    """See `sql_tokens`; None where sqlglot cannot tell. Raises UnclosedError."""
    from sqlglot.errors import TokenError

    try:
        found = raw_tokens(text)
    except TokenError as error:
        if isinstance(error.__cause__, IndexError) or "Missing" in str(error.__cause__):
            raise _unclosed(text) from None
        return None
    at: dict[int, str] = {}  # 1L is three tokens of sqlglot's at one place
    for token in found:
        written = text[token.start : token.end + 1]
        if not written.startswith("/*+"):
            at.setdefault(token.start, written)
    texts = ["", *at.values(), "", ""]
    return tuple(map(Token, at.values(), at, texts, map(add, texts[2:], texts[3:])))


def _unclosed(text: str) -> UnclosedError:
    """The last quote or comment mark before which the text is complete: it opens what is not
    closed."""
    from sqlglot.errors import TokenError

    marks = [found.start() for found in _MARK.finditer(text)]
    for begin in reversed(marks[-_MARKS_MAX:]):
        try:
            spark_dialect().tokenize(text[:begin])
        except TokenError:
            continue
        return UnclosedError(text[begin : begin + 2] if text[begin] == "/" else text[begin], begin)
    return UnclosedError("", 0)


def sql_words(text: str) -> list[Token]:
    """The tokens that may be names, in order."""
    return [token for token in sql_tokens(text) if token.name]


def unsteady_words(text: str) -> list[Token]:
    """Calls whose value depends on when or where they run, not on the row (G25)."""
    return [token for token in sql_tokens(text) if _is_unsteady(token)]


def _is_unsteady(word: Token) -> bool:
    name = word.name.lower()
    if name not in _UNSTEADY:
        return False
    if word.called:
        return name not in _UNSTEADY_WITHOUT_ARGUMENTS or word.after == "()"
    bare = not (word.quoted or word.member or word.qualifies)
    return bare and name in _UNSTEADY_WITHOUT_PARENTHESES


def image_words(text: str) -> list[Token]:
    """Mentions of the pre- and post-image, `old.x` and `new.x` (G11)."""
    words = [word for word in sql_words(text) if word.qualifies and not word.member]
    return [word for word in words if word.name.lower() in ("old", "new")]
