"""Options that commands share, and the store that they mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]
as_json = click.option("--json", "as_json", is_flag=True, help="JSON lines instead of tables.")
store_url = click.option(
    "--store", envvar="TIDEGATE_STORE", metavar="URL", help="The store's database URL."
)


def of_store(command: Command) -> Command:
    """Options of the commands that need the store only."""
    for option in (
        as_json,
        click.option("--rulebook", "name", metavar="NAME", help="Where a store has several."),
        store_url,
    ):
        command = option(command)
    return command


def the_store(url: str | None, rulebook: Path | None = None) -> str:
    """The store's URL: given, or SQLite beside the rulebook."""
    if url:
        return url
    if rulebook is not None:
        return default_store(rulebook)
    raise click.UsageError(
        "no store is named: give --store URL or set TIDEGATE_STORE (`run` uses "
        "sqlite:///<rulebook>.db by default)"
    )


def default_store(rulebook: Path) -> str:
    """SQLite beside the rulebook: `bank.yaml` -> `bank.db`."""
    return f"sqlite:///{rulebook.resolve().with_suffix('.db')}"
