"""One commit of a Delta log, read from its JSON (no Spark).

Anybody may have written it. A needed field of another shape than Delta writes raises DamagedCommit;
an odd estimate or note is ignored.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tidegate.connectors.delta.appends import AddedFile, added_files
from tidegate.engine.core.markers import parse_marker

_ROWS_OF_ADD = re.compile(r'\\"numRecords\\":([0-9]{1,15})(?![0-9])')
_ADD = re.compile(r'\s*\{\s*"add"')
_SIZE = re.compile(r'(?<!\\)"size"\s*:\s*([0-9]{1,18})')
_BYTES_A_ROW = 100  # of a file that does not say how many it has
_COUNT = re.compile(r"[0-9]{1,15}")
# Writers other than Spark may put blanks between the signs.
_HEAD_ACTION = re.compile(r'\s*\{\s*"(?:commitInfo|metaData|protocol)"')
_DATA_MARKS = (re.compile(r'"dataChange"\s*:\s*true'), re.compile(r'\{\s*"cdc"\s*:'))
_SEAL_ACTION = re.compile(r'\s*\{\s*"(?:commitInfo|txn)"')
_OF_MERGE = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
_OF_OTHERS = ("numUpdatedRows", "numDeletedRows", "numOutputRows")
# An updated row is two rows of the feed: its images before and after.
_IMAGES = {"numTargetRowsUpdated": 2, "numUpdatedRows": 2}
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
        """Whether a catalog manages the commits: then the log alone does not show them all."""
        coordinator = "delta.coordinatedCommits.commitCoordinator-preview"
        return bool(self.configuration.get(coordinator))

    def _on(self, name: str) -> bool:
        return self.configuration.get(name, "").lower() == "true"


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """What the engine needs to know of one commit.

    instant: microseconds; its in-commit timestamp, else the time at which its file was modified
    (G1). rows: an estimate of its rows in the feed; 0: unknown. changes_data: whether it changes
    any row. metadata: its metadata action, if it has one. features: table features that its
    protocol action names.
    notes: what an engine writes of each entry of its commit into userMetadata; none for other
    commits. depth: the largest cascade depth that they give (G16), else 0. writer: rulebook and
    rule that they give, None where they differ. Depth and writer are believed only where one of our
    own stores is named.
    seal: the commit is an engine's seal of an entry and holds nothing else (G18).
    shown: its columns for `on: commit` (`engine.core.parameters.commit_schema`).
    written: how many rows it inserted, changed or deleted, where it says so. digest: of its file's
    text; it changes where somebody writes the same version anew. appended: its files, where it is a
    plain append (`appends.py`).
    """

    version: int
    instant: int
    operation: str
    rows: int
    depth: int
    changes_data: bool
    metadata: Metadata | None
    features: frozenset[str]
    notes: tuple[Mapping[str, Any], ...] = ()
    shown: Mapping[str, Any] = field(default_factory=dict)
    seal: bool = False
    written: int | None = None
    writer: tuple[str, str] | None = None
    digest: str = ""
    appended: tuple[AddedFile, ...] | None = None


class DamagedCommit(ValueError):
    """A commit file of another shape than Delta writes."""

    def __init__(self, version: int, reason: str) -> None:
        self.version = version
        super().__init__(reason)


def parse_commit(
    version: int, text: str, modified_ms: int, own_stores: Collection[str] = ()
) -> LoggedCommit:
    """One commit from the text of its file. `own_stores`: ids of the stores whose notes of depth
    and writer are believed. Raises DamagedCommit."""
    try:
        return _parsed(version, text, modified_ms, own_stores)
    except RecursionError:
        raise DamagedCommit(version, "it is nested too deeply") from None
    except ValueError as error:
        raise DamagedCommit(version, str(error)) from error


def _parsed(version: int, text: str, modified_ms: int, own_stores: Collection[str]) -> LoggedCommit:
    actions: dict[str, Any] = {}
    for line in text.split("\n"):  # not splitlines(): a JSON text may hold U+2028
        if _HEAD_ACTION.match(line):
            actions.update(_json(line))
    info = _fields(actions, "commitInfo")
    changes_data = any(mark.search(text) for mark in _DATA_MARKS)
    operation = info.get("operation")
    notes, metrics = _notes(info.get("userMetadata")), _metrics(info)
    stores = [note.get("store") for note in notes]
    own = [isinstance(store, str) and store in own_stores for store in stores]
    believed = [note for note, mine in zip(notes, own, strict=True) if mine]
    return LoggedCommit(
        version=version,
        instant=_instant_ms(info, modified_ms) * MILLISECOND,
        operation=operation if isinstance(operation, str) else "",
        rows=_rows(metrics, text) if changes_data else 0,
        depth=max(map(_depth, believed), default=0),
        changes_data=changes_data,
        metadata=parse_metadata(_fields(actions, "metaData")) if "metaData" in actions else None,
        features=parse_features(_fields(actions, "protocol")),
        notes=notes,
        shown=_shown(version, info, changes_rows=changes_data),
        seal=len(notes) == 1 and notes[0].get("sealed") is True and _is_marker(text, notes[0]),
        written=sum(metrics.values()) if metrics else None,
        writer=_writer(believed) if len(believed) == len(notes) else None,
        digest=_digest(text),
        appended=added_files(text) if changes_data else None,
    )


def _is_marker(text: str, note: Mapping[str, Any]) -> bool:
    """Whether a commit consists of a note and the marker of the entry that the note names, and of
    nothing else. Only such a commit is a seal: a note alone must not hide rows, or the marker of
    another program."""
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
    """A metadata action. Raises ValueError where it has no id or no schema."""
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
        return json.loads(text)  # it takes half a surrogate pair, as Delta does


def _fields(action: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A field of an action that holds an object; empty where it is missing or null."""
    found = action.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError(f"its {name} is no JSON object")
    return found


