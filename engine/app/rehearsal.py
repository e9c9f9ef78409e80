"""A standby's rehearsal: a small engine takes a bucket and acts on it, in a temporary lake. After
it, Java and the detector have loaded and compiled all code that a takeover needs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession

from tidegate.connectors.delta.catalog import active_session_kept
from tidegate.connectors.delta.session import new_session
from tidegate.engine.core.scratch_folder import scratch_folder
from tidegate.engine.core.text.logs import doing, hushed

log = logging.getLogger(__name__)

_BOOK = """\
rulebook: tidegate_rehearsal
tables:
  watched: {{path: "{folder}/watched", key: [id]}}
  written: {{path: "{folder}/written", key: [id]}}
events:
  changed: {{on: insert, table: watched, where: id > 0}}
rules:
  pairs:
    on: changed ; changed
    per: id
    if: {{sql: SELECT firing_id FROM event}}
    do: [{{sql: INSERT INTO written SELECT id FROM event}}]
"""
_TABLE = (
    "CREATE TABLE {} (id BIGINT) USING delta TBLPROPERTIES ("
    "delta.enableChangeDataFeed = true, delta.enableInCommitTimestamps = true)"
)


class Rehearsing(Protocol):
    """The part of an engine that a rehearsal uses."""

    def run_once(self) -> object: ...


Starts = Callable[[str, SparkSession, str], AbstractContextManager[Rehearsing]]
"""From a rulebook's text, a session and a store's URL to an engine."""


class _CutShortError(Exception):
    """The other engine has ended: the standby must take over now."""


def rehearse(start: Starts, spark: SparkSession, has_time: Callable[[], bool]) -> None:
    """Rehearse, while there is time. A failure only makes the takeover slower."""
    try:
        with (
            doing("rehearsing"),
            hushed(),
            active_session_kept(spark),
            scratch_folder() as folder,
        ):
            _run(start, new_session(spark), folder, has_time)
    except _CutShortError:
        log.debug("the rehearsal was cut short")
    except Exception as error:
        log.warning("the standby could not rehearse: %s", error)


def _run(start: Starts, session: SparkSession, folder: Path, has_time: Callable[[], bool]) -> None:
    def step(text: str, name: str) -> None:
        if not has_time():
            raise _CutShortError
        session.sql(text.format(f"delta.`{folder.as_uri()}/{name}`"))

    for name in ("watched", "written"):
        step(_TABLE, name)
    book, store = _BOOK.format(folder=folder.as_uri()), f"sqlite:///{folder / 'rehearsal.db'}"
    with start(book, session, store) as running:
        running.run_once()
        for rows in ("(1), (2)", "(1)"):
            step(f"INSERT INTO {{}} VALUES {rows}", "watched")  # noqa: S608, no text of others
        if has_time():
            running.run_once()
