"""The files of a Delta log, through Hadoop's FileSystem: one path for every scheme.

Each method is one call of it; nothing else in the feed asks the file system.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


class LogFiles:
    """Commit files by version. Raises Py4JJavaError where the file system fails."""

    def __init__(self, session: SparkSession, delta_log: Any) -> None:
        jvm: Any = session._jvm
        self._path_class = jvm.org.apache.hadoop.fs.Path
        self._store, self._conf = delta_log.store(), delta_log.newDeltaHadoopConf()
        self._folder = delta_log.logPath()
        self._files = self._folder.getFileSystem(self._conf)
        self._last_path: tuple[int, Any] | None = None

    @property
    def scheme(self) -> str:
        return str(self._folder.toUri().getScheme())

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
        """An idle engine asks for the same path again and again: it is made once."""
        if self._last_path is None or self._last_path[0] != version:
            path = self._path_class(self._folder, f"{version:020d}.json")
            self._last_path = version, path
        return self._last_path[1]


def _is_missing(error: Py4JJavaError) -> bool:
    return "FileNotFoundException" in str(error.java_exception.getClass().getName())
