"""What holds goes on where it was: over restarts, and from its end to the rules that name it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.replay.why_not.stored import Stored
from tests.support.make import BEGIN, SECOND
from tidegate.engine.store import open_store

BOOK = """
rulebook: plant
events:
  over: {signal: {k: bigint}}
  under: {signal: {k: bigint}}
rules:
  hot: {on: {holds: over, until: under, for: 10 s, keep: 5 s}, per: k}
  cooled: {on: resolved hot, per: k}
"""


def test_it_goes_on_after_restarts(empty_store: Path, tmp_path: Path) -> None:
    """One while it is pending, one while it fires, one while an end waits for `keep`."""
    file = shutil.copy(empty_store, tmp_path / "plant.db")
    with open_store(f"sqlite:///{file}", create=False) as store:
        run = Stored(store, BOOK)
        run.signal(1, "over", k=1)
        run.at(5).again(BOOK).at(12).again(BOOK)
        assert [fired["rule"] for fired in listed(run)] == ["hot"]
        run.signal(20, "under", k=1)
        run.at(22).again(BOOK).at(40)
        hot, cooled = listed(run)
        assert (hot["rule"], hot["start"], hot["end"]) == ("hot", 1, 11)
        assert (cooled["rule"], cooled["start"], cooled["end"]) == ("cooled", 25, 25)
        assert hot["firing_id"] != cooled["firing_id"]
        run.again(BOOK).at(60)
        assert [fired["firing_id"] for fired in listed(run)] == [
            hot["firing_id"],
            cooled["firing_id"],
        ], "each once"


def listed(run: Stored) -> list[Mapping[str, Any]]:
    """Its firings, with their instants in seconds after BEGIN."""
    return sorted(
        (
            {**fired, "start": seconds(fired["start"]), "end": seconds(fired["end"])}
            for fired in run.store.of(run.name).firings.listed()
        ),
        key=lambda fired: fired["end"],
    )


def seconds(said: str) -> int:
    return int(datetime.fromisoformat(said).timestamp()) - BEGIN // SECOND
