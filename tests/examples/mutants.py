"""Mutants of an example's rulebook: its text with one thing changed, line by line.

Example: `on: a ; b within 5 min` becomes `on: a and b within 5 min`, `.. within 6 min`, and
`.. within 4 min`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal

_CONTEXTS = ["restricted", "recent", "chronicle", "cumulative"]
_CHANGES = {"insert": "delete", "update": "insert", "delete": "insert", "transaction": "commit"}
_FOLDS = {"min": "max", "max": "min", "sum": "max", "avg": "max", "min_by": "max_by"}
_FOLDS |= {"max_by": "min_by"}
_SKIPPED = re.compile(
    r"\s*(#|rulebook:|- webhook: *$|url:|script:)|.*\bpath:|.*\bsignal: \{\w+: \w"
)
_COMMENT = re.compile(r"\s+#.*$|(?<!:)//.*$")


@dataclass(frozen=True, slots=True)
class Mutant:
    """`line`: which one of the text, from 1. `before`, `after`: that line, without its comment;
    `after` is empty where it and what is below it are left out."""

    line: int
    before: str
    after: str
    text: str


def _number(match: re.Match[str], by: int) -> str:
    value = Decimal(match[0])
    step = Decimal(1).scaleb(int(value.as_tuple().exponent))
    return str(max(value + by * step, Decimal(0)))


_Change = str | Callable[[re.Match[str]], str]
_NUMBER = r"(?<![\w.:'*-])\d+(?:\.\d+)?(?![\w.:-])"
_OPERATORS: list[tuple[str, _Change]] = [
    (r" ; ", " and "),
    (r" and ", " or "),
    (r" AND ", " OR "),
    (r" or ", " and "),
    (r" - \w+(?=$|\)| ;| within)", ""),
    (r"not\((.+)\)\[(.+), \[(.+?)\]\]", r"((\2) + [\3])"),
    (r"not\((.+)\)\[(.+), (\w+)\]", r"(\2 ; \3)"),
    (r"\bA\(", "A*("),
    (r"\bA\*\(", "A("),
    (r"\bP\*\(", "P("),
    (r"(?<=\s)>=(?=\s)", ">"),
    (r"(?<=\s)>(?=\s)(?!-)", ">="),
    (r"(?<=\s)<=(?=\s)", "<"),
    (r"(?<=\s)<(?=\s)", "<="),
    (r"(?<=\s)=(?=\s)", "<>"),
    (r"(?<=\s)==(?=\s)", "!="),
    (r"(?<=\s)<>(?=\s)", "="),
    (r"(?<=\s)\+(?=\s\w)", "-"),
    (r"\bis null\b", "is not null"),
    (r"\bIS NULL\b", "IS NOT NULL"),
    (r"\bis not null\b", "is null"),
    (r"\b(min|max|sum|avg|min_by|max_by)\(", lambda found: f"{_FOLDS[found[1]]}("),
    (r"\bcount_if\([^()]*\)", "count(*)"),
    (r"\bnot (?=\w+[,}])", ""),
    (r"\bnew\.", "old."),
    (r"\bold\.", "new."),
    (r"'\w[\w ]*'", lambda found: found[0][:-1] + "x'"),
    (r"'\w[\w ]*'", lambda found: "'x" + found[0][1:]),
    (_NUMBER, lambda found: _number(found, 1)),
    (_NUMBER, lambda found: _number(found, -1)),
    (r"(?<=\bat: )\d\d(?=:)", lambda found: f"{(int(found[0]) + 1) % 24:02}"),
    (r"(?<=\*/)\d+", lambda found: str(int(found[0]) + 1)),
    (r"\bmon-fri\b", "mon-sat"),
    (r"\bDE-BE\b", "DE"),
    (r", holidays: US\b", ""),
    (r"(?<=timezone: )\S+", "UTC"),
    (r"(?<=\bon: )(insert|update|delete|transaction)\b", lambda found: _CHANGES[found[1]]),
    *((r"(?<=context: )\w+", context) for context in _CONTEXTS),
    (r"(, )?\bof: \[[^]]*\](, )?", lambda found: ", " if found[1] and found[2] else ""),
    (r", where: .*(?=\})", ""),
    (r"\blast\b", "first"),
    (r"\bDISTINCT ", ""),
    (r"(?<=\{)(?!on:)\w+: \w+, (?=\w+: \w+)", ""),
]
_LEFT_OUT = re.compile(
    r"\s+(per|cooldown|if|hysteresis|days|holidays|except|do|expire_key_after)\b|\s+- "
)


def mutants(text: str) -> Iterator[Mutant]:
    """All of them, by line. A line that is a comment, a name or a path has none."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        bare = _COMMENT.sub("", line)
        if not bare.strip() or (_SKIPPED.match(line) and not _LEFT_OUT.match(line)):
            continue
        afters = {} if _SKIPPED.match(line) else dict.fromkeys(_changed(bare))
        for after in afters:
            yield Mutant(at + 1, bare, after, "\n".join([*lines[:at], after, *lines[at + 1 :]]))
        if _LEFT_OUT.match(line):
            rest = lines[:at] + lines[_below(lines, at) :]
            yield Mutant(at + 1, bare, "", "\n".join(rest))


def _changed(line: str) -> Iterator[str]:
    for pattern, change in _OPERATORS:
        for found in re.finditer(pattern, line):
            new = change(found) if callable(change) else found.expand(change)
            after = line[: found.start()] + new + line[found.end() :]
            if after != line:
                yield after


def _below(lines: list[str], at: int) -> int:
    """The first line behind what belongs to a line: what is indented more."""
    depth = _depth(lines[at])
    end = at + 1
    while end < len(lines) and (not lines[end].strip() or _depth(lines[end]) > depth):
        end += 1
    return end


def _depth(line: str) -> int:
    """How far a line is indented; an item of a list is a little more than its key."""
    bare = line.lstrip()
    return 2 * (len(line) - len(bare)) + bare.startswith("- ")