def _is_schema(text: str) -> bool:
    """Whether each column of a schema has a name and a type. The engine looks at nothing else."""
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


def _rows(metrics: Mapping[str, int], text: str) -> int:
    """An estimate of the rows of the feed: from the metrics, else from the files added."""
    if metrics:
        return sum(count * _IMAGES.get(name, 1) for name, count in metrics.items())
    return sum(map(_rows_of, filter(_ADD.match, text.split("\n"))))


def _rows_of(add: str) -> int:
    """How many rows an added file has; without statistics, what its size suggests."""
    if said := _ROWS_OF_ADD.search(add):
        return int(said[1])
    size = _SIZE.search(add)
    return int(size[1]) // _BYTES_A_ROW if size else 0


def _metrics(info: Mapping[str, Any]) -> Mapping[str, int]:
    """How many rows the commit says it has written: those of a MERGE by kind, else one number."""
    told = info.get("operationMetrics")
    texts = {k: v for k, v in told.items() if isinstance(v, str)} if type(told) is dict else {}
    counts = {name: int(text) for name, text in texts.items() if _COUNT.fullmatch(text)}
    merged = [name for name in _OF_MERGE if name in counts]
    others = [name for name in _OF_OTHERS if name in counts]
    return {name: counts[name] for name in merged or others[:1]}


def _shown(version: int, info: Mapping[str, Any], *, changes_rows: bool) -> Mapping[str, Any]:
    """The columns of `on: commit`; null where the commit has no such field, or of another type."""
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
    """A text that a column can hold: half a surrogate pair becomes `?`."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else None


def _texts(value: Any) -> list[tuple[str, str | None]] | None:
    """A map as pairs of texts; a value that is no text becomes its JSON."""
    if not isinstance(value, dict):
        return None
    return [
        (_text(k) or "", v if v is None else _text(v if isinstance(v, str) else json.dumps(v)))
        for k, v in value.items()
    ]


def _notes(user_metadata: Any) -> tuple[Mapping[str, Any], ...]:
    """What a commit says in its userMetadata of its entry, or of each of several; none where that
    are no such notes."""
    if not isinstance(user_metadata, str):
        return ()
    try:
        noted = orjson.loads(user_metadata)["tidegate"]
    except (ValueError, KeyError, TypeError):
        return ()
    several = noted if isinstance(noted, list) else [noted]
    return tuple(several) if all(isinstance(note, dict) for note in several) else ()


def _depth(note: Mapping[str, Any]) -> int:
    """The cascade depth in a note, else 0."""
    depth = note.get("depth")
    return depth if type(depth) is int and 0 <= depth <= DEPTH_MAX else 0


def _writer(notes: Collection[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Rulebook and rule in notes, if all of them say the same."""
    named = [(note.get("rulebook"), note.get("rule")) for note in notes]
    rulebook, rule = named[0] if named and named.count(named[0]) == len(named) else (None, None)
    return (rulebook, rule) if isinstance(rulebook, str) and isinstance(rule, str) else None
