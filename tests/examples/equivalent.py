"""Mutants that no case can find, since nothing that can happen would differ."""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str], str] = {}
"""By file, and the mutant's line (where it is left out: the line itself): the reason."""
