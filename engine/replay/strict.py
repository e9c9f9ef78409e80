"""What a JSON reader lets pass and a line of a trace must not have: a name twice, deep nesting."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

LEVELS_MAX = 200  # of arrays and objects in each other, the line itself being one

_KEY = re.compile(rb'"\s*:')
_MARKS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')


class NotStrictError(ValueError):
    """What is wrong with a line, and the remedy."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def check(lines: Sequence[bytes], fields: Sequence[dict[str, Any]]) -> None:
    """Look at lines that have been read as these `fields`. Raises NotStrictError: about the first
    line that is wrong."""
    whole = b"\n".join(lines)
    if whole.count(b"{") + whole.count(b"[") > LEVELS_MAX + len(lines) - 1:
        for line in lines:
            _check_levels(line)
    if _keys_most(whole) == sum(map(len, fields)):
        return  # no line has more keys than names
    for line, each in zip(lines, fields, strict=True):
        if _keys_most(line) != len(each) and len(_KEY.findall(line)) != _names(each):
            json.loads(line, object_pairs_hook=_once)


def _keys_most(text: bytes) -> int:
    """How many keys there are at most: quotes with a colon or a blank behind them."""
    return sum(text.count(mark) for mark in (b'":', b'" ', b'"\t', b'"\r'))


def _names(value: Any) -> int:
    """How many names there are in all objects of a value."""
    if isinstance(value, dict):
        return len(value) + sum(_names(v) for v in value.values() if type(v) in (dict, list))
    return sum(_names(v) for v in value if type(v) in (dict, list))


def _check_levels(line: bytes) -> None:
    if line.count(b"{") + line.count(b"[") <= LEVELS_MAX:
        return
    levels = 0
    for mark in _MARKS.finditer(line):
        levels += (mark[0] in b"[{") - (mark[0] in b"]}")
        if levels > LEVELS_MAX:
            message = f"nested deeper than {LEVELS_MAX} levels"
            raise NotStrictError(message, "write what is nested so deep as a text")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            message = f"the line has {json.dumps(name)} twice"
            raise NotStrictError(message, "each name stands once in an object: keep one")
        found[name] = value
    return found
