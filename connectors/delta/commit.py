"""One commit of a Delta log, read from its JSON (no Spark).

Anybody may have written it: what is needed and has another shape than Delta's is refused, what is
only an estimate or a note is passed over.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tidegate.engine.core.markers import parse_marker

_ROWS_OF_ADD = re.compile(r'\\"numRecords\\":([0-9]{1,15})(?![0-9])')
_COUNT = re.compile(r"[0-9]{1,15}")
# Other writers than Spark may put blanks between the signs.
_HEAD_ACTION = re.compile(r'\s*\{\s*"(?:commitInfo|metaData|protocol)"')
_DATA_MARKS = (re.compile(r'"dataChange"\s*:\s*true'), re.compile(r'\{\s*"cdc"\s*:'))
_SEAL_ACTION = re.compile(r'\s*\{\s*"(?:commitInfo|txn)"')
_MERGED = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
_IMAGES = 2  # rows of the feed for one updated row
MILLISECOND = 1_000
INSTANT_MS_MAX = 1 << 53
DEPTH_MAX = 1_000_000  # no cascade is deeper: `max_cascade_depth` is far below


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
    the action that wrote it (G16), 0 for anybody else's; `writer`: its rulebook and rule.
    `metadata`: its metadata action, if any.
    `note`: what an entry's commit says of it in its userMetadata; empty for anybody else's.
    `shown`: its columns as an `on: commit` has them (`engine.core.parameters.COMMITS`).
    `seal`: it is nothing but an engine's seal of an entry (G18), of whatever store.
    `written`: how many rows it inserted, changed or deleted, if it says so. `digest`: of its file's
    text, by which a version that was written anew shows.
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
    shown: Mapping[str, Any] = field(default_factory=dict)
    seal: bool = False
    written: int | None = None
    writer: tuple[str, str] | None = None
    digest: str = ""


class DamagedCommit(ValueError):
    """A commit file that is not what Delta writes."""

    def __init__(self, version: int, reason: str) -> None:
        self.version = version
        super().__init__(reason)


def parse_commit(
    version: int, text: str, modified_ms: int, own_stores: Collection[str] = ()
) -> LoggedCommit:
    """`own_stores`: ids of the stores whose actions' notes count. Raises DamagedCommit."""
    try:
        return _parsed(version, text, modified_ms, own_stores)
    except RecursionError:
        raise DamagedCommit(version, "it is nested too deeply") from None
    except ValueError as error:
        raise DamagedCommit(version, str(error)) from error


def _parsed(version: int, text: str, modified_ms: int, own_stores: Collection[str]) -> LoggedCommit:
    actions: dict[str, Any] = {}
    for line in text.split("\n"):  # JSON may hold other ends of lines, such as U+2028
        if _HEAD_ACTION.match(line):
            actions.update(_json(line))
    info = _fields(actions, "commitInfo")
    changes_data = any(mark.search(text) for mark in _DATA_MARKS)
    operation = info.get("operation")
    note = _note(info.get("userMetadata"))
    return LoggedCommit(
        version=version,
        instant=_instant_ms(info, modified_ms) * MILLISECOND,
        operation=operation if isinstance(operation, str) else "",
        rows=_rows(info, text) if changes_data else 0,
        depth=_depth(note, own_stores),
        changes_data=changes_data,
        metadata=parse_metadata(_fields(actions, "metaData")) if "metaData" in actions else None,
        features=parse_features(_fields(actions, "protocol")),
        note=note,
        shown=_shown(version, info, changes_rows=changes_data),
        seal=note.get("sealed") is True and _is_marker(text, note),
        written=_written(_metrics(info)),
        writer=_writer(note, own_stores),
        digest=_digest(text),
    )


def _is_marker(text: str, note: Mapping[str, Any]) -> bool:
    """Whether a commit is a note and the marker of the entry that it names, as a seal is: nobody
    hides anything else by a seal's note, be it a marker of another program."""
    markers = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        action = _json(line) if _SEAL_ACTION.match(line) else {}
        if len(action) != 1 or not action.keys() <= {"commitInfo", "txn"}:
            return False
        markers += [_fields(action, "txn")] if "txn" in action else []
    if len(markers) != 1:
        return False
    app_id, number = (markers[0].get(name) for name in ("appId", "version"))
    if not isinstance(app_id, str) or type(number) is not int:
        return False
    named = (app_id, number) == (note.get("app_id"), note.get("entry"))
    return named and parse_marker(app_id, number, None) is not None


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def parse_metadata(action: Mapping[str, Any]) -> Metadata:
    """Raises ValueError for what is no metadata action."""
    table_id, schema = action.get("id"), action.get("schemaString")
    if not isinstance(table_id, str) or not table_id:
        raise ValueError("its metaData has no id")
    if not isinstance(schema, str) or not _is_schema(schema):
        raise ValueError("the schemaString of its metaData is no schema")
    configuration = _fields(action, "configuration")
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in configuration.items()}
    return Metadata(table_id, schema, texts)


