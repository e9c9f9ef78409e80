"""One commit of a Delta log, read from its JSON (no Spark)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

_ROWS_OF_ADD = re.compile(r'\\"numRecords\\":(\d+)')
# Other writers than Spark may put blanks between the signs.
_HEAD_ACTION = re.compile(r'\s*\{\s*"(?:commitInfo|metaData|protocol)"')
_DATA_MARKS = (re.compile(r'"dataChange"\s*:\s*true'), re.compile(r'\{\s*"cdc"\s*:'))
_IMAGES = 2  # rows of the feed for one updated row
MILLISECOND = 1_000


@dataclass(frozen=True, slots=True)
class Metadata:
    """A metadata action: the table's identity, schema (JSON) and properties."""

    id: str
    schema: str
    configuration: Mapping[str, str]

    @property
    def feed(self) -> bool:
        return self._on("delta.enableChangeDataFeed")

    @property
    def in_commit_timestamps(self) -> bool:
        return self._on("delta.enableInCommitTimestamps")

    @property
    def coordinated(self) -> bool:
        """Whether commits are in a catalog's hands, so that the log alone does not show them."""
        coordinator = "delta.coordinatedCommits.commitCoordinator-preview"
        return bool(self.configuration.get(coordinator))

    def _on(self, name: str) -> bool:
        return self.configuration.get(name, "").lower() == "true"


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """What the engine needs to know of one commit.

    `instant`: microseconds, the in-commit timestamp if the commit has one, else `modified` of its
    file (G1). `rows`: an estimate of its rows in the feed, 0 = unknown. `depth`: cascade depth of
    the action that wrote it (G16), 0 for anybody else's. `metadata`: its metadata action, if any.
    `note`: what an entry's commit says of it in its userMetadata; empty for anybody else's.
    """

    version: int
    instant: int
    operation: str
    rows: int
    depth: int
    changes_data: bool
    metadata: Metadata | None
    features: frozenset[str]
    note: Mapping[str, Any] = field(default_factory=dict)


def parse_commit(version: int, text: str, modified_ms: int) -> LoggedCommit:
    """Raises ValueError if `text` is not JSON lines."""
    actions: dict[str, Any] = {}
    for line in text.split("\n"):  # JSON may hold other ends of lines, such as U+2028
        if _HEAD_ACTION.match(line):
            actions.update(orjson.loads(line))
    info = actions.get("commitInfo") or {}
    changes_data = any(mark.search(text) for mark in _DATA_MARKS)
    return LoggedCommit(
        version=version,
        instant=int(info.get("inCommitTimestamp") or modified_ms) * MILLISECOND,
        operation=str(info.get("operation", "")),
        rows=_rows(info, text) if changes_data else 0,
        depth=_depth(info.get("userMetadata")),
        changes_data=changes_data,
        metadata=parse_metadata(actions["metaData"]) if "metaData" in actions else None,
        features=parse_features(actions.get("protocol") or {}),
        note=_note(info.get("userMetadata")),
    )


def parse_metadata(action: Mapping[str, Any]) -> Metadata:
    return Metadata(
        str(action["id"]), str(action.get("schemaString") or ""), action.get("configuration") or {}
    )


def parse_features(protocol: Mapping[str, Any]) -> frozenset[str]:
    """The table features that a protocol action names."""
    return frozenset(protocol.get("readerFeatures") or ()) | frozenset(
        protocol.get("writerFeatures") or ()
    )


def _rows(info: Mapping[str, Any], text: str) -> int:
    metrics = {k: int(v) for k, v in (info.get("operationMetrics") or {}).items() if _digits(v)}
    if "numTargetRowsInserted" in metrics:
        updated = metrics.get("numTargetRowsUpdated", 0) * _IMAGES
        return metrics["numTargetRowsInserted"] + updated + metrics.get("numTargetRowsDeleted", 0)
    if "numUpdatedRows" in metrics:
        return metrics["numUpdatedRows"] * _IMAGES
    if "numDeletedRows" in metrics:
        return metrics["numDeletedRows"]
    if "numOutputRows" in metrics:
        return metrics["numOutputRows"]
    return sum(int(rows) for rows in _ROWS_OF_ADD.findall(text))


def _digits(value: Any) -> bool:
    return isinstance(value, str) and value.isdigit()


def _note(user_metadata: Any) -> Mapping[str, Any]:
    try:
        noted = orjson.loads(user_metadata)["tidegate"]
    except (ValueError, KeyError, TypeError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _depth(user_metadata: Any) -> int:
    try:
        return int(_note(user_metadata)["depth"])
    except (ValueError, KeyError, TypeError):
        return 0
