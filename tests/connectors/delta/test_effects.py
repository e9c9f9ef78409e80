"""What a target's log says of an entry (G16b), on logs of the test's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tidegate.connectors.delta.commit import LoggedCommit
from tidegate.connectors.delta.effects import Effects
from tidegate.engine.core.entries import Entry, Fate
from tidegate.engine.core.statement import SqlStatement

IDS = ["00" * 16]
ENTRY = Entry(
    "r",
    SqlStatement("INSERT INTO t ..", "t"),
    number=5,
    bucket=1,
    app_id="tidegate/mine/bank/r",
    target_version=2,
)


class Log:
    """Notes by version, each in a commit of its own. `read` are the versions asked for."""

    def __init__(self, notes: dict[int, dict[str, Any]]) -> None:
        self.notes, self.read = notes, []

    def forget(self, version: int | None = None) -> None:
        assert version == 3

    def parsed_ms(self, _: int) -> int | None:
        return None

    def commit(self, version: int) -> LoggedCommit | None:
        self.read.append(version)
        if version not in self.notes:
            return None
        found = self.notes[version]
        notes = tuple(found) if isinstance(found, list) else (found,)
        return LoggedCommit(version, 0, "WRITE", 1, 0, True, None, frozenset(), notes, written=9)


def effects(notes: dict[int, dict[str, Any]]) -> tuple[Effects, Log]:
    made, log = Effects(None, {}), Log(notes)  # type: ignore[arg-type]
    made._logs["t"] = log  # type: ignore[assignment]
    return made, log


def note(store: str = "mine", entry: Any = 5, **more: Any) -> dict[str, Any]:
    app_id = f"tidegate/{store}/bank/r"
    return {"app_id": app_id, "entry": entry, "action": 0, "firings": 1, **more}


@pytest.mark.parametrize(
    ("noted", "fate"),
    [
        (note(ids=IDS), Fate.EFFECT),
        (note(sealed=True), Fate.SEALED),
        (note("other", ids=IDS), None),  # another store has numbers of its own
        (note("other", sealed=True), None),
        (note(entry=4, ids=IDS), None),
        (note(entry=4, sealed=True), None),
        (note(ids=["11" * 16]), None),  # the number was given twice: a store from a backup
        (note(ids=[]), None),
        (note(ids=IDS, firings=2), None),  # the first of more: another history's bucket
        (note(ids=IDS, action=1), None),  # another one of its rule: two copies of a store
        (note(ids=IDS, app_id="tidegate/mine/bank/r/otherwise"), None),
        (note(sealed="no"), None),
        ({}, None),
    ],
)
def test_g16b_whose_effect_or_seal_a_commit_is(noted: dict[str, Any], fate: Fate | None) -> None:
    before, other = note(ids=IDS), note("other", entry=9)
    made, log = effects({2: before, 3: other, 4: noted, 5: other})
    assert made.told(ENTRY, IDS, 1) is fate
    assert log.read == [3, 4] if fate else [3, 4, 5, 6]  # none before it was stored


def test_g16b_a_marker_that_was_passed_is_only_called_so_by_a_whole_log() -> None:
    made, _ = effects({3: {}, 4: {}, 6: {}})
    assert made.passed(ENTRY, 4) is Fate.PASSED
    assert made.passed(ENTRY, 6) is Fate.UNKNOWN  # version 5 may hold it
    assert made.passed(ENTRY, 2) is Fate.UNKNOWN  # the target has fewer versions than it had


def test_g16b_a_shared_commit_names_each_of_its_entries() -> None:
    """How many rows each wrote is known only where the commit was made just now."""
    shared = [note(entry=4, ids=IDS), note(ids=IDS), note(entry=6, sealed=True)]
    made, _ = effects({3: shared})  # type: ignore[dict-item]
    assert made.told(ENTRY, IDS, 1) is Fate.EFFECT
    assert made.seen(ENTRY) == (3, None)
    made.counted({5: 2, 4: 7})
    assert made.told(ENTRY, IDS, 1) is Fate.EFFECT
    assert made.seen(ENTRY) == (3, 2)
    assert made.told(replace(ENTRY, number=4), ["11" * 16], 1) is None
    assert effects({3: note(ids=IDS)})[0].told(ENTRY, IDS, 1) is Fate.EFFECT