def parse_features(protocol: Mapping[str, Any]) -> frozenset[str]:
    """The table features that a protocol action names. Raises ValueError."""
    found: set[str] = set()
    for key in ("readerFeatures", "writerFeatures"):
        names = protocol.get(key) or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"the {key} of its protocol are no list of names")
        found.update(names)
    return frozenset(found)


def _json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text)  # takes halves of surrogate pairs, as Delta does


def _fields(action: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of an action that is an object, empty where it is missing or null."""
    found = action.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError(f"its {name} is no JSON object")
    return found


def _is_schema(text: str) -> bool:
    """Whether a schema's columns have names and types: all that the engine looks at."""
    try:
        columns = _json(text)["fields"]
        return isinstance(columns, list) and all(
            isinstance(column["name"], str)
            and isinstance(column["type"], str | dict)
            and isinstance(column.get("metadata", {}), dict)
            for column in columns
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _instant_ms(info: Mapping[str, Any], modified_ms: int) -> int:
    found = info.get("inCommitTimestamp")
    if found is None:
        return modified_ms
    if type(found) is not int or not 0 <= found < INSTANT_MS_MAX:
        raise ValueError("its inCommitTimestamp is no time in milliseconds")
    return found or modified_ms


def _rows(info: Mapping[str, Any], text: str) -> int:
    metrics = _metrics(info)
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


def _metrics(info: Mapping[str, Any]) -> Mapping[str, int]:
    told = info.get("operationMetrics")
    return {k: int(v) for k, v in told.items() if _is_count(v)} if type(told) is dict else {}


def _written(metrics: Mapping[str, int]) -> int | None:
    merged = [metrics[name] for name in _MERGED if name in metrics]
    others = (metrics.get(name) for name in ("numUpdatedRows", "numDeletedRows", "numOutputRows"))
    return sum(merged) if merged else next((n for n in others if n is not None), None)


def _shown(version: int, info: Mapping[str, Any], *, changes_rows: bool) -> Mapping[str, Any]:
    """What a commit tells of itself; null where it says nothing, or something of another type."""
    read = info.get("readVersion")
    return {
        "operation": _text(info.get("operation")),
        "operation_parameters": _texts(info.get("operationParameters")),
        "operation_metrics": _texts(info.get("operationMetrics")),
        "user_metadata": _text(info.get("userMetadata")),
        "version": version,
        "read_version": read if type(read) is int and 0 <= read < 2**63 else None,
        "changes_rows": changes_rows,
    }


def _text(value: Any) -> str | None:
    """A text that a column can hold: half of a surrogate pair is no character."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else None


def _texts(value: Any) -> list[tuple[str, str | None]] | None:
    """A map of texts; a value that is none is its JSON."""
    if not isinstance(value, dict):
        return None
    return [
        (_text(k) or "", v if v is None else _text(v if isinstance(v, str) else json.dumps(v)))
        for k, v in value.items()
    ]


def _is_count(value: Any) -> bool:
    return isinstance(value, str) and bool(_COUNT.fullmatch(value))


def _note(user_metadata: Any) -> Mapping[str, Any]:
    """What a commit says of an entry; anybody may write such a note."""
    if not isinstance(user_metadata, str):
        return {}
    try:
        noted = orjson.loads(user_metadata)["tidegate"]
    except (ValueError, KeyError, TypeError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _depth(note: Mapping[str, Any], own_stores: Collection[str]) -> int:
    """The depth that one of our own stores noted."""
    depth = note.get("depth")
    if type(depth) is not int or not 0 <= depth <= DEPTH_MAX:
        return 0
    return depth if _is_own(note, own_stores) else 0


def _writer(note: Mapping[str, Any], own_stores: Collection[str]) -> tuple[str, str] | None:
    """The rulebook and the rule that one of our own stores noted."""
    rulebook, rule = note.get("rulebook"), note.get("rule")
    if not isinstance(rulebook, str) or not isinstance(rule, str):
        return None
    return (rulebook, rule) if _is_own(note, own_stores) else None


def _is_own(note: Mapping[str, Any], own_stores: Collection[str]) -> bool:
    store = note.get("store")
    return isinstance(store, str) and store in own_stores
