"""Which firing or commit is meant: by its digits, in one rulebook of the store or in whichever has
it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tidegate.engine.control.rulebooks import the_rulebook
from tidegate.engine.replay.why.commit import behind
from tidegate.engine.replay.why.model import Story
from tidegate.engine.replay.why.tell import AskAgain, told
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import EngineError, InputError, Problem, word_place

_ID = re.compile("[0-9a-f]{6,32}")


def why(store: SqlStore, name: str | None, firing: str, ask_again: AskAgain | None = None) -> Story:
    """The story of a firing. `name`: its rulebook, None: any of the store. `firing`: the first
    digits of its id. Raises InputError for what is no id, EngineError `no-rulebook`,
    `firing-gone`, `firing-unclear`."""
    digits = firing.strip().lower()
    if not _ID.fullmatch(digits):
        hint = "6 to 32 hexadecimal digits, as `tidegate firings` prints them"
        message = f"{firing!r} is no firing's id"
        raise InputError([Problem("bad-firing", message, word_place("FIRING"), hint)])
    missing: EngineError | None = None
    found = []
    with store.snapshot():
        for one in _named(store, name):
            try:
                found.append((one, store.of(one).traces.place(digits)))
            except EngineError as error:
                if error.code != "firing-gone":
                    raise
                missing = error
    if len(found) > 1:
        message = f"firings of {' and '.join(one for one, _ in found)} begin with {digits}"
        raise EngineError("firing-unclear", message, "give more digits, or --rulebook NAME")
    if found:
        [(one, place)] = found
        return told(store, one, place, ask_again)
    raise missing or EngineError("no-rulebook", "the store has no rulebook", "`tidegate run`")


def why_commit(store: SqlStore, name: str | None, commit: str) -> dict[str, Any]:
    """What made a commit `TABLE@VERSION` (`commit.behind`)."""
    with store.snapshot():
        return behind(store, name, commit)


def _named(store: SqlStore, name: str | None) -> Iterable[str]:
    known = store.rulebooks()
    if name is None:
        return sorted(known)
    if name not in known:
        the_rulebook(store, name)  # raises
    return [name]
