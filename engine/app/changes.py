"""The file of a rulebook that runs, read again."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tidegate.engine.store import KeptRulebook
from tidegate.rules.loader import read_file
from tidegate.rules.model import Rulebook


class RulebookFile:
    """It is read again when it has changed, if it is `watched`, and after each `reread`."""

    def __init__(self, book: Rulebook, *, watched: bool) -> None:
        self._path = book.file
        self._watched = watched
        self._text = book.text
        self._seen = self._state()
        self._asked = False

    def reread(self) -> None:
        """May be called from a signal handler."""
        self._asked = True

    def changed(self, added: Mapping[str, str]) -> KeptRulebook | None:
        """The rulebook, with the rules beside its text, if the text is another than when it was
        last read, or somebody asked. Raises InputError where it cannot be read, once."""
        if self._path is None or not (self._asked or self._watched):
            return None
        asked, state = self._asked, self._state()
        if state == self._seen and not asked:
            return None
        self._asked, self._seen = False, state
        text = read_file(self._path)
        if text == self._text and not asked:
            return None
        self._text = text
        return KeptRulebook(text, os.path.abspath(self._path), added)

    def _state(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self._path or "")
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
