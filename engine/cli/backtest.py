"""`tidegate backtest`: what a rulebook would have done in the past of its tables."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate.engine.cli import output
from tidegate.engine.cli.group import main
from tidegate.engine.cli.options import (
    FILE,
    as_json,
    overrides,
    pairs,
    policy_file,
    spark_conf,
    store_url,
)
from tidegate.engine.core.text.layout import screen_width
from tidegate.rules.errors import InputError, Problem, word_place

if TYPE_CHECKING:
    from tidegate.engine.replay.backtest.against import Difference
    from tidegate.engine.replay.backtest.model import Backtest

Told = Callable[[int, int], None]


@main.command()
@click.argument("rulebook", type=FILE)
@click.option(
    "--from", "begin", required=True, metavar="V|TIME", help="The first version, or a time."
)
@click.option("--to", "end", metavar="V|TIME", help="The last version, or a time; default now.")
@click.option("--rule", metavar="R", help="This rule, and what it needs.")
@click.option("--context", metavar="C", help="Override every rule's parameter context.")
@click.option(
    "--warm-up",
    metavar="D",
    help="How long before --from to look already; default as long as the rules remember.",
)
@click.option(
    "--against", metavar="FILE|store", help="Compare with this rulebook, or the registered one."
)
@click.option(
    "--conditions",
    type=click.Choice(["as-of", "skip"]),
    default="as-of",
    show_default=True,
    help="Ask queries as of each detection, or not at all.",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write a page, too.",
)
@click.option(
    "--reports",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write a page into a folder with an index, too.",
)
@store_url
@overrides
@spark_conf
@policy_file
@as_json
def backtest(
    rulebook: Path,
    begin: str,
    end: str | None,
    rule: str | None,
    context: str | None,
    warm_up: str | None,
    against: str | None,
    conditions: str,
    html: Path | None,
    reports: Path | None,
    store: str | None,
    settings: tuple[str, ...],
    spark_conf: tuple[str, ...],
    policy: Path | None,
    as_json: bool,
) -> None:
    """Run a rulebook over the past of its tables: what would have fired. Nothing is acted on, and
    nothing is written but the reports."""
    from tidegate.engine.app import backtest as run
    from tidegate.engine.replay.backtest.report import check_file, check_reports

    if html is not None:
        check_file(html, "--html")
    if reports is not None:
        check_reports(reports)
    with _progress() as told:
        found = run(
            rulebook,
            begin,
            end,
            rule=rule,
            context=context,
            warm_up=warm_up,
            store=store,
            against=_other(against),
            conditions=conditions,
            settings=pairs(settings, "--set"),
            spark_conf=pairs(spark_conf, "--spark-conf"),
            policy=policy,
            progress=told,
        )
    from tidegate.engine.replay.backtest.against import compared

    difference = None if found.against is None else compared(found, found.against)
    try:  # first: a page that cannot be written takes nothing from it
        _print(found, difference, as_json=as_json)
    finally:  # a reader such as `head` that has enough takes nothing from the pages
        _write(found, difference, html, reports)


def _other(against: str | None) -> Path | str | None:
    """The rulebook that is compared with: `store`, or a file."""
    if against in (None, "store"):
        return against
    file = Path(str(against))
    if not file.is_file():
        message, hint = f"there is no file {against}", "a rulebook's file, or the word store"
        raise InputError([Problem("no-file", message, word_place("--against"), hint)])
    return file


def _print(found: Backtest, difference: Difference | None, *, as_json: bool) -> None:
    from tidegate.engine.replay.backtest.found import lines
    from tidegate.engine.replay.backtest.report import json_lines, show

    if not as_json:
        for text in show(found, difference, width=screen_width()):
            output.say(text)
    elif difference is None:
        for line in lines(found.whole):
            output.json_line(line)
    else:
        out = output.stream()
        for said in json_lines(difference):
            out.write(said)


def _write(
    found: Backtest, difference: Difference | None, html: Path | None, reports: Path | None
) -> None:
    from tidegate.engine.replay.backtest.report import filed, page, unwritable, write_whole

    made_at = int(time.time() * 1e6)
    if html is not None:
        text = page(found, difference, made_at=made_at)
        with unwritable("the page cannot be written", "--html"):
            write_whole(html, text)
    if reports is not None:
        output.tell(f"wrote {filed(reports, found, difference, made_at=made_at)}")


@contextmanager
def _progress() -> Iterator[Told]:
    """On a terminal a bar with an estimate, which is taken away at the end; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda _, __: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    parts = ("commits", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("backtest", total=None)
        yield lambda done, every: bar.update(task, completed=done, total=every)
