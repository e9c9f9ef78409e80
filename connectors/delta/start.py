"""At which version a table is first read: its `start` (G9)."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError

from tidegate.connectors.delta.commit import Metadata
from tidegate.connectors.delta.log import Snapshot, TableLog
from tidegate.connectors.delta.stops import feed_off, version_gone
from tidegate.engine.core.values import Cursor
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Table


def start_cursor(table: Table, log: TableLog, head: Snapshot) -> Cursor:
    """The cursor just before the first version that `table.start` names; at the head where it names
    a later one. Raises EngineError `feed-off`, `version-gone`, `start-version`."""
    kind, value = table.start.kind, table.start.value
    if kind in ("now", "snapshot"):
        first = head.version + 1
    elif kind == "version":
        first = _checked(table, log, head.version, value or 0)
    elif kind == "time":
        first = _since(table, log, head.version, value or 0)
    else:
        first = _earliest(table, log, head)
    if first > head.version:
        if not head.metadata.feed:
            raise feed_off(table.name, head.version)
        return _cursor(table, log, head.version, head.metadata)
    before = _metadata_before(table, log, first)
    own = log.commit(first)
    if not before.feed and not (own and own.metadata and own.metadata.feed):
        raise feed_off(table.name, first)
    return _cursor(table, log, first - 1, before)


def _cursor(table: Table, log: TableLog, version: int, metadata: Metadata) -> Cursor:
    commit = log.commit(version) if version >= 0 else None
    instant = commit.instant if commit else 0
    digest = commit.digest if commit else None
    return Cursor(table.name, metadata.id, version, instant, metadata.schema, digest)


def _checked(table: Table, log: TableLog, head: int, version: int) -> int:
    if version > head + 1:
        raise EngineError(
            "start-version",
            f"table `{table.name}`: `start: {{version: {version}}}` is past its head, version "
            f"{head}",
            f"start at a version from 0 to {head + 1}, or say `start: now`",
        )
    if version <= head and not log.files.exists(version):
        raise version_gone(table.name, version, "its log file was cleaned up")
    return version


def _since(table: Table, log: TableLog, head: int, instant: int) -> int:
    """The first version with an instant at or after a time. The search goes from the head down."""
    for version in range(head, -1, -1):
        commit = log.commit(version)
        if commit is None:
            raise version_gone(table.name, version, "its log file was cleaned up")
        if commit.instant < instant:
            return version + 1
    return 0


def _earliest(table: Table, log: TableLog, head: Snapshot) -> int:
    """The first version that can be read: from it on the log has no gap, Spark can rebuild the
    table, and the feed is on."""
    listing = log.listing()
    unbroken = set(listing.commits)
    first = head.version
    while first - 1 in unbroken:
        first -= 1
    if first > 0:
        first = min((c for c in listing.checkpoints if c >= first), default=head.version + 1)
    if first > head.version:
        return first
    on = None if not _metadata_before(table, log, first).feed else first
    for version in range(first, head.version + 1):
        commit = log.commit(version)
        if commit and commit.metadata:
            on = (version if on is None else on) if commit.metadata.feed else None
    return head.version + 1 if on is None else on


def _metadata_before(table: Table, log: TableLog, version: int) -> Metadata:
    """The metadata before a version was written; its own, where the version before cannot be
    rebuilt."""
    for at in (version - 1, version):
        if at < 0:
            continue
        try:
            return log.snapshot(at).metadata
        except Py4JJavaError:
            continue
    raise version_gone(table.name, version, "its log was cleaned up")
