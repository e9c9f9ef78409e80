"""The story of a firing, as frozen values. `as_json` is its form for programs.

Instants are microseconds since the epoch, UTC; in JSON they are ISO 8601. A value that retention
has taken is None, and its path stands under `gone`, as `constituents.0.bucket`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from tidegate.engine.core.text.json_text import instant, value


@dataclass(frozen=True, slots=True)
class Constituent:
    """An occurrence that the firing is made of. `table`, `version`: of the commit that has its row;
    `signal`: its id, in `namespace`; `script`: what has emitted it. All None for ticks and clocks.
    `bucket`: the one in which it arrived. `waited_seconds`: from its own instant to the end of the
    firing. `row`: its parameters, as `firings` shows them."""

    event: str
    time: int
    table: str | None = None
    version: int | None = None
    signal: str | None = None
    namespace: str | None = None
    script: str | None = None
    bucket: int | None = None
    waited_seconds: float = 0.0
    row: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Condition:
    """The `if`. `outcome`: held, failed, dead (it could not be asked) or none. `values`: of an
    expression, by aggregate or column. `versions`: of a query, the versions that it saw, by table.
    `in_log`: the tables of which the table's log alone tells the version. `asked_again`: what the
    query says now of those versions, None if nobody asked."""

    text: str | None
    outcome: str
    values: Mapping[str, Any] = field(default_factory=dict)
    query: bool = False
    coupling: str | None = None
    versions: Mapping[str, int] = field(default_factory=dict)
    in_log: tuple[str, ...] = ()
    asked_again: str | None = None


class AskedAgain(NamedTuple):
    """What a query says now, as a sentence, and the versions that it was asked of, by table."""

    said: str
    versions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Asked:
    """What an operator asked of an entry, as `redrive`, and what came of it."""

    kind: str
    option: str | None
    by: str | None
    at: int
    answer: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """A statement that was run for the firing. `does`: what it is, without secrets. `firings`: for
    how many firings it ran at once. `signals`: how many
    the firing raised by it. `in_place_of`: the entry that was redriven by this one; `replaced_by`:
    the one that this was redriven by. `next_attempt_at`: None unless it waits for one. `commands`:
    those that get past a held or dead one."""

    number: int
    kind: str
    state: str
    attempts: int
    table: str | None
    version: int | None
    rows: int | None
    error: str | None
    does: str = ""
    alternative: bool = False
    fate: str | None = None
    firings: int = 1
    signals: int = 0
    stored_at: int = 0
    begun_at: int | None = None
    settled_at: int | None = None
    next_attempt_at: int | None = None
    in_place_of: int | None = None
    replaced_by: int | None = None
    asked: tuple[Asked, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A firing that this one came of, or that came of it. `via`: by what, as `orders version 7`.
    `rulebook`: of the firing, where it is another one of the store."""

    firing_id: str
    rule: str | None
    via: str
    rulebook: str | None = None


@dataclass(frozen=True, slots=True)
class Edited:
    """What the rule says now, where it was edited since; None: there is no such rule any more."""

    version: int
    sentence: str | None


@dataclass(frozen=True, slots=True)
class Story:
    """Why a firing is there, and what became of it. `detected_at`: when the engine planned the
    bucket in which it was detected. `rulebook_version`: of the text that the rule had. `sentence`:
    that text in short. `sentences`: when the rule fires and with what, as `explain` says it. `dry`:
    it ran without actions. `context`: None where none chose. `window`: it has a window, which takes
    all its rows. `notes`: sentences on what is not told otherwise."""

    firing_id: str
    rulebook: str
    timezone: str
    rule: str
    key: Mapping[str, Any]
    start: int
    end: int
    detected_at: int
    bucket: int
    sentence: str | None
    constituents: tuple[Constituent, ...]
    condition: Condition
    damped: str | None
    entries: tuple[Entry, ...]
    causes: tuple[Link, ...]
    effects: tuple[Link, ...]
    depth: int = 1
    dry: bool = False
    context: str | None = None
    window: bool = False
    sentences: tuple[str, ...] = ()
    rulebook_version: int = 0
    edited: Edited | None = None
    notes: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


_INSTANTS = frozenset(
    {"start", "end", "detected_at", "time", "stored_at", "begun_at", "settled_at",
     "next_attempt_at", "at"}
)  # fmt: skip


def as_json(story: Story) -> dict[str, Any]:
    """The story as JSON has it: `causes` and `effects` are ids, `links` says more of each."""
    links = (*story.causes, *story.effects)
    told = _plain({**asdict(story), "key": value(story.key)})
    return {
        **told,
        "causes": [link.firing_id for link in story.causes],
        "effects": [link.firing_id for link in story.effects],
        "links": {
            link.firing_id: {"rulebook": link.rulebook, "rule": link.rule, "via": link.via}
            for link in links
        },
    }


def _plain(told: Any, name: str = "") -> Any:
    match told:
        case dict() if name not in ("row", "values", "key"):
            return {key: _plain(item, key) for key, item in told.items()}
        case list() | tuple():
            return [_plain(item) for item in told]
        case int() if name in _INSTANTS:
            return instant(told)
    return told
