"""Makes texts of others harmless for a terminal.

Control characters move the cursor, ring the bell, rename windows. Overrides of the writing
direction and invisible characters show a wrong text. All of them become escapes such as `\\x1b`.
"""

from __future__ import annotations

import re

_CONTROL = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line feed, DEL, C1
    r"\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"  # direction, unseen
    r"\ud800-\udfff\U000e0000-\U000e007f"  # halves of pairs, tags
)
_UNSAFE = re.compile(f"[{_CONTROL}]")
_UNSAFE_IN_LINE = re.compile(rf"[\t\n{_CONTROL}]")


def printable(text: str) -> str:
    """The text with control characters as escapes. Tabs and line ends stay."""
    return _UNSAFE.sub(_escape, text)


def in_line(text: str) -> str:
    """The text with control characters, tabs and line ends as escapes."""
    return _UNSAFE_IN_LINE.sub(_escape, text)


def in_json(text: str) -> str:
    """A JSON text of the same value, with control characters as JSON's escapes."""
    return _UNSAFE.sub(_json_escape, text)


def shortened(text: str, characters_max: int) -> str:
    """The text, or its beginning and its length: `abc.. (5,000 characters)`."""
    if len(text) <= characters_max:
        return text
    return f"{text[:characters_max]}.. ({len(text):,} characters)"


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex(" ", 2).split()
    return "".join(f"\\u{unit}" for unit in units)
