"""`tidegate test` and `tidegate init`: tries rulebooks on cases, and writes the first ones."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate.engine.cli import output
from tidegate.engine.cli.group import main
from tidegate.engine.cli.options import as_json
from tidegate.engine.core.text.layout import counted, screen_width
from tidegate.rules.errors import InputError, Problem, word_place

if TYPE_CHECKING:
    from tidegate.engine.app.trial import SparkWorlds
    from tidegate.engine.replay.cases.differences import Answer
    from tidegate.engine.replay.cases.driver import Worlds
    from tidegate.engine.replay.cases.model import CaseFile
    from tidegate.engine.replay.cases.report import Result
    from tidegate.engine.replay.cases.runner import Makers, Runner

log = logging.getLogger("tidegate")
POLL_SECONDS = 0.3
WATCHED = (".yaml", ".yml", ".es")


@main.command()
@click.argument(
    "paths", metavar="PATH..", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@click.option("-k", "like", metavar="TEXT", default="", help="Only tests with this in their name.")
@click.option("--fast", "mode", flag_value="fast", help="Skip tests that need Spark.")
@click.option("--spark", "mode", flag_value="spark", help="Run every test with Spark.")
@click.option("--strict", is_flag=True, help="No rule may fire that a test does not list.")
@click.option("--accept", is_flag=True, help="Write what happened in place of each `?`.")
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write the results as JUnit XML, too.",
)
@click.option("--watch", is_flag=True, help="Run again when a test or a rulebook changes.")
@as_json
def test(
    paths: tuple[Path, ...],
    like: str,
    mode: str | None,
    strict: bool,
    accept: bool,
    junit: Path | None,
    watch: bool,
    as_json: bool,
) -> None:
    """Run the tests in files and folders: events in, what should happen out."""
    from tidegate.engine.replay.cases.reader import found

    with ExitStack() as stack:
        if not log.isEnabledFor(logging.DEBUG):  # what engines say goes on in each test
            stack.callback(log.setLevel, log.level)
            log.setLevel(logging.CRITICAL)
        makers = _makers(stack)
        while True:
            runner = _runner(found(paths), makers, mode or "", like, strict=strict)
            results = _results(runner, accept=accept, as_json=as_json)
            if not results and like:
                output.tell(f"no test has {like!r} in its name or file")
            if junit is not None:
                _write_junit(junit, results)
            if not watch:
                break
            output.tell("waiting for a change; Ctrl-C ends")
            _await_change(paths, runner)
    failed = any(getattr(one, "outcome", "failed") == "failed" for one in results)
    raise SystemExit(1 if failed or (like and not results) else 0)


def _makers(stack: ExitStack) -> tuple[Makers, Makers]:
    """The makers of worlds without Spark and with it. Spark is started with the first of them, and
    ends with the stack."""
    from tidegate.engine.replay.memory.worlds import MemoryWorlds

    started: list[Callable[[CaseFile], SparkWorlds]] = []

    def fast(cases: CaseFile) -> Worlds:
        made = MemoryWorlds(cases.book, cases.schemas, cases.defaults)
        return lambda _: made.world()

    def spark(cases: CaseFile) -> Worlds:
        if not started:
            from tidegate.engine.app import spark_worlds

            started.append(stack.enter_context(spark_worlds()))
        made = started[0](cases)
        return lambda _: made.world()

    return fast, spark


def _runner(
    files: Sequence[Path], makers: tuple[Makers, Makers], mode: str, like: str, *, strict: bool
) -> Runner:
    from tidegate.engine.replay.cases.runner import Runner

    def log_schema(path: str) -> str | None:
        from tidegate.engine.app import logged_schema

        return logged_schema(path)

    return Runner(files, *makers, log_schema=log_schema, mode=mode, like=like, strict=strict)


def _results(runner: Runner, *, accept: bool, as_json: bool) -> list[Result]:
    """Run the cases, print each result as it comes, then what failed, and the count."""
    from tidegate.engine.replay.cases import report
    from tidegate.engine.replay.cases.accept import accepted
    from tidegate.engine.replay.cases.runner import Refused

    began = time.monotonic()
    results: list[Result] = []
    for cases in runner.files:
        for warning in cases.warnings:
            output.tell(f"warning: {warning}")
    above: Path | None = None
    with _progress(runner.count) as advance:
        for result in runner.run():
            if isinstance(result, Refused):
                output.tell(str(result.error))
            else:
                result = accepted(result) if accept else result
                if as_json:
                    output.json_line(report.as_json(result))
                else:
                    if result.file != above:
                        output.say(str(result.file))
                    output.say(report.case_line(result))
                    above = result.file
                advance()
            results.append(result)
    if accept:
        _accept(runner, results)
    if not as_json:
        for result in results:
            if not isinstance(result, Refused) and result.outcome == "failed":
                for line in report.failure_lines(result, screen_width()):
                    output.say(line)
        output.say(report.count_line(results, time.monotonic() - began))
    return results


def _accept(runner: Runner, results: Sequence[Result]) -> None:
    """Write what happened into the test files, in place of each `?`."""
    from tidegate.engine.replay.cases.accept import accept

    texts = {each.file: each.text for each in runner.files}
    answers: dict[Path, list[Answer]] = {}
    for result in results:
        answers.setdefault(result.file, []).extend(getattr(result, "answers", ()))
    for file, found in answers.items():
        if found:
            count = accept(file, texts[file], found)
            output.tell(f"{file}: {counted(count, 'expectation')} filled in")


@contextmanager
def _progress(count: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, below the lines that are printed; elsewhere nothing."""
    if not sys.stderr.isatty() or not count:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    parts = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console, shared = Console(stderr=True), sys.stdout.isatty()
    with Progress(*parts, console=console, transient=True, redirect_stdout=shared) as bar:
        task = bar.add_task("tests", total=count)
        yield lambda: bar.advance(task)


