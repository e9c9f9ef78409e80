"""The language: YAML and event expressions to frozen values. No Spark, no I/O but reading files.

`load` reads a rulebook, `parse` one event expression; both raise `rules.errors.InputError`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.rules.errors import Place
    from tidegate.rules.expressions.nodes import Expression
    from tidegate.rules.model import Rulebook

__all__ = ["load", "parse"]

# The parsers are imported when they are first used: most of the engine only needs the model.


def setting_texts(settings: Mapping[str, str | float] | None) -> dict[str, str]:
    """Settings as `--set` has them: 700 as the text `700`."""
    return {name: str(value) for name, value in (settings or {}).items()}


def load(
    source: str | os.PathLike[str],
    *,
    settings: Mapping[str, str | float] | None = None,
    file: str | None = None,
    features: frozenset[str] = frozenset(),
    added: Mapping[str, str] | None = None,
    files: Mapping[str, str] | None = None,
    functions: Collection[str] | None = None,
    environment: Mapping[str, str] | None = os.environ,
) -> Rulebook:
    """Read and check a rulebook.

    source     a path, or YAML text (a string with a line break or `: ` in it)
    settings   overrides, as by `--set name=value`: texts or numbers
    file       the file that a text came from: relative paths resolve against its folder; without
               it they are refused
    features   names of `rules.checks.gaps` that are accepted although the engine has not built them
    added      rules beside the text: the YAML of each, by name
    files      texts that replace those of scripts' files, by name as the rulebook writes it
    functions  what SQL may call beside Spark's own functions; without it, Spark judges them
    environment  of whom runs the rulebook; None: it is elsewhere, and only `files` has its values

    Raises `InputError` with every problem of the rulebook; warnings are in `Rulebook.warnings`.
    """
    from tidegate.rules.loader import load_rulebook

    return load_rulebook(
        source,
        setting_texts(settings),
        file,
        features,
        added=added,
        files=files,
        functions=functions,
        environment=environment,
    )


def parse(text: str, place: Place | None = None) -> Expression:
    """Read one event expression. `place`: where its first character stands.

    Raises `InputError` with the offending text underlined.
    """
    from tidegate.rules.expressions.parser import parse as parse_expression

    return parse_expression(text, place)
