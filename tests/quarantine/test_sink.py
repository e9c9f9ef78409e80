"""Statements in one commit: a death among them is nobody's, and then each runs alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.quarantine.poison import LOST, Engine
from tests.support import make
from tidegate.engine.core.entries import Entry, Fate
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.values import Firings
from tidegate.engine.quarantine.sink import WatchedSink, _action
from tidegate.rules.errors import EngineError

ENTRIES = [make.numbered(n, "abc"[n - 1], target="out", appends=True) for n in (1, 2, 3)]
GIVEN = [(entry, make.firings(entry.rule, 1)) for entry in ENTRIES]


class Given:
    """What it is given; `error` is raised then."""

    def __init__(self) -> None:
        self.together: list[list[int]] = []
        self.error: Exception | None = None

    def run_together(self, entries: Sequence[tuple[Entry, Firings]]) -> None:
        self.together.append([entry.number for entry, _ in entries])
        if self.error:
            raise self.error

    def fate(self, *_: Any) -> Fate:
        return Fate.EFFECT


def watched(engine: Engine) -> tuple[WatchedSink, Given]:
    given = Given()
    return WatchedSink(given, engine.quarantine), given  # type: ignore[arg-type]


def test_g13_who_is_suspected_runs_alone_and_the_others_together() -> None:
    engine = Engine()
    sink, given = watched(engine)
    given.error = LOST
    with pytest.raises(EngineError, match="Spark is gone"):
        sink.run_together(GIVEN)
    assert len(engine.store.struck) == 3
    given.error = None
    sink.run_together(GIVEN)  # each is suspected, and runs alone
    sink.fate(*GIVEN[0])  # has landed, and is cleared
    sink.run_together(GIVEN)
    sink.fate(*GIVEN[2])
    sink.run_together(GIVEN)
    assert given.together == [[1, 2, 3], [1, 3]]


def test_g13_what_follows_a_suspect_in_its_rule_does_not_share_either() -> None:
    """Its greater marker would pass over the suspect; of a redriven one, its rows come later."""
    engine = Engine()
    sink, given = watched(engine)
    first, second = (
        make.numbered(n, "a", target="out", appends=True, action=n, app_id=app_id, place=n % 9)
        for n, app_id in ((9, "a/redrive/0/0"), (5, "a"))
    )
    engine.quarantine.overran([_action(first)], "late")
    mine = [(entry, make.firings("a", 1)) for entry in (first, second)]
    sink.run_together([*mine, *GIVEN[1:]])
    assert given.together == [[2, 3]]


def test_g13_an_overrun_among_several_is_no_strike_for_any() -> None:
    engine = Engine()
    sink, given = watched(engine)
    given.error = SinkError("[OVERRUN] it took longer", overrun=True)
    with pytest.raises(SinkError, match="OVERRUN"):
        sink.run_together(GIVEN)
    assert engine.store.struck == {}
