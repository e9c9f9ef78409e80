"""The engine gives what the page's table says, wherever a history is cut."""

from __future__ import annotations

import pytest

from tests.detect.scripts.compared import SECOND, emissions, simple
from tests.reference.eventscript.evaluate import Event
from tests.reference.eventscript.rows import HOURS, PROGRAMS, ROWS, Items, Row, timed
from tidegate.engine.detect.scripts import column_expressions, run
from tidegate.engine.detect.scripts.inputs import Source


@pytest.fixture(autouse=True, params=[0, 10**9], ids=["compiled", "interpreted"])
def _smallest_compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs twice: with all buckets compiled that can be, and with none."""
    monkeypatch.setattr(run, "COMPILED_MIN", request.param)
    monkeypatch.setattr(column_expressions, "COMPILED_AFTER", request.param)


def events(items: Items) -> list[Event]:
    return [Event(second * SECOND, name, value) for second, name, value in items]


def micros(second: int | None) -> int | None:
    return None if second is None else second * SECOND


@pytest.mark.parametrize("machine", ["auto", "hierarchical"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_row(row: Row, machine: str) -> None:
    given = events(row.events)
    for cuts in ([], [event.time for event in given]):
        found = emissions(
            row.text,
            given,
            start=micros(row.start),
            until=micros(row.until),
            machine=machine,
            cuts=cuts,
        )
        assert simple(found) == row.expected


def test_windows_piped_into_the_alarm() -> None:
    windows = emissions((PROGRAMS / "windows.es").read_text(), events(HOURS))
    piped = [Event(out.time, out.output, out.value) for out in windows]
    sources = {"N": Source(script="first"), "A": Source(script="first")}
    found = emissions((PROGRAMS / "alarm.es").read_text(), piped, sources=sources)
    assert simple(found) == timed("Alarm11000")
