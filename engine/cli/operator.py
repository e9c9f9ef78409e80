"""The commands of an operator: show what an engine did and what is stuck, and ask for changes."""

from __future__ import annotations

from pathlib import Path

import click

from tidegate.engine.cli import output
from tidegate.engine.cli.group import main
from tidegate.engine.cli.options import (
    FILE,
    At,
    of_store,
    own_rulebook,
    pairs,
    the_store,
)
from tidegate.engine.core.lifecycle import FIRING_STATES
from tidegate.engine.core.text.layout import counted, fates_text

of_key = click.option(
    "--key", multiple=True, metavar="K=V", help="For this key only: a value of each `per` column."
)

of_limit = click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="The newest so many."
)


@main.command()
@click.argument("event")
@click.argument("fields", nargs=-1, metavar="K=V ..")
@click.option("--null", "nulls", multiple=True, metavar="FIELD", help="A field that is null.")
@click.option("--id", "signal_id", help="The client's id: the same id twice is one occurrence.")
@own_rulebook
@of_store
def signal(
    event: str,
    fields: tuple[str, ...],
    nulls: tuple[str, ...],
    signal_id: str | None,
    rulebook_file: Path | None,
    at: At,
) -> None:
    """Raise an explicit event, durably: in every rulebook of the store that declares it, or in that
    of --rulebook or --rulebook-file alone."""
    from tidegate.engine.control.signals import raise_signal

    given: dict[str, str | None] = {**pairs(fields, "a field")}
    if twice := [field for field in nulls if field in given]:
        raise click.UsageError(f"{twice[0]} has both a value and --null")
    given |= dict.fromkeys(nulls)
    result = raise_signal(
        the_store(at.store, rulebook_file),
        at.name,
        rulebook_file,
        event,
        given,
        signal_id,
    )
    output.summary(result, as_json=at.as_json)


@main.command()
@of_store
def status(at: At) -> None:
    """Where the engine stands: watermark, cursors, outbox, lease."""
    from tidegate.engine.control.status import all_status

    output.status(all_status(at.url, at.name), as_json=at.as_json)


@main.command()
@click.argument("table")
@click.option("--from", "start", required=True, metavar="now|VERSION")
@of_store
def reset(table: str, start: str, at: At) -> None:
    """Set a table's cursor: to its head, or to read from VERSION on (takes effect at `run`)."""
    from tidegate.engine.control.requests import reset_table

    output.record(reset_table(at.url, at.name, table, start), as_json=at.as_json)


@main.command()
@click.option("--rule", help="Only this rule's.")
@click.option("--key", multiple=True, metavar="COLUMN=VALUE", help="Only those of this key.")
@click.option("--since", metavar="TIME", help="Only those that ended then or later; `1 h`: ago.")
@click.option("--until", metavar="TIME", help="Only those that ended then or before.")
@click.option(
    "--state",
    type=click.Choice(FIRING_STATES),
    help="Only those with an action in this state; failed: their condition does not hold.",
)
@click.option("--before", metavar="FIRING", help="Only those that come before this one.")
@of_limit
@click.option("--all", "all_", is_flag=True, help="All of them, in place of the newest.")
@click.option("--entry", type=int, help="One entry: its statement, all of its error, its firings.")
@of_store
@click.pass_context
def firings(
    context: click.Context,
    rule: str | None,
    key: tuple[str, ...],
    since: str | None,
    until: str | None,
    state: str | None,
    before: str | None,
    limit: int,
    all_: bool,
    entry: int | None,
    at: At,
) -> None:
    """What fired, for which rows, and what became of it: the newest."""
    from tidegate.engine.control.firings import (
        FiringFilter,
        count_detections,
        list_firings,
        show_entry,
    )

    url, name = at.url, at.name
    if entry is not None:
        given = {name for name in context.params if _given(context, name)}
        if given - {"entry", "store", "name", "as_json"}:
            raise click.UsageError("--entry excludes all other choices")
        one, zone = show_entry(url, name, entry)
        output.entry(one, zone, as_json=at.as_json)
        return
    chosen = FiringFilter(
        rule,
        pairs(key, "--key"),
        state,
        since,
        until,
        before,
        None if all_ else limit,
    )
    found = list_firings(url, name, chosen)
    if at.as_json:
        output.json_lines(found)
        return
    shown = list(found)
    total, zone = count_detections(url, name, rule)
    match = " that match" if chosen.narrow else ""
    of = counted(total.detected, "detection")
    title = f"{'all' if all_ else 'the newest'} {len(shown):,}{match} of {of}"
    title += f" (times in {zone}): {fates_text(total.fates)}"
    title += f"; of these {total.dead:,} dead" if total.dead else ""
    output.firings(shown, title, zone)


