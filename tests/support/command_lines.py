"""Command lines that pages and files show, read as the command line reads them, and not run."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tidegate.engine.cli.main import main


def check(words: Sequence[str], command: click.Command = main) -> None:
    """Asserts that the command and its options exist."""
    named = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    if isinstance(command, click.Group):
        assert words[0] in command.commands, words[0]
        check(words[1:], command.commands[words[0]])
        return
    used = {word.partition("=")[0] for word in words if word.startswith("-")}
    assert used <= {*named, "-h", "--help"}, used - named
