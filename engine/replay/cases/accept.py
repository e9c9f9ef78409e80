"""What happened, written in place of each `?` of a test file. All else of the file stays as it is,
byte for byte.

Example: `firings: {r: ?}` becomes `firings: {r: [{at: 2026-03-02T07:00:10, constituents: 2}]}`.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from errno import EACCES
from pathlib import Path
from typing import Any

from tidegate.engine.core.columns.user_cache import write_whole
from tidegate.engine.replay.cases.differences import Answer
from tidegate.engine.replay.cases.driver import CaseResult
from tidegate.engine.replay.cases.reader import block_column
from tidegate.rules.errors import InputError, Problem, word_place
from tidegate.rules.yaml.files import read_file
from tidegate.rules.yaml.reader import Scalar

_MARK = b"\xef\xbb\xbf"  # of UTF-8, which some editors write
_ENDS = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*|\d{4}-\d\d-\d\d(T[\d:.+-]+)?", re.ASCII)
_QUESTION = re.compile(r" *(\?|'\?'|\"\?\")")


def accepted(result: CaseResult) -> CaseResult:
    """A result as it is once each `?` has its answer."""
    left = tuple(one for one in result.mismatches if not one.asked)
    found = replace(result, mismatches=left)
    is_met = result.outcome == "failed" and not left and not result.error
    return replace(found, outcome="passed") if is_met else found


def accept(file: Path, text: str, answers: Iterable[Answer]) -> int:
    """Write the answers into a test file that reads `text`; returns how many. Raises InputError if
    it reads otherwise by now: places are of the text that was run."""
    place = word_place(str(file))
    if read_file(str(file)) != text:
        message = "the file is not the one that was run: it has changed meanwhile"
        raise InputError([Problem("changed", message, place, "run --accept again")])
    by_place = {(one.place.line, one.place.column): one.value for one in answers}
    try:
        mark = _MARK if file.read_bytes().startswith(_MARK) else b""
        content = mark + filled(text, by_place).encode()
        if not os.access(file, os.W_OK):
            raise PermissionError(EACCES, os.strerror(EACCES))
        whole = file.resolve()  # a link stays one
        write_whole(whole, content, stat.S_IMODE(whole.stat().st_mode))
    except OSError as error:
        message = f"what happened cannot be written: {error.strerror}"
        raise InputError([Problem("unwritable", message, place)]) from error
    return len(by_place)


def filled(text: str, answers: Mapping[tuple[int, int], Any]) -> str:
    """The text with these values, by line and column of a `?`."""
    begins = [0, *(end.end() for end in _ENDS.finditer(text))]
    for line, column in sorted(answers, reverse=True):
        at = begins[line - 1] + column - 1
        before = text[:at].rstrip(" ")
        found = _QUESTION.match(text, len(before))
        if found is None:
            continue
        end = "\r\n" if "\r\n" in text else "\n"
        indent = block_column(text, line, column)
        value = answers[line, column]
        shown = f" {_flow(value)}" if indent is None else _block(value, indent + 2)
        text = before + shown.replace("\n", end) + text[found.end() :]
    return text


def _block(value: Any, indent: int) -> str:
    """A value behind `key:`, over several lines where it holds others."""
    blank = " " * indent
    if isinstance(value, Mapping) and value:
        lines = (f"\n{blank}{_flow(n)}:{_block(item, indent + 2)}" for n, item in value.items())
        return "".join(lines)
    if isinstance(value, list) and value:
        return "".join(f"\n{blank}- {_flow(item)}" for item in value)
    return f" {_flow(value)}"


def _flow(value: Any) -> str:
    """A value on one line."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float():
            return repr(value)
        case Decimal():
            text = format(value, "f")
            exact = Decimal(repr(float(value))) == value
            return text if exact else f'"{text}"'
        case Mapping():
            return "{" + ", ".join(f"{_flow(n)}: {_flow(v)}" for n, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_flow, value)) + "]"
    return _text(str(value))


def _text(text: str) -> str:
    """A text, in quotes if YAML would read something else."""
    if _PLAIN.fullmatch(text) and Scalar(None, text, "").value == text:  # type: ignore[arg-type]
        return text
    if text.isprintable():
        return json.dumps(text, ensure_ascii=False)
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08X}"
