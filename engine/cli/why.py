"""`tidegate why`: why a firing is there, and what became of it; the firings behind a commit."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from tidegate.engine.cli import output
from tidegate.engine.cli.group import brief, leave_out_pandas, main
from tidegate.engine.cli.options import At, format_option, of_store, pairs, policy_file, spark_conf
from tidegate.engine.core.text.layout import screen_width


@main.command()
@click.argument("firing", required=False)
@click.option("--commit", metavar="TABLE@VERSION", help="The firings behind a commit instead.")
@click.option("--as-test", is_flag=True, help="A test case of it, for `tidegate test`.")
@format_option("text", "json", "html")
@click.option("--spark", is_flag=True, help="Ask its query again, at the versions that it saw.")
@spark_conf
@policy_file
@of_store
@brief()
def why(
    firing: str | None,
    commit: str | None,
    as_test: bool,
    format_: str,
    spark: bool,
    spark_conf: tuple[str, ...],
    policy: Path | None,
    at: At,
) -> None:
    """Why a firing is there: where its rows came from, what its condition saw, what its actions
    did, what it came of, and what came of it."""
    from tidegate.engine.store import open_store

    if (firing is None) == (commit is None):
        raise click.UsageError("say either FIRING or --commit TABLE@VERSION")
    form = "json" if at.as_json else format_
    if as_test and (commit or spark or form != "text"):
        raise click.UsageError("--as-test excludes --commit, --spark and --format")
    if commit and (spark or form == "html"):
        raise click.UsageError("--commit excludes --spark and --format html")
    if not spark and (spark_conf or policy):
        raise click.UsageError("--spark-conf and --policy are for --spark")
    leave_out_pandas()
    with open_store(at.url, create=False) as store:
        if commit is not None:
            from tidegate.engine.replay.why.ask import why_commit
            from tidegate.engine.replay.why.commit import lines as commit_lines

            made = why_commit(store, at.name, commit)
            output.told(made, commit_lines(made, screen_width()), as_json=form == "json")
            return
        from tidegate.engine.replay.why.ask import why as ask

        again = None
        if spark:
            from tidegate.engine.app.asked_again import asked_again

            conf = pairs(spark_conf, "--spark-conf")
            again = partial(asked_again, spark_conf=conf, policy=policy)
        story = ask(store, at.name, firing or "", again)
        if as_test:
            from tidegate.engine.replay.why.case import case_text

            output.document(case_text(store, story), as_json=False)
        elif form == "html":
            from tidegate.engine.replay.why.page import page

            output.document(page(story), as_json=False)
        else:
            from tidegate.engine.replay.why.model import as_json
            from tidegate.engine.replay.why.text import lines

            output.told(as_json(story), lines(story, screen_width()), as_json=form == "json")
