"""Hints for texts that the YAML parser refuses: mostly quotes or another indentation."""

from __future__ import annotations

import re
import unicodedata

_ODD_BLANK = re.compile("[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000]")
COMMENT = re.compile(r"[ \t]+#")
ALIGNED = "the keys of one mapping stand below each other, what belongs to a key further right"
_KEY = re.compile(r"\s*(?:-\s+)*([\w.-]+|\"[^\"]*\"|'[^']*')\s*:(?:\s+(.*))?$")
_IN_FLOW = re.compile(r"([\w.-]+):\s+")
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_SAID = {
    "alphabetic or numeric character": 'a text that begins with * or & is quoted: "*"',
    "invalid Unicode character escape code": "write the character itself",
    "unknown escape character": "in single quotes a backslash stands for itself",
    "expected ':'": "write name: value; a text over several lines is indented further than its key",
    "expected '-'": "each item of a list begins with a dash; the keys of a mapping have none",
}
"""What to do about a problem, by a piece of the parser's message."""


def tag_hint(tag: str, value: str) -> str:
    """The remedy for a text that begins with an exclamation mark, which YAML takes for a tag."""
    if tag.startswith("!!") or not tag.startswith("!"):
        return "leave the tag out"
    text = in_quotes(f"{tag} {value}".strip())
    return f"leave the tag out; a text that begins with ! is quoted: {text}"


def yaml_hint(problem: str, source: str, line: int, column: int, begun: int | None) -> str:
    """The remedy for a parser's `problem` at a line and column (from 0). `begun`: the line where
    the construct began that the parser was reading, if it is known."""
    lines = source.split("\n")
    text = lines[line] if line < len(lines) else ""
    at = text[column : column + 1]
    if at == "\t" or (not text[:column].strip() and "\t" in text[:column]):
        return "indent with spaces, not tabs"
    if "',' or '}'" in problem or "',' or ']'" in problem:
        return _in_flow(lines, line, column, begun)
    if "mapping values are not allowed" in problem:
        return _second_colon(lines, line, column)
    if "end of stream" in problem and begun is not None:
        return f"the quote that opens in line {begun + 1} is not closed"
    if said := next((hint for piece, hint in _SAID.items() if piece in problem), None):
        return said
    if "block scalar" in problem or "comment or line break" in problem or at in "`@%":
        return _quoted(text) or "quote the text"
    if "expected key" in problem or "<block end>" in problem:
        return _quoted(text) if text[:column].strip(" -") else _aligned(lines, line)
    return ""


def odd_blank(source: str, line: int) -> tuple[int, int, str] | None:
    """Line and column (from 0) of a blank that YAML takes for a letter, and its description. Only
    blanks after a colon or a dash, or before a key, in this line or the one before, are found."""
    lines = source.split("\n")
    for number in (line, line - 1):
        text = lines[number] if 0 <= number < len(lines) else ""
        for found in _ODD_BLANK.finditer(text):
            before = text[: found.start()]
            if not before.strip() or before.rstrip()[-1] in ":-":
                name = unicodedata.name(found[0], "a blank").lower()
                said = f"this is no blank of YAML: {name} (U+{ord(found[0]):04X})"
                return number, found.start(), said
    return None


def _in_flow(lines: list[str], line: int, column: int, begun: int | None) -> str:
    """The hint inside { } or [ ]: for a text with a character that YAML reserves there, or for a
    bracket or quote that is not closed."""
    text = lines[line] if line < len(lines) else ""
    for number in range(line if begun is None else begun, min(line + 1, len(lines))):
        if meant := _before_comment(lines[number]):
            return f"' #' begins a comment; if it is part of the text: {meant}"
    if (
        begun is not None
        and begun != line
        and column <= len(text) - len(text.lstrip()) + 1 + len(text.lstrip().partition(":")[0])
    ):
        return f"a bracket that opens in line {begun + 1} is not closed"
    for key in _IN_FLOW.finditer(text):
        begin = key.end()
        end = _flow_end(text, begin)
        if text[begin : begin + 1] not in "{[\"'" and begin <= column <= end:
            return f"inside {{ }} quote it: {key[1]}: {in_quotes(text[begin:end].strip())}"
    for number in range(line, -1, -1):
        if lines[number].count("'") % 2 or lines[number].count('"') % 2:
            return f"a quote in line {number + 1} is not closed"
    return "inside { } and [ ] a text with , : [ ] { } needs quotes"


def _before_comment(text: str) -> str:
    """The last key and value of a line inside { } that a comment cuts off, in quotes."""
    cut = COMMENT.search(text)
    keys = [*_IN_FLOW.finditer(text[: cut.start()])] if cut else []
    if not keys or text[keys[-1].end()] in "\"'":
        return ""
    return f"{keys[-1][1]}: {in_quotes(text[keys[-1].end() :].rstrip(' }]'))}"


def _flow_end(text: str, begin: int) -> int:
    """Where a text inside { } probably ends: at a comma or bracket outside of its own brackets."""
    opened: list[str] = []
    for position in range(begin, len(text)):
        character = text[position]
        if character in _CLOSES:
            opened.append(_CLOSES[character])
        elif opened and character == opened[-1]:
            opened.pop()
        elif not opened and character in ",}]":
            return position
    return len(text)


def _second_colon(lines: list[str], line: int, column: int) -> str:
    """The hint for a colon too many: a `: ` inside a text, a key that is indented too far, or a
    line before it without a colon."""
    text = lines[line]
    before = next((one for one in reversed(lines[:line]) if one.strip()), "")
    begins = re.fullmatch(r"\s*[\w.-]+", text[:column]) is not None
    if begins and not _KEY.match(before):
        return f"a colon is missing in the line before: write {before.split()[0]}: .."
    if begins:
        return _aligned(lines, line)
    hint = _quoted(text)
    return f"{hint} (in event expressions L:(a) needs none)" if hint else ALIGNED


def _aligned(lines: list[str], line: int) -> str:
    """The hint for a key in a wrong column: to begin below the nearest key."""
    above: list[tuple[int, str, int]] = []  # column, key and line of what the line may stand below
    for number, text in enumerate(lines[:line]):
        if found := _KEY.match(text):
            column = found.start(1)
            above = [*(known for known in above if known[0] < column), (column, found[1], number)]
    begins = _KEY.match(lines[line])
    if not begins or not above:
        return ALIGNED
    column = begins.start(1)
    nearest, key, number = min(above, key=lambda known: (abs(known[0] - column), -known[2]))
    below = f"as {key!r} in line {number + 1}"
    return f"begin {begins[1]!r} in column {nearest + 1}, {below}: {ALIGNED}"


def _quoted(text: str) -> str:
    """`key: value` of a line with its value in quotes."""
    key = _KEY.match(text)
    if not key or not key[2]:
        return ""
    if re.fullmatch(r"\{.*\}+|\[.*\]+", key[2].strip()):
        return "a bracket is closed that is not open"
    return f"quote the text: {key[1]}: {in_quotes(key[2].strip())}"


def in_quotes(text: str) -> str:
    """A text as a scalar in quotes."""
    if '"' in text or "\\" in text:
        return "'" + text.replace("'", "''") + "'"
    return f'"{text}"'
