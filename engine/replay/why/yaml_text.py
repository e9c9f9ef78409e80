"""Values as YAML on one line. What is quoted is JSON, which YAML reads alike."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import orjson

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAKEN = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_REFUSED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_DIGITS_MAX = 15  # of a number that a double holds
_WIDTH = 98


def flow(value: Any) -> str:
    """A value: `{kind: "withdraw", amount: 950.00}`."""
    match value:
        case Mapping():
            parts = (f"{word(str(name))}: {flow(item)}" for name, item in value.items())
            return f"{{{', '.join(parts)}}}"
        case list() | tuple():
            return f"[{', '.join(map(flow, value))}]"
        case Decimal():
            text = format(value, "f")
            exact = len(text.strip("-").replace(".", "")) <= _DIGITS_MAX
            return text if exact else quoted(text)
        case str():
            return quoted(value)
    return orjson.dumps(value).decode()


def quoted(text: str) -> str:
    """A text in double quotes; what YAML does not allow as it is, is escaped."""
    said = orjson.dumps(text.encode(errors="replace").decode()).decode()
    return _REFUSED.sub(lambda found: f"\\u{ord(found[0]):04x}", said)


def word(name: str) -> str:
    """A name, quoted unless it is plain."""
    plain = _WORD.fullmatch(name) and name.lower() not in _TAKEN
    return name if plain else quoted(name)


def comment(text: str) -> Iterator[str]:
    """A comment in lines."""
    for line in textwrap.wrap(" ".join(text.split()), _WIDTH):
        yield f"# {line}"
