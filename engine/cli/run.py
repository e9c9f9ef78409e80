"""`tidegate run`: opens engines, runs them to their end, and reports the obstacles that are
left."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tidegate.engine.cli import output

if TYPE_CHECKING:
    from tidegate.engine.app import Engines
    from tidegate.engine.app.serve import Inbox
    from tidegate.engine.core.state import BucketReport


def run_engines(
    engines: Engines,
    inbox_made: Callable[[], Inbox] | None,
    printed: Callable[[str, BucketReport], None],
    *,
    once: bool,
    until_idle: bool,
    poll_seconds: float,
) -> int:
    """Run the engines, with an inbox if there is one to make. Reports every obstacle that is left,
    and returns how many."""
    from tidegate.engine.app import stop_on_signals
    from tidegate.engine.app.serve import answer_beside

    several = len(engines.rulebooks) > 1
    left: list[str] = []

    def report(name: str, bucket: BucketReport) -> None:
        printed(name if several else "", bucket)

    stop_on_signals(engines)
    try:
        with ExitStack() as stack:
            inbox = stack.enter_context(inbox_made()) if inbox_made is not None else None
            if inbox is not None:
                answer_beside(engines, inbox)
            stack.enter_context(engines)
            if inbox is not None:
                stack.callback(inbox.close)  # before the engines
            stop_on_signals(engines)  # again: starting Spark may have set other handlers
            try:
                if once:
                    engines.run_once(report)
                else:
                    engines.run(poll_seconds=poll_seconds, until_idle=until_idle, on_bucket=report)
            finally:
                for name, sentences in engines.obstacles().items() if once or until_idle else ():
                    left += [f"rulebook {name}: {one}" if several else one for one in sentences]
    finally:
        for obstacle in left:
            output.say(obstacle, err=True)
    return len(left)
