"""A table's Delta log: its commit files, and the snapshots that Delta builds from them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tidegate.connectors.delta.commit import (
    LoggedCommit,
    Metadata,
    parse_commit,
    parse_features,
    parse_metadata,
)
from tidegate.connectors.delta.java_classes import java_class
from tidegate.connectors.delta.session import ensure_active

_FILE = re.compile(r"(\d{20})\.(json|checkpoint\b.*)")
CATALOG_FEATURES = frozenset(
    {"catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview"}
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table as of a version; `version` is -1 where there is no table."""

    version: int
    metadata: Metadata
    features: frozenset[str]

    @property
    def catalog_managed(self) -> bool:
        """Whether a catalog manages the commits: then the log alone does not show them all."""
        return bool(self.features & CATALOG_FEATURES) or self.metadata.coordinated


@dataclass(frozen=True, slots=True)
class LogListing:
    """The versions whose commit files are there, ascending, and those that have a checkpoint."""

    commits: tuple[int, ...]
    checkpoints: frozenset[int]


class TableLog:
    """The log of one table at a location. Commits are parsed once and kept until `forget`."""

    def __init__(
        self, session: SparkSession, location: str, own_stores: Collection[str] = ()
    ) -> None:
        """`own_stores`: see `parse_commit`."""
        self.location = location
        self._own_stores = own_stores
        self._session = session
        self._none = java_class(session, "scala.Option").empty()
        self._log_class = java_class(session, "org.apache.spark.sql.delta.DeltaLog")
        self.files = LogFiles(session, self._log_class.forTable(session._jsparkSession, location))
        self._parsed: dict[int, tuple[int, LoggedCommit]] = {}

    def commit(self, version: int) -> LoggedCommit | None:
        """A version's commit, read if it is not known; None if its file is not there. Raises
        DamagedCommit."""
        if version not in self._parsed:
            modified = self.files.modified_ms(version) if self.files.exists(version) else None
            if modified is None:
                return None
            commit = parse_commit(version, self.files.read(version), modified, self._own_stores)
            self._parsed[version] = modified, commit
        return self._parsed[version][1]

    def known(self, version: int) -> LoggedCommit | None:
        """A version's commit, if it was read before; no file is read."""
        return self._parsed[version][1] if version in self._parsed else None

    def parsed_ms(self, version: int) -> int | None:
        """The modification time that a version's commit file had when it was parsed."""
        return self._parsed[version][0] if version in self._parsed else None

    def forget(self, version: int | None = None) -> None:
        """Drop the parsed commits before a version, or all."""
        for known in [v for v in self._parsed if version is None or v < version]:
            del self._parsed[known]

    def listing(self, version: int = 0) -> LogListing:
        """Every commit file and checkpoint from a version on."""
        commits: set[int] = set()
        checkpoints: set[int] = set()
        for name in self.files.names_from(version):
            if match := _FILE.fullmatch(name):
                (commits if match[2] == "json" else checkpoints).add(int(match[1]))
        return LogListing(tuple(sorted(commits)), frozenset(checkpoints))

    def snapshot(self, version: int | None = None, *, trusting: bool = False) -> Snapshot:
        """The table as of a version, or as it is now. Raises Py4JJavaError if the log begins after
        `version`.

        Delta's cache is used only if `trusting`: after a table was replaced, the cache may still
        hold the former one.
        """
        ensure_active(self._session)
        java = self._session._jsparkSession
        if version is None:
            if not trusting:
                self._log_class.invalidateCache(java, self.files.table_path)
            found = self._log_class.forTableWithSnapshot(java, self.location)._2()
        else:
            log = self._log_class.forTable(java, self.location)
            found = log.getSnapshotAt(version, self._none, self._none, False)
        if found.version() < 0:
            return Snapshot(-1, Metadata("", "", {}), frozenset())
        metadata = orjson.loads(found.metadata().json())["metaData"]
        protocol = orjson.loads(found.protocol().json())["protocol"]
        return Snapshot(int(found.version()), parse_metadata(metadata), parse_features(protocol))


class LogFiles:
    """Commit files by version, through Hadoop's FileSystem, which serves every scheme. Each method
    makes one call to it; the feed makes no other. Raises Py4JJavaError where the call fails."""

    def __init__(self, session: SparkSession, delta_log: Any) -> None:
        self._path_class = java_class(session, "org.apache.hadoop.fs.Path")
        self._store, self._conf = delta_log.store(), delta_log.newDeltaHadoopConf()
        self._folder = delta_log.logPath()
        self._files = self._folder.getFileSystem(self._conf)
        self._last_path: tuple[int, Any] | None = None

    @property
    def scheme(self) -> str:
        return str(self._folder.toUri().getScheme())

    @property
    def folder(self) -> Path | None:
        """The table's folder where it is a local one."""
        uri = self.table_path.toUri()
        return Path(str(uri.getPath())) if self.scheme == "file" else None

    @property
    def table_path(self) -> Any:
        return self._folder.getParent()

    def exists(self, version: int) -> bool:
        """Whether a version's commit file is there."""
        return bool(self._files.exists(self._path(version)))

    def modified_ms(self, version: int) -> int | None:
        """When a version's commit file was last modified; None if there is no such file."""
        try:
            return int(self._files.getFileStatus(self._path(version)).getModificationTime())
        except Py4JJavaError as error:
            if not _is_missing(error):
                raise
            return None

    def read(self, version: int) -> str:
        """A commit file's text."""
        return str(self._store.read(self._path(version), self._conf).mkString("\n"))

    def names_from(self, version: int) -> Iterator[str]:
        """The names of the log's files from a version on."""
        try:
            files = self._store.listFrom(self._path(version), self._conf)
            while files.hasNext():
                yield str(files.next().getPath().getName())
        except Py4JJavaError as error:
            if not _is_missing(error):
                raise

    def _path(self, version: int) -> Any:
        """The path of a version's commit file. The last one is kept: an idle engine asks for it
        again and again."""
        if self._last_path is None or self._last_path[0] != version:
            path = self._path_class(self._folder, f"{version:020d}.json")
            self._last_path = version, path
        return self._last_path[1]


def _is_missing(error: Py4JJavaError) -> bool:
    return "FileNotFoundException" in str(error.java_exception.getClass().getName())
