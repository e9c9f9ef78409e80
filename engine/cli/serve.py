"""Commands for other programs: `serve`, the inbox alone, and `listen`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from tidegate.engine.cli import output
from tidegate.engine.cli.group import main
from tidegate.engine.cli.options import (
    At,
    of_store,
    own_rulebook,
    policy_file,
    seconds_of,
    store_url,
    the_store,
)

if TYPE_CHECKING:
    from tidegate.engine.app.serve import Address, Shown


def address(value: str) -> Address:
    """HOST:PORT."""
    from tidegate.engine.app.serve import parse_address

    try:
        return parse_address(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


http = click.option(
    "--http",
    type=address,
    metavar="HOST:PORT",
    help="Also answer as the inbox does, see `serve`; port 0: any that is free.",
)

console = click.option(
    "--console", is_flag=True, help="Also show a console for browsers, at /console."
)
reports = click.option(
    "--console-reports",
    "reports",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The folder of `backtest --reports` that the console lists.",
)


def shown(
    *, console: bool, reports: Path | None, on_asked: Callable[[], None] = lambda: None
) -> Shown | None:
    """The console that the options mean; None: there is none."""
    from tidegate.engine.app.serve import console_of

    if reports is not None and not console:
        raise click.UsageError("--console-reports is for --console")
    return console_of(reports, on_asked) if console else None


@main.command()
@click.option(
    "--http",
    type=address,
    metavar="HOST:PORT",
    default="127.0.0.1:8080",
    show_default=True,
    help="Where to listen; port 0: any that is free.",
)
@own_rulebook
@store_url
@click.option(
    "--rulebook", "name", metavar="NAME", help="Only that one, where a store has several."
)
@console
@reports
@policy_file
def serve(
    http: Address,
    console: bool,
    reports: Path | None,
    rulebook_file: Path | None,
    store: str | None,
    name: str | None,
    policy: Path | None,
) -> None:
    """Take signals over HTTP, and stream what rules detect; `run` does the rest.

    POST /signals/EVENT takes a JSON object of fields, or an array of them; its answer 202 says that
    they are in the store, in every rulebook that declares EVENT. GET /events/stream?name=RULE sends
    what happens. GET /openapi.json describes it all.

    Only programs of this machine are heard, unless the policy names keys, as in `inbox_keys: {till:
    [atm_empty]}`; the variable TIDEGATE_SECRET_TILL holds that key's secret.
    """
    from tidegate.engine.app.serve import serve as serve_alone

    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        signal.signal(number, signal.SIG_DFL)  # a second one ends it at once
        threading.Thread(target=stop.set).start()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    url, of_console = the_store(store, rulebook_file), shown(console=console, reports=reports)
    serve_alone(http, url, name, rulebook_file, policy, stop, of_console)


@main.command()
@click.argument("heard", metavar="RULE|SIGNAL")
@click.option(
    "--since",
    metavar="POSITION",
    help="Go on after this position; `earliest`: all that is kept. Default: from now on.",
)
@click.option("--once", is_flag=True, help="Print what there is now, then end.")
@click.option("--poll", default="500ms", show_default=True, help="Pause between two looks.")
@of_store
def listen(heard: str, since: str | None, once: bool, poll: str, at: At) -> None:
    """Print what a rule detects, or a signal: a line for each, without gaps.

    With --json each line holds its `position`; `--since` with it goes on after that line, even
    after a restart.
    """
    from tidegate.engine.control.listen import listening

    pause = seconds_of(poll, "--poll") or 0.5
    last = None
    try:
        for position, item in listening(at.url, at.name, heard, since, pause, once=once):
            last = position
            output.heard(item, position, as_json=at.as_json)
    finally:
        if last is not None and not at.as_json:
            output.tell(f"go on with --since {last}")
