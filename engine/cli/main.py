"""The command `tidegate`. A command imports what it needs when it runs: `validate` and `simulate`
start without Spark and SQLAlchemy."""

from __future__ import annotations

import logging
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidegate.engine.cli import (  # noqa: F401, more commands
    backtest,
    cases,
    help,
    operator,
    output,
    serve,
    why,
    why_not,
)
from tidegate.engine.cli.group import brief, exit_code, leave_out_pandas, main
from tidegate.engine.cli.options import (
    FILE,
    as_json,
    of_form,
    overrides,
    pairs,
    policy_file,
    seconds_of,
    spark_conf,
    store_url,
    the_store,
)
from tidegate.rules.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from tidegate.engine.app.serve import Address
    from tidegate.engine.core.keeping import Keeping
    from tidegate.rules.model import Table

__all__ = ["main"]

log = logging.getLogger(__name__)
OBSTRUCTED = 4  # done, but something is held, parked or dead
rulebook_file = click.argument("rulebook", type=FILE)


@main.command()
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--tables", is_flag=True, help="Also check the SQL against the real tables.")
@overrides
@spark_conf
@policy_file
@of_form("text", "json", "sarif", "github")
@brief()
def validate(
    files: tuple[Path, ...],
    tables: bool,
    settings: tuple[str, ...],
    spark_conf: tuple[str, ...],
    policy: Path | None,
    form: str,
) -> None:
    """Check rulebooks without running them."""
    from tidegate.engine.cli.verdicts import Verdict, tell
    from tidegate.engine.core.policy import load_policy
    from tidegate.rules.checks.statements import holds_sql
    from tidegate.rules.loader import validated

    found: list[Verdict] = []
    unjudged = False
    for file in files:
        problems: tuple[Any, ...] = ()
        warnings: tuple[Any, ...] = ()
        kept: Sequence[Keeping] = ()
        book = None
        try:
            book = validated(file, pairs(settings, "--set"), load_policy(policy).functions)
            if book.scripts:
                from tidegate.engine.detect.scripts.doubts import looked_through

                book = looked_through(book)
            warnings = book.warnings
            if tables:
                from tidegate.engine.app.tables import check_tables

                conf = pairs(spark_conf, "--spark-conf")
                checked = check_tables(book, spark_conf=conf, policy=policy)
                warnings, kept = warnings + checked.warnings, checked.keepings
        except InputError as error:
            problems, warnings = error.problems, (*warnings, *error.warnings)
        found.append(Verdict(file, book, problems, warnings, kept))
        unjudged = unjudged or (book is not None and not tables and holds_sql(book))
    tell(found, form)
    if unjudged and form == "text":
        output.say("the rest of the SQL is checked by --tables, against the tables themselves")
    wrong = {problem.code: None for one in found for problem in one.problems}
    if wrong and form == "text" and sys.stderr.isatty():
        output.tell(help.pointer(wrong))
    raise SystemExit(1 if any(one.problems for one in found) else 0)


@main.command()
@click.argument("form", type=click.Choice(["rulebook", "tests"]), default="rulebook")
@brief()
def schema(form: str) -> None:
    """The JSON Schema of rulebooks, or of test files, by which an editor completes and checks."""
    from tidegate.engine.replay.cases.form import FILE as TESTS
    from tidegate.rules.form.form import FILE as RULEBOOKS

    file = {"rulebook": RULEBOOKS, "tests": TESTS}[form]
    output.document(file.read_text(encoding="utf-8"), as_json=True)


@main.command()
@rulebook_file
@click.argument("rule", required=False)
@of_form("text", "json", "mermaid", "svg")
@click.option("-v", "--verbose", is_flag=True, help="Also the other parameter contexts.")
@brief()
def explain(rulebook: Path, rule: str | None, form: str, verbose: bool) -> None:
    """What each rule does, in sentences; normalised expressions, the shared graph, what is stored
    per key, what triggers what; automata of scripts."""
    from tidegate.engine.explain.explanation import explain as explained

    output.document(explained(rulebook, rule, form, verbose=verbose), as_json=form == "json")


