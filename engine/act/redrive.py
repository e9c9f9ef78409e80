"""Skip and redrive: the ways past an entry that cannot be done (G16b, G18)."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace

from tidegate.engine.core.entries import Control, Entry, Fate, Outcome
from tidegate.engine.core.ports import OutageError, SinkError
from tidegate.rules.errors import EngineError

FINISHED = ("done", "skipped", "redriven")
Seal = Callable[[Entry], Fate]
"""Makes sure that an entry cannot land any more. Gives its fate. Raises SinkError."""
Renew = Callable[[Entry], Entry | str]
"""Gives the entry that takes the place of another, with its rule's present text; or says why there
is none."""


def way_past(entry: Entry, rules: Container[str]) -> str:
    """The text with the commands that get past a held or dead entry. `rules`: those that exist."""
    redrive, skip = entry.ways_past
    skip = f"`{skip}` (it never runs)"
    if entry.rule not in rules:
        return skip
    again = "" if entry.state == "dead" else "it is tried again; or "
    return f"{again}`{redrive}` (with the rule's present text), {skip}"


def pass_over(control: Control, entry: Entry, seal: Seal, renew: Renew) -> Outcome | str:
    """Carry out `tidegate skip ENTRY` or `tidegate redrive ENTRY`. The entry is sealed, so that it
    cannot land any more. Then it is skipped, or another entry takes its place. An entry that has
    landed is done. A text as the result says why nothing was changed."""
    if entry.state in FINISHED:
        return f"entry {entry.number} is {entry.state}"
    successor = renew(entry) if control.kind == "redrive" else None
    if isinstance(successor, str):  # said before the entry is sealed, which could still run
        return successor
    refused = _seal(entry, seal)
    if refused is Fate.EFFECT:
        return Outcome(entry, entry.progress.finished("done"), control=control.id)
    if isinstance(refused, str) and not control.option:
        return refused
    if refused is Fate.PASSED and successor is not None and not control.option:
        return (
            f"entry {entry.number}: another history, as of a copy of this store, wrote its target "
            f"and may have had the same effect; `tidegate redrive {entry.number} --may-double` "
            f"runs it anew, `tidegate skip {entry.number}` passes over it"
        )
    if refused is Fate.PASSED:
        entry = replace(entry, progress=replace(entry.progress, fate=refused.value))
    if successor is None:
        return _outcome(entry, "skipped", control)
    return replace(_outcome(entry, "redriven", control), successors=(successor,))


def _seal(entry: Entry, seal: Seal) -> Fate | str:
    """Seal an entry. Returns its fate; or a text if it still could land."""
    why = "what became of it cannot be known"
    try:
        fate = seal(entry)
        if fate not in (Fate.UNKNOWN, Fate.ABSENT):
            return fate
    except (SinkError, EngineError) as error:
        if isinstance(error, OutageError):
            raise
        why = f"it cannot be sealed: {error}"
    return (
        f"entry {entry.number}: {why}; `tidegate skip {entry.number} --unsealed` passes over it, "
        f"`tidegate redrive {entry.number} --may-double` runs it anew"
    )


def _outcome(entry: Entry, state: str, control: Control) -> Outcome:
    progress = replace(entry.progress, state=state, next_attempt_at=0)
    return Outcome(entry, progress, control=control.id)
