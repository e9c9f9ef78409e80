"""Options that several commands have, and the store that a command means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
as_json = click.option("--json", "as_json", is_flag=True, help="JSON lines instead of tables.")
store_url = click.option(
    "--store", envvar="TIDEGATE_STORE", metavar="URL", help="The store's database URL."
)

overrides = click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Override a setting."
)
spark_conf = click.option(
    "--spark-conf", multiple=True, metavar="KEY=VALUE", help="A Spark configuration entry."
)

policy_file = click.option(
    "--policy", type=FILE, help="What the operator allows: a YAML file (default: TIDEGATE_POLICY)."
)
own_rulebook = click.option(
    "--rulebook-file",
    type=FILE,
    help="Register this rulebook first; its default store is used.",
)


def format_option(*forms: str) -> Callable[[Command], Command]:
    """`--format` of what a command prints, as `format_`. The first form is the default."""
    return click.option(
        "--format", "format_", type=click.Choice(forms), default=forms[0], show_default=True
    )


def of_form(*forms: str) -> Callable[[Command], Command]:
    """For a command that prints in one of several forms: it gets `form`. `--json` is short for
    `--format json`."""

    def decorated(command: Command) -> Command:
        @wraps(command)
        def called(*args: Any, format_: str, as_json: bool, **options: Any) -> Any:
            return command(*args, form="json" if as_json else format_, **options)

        same = "The same as --format json."
        json = click.option("--json", "as_json", is_flag=True, help=same)
        return format_option(*forms)(json(called))

    return decorated


@dataclass(frozen=True, slots=True)
class At:
    """The store that a command is for, the rulebook in it, and whether it answers in JSON."""

    store: str | None
    name: str | None
    as_json: bool

    @property
    def url(self) -> str:
        return the_store(self.store)


def of_store(command: Command) -> Command:
    """Adds the options of a command on a store; it gets them as `at`."""

    @wraps(command)
    def called(
        *args: Any, store: str | None, name: str | None, as_json: bool, **options: Any
    ) -> Any:
        return command(*args, at=At(store, name, as_json), **options)

    named = click.option("--rulebook", "name", metavar="NAME", help="Where a store has several.")
    return store_url(named(as_json(called)))


def the_store(url: str | None, rulebook: Path | None = None) -> str:
    """The store's URL: the given one, else SQLite beside the rulebook."""
    if url:
        return url
    if rulebook is not None:
        from tidegate.engine.store.address import default_store

        return default_store(rulebook)
    raise click.UsageError(
        "no store is named: give --store URL or set TIDEGATE_STORE\n"
        "(`run` uses sqlite:///<rulebook>.db by default)"
    )


def pairs(items: tuple[str, ...], option: str) -> dict[str, str]:
    """`("a=1", ..)` as a mapping; a usage error where there is no `=`, or a name twice."""
    found: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{option} takes NAME=VALUE, got {item!r}")
        if name in found:
            raise click.UsageError(f"{option} names {name} twice: {found[name]!r} and {value!r}")
        found[name] = value
    return found


def seconds_of(text: str, option: str) -> float:
    """The seconds of a duration on the command line. Raises UsageError."""
    from tidegate.rules.expressions.durations import duration_micros

    try:
        return 0 if text == "0" else duration_micros(text) / 1e6
    except ValueError as error:
        said = f"{option} takes a duration such as 500ms, 2s or 5m: {error}"
        raise click.UsageError(said) from error
