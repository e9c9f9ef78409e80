"""Cursors that an operator asked to be set (`tidegate reset`, G10, G24)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tidegate.engine.core.entries import Control
from tidegate.engine.core.state import State
from tidegate.rules.model import Rulebook, Start


def with_resets(
    rulebook: Rulebook, state: State, controls: Iterable[Control]
) -> tuple[Rulebook, State]:
    """Rulebook and state for the next plan. A reset table counts as never read. It starts at its
    head, or at the version asked for. Changes that are read again are new occurrences."""
    tables, cursors = dict(rulebook.tables), dict(state.cursors)
    for control in controls:
        if control.kind == "reset" and control.subject in tables:
            start = Start() if control.version is None else Start("version", control.version)
            tables[control.subject] = replace(tables[control.subject], start=start)
            cursors.pop(control.subject, None)
    return replace(rulebook, tables=tables), replace(state, cursors=cursors)


def read_again_after(state: State, controls: Iterable[Control]) -> dict[str, int]:
    """By reset table, an instant after which its commits are placed, if that is later than the last
    bucket. Rules that were enabled before the reset have begun by then, and see the commits."""
    found: dict[str, int] = {}
    begun = max(state.activations.values(), default=0)
    for control in controls:
        if control.kind == "enable":
            begun = max(begun, control.asked_at)
        elif control.kind == "reset":
            found[control.subject] = begun
    return found