def _given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


@main.command()
@click.option("-v", "--verbose", is_flag=True, help="With their fields and the full messages.")
@of_limit
@of_store
def rejected(verbose: bool, limit: int, at: At) -> None:
    """Rows and signals that could not become occurrences, and why."""
    from tidegate.engine.control.firings import list_rejected

    rows = list_rejected(at.url, at.name, limit, whole=verbose)
    output.mappings("rejected", rows, as_json=at.as_json)


@main.command()
@click.argument("entry", type=int)
@click.option("--unsealed", is_flag=True, help="Even without a seal, for its target is gone.")
@of_store
def skip(entry: int, unsealed: bool, at: At) -> None:
    """Give an entry up: it is sealed, so that it can never land."""
    from tidegate.engine.control.requests import pass_over

    option = "unsealed" if unsealed else None
    output.record(pass_over(at.url, at.name, "skip", entry, option), as_json=at.as_json)


@main.command()
@click.argument("which", required=False, metavar="[ENTRY]")
@click.option(
    "--all", "all_", is_flag=True, help="Every dead or held one; of a rule: --all [RULE]."
)
@click.option("--may-double", is_flag=True, help="Even if it may have landed already.")
@of_store
def redrive(which: str | None, all_: bool, may_double: bool, at: At) -> None:
    """Seal an entry and run a new one in its place, with its rule's present text."""
    from tidegate.engine.control.requests import pass_over, redrive_all

    option = "may-double" if may_double else None
    if all_:
        output.record(redrive_all(at.url, at.name, which, option), as_json=at.as_json)
        return
    if which is None or not which.isdecimal():
        raise click.UsageError("give the number of an entry, or --all")
    output.record(pass_over(at.url, at.name, "redrive", int(which), option), as_json=at.as_json)


@main.command()
@click.argument("rule", required=False)
@of_limit
@of_store
def dead(rule: str | None, limit: int, at: At) -> None:
    """Dead letters: actions that are no longer tried, the newest last."""
    from tidegate.engine.control.firings import list_dead

    found, zone = list_dead(at.url, at.name, rule, limit)
    output.dead(found, zone, as_json=at.as_json)


@main.command()
@click.argument("rule")
@of_key
@of_store
def enable(rule: str, key: tuple[str, ...], at: At) -> None:
    """Let a parked or disabled rule go on. Its texts in quarantine run again."""
    from tidegate.engine.control.requests import switch_rule

    given = pairs(key, "--key")
    result = switch_rule(at.url, at.name, "enable", rule, key=given)
    output.record(result, as_json=at.as_json)


@main.command()
@click.argument("rule")
@click.option("--purge", is_flag=True, help="Its open actions never run.")
@of_key
@of_store
def disable(rule: str, purge: bool, key: tuple[str, ...], at: At) -> None:
    """Stop a rule, and the rules that use it as an event, until `enable`. With --key it only stops
    firing for that key."""
    from tidegate.engine.control.requests import switch_rule

    if purge and key:
        raise click.UsageError("--purge and --key exclude each other")
    given = pairs(key, "--key")
    result = switch_rule(at.url, at.name, "disable", rule, purge=purge, key=given)
    output.record(result, as_json=at.as_json)


@main.command()
@click.argument("file", required=False, type=FILE)
@of_store
def reload(file: Path | None, at: At) -> None:
    """Ask the running engine to take over a changed rulebook, by default from its file."""
    from tidegate.engine.control.requests import reload_rulebook

    output.record(reload_rulebook(at.url, at.name, file), as_json=at.as_json)


@main.group()
def rules() -> None:
    """Rules as data: beside the rulebook's file, taken over while the engine runs."""


@rules.command("list")
@of_store
def list_(at: At) -> None:
    """The rules, and which of them were put."""
    from tidegate.engine.control.requests import rules_of

    output.mappings("rules", rules_of(at.url, at.name), as_json=at.as_json)


@rules.command()
@click.argument("rule")
@click.argument("text", required=False)
@click.option("--file", type=FILE, help="The rule's YAML, in place of TEXT.")
@of_store
def put(rule: str, text: str | None, file: Path | None, at: At) -> None:
    """Put a rule beside the rulebook's file: `put alarm '{on: placed, do: ..}'`."""
    from tidegate.engine.control.requests import put_rule

    if (text is None) == (file is None):
        raise click.UsageError("say either TEXT or --file")
    output.record(put_rule(at.url, at.name, rule, text, file), as_json=at.as_json)


@rules.command()
@click.argument("rule")
@of_store
def drop(rule: str, at: At) -> None:
    """Drop a rule that was put."""
    from tidegate.engine.control.requests import drop_rule

    output.record(drop_rule(at.url, at.name, rule), as_json=at.as_json)
