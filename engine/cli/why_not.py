"""`tidegate why-not`: why a rule did not fire for a key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tidegate.engine.cli import output
from tidegate.engine.cli.group import main
from tidegate.engine.cli.options import At, format_option, of_store, pairs, policy_file, spark_conf


@main.command("why-not")
@click.argument("rule")
@click.option(
    "--key", multiple=True, metavar="K=V", help="The key: a value of each `per` column of the rule."
)
@click.option("--null", "nulls", multiple=True, metavar="K", help="A key column that is null.")
@click.option(
    "--at",
    "instant",
    metavar="TIME",
    help="Up to then (default: all that is seen): a time, in the rulebook's zone; or 1 h, for ago.",
)
@click.option("--since", metavar="TIME", help="From then on (default: a day before, or longer).")
@format_option("text", "json", "html")
@spark_conf
@policy_file
@of_store
def why_not(
    rule: str,
    key: tuple[str, ...],
    nulls: tuple[str, ...],
    instant: str | None,
    since: str | None,
    format_: str,
    spark_conf: tuple[str, ...],
    policy: Path | None,
    at: At,
) -> None:
    """Why a rule did not fire for a key: question after question, up to the first no. The tables
    are read again where the store alone cannot tell."""
    from tidegate.engine.app.why_not import why_not as asked
    from tidegate.engine.replay.why_not.asking import Question

    given: Mapping[str, Any] = pairs(key, "--key")
    if twice := [name for name in nulls if name in given]:
        raise click.UsageError(f"{twice[0]} has both a value and --null")
    question = Question(rule, {**given, **dict.fromkeys(nulls)}, instant, since)
    answer = asked(
        at.url, at.name, question, spark_conf=pairs(spark_conf, "--spark-conf"), policy=policy
    )
    form = "json" if at.as_json else format_
    if form == "html":
        from tidegate.engine.replay.why_not.page import page

        output.document(page(answer), as_json=False)
    else:
        output.told(answer.as_json(), answer.lines(), as_json=form == "json")
