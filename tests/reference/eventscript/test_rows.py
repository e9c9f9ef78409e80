"""The reference gives what the page's table says (EventScript; page, 6)."""

from __future__ import annotations

import pytest

from tests.reference.eventscript.evaluate import Emission, Event, run
from tests.reference.eventscript.reading import program
from tests.reference.eventscript.rows import HOURS, PROGRAMS, ROWS, Items, Row, timed

SECOND = 1_000_000


def events(items: Items) -> list[Event]:
    return [Event(second * SECOND, name, value) for second, name, value in items]


def shown(emissions: list[Emission]) -> Items:
    return [(each.time // SECOND, each.output, each.value) for each in emissions]


def micros(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * SECOND


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_row(row: Row) -> None:
    found = run(
        program(row.text), events(row.events), start=micros(row.start), until=micros(row.until)
    )
    assert shown(found) == row.expected


def test_windows_piped_into_the_alarm() -> None:
    """Windows with an abnormal reading three times in a row (paper 3.2)."""
    windows = run(program((PROGRAMS / "windows.es").read_text()), events(HOURS))
    piped = [Event(each.time, each.output, each.value) for each in windows]
    alarm = program((PROGRAMS / "alarm.es").read_text())
    found = run(alarm, piped, emitted={"N": "first", "A": "first"})
    assert shown(found) == timed("Alarm11000")


def test_a_block_that_leads_to_itself_is_refused() -> None:
    with pytest.raises(Exception, match="itself"):
        run(program((PROGRAMS / "cyclic.es").read_text()), events(timed("A1")))
