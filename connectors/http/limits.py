"""The limits of an inbox that answers for several rulebooks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace

from tidegate.rules.model import Settings

_NAMES = [f.name for f in fields(Settings) if f.name.startswith("inbox_")]


def strictest(of_books: Iterable[Settings]) -> Settings:
    """Of each setting of the inbox the smallest, and the shortest history (G28)."""
    known = list(of_books)
    names = [*_NAMES, "history_retention_days"]
    return replace(known[0], **{n: min(getattr(one, n) for one in known) for n in names})
