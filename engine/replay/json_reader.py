"""What a JSON reader leaves out: that no name stands twice in an object of a line, that the line is
not nested too deeply, and what to say of a line that is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from tidegate.rules.errors import InputError, Place, Problem

LEVELS_MAX = 200  # of arrays and objects in each other, the line itself being one

_NO_NUMBER = re.compile(rb":\s*(?:NaN|-?Infinity)\b")
_KEY = re.compile(rb'"\s*:')


class LineError(ValueError):
    """What is wrong with a line, and the remedy."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


def check(
    lines: Sequence[bytes],
    fields: Sequence[dict[str, Any]],
    inner: Sequence[dict[str, Any]] = (),
) -> None:
    """Checks lines that were read as `fields`. `inner`: objects that are expected in them. Raises
    LineError for the first wrong one."""
    whole = b"\n".join(lines)
    if whole.count(b"{") + whole.count(b"[") > LEVELS_MAX + len(lines) + len(inner) - 1:
        for line, each in zip(lines, fields, strict=True):
            _check_levels(line, each)
    flat = sum(map(len, fields)) + sum(map(len, inner))
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


def _check_levels(line: bytes, fields: Any) -> None:
    if line.count(b"{") + line.count(b"[") > LEVELS_MAX and _is_deeper(fields, LEVELS_MAX):
        message = f"nested deeper than {LEVELS_MAX} levels"
        raise LineError("not-strict", message, "write what is nested so deep as a text")


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether a value is nested deeper than that."""
    inner = value.values() if type(value) is dict else value if type(value) is list else None
    return inner is not None and (not levels or any(_is_deeper(v, levels - 1) for v in inner))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            message = f"the line has {json.dumps(name)} twice"
            hint = "each name stands once in an object: keep one"
            raise LineError("not-strict", message, hint)
        found[name] = value
    return found


def problems_of(line: bytes, error: ValueError | InputError, place: Place) -> list[Problem]:
    """What is wrong with a line."""
    if isinstance(error, InputError):
        return [replace(problem, place=place) for problem in error.problems]
    if isinstance(error, orjson.JSONDecodeError):
        place = replace(place, column=error.colno)
    if not isinstance(error, LineError):
        error = _no_json(line, error)
    return [Problem(error.code, str(error), place, error.hint)]


def _no_json(line: bytes, error: ValueError) -> LineError:
    """What is wrong with a line that is no JSON."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return LineError("bad-json", "no UTF-8", "save the trace as UTF-8, unpacked")
    said = str(error).split(": line 1 column")[0]
    hint = ""
    if line.startswith(b"[") or line.endswith((b",", b"]")):
        hint = "write an object a line, without [ ] around them and without commas between them"
    elif line.startswith(b"{'"):
        hint = "names and texts stand in double quotes"
    elif _NO_NUMBER.search(line):
        hint = 'JSON has no such numbers: write "NaN", "Infinity" or "-Infinity", as texts'
    return LineError("bad-json", f"no JSON: {said}", hint)
