"""What happened, written in place of each `?` of a test file. All else of the file stays as it is,
byte for byte.

Example: `firings: {r: ?}` becomes `firings: {r: [{at: 2026-03-02T07:00:10, constituents: 2}]}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from tidegate.engine.replay.cases.differences import Answer
from tidegate.engine.replay.cases.driver import CaseResult
from tidegate.engine.replay.cases.reader import block_column
from tidegate.rules.yaml.reader import Scalar

_ENDS = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*|\d{4}-\d\d-\d\d(T[\d:.+-]+)?", re.ASCII)
_QUESTION = re.compile(r" *(\?|'\?'|\"\?\")")


def accepted(result: CaseResult) -> CaseResult:
    """A result as it is once each `?` has its answer."""
    left = tuple(one for one in result.mismatches if not one.asked)
    found = replace(result, mismatches=left)
    is_met = result.outcome == "failed" and not left and not result.error
    return replace(found, outcome="passed") if is_met else found


def accept(file: Path, answers: Iterable[Answer]) -> int:
    """Write the answers into a test file; returns how many."""
    content = file.read_bytes()
    mark = b"\xef\xbb\xbf" if content.startswith(b"\xef\xbb\xbf") else b""
    by_place = {(one.place.line, one.place.column): one.value for one in answers}
    text = filled(content.removeprefix(mark).decode(), by_place)
    file.write_bytes(mark + text.encode())
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
