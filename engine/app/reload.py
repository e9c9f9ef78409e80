"""Takes over another text of a running rulebook: its file's, or one that is requested (G24)."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tidegate.engine.core.ports import LOST, OutageError
from tidegate.engine.store import KeptRulebook, Ledger
from tidegate.engine.store.controls import RELOAD
from tidegate.rules.errors import InputError, TidegateError
from tidegate.rules.form.assembly import files_named, is_script
from tidegate.rules.model import Rulebook
from tidegate.rules.yaml.files import read_file

log = logging.getLogger(__name__)
SETTLING_SECONDS = 0.2
"""A watched file that changed so recently may be written only in part. Half a text can be a valid
rulebook without some of its rules; their state would be lost."""


def absolute(file: str | None) -> str | None:
    """The absolute path of a file: later commands may be called in other folders."""
    return file and os.path.abspath(file)


def texts_of(book: Rulebook) -> dict[str, str]:
    """The texts of a rulebook and of the files that it names, as they are written, by file; none
    where the rulebook has no file."""
    if book.file is None:
        return {}
    folder = os.path.dirname(os.path.abspath(book.file))
    named = {n: text for n, text in book.files.items() if not n.startswith("${")}
    return {**{os.path.join(folder, n): text for n, text in named.items()}, book.file: book.text}


class RulebookFile:
    """The file of a rulebook. It is read again after `reread`; if it is `watched`, also when it or
    the file of a script or one that it includes has changed. Those of a text that was refused are
    watched, too: its fault may be mended there."""

    def __init__(self, book: Rulebook, *, watched: bool) -> None:
        self._path = book.file
        self._watched = watched
        self._bytes_max = book.settings.yaml_bytes_max
        self._texts: Mapping[str, str | None] = texts_of(book)
        # The states of the files when they were last read; None: they may have changed since
        self._seen: tuple[tuple[int, ...] | None, ...] | None = None
        self._asked = False

    def runs(self, book: Rulebook) -> None:
        """Note the rulebook that the engine runs now; it may come from another file."""
        texts = texts_of(book)
        if {*map(absolute, texts)} != {*map(absolute, self._texts)}:
            self._path, self._seen = book.file, None
        self._texts = texts

    def reread(self) -> None:
        """Read the file at the next look. May be called from a signal handler."""
        self._asked = True

    def changed(self, added: Mapping[str, str]) -> KeptRulebook | None:
        """The rulebook with the rules beside its text, if the text has changed or `reread` was
        called; else None. Raises InputError once where the file cannot be read."""
        if self._path is None or not (self._asked or self._watched):
            return None
        asked, state = self._asked, tuple(map(_state, self._texts))
        if not asked and (state == self._seen or any(map(_is_settling, state))):
            return None
        self._asked, self._seen = False, state
        texts = {**{file: _text(file) for file in self._texts}, self._path: read_file(self._path)}
        if texts == self._texts and not asked:
            return None
        text = texts[self._path] or ""
        named = [] if is_script(self._path) else files_named(text, self._path, self._bytes_max)
        self._texts = {**{file: texts.get(file, _text(file)) for file in named}, self._path: text}
        return KeptRulebook(text, absolute(self._path), added)


def _text(file: str) -> str | None:
    """The text of a file that is named. None where it cannot be read: the rulebook may name another
    file now."""
    try:
        return read_file(file)
    except InputError:
        return None


def _state(file: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _is_settling(state: tuple[int, ...] | None) -> bool:
    return state is not None and 0 <= time.time() - state[0] / 1e9 < SETTLING_SECONDS


@dataclass(slots=True)
class Changes:
    """Changes the text of one rulebook between two buckets. `take_over`: makes the engine run
    another text and returns its version; if it raises, everything is as before."""

    ledger: Ledger
    name: str
    file: RulebookFile
    settings: Mapping[str, str]
    take_over: Callable[[Rulebook], int]
    _wanted: tuple[KeptRulebook, int | None] | None = field(default=None, init=False)

    def begin(self, book: Rulebook) -> None:
        """The engine starts with its file as it is now. Texts that were requested before are
        answered with that. Rules that were put meanwhile are requested anew, beside this text."""
        pending = [c for c in self.ledger.controls.pending() if c.kind == RELOAD]
        if not pending:
            return
        added = self.ledger.versions.newest().added
        if added != book.added:
            kept = KeptRulebook(book.text, absolute(book.file), added, files=book.files)
            self.ledger.versions.propose(kept)
        said = "the engine was started anew, with its file as it was then"
        self.answer(said, pending[-1].id)

    def make(self, added: Mapping[str, str], *, asked: bool) -> None:
        """Take over another text if there is one, or report why it is refused. `added`: the rules
        beside the present text. `asked`: whether an operator has requested something. Raises
        OutageError, and the errors that end an engine."""
        if self._wanted is None:
            self._wanted = self._found(added, asked=asked)
        if self._wanted is None:
            return
        kept, control = self._wanted
        try:
            said = f"version {self.take_over(kept.judged(self.name, self.settings))} runs"
            log.info("rulebook %s: %s", self.name, said)
        except Exception as error:
            if isinstance(error, OutageError) or getattr(error, "code", "") in LOST:
                raise
            known = isinstance(error, TidegateError)
            why = str(error) if known else f"{type(error).__name__}: {error}"
            log.error("the changed rulebook is refused, the former one goes on:\n%s", why)
            said = f"refused: {why}"
        self._wanted = None
        if control is not None:
            self.answer(said, control)
        else:
            self.ledger.controls.note(RELOAD, "file", said)  # for `status`

    def answer(self, said: str, last: int) -> None:
        """Answer the requests for another text up to the control `last`. The answer is for that
        one; earlier ones are superseded."""
        for control in self.ledger.controls.pending():
            if control.kind == RELOAD and control.id <= last:
                answer = said if control.id == last else "a later one was taken"
                self.ledger.controls.answer(control.id, answer)

    def _found(
        self, added: Mapping[str, str], *, asked: bool
    ) -> tuple[KeptRulebook, int | None] | None:
        """The text to take over, and the control that requests it, if any. An operator's request
        comes before a changed file: it was made from the file's former text."""
        try:
            found = self.file.changed(added)
        except InputError as error:
            log.error("the rulebook cannot be read again, the former one goes on:\n%s", error)
            self.ledger.controls.note(RELOAD, "file", f"cannot be read: {error}")
            found = None
        if found is None and not asked:
            return None
        controls = [c for c in self.ledger.controls.pending() if c.kind == RELOAD]
        kept = self.ledger.versions.version(int(controls[-1].subject)) if controls else None
        if kept is None:
            return None if found is None else (found, None)
        if found is not None:
            self.file.reread()
        return kept, controls[-1].id
