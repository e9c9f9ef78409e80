"""The pages for readers, and the blocks in them that are executed."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def blocks(language: str) -> list[tuple[str, str]]:
    """The fenced blocks of a language: `page:line` and text."""
    fence = re.compile(rf"^```{language}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return [
        (f"{page.name}:{text.count(chr(10), 0, found.start()) + 1}", found[1])
        for page in PAGES
        for text in [page.read_text(encoding="utf-8")]
        for found in fence.finditer(text)
    ]
