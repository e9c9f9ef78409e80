"""Where each character of a YAML scalar's content stands in the YAML text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable

from tidegate.rules.errors import Place

_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\r?\n[ \t]*|.)")
_BLANK = " \t\r\n"


def places(text: str, first: Place) -> Callable[[int], Place]:
    """The place of each offset of a text whose first character stands at `first`."""
    begins = [0, *(found.end() for found in re.finditer("\n", text))]

    def at(offset: int) -> Place:
        line = bisect_right(begins, offset) - 1
        column = offset - begins[line] + (1 if line else first.column)
        return Place(first.file, first.line + line, column, first.path)

    return at


def content_offsets(raw: str, content: str, style: str) -> list[int]:
    """Offsets into `raw` of every character of `content`, and one more for its end.

    `raw` is the scalar as written, quotes or block header included; `style` is YAML's: `"`, `'`,
    `|`, `>` or empty for plain. Folding only touches blanks, so the other characters of both
    texts are the same in the same order; a blank stands right behind the character before it.
    """
    units = _units(raw, style)
    offsets: list[int] = []
    position = 0
    for character in content:
        if character not in _BLANK:
            while position < len(units) and units[position][1] in _BLANK:
                position += 1
        if position < len(units):
            offsets.append(units[position][0])
            if character not in _BLANK or units[position][1] in _BLANK:
                position += 1
        else:
            offsets.append(len(raw))
    offsets.append(units[position][0] if position < len(units) else _end(raw, style))
    return offsets


def _end(raw: str, style: str) -> int:
    return len(raw) - 1 if style in ('"', "'") else len(raw.rstrip())


def _units(raw: str, style: str) -> list[tuple[int, str]]:
    """(offset, decoded character) of the scalar's body; an escaped character stands for itself."""
    if style in ("|", ">"):
        body = raw.find("\n") + 1
        return [(n, raw[n]) for n in range(body, len(raw))]
    if style == "'":
        quoted = raw[1:-1].replace("''", "'\0")
        return [(n + 1, quoted[n]) for n in range(len(quoted)) if quoted[n] != "\0"]
    if style != '"':
        return list(enumerate(raw))
    units: list[tuple[int, str]] = []
    position = 1
    while position < len(raw) - 1:
        escape = _ESCAPE.match(raw, position) if raw[position] == "\\" else None
        if escape is None:
            units.append((position, raw[position]))
            position += 1
            continue
        if escape[0][1] not in "\r\n":
            units.append((position, " " if escape[0][1] in "tnrNLP_ " else "x"))
        position = escape.end()
    return units