@main.command()
@rulebook_file
@click.option("--trace", required=True, type=click.Path(exists=True, dir_okay=False))
@click.option("--context", help="Override every rule's parameter context.")
@click.option("--until", help="Simulate up to and including this time.")
@click.option("--bucket", type=click.IntRange(min=1), help="Cut into buckets of N instants.")
@click.option("--if", "conditions", is_flag=True, help="Ask the `if` of each rule, too.")
@click.option("--compare-contexts", is_flag=True, help="One rule in all contexts, side by side.")
@click.option("--rule", help="The rule to compare, where the rulebook has several.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write the comparison as a picture, too.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="JSON lines; without --compare-contexts always."
)
def simulate(
    rulebook: Path,
    trace: str,
    context: str | None,
    until: str | None,
    bucket: int | None,
    conditions: bool,
    compare_contexts: bool,
    rule: str | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Detect over a trace of occurrences, in simulated time, without Spark."""
    leave_out_pandas()
    if compare_contexts:
        if context or bucket:
            raise click.UsageError("--compare-contexts takes neither --context nor --bucket")
        if conditions:
            raise click.UsageError("--compare-contexts takes no --if")
        from tidegate.engine.replay.compare.show import show

        where = (rulebook, Path(trace), rule, until, html)
        show(*where, as_json=as_json, tell=output.tell, schemas=_logged)
        return
    if rule or html:
        raise click.UsageError("--rule and --html go with --compare-contexts")
    from tidegate.engine.replay.simulate import simulate as run_simulation

    run_simulation(
        rulebook,
        Path(trace),
        context=context,
        until=until,
        bucket=bucket,
        conditions=conditions,
        schemas=_logged,
        out=output.stream(),
        tell=output.tell,
    )


def _logged(table: Table) -> pa.Schema | None:
    """The columns of a table as its log has them; None where it cannot be seen without Spark."""
    from tidegate.engine.app import logged_schema
    from tidegate.engine.core.types.spark import arrow_schema

    found = logged_schema(table.path) if table.path else None
    return None if found is None else arrow_schema(found)


@main.command()
@click.argument("rulebooks", metavar="RULEBOOK..", nargs=-1, required=True, type=FILE)
@click.option("--once", is_flag=True, help="Take all that is visible at the start, then end.")
@click.option("--until-idle", is_flag=True, help="End when there is nothing left to do.")
@click.option("--poll", default="500ms", show_default=True, help="Pause between two looks.")
@click.option("--watch", is_flag=True, help="Take over the file whenever it changes.")
@click.option("--lease-wait", default="0", metavar="D", help="Wait so long for another engine.")
@click.option(
    "--standby",
    is_flag=True,
    help="Prepare everything, wait until no other engine runs the rulebook, then take over.",
)
@click.option(
    "--if-held",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    show_default=True,
    help="Where another engine runs the rulebook: fail, or do nothing and succeed.",
)
@serve.http
@serve.console
@serve.reports
@click.option("-v", "--verbose", is_flag=True, help="Also how long each stage of a bucket took.")
@store_url
@overrides
@spark_conf
@policy_file
@as_json
def run(
    rulebooks: tuple[Path, ...],
    once: bool,
    until_idle: bool,
    poll: str,
    watch: bool,
    lease_wait: str,
    standby: bool,
    if_held: str,
    http: Address | None,
    console: bool,
    reports: Path | None,
    verbose: bool,
    store: str | None,
    settings: tuple[str, ...],
    spark_conf: tuple[str, ...],
    policy: Path | None,
    as_json: bool,
) -> None:
    """Run a rulebook on its tables; or several on one store, each with a loop of its own.

    Settings hold for each rulebook by itself. What stops one rulebook is reported at once, and the
    others go on; the exit code is the worst of all.
    """
    from tidegate.engine.app import Engines
    from tidegate.engine.app.serve import inbox_at
    from tidegate.engine.cli.run import run_engines

    if once and until_idle:
        raise click.UsageError("--once and --until-idle exclude each other")
    poll_seconds = seconds_of(poll, "--poll")
    if not poll_seconds:
        raise click.UsageError("--poll takes a duration above 0")
    wait_seconds = seconds_of(lease_wait, "--lease-wait")
    if standby and (once or until_idle or wait_seconds or if_held == "skip"):
        raise click.UsageError(
            "--standby waits and runs without an end: it excludes --once, --until-idle, "
            "--lease-wait and --if-held skip"
        )
    if console and http is None:
        raise click.UsageError("--console is a part of --http HOST:PORT")
    if len(rulebooks) > 1 and not store:
        raise click.UsageError("several rulebooks need one store: --store URL, or TIDEGATE_STORE")
    engines = Engines(
        rulebooks,
        store=the_store(store, rulebooks[0]),
        settings=pairs(settings, "--set"),
        spark_conf=pairs(spark_conf, "--spark-conf"),
        policy=policy,
        lease_wait_seconds=wait_seconds,
        standby=standby,
        watch=watch,
        skip_held=if_held == "skip",
    )
    shown = serve.shown(console=console, reports=reports, on_asked=engines.wake)
    try:
        left = run_engines(
            engines,
            partial(inbox_at, http, policy, shown) if http else None,
            output.bucket_printer(
                as_json=as_json, stages=verbose or log.isEnabledFor(logging.DEBUG)
            ),
            once=once,
            until_idle=until_idle,
            poll_seconds=poll_seconds,
        )
    except Exception as error:
        if len(rulebooks) == 1 or error not in engines.failures.values():
            raise
        raise SystemExit(exit_code(error)) from error  # it was logged when it happened
    raise SystemExit(OBSTRUCTED if left else 0)


@main.command()
@rulebook_file
@click.option("--repeat", is_flag=True, help="Do again what the store has forgotten.")
@click.option("--from", "start", type=click.Choice(["now"]), help="Skip what it has forgotten.")
@store_url
@overrides
@spark_conf
@as_json
def adopt(
    rulebook: Path,
    repeat: bool,
    start: str | None,
    store: str | None,
    settings: tuple[str, ...],
    spark_conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Go on with a store that is older than its tables, such as a restored one. Lists the entries
    in doubt."""
    from tidegate.engine.app.tables import adopt_store

    if repeat == (start is not None):
        raise click.UsageError("say either --repeat or --from now")
    result = adopt_store(
        rulebook,
        store=the_store(store, rulebook),
        repeat=repeat,
        settings=pairs(settings, "--set"),
        spark_conf=pairs(spark_conf, "--spark-conf"),
    )
    output.summary(result, as_json=as_json)


@main.command()
@store_url
@click.argument("rulebook", required=False, type=FILE)
@as_json
def migrate(store: str | None, rulebook: Path | None, as_json: bool) -> None:
    """Bring a store's schema to this version."""
    from tidegate.engine.control.requests import migrate_store

    output.record(migrate_store(the_store(store, rulebook)), as_json=as_json)


@main.command()
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the lake, rulebook and store in this folder.",
)
def demo(keep: Path | None) -> None:
    """A small lake, a rulebook, a live run: what tidegate does, in a minute."""
    from tidegate.engine.cli.demo import demo as run_demo

    raise SystemExit(run_demo(keep))