def _write_junit(file: Path, results: Sequence[Result]) -> None:
    from tidegate.engine.replay.cases.report import junit

    try:
        file.write_bytes(junit(results))
    except OSError as error:
        message = f"the results cannot be written: {error.strerror}"
        problem = Problem("unwritable", message, word_place("--junit"))
        raise InputError([problem]) from error


def _await_change(paths: Sequence[Path], runner: Runner) -> None:
    """Wait until a test file, a rulebook or a script is another, and has been so for a moment."""
    before = _states(paths, runner)
    while (now := _states(paths, runner)) == before:
        time.sleep(POLL_SECONDS)
    time.sleep(POLL_SECONDS)
    while (later := _states(paths, runner)) != now:
        now = later
        time.sleep(POLL_SECONDS)


def _states(paths: Sequence[Path], runner: Runner) -> dict[Path, tuple[int, int]]:
    """What is known of the files that count: those in the folders of tests and rulebooks."""
    folders = {path if path.is_dir() else path.parent for path in paths}
    folders |= {Path(each.book.file).parent for each in runner.files if each.book.file}
    found = {}
    for folder in folders:
        for file in folder.rglob("*"):
            if file.suffix in WATCHED:
                with suppress(OSError):
                    stat = file.stat()
                    found[file] = (stat.st_mtime_ns, stat.st_size)
    return found


@main.command()
@click.argument(
    "folder", metavar="[DIR]", default=".", type=click.Path(file_okay=False, path_type=Path)
)
@as_json
def init(folder: Path, as_json: bool) -> None:
    """Write a first rulebook, its tests, and what an editor needs to complete them."""
    from tidegate.engine.cli.beginning import begin

    files = begin(folder)
    if as_json:
        output.json_line({"files": [str(file) for file in files]})
        return
    for file in files:
        output.say(f"wrote {file}")
    output.say(f"run the tests: tidegate test {folder}")
