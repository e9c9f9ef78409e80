"""The command `tidegate`, and how its commands run: errors become messages on stderr and exit
codes; short commands do without the cycle collector."""

from __future__ import annotations

import atexit
import gc
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from tidegate.engine.cli import output
from tidegate.engine.core.text.logs import is_heard
from tidegate.rules.errors import EngineError, InputError, TidegateError

READING = (
    "explain", "firings", "help", "listen", "rejected", "simulate", "status", "validate", "why",
    "why-not",
)  # fmt: skip
log = logging.getLogger(__name__)
INTERRUPTED = 130  # as shells have it: 128 + SIGINT
OF_THE_CALLER = {
    **dict.fromkeys(
        ("signal-conflict", "bad-position", "firing-gone", "firing-unclear", "no-store"), 1
    ),
    **dict.fromkeys(
        ("bad-store-url", "no-rulebook", "bad-address", "inbox-open", "console-closed"), 2
    ),
}


@contextmanager
def brief() -> Iterator[None]:
    """A short command runs without the cycle collector: its objects live until it ends. On 5,000
    rules the collector took a quarter of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def leave_out_pandas() -> None:
    """Hide pandas while Arrow makes its first array: Arrow would import it, which takes longer than
    a small command. Later imports find it again."""
    import pyarrow

    class Absent:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:  # noqa: ARG004
            if name == "pandas":
                raise ModuleNotFoundError(name)

    sys.meta_path.insert(0, Absent)
    pyarrow.array([0])
    sys.meta_path.remove(Absent)


class Commands(click.Group):
    """The commands. Errors of tidegate become messages on stderr and exit codes."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """For a misspelt command, suggest only commands that change nothing."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            known = set(READING) & self.commands.keys()
            raise click.exceptions.NoSuchCommand(args[0], possibilities=known, ctx=ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        # The process ends without looking for cycles in all that was imported: to look takes a
        # fifth of the time of a short command.
        atexit.register(gc.freeze)
        try:
            return super().invoke(ctx)
        except TidegateError as error:
            for warning in error.warnings if isinstance(error, InputError) else ():
                output.say(f"warning: {warning}", err=True)
            output.say(str(error), err=True)
            raise SystemExit(exit_code(error)) from error
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except KeyboardInterrupt:  # click would end with 1, which says that the input is wrong
            raise SystemExit(INTERRUPTED) from None
        except Exception as error:
            log.debug("unforeseen", exc_info=True)
            output.say(f"{type(error).__name__}: {error}", err=True)
            output.say("    an error nobody foresaw: -v shows where it comes from", err=True)
            raise SystemExit(EngineError.exit_code) from error


def exit_code(error: Exception) -> int:
    """An error's exit code: 3 for the engine's failures, 1 or 2 for a wrong request."""
    own = getattr(error, "exit_code", EngineError.exit_code)
    return OF_THE_CALLER.get(getattr(error, "code", ""), own)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tidegate")
@click.option("-v", "--verbose", is_flag=True, help="More log lines on stderr.")
def main(verbose: bool) -> None:
    """Event-condition-action rules on Delta tables, exactly once, on Spark."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(output.LogFormatter())
    handler.addFilter(is_heard)
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("tidegate").setLevel(logging.DEBUG if verbose else logging.INFO)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
