"""Commands that look at what an engine did, and those that get it past what stands in its way."""

from __future__ import annotations

import click

from tidegate.engine import output
from tidegate.engine.options import of_store, the_store


@click.command()
@click.option("--rule", help="Only this rule's.")
@click.option("--limit", type=click.IntRange(min=1), help="Only the newest so many.")
@click.option("--before", metavar="FIRING", help="Only those that come before this one.")
@click.option("--entry", type=int, help="One entry: its statement, all of its error, its firings.")
@of_store
def firings(
    rule: str | None,
    limit: int | None,
    before: str | None,
    entry: int | None,
    store: str | None,
    name: str | None,
    as_json: bool,
) -> None:
    """What fired, for which rows, and what became of it."""
    from tidegate.engine.operate import list_firings, show_entry

    if entry is None:
        found = list_firings(the_store(store), name, rule, limit, before)
        output.firings(found, as_json=as_json)
        return
    if rule or limit or before:
        raise click.UsageError("--entry goes with none of --rule, --limit and --before")
    output.entry(show_entry(the_store(store), name, entry), as_json=as_json)


@click.command()
@click.option("-v", "--verbose", is_flag=True, help="Also their fields, and all that was said.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="The newest so many."
)
@of_store
def rejected(verbose: bool, limit: int, store: str | None, name: str | None, as_json: bool) -> None:
    """Rows and signals that could not become occurrences, and why."""
    from tidegate.engine.operate import list_rejected

    rows = list_rejected(the_store(store), name, limit, whole=verbose)
    output.mappings("rejected", rows, as_json=as_json)


@click.command()
@click.argument("entry", type=int)
@click.option("--unsealed", is_flag=True, help="Though it cannot be sealed: its target is gone.")
@of_store
def skip(entry: int, unsealed: bool, store: str | None, name: str | None, as_json: bool) -> None:
    """Seal an entry, so that it can land no more, and pass over it."""
    from tidegate.engine.operate import pass_over

    option = "unsealed" if unsealed else None
    output.record(pass_over(the_store(store), name, "skip", entry, option), as_json=as_json)


@click.command()
@click.argument("entry", type=int)
@click.option("--may-double", is_flag=True, help="Though it may have landed: nobody can know.")
@of_store
def redrive(
    entry: int, may_double: bool, store: str | None, name: str | None, as_json: bool
) -> None:
    """Seal an entry and run a new one in its place, with its rule's present text."""
    from tidegate.engine.operate import pass_over

    option = "may-double" if may_double else None
    output.record(pass_over(the_store(store), name, "redrive", entry, option), as_json=as_json)


@click.command()
@click.argument("rule")
@of_store
def enable(rule: str, store: str | None, name: str | None, as_json: bool) -> None:
    """Let a rule go on that a limit has parked."""
    from tidegate.engine.operate import enable_rule

    output.record(enable_rule(the_store(store), name, rule), as_json=as_json)


COMMANDS = (firings, rejected, skip, redrive, enable)
