"""What became of entries, from the logs of their targets (G16b)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from tidegate.connectors.delta.commit import LoggedCommit
from tidegate.connectors.delta.log import TableLog
from tidegate.engine.core.entries import Effect, Entry, Fate

_LOG = logging.getLogger(__name__)


class Effects:
    """Reads the log of a target from the version at which an entry was stored, never the whole
    history. A commit is read once. It may be called from several threads: a lock orders them."""

    def __init__(self, spark: SparkSession, locations: Mapping[str, str]) -> None:
        self._spark = spark
        self._locations = locations
        self._logs: dict[str, TableLog] = {}
        self._seen: dict[int, Effect] = {}  # by entry, until they are asked for
        self._rows: dict[int, int] = {}  # by entry of a shared commit, until it is told
        self._lock = threading.Lock()

    def told(self, entry: Entry, ids: Sequence[str], firings: int) -> Fate | None:
        """`effect` or `sealed` if a commit names the entry; else None.

        A commit of the entry notes how many `firings` it is for, and the `ids` of the first of
        them. Both must be equal: another history may have cut its buckets elsewhere, and given the
        same number to other firings. Raises what Spark raises, and ValueError for a damaged commit.
        """
        with self._lock:
            log, version = self._log(entry), _before(entry) + 1
            log.forget(version)
            known = log.parsed_ms(version)
            if known is not None and known != log.files.modified_ms(version):
                log.forget()  # another table is there by now
            while (commit := log.commit(version)) is not None:
                if (fate := self._fate(entry, ids, firings, commit)) is not None:
                    return fate
                version += 1
            return None

    def counted(self, rows: Mapping[int, int]) -> None:
        """Say how many rows each entry of a shared commit wrote: the commit says it of all."""
        with self._lock:
            self._rows |= rows

    def _fate(
        self, entry: Entry, ids: Sequence[str], firings: int, commit: LoggedCommit
    ) -> Fate | None:
        """`told`, of one commit."""
        for note in commit.notes:
            if note.get("app_id") != entry.app_id or note.get("entry") != entry.number:
                continue
            if note.get("sealed") is True:
                return Fate.SEALED
            done = (note.get("action"), note.get("ids"), note.get("firings"))
            if done == (entry.statement.action, list(ids), firings):
                alone = len(commit.notes) == 1
                rows = commit.written if alone else self._rows.pop(entry.number, None)
                count = "-" if rows is None else f"{rows:,}"
                told = (entry.rule, entry.target, commit.version, count)
                _LOG.info("%s wrote %s version %d, rows: %s", *told)
                self._seen[entry.number] = Effect(commit.version, rows)
                return Fate.EFFECT
        return None

    def seen(self, entry: Entry) -> Effect | None:
        """The commit of an entry whose effect was `told` last; asked once."""
        return self._seen.pop(entry.number, None)

    def last(self, entry: Entry) -> int:
        """The last version of the entry's target: in its log, or seen when the entry was stored."""
        before = _before(entry)
        with self._lock:
            return max([before, *self._log(entry).listing(max(before, 0)).commits])

    def passed(self, entry: Entry, latest: int) -> Fate:
        """The fate of an entry whose marker has been reached, though no commit names it: `passed`
        if all commits up to the `latest` version can be read, else `unknown`."""
        versions = range(_before(entry) + 1, latest + 1)
        with self._lock:
            log = self._log(entry)
            whole = versions and all(log.commit(version) is not None for version in versions)
        return Fate.PASSED if whole else Fate.UNKNOWN

    def _log(self, entry: Entry) -> TableLog:
        table = entry.target or ""
        if table not in self._logs:
            self._logs[table] = TableLog(self._spark, self._locations[table])
        return self._logs[table]


def store_of(app_id: str) -> str:
    """The id of the store that an app id names."""
    return app_id.split("/")[1]


def _before(entry: Entry) -> int:
    """The target's version when the entry was stored: its effect can only come later. Raises
    ValueError where that is not known."""
    if entry.target_version is None:
        raise ValueError(f"entry {entry.number} was stored without its target's version")
    return entry.target_version
