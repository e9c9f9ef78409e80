"""Checks that a JSON reader leaves out: that no name stands twice in an object of a line, and that
the line is not nested too deeply."""

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
    """Checks lines that were read as `fields`. Raises NotStrictError for the first wrong one."""
    whole = b"\n".join(lines)
    if whole.count(b"{") + whole.count(b"[") > LEVELS_MAX + len(lines) - 1:
        for line in lines:
            _check_levels(line)
    flat = sum(map(len, fields))
    if whole.count(b":") == flat:  # no line has more keys than names
        return
    keys = len(_KEY.findall(whole))
    if keys == flat or keys == sum(map(_names, fields)):
        return
    for line, each in zip(lines, fields, strict=True):
        if len(_KEY.findall(line)) != _names(each):
            json.loads(line, object_pairs_hook=_once)


def _names(value: Any) -> int:
    """How many names there are in all objects of a value."""
    if type(value) is dict:
        count = len(value)
        for inner in value.values():
            if type(inner) is dict or type(inner) is list:
                count += _names(inner)
        return count
    return sum(_names(inner) for inner in value if type(inner) is dict or type(inner) is list)


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
