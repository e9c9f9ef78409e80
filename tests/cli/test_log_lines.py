"""Lines of the log, as a terminal shows them."""

from __future__ import annotations

import logging
import time

from tidegate.engine.cli.output import LogFormatter
from tidegate.engine.core.text.logs import nobodys, speak_for, speaker, thread_of

DAY_SECONDS = 86_400


def line(formatter: LogFormatter, level: int, at: float) -> str:
    record = logging.LogRecord("tidegate", level, "", 0, "it is so", None, None)
    record.created = at
    return formatter.format(record)


def test_every_line_has_its_time_and_the_first_of_a_day_its_date() -> None:
    formatter, now = LogFormatter(), time.time()
    today, later = time.localtime(now), time.localtime(now + 2 * DAY_SECONDS)
    clock, date = time.strftime("%H:%M:%S", today), time.strftime("%Y-%m-%d", later)
    assert line(formatter, logging.INFO, now) == f"{clock} it is so"
    assert line(formatter, logging.WARNING, now) == f"{clock} WARNING it is so"
    clock = time.strftime("%H:%M:%S", later)
    assert line(formatter, logging.ERROR, now + 2 * DAY_SECONDS) == f"{date} {clock} ERROR it is so"
    assert line(formatter, logging.INFO, now + 2 * DAY_SECONDS) == f"{clock} it is so"


def test_what_is_of_the_whole_process_names_no_rulebook() -> None:
    """A Spark that one engine starts is that of all."""
    said: list[str] = []

    def told() -> None:
        said.append(speaker())
        with nobodys():
            thread = thread_of(lambda: said.append(speaker()), name="spark")
            thread.start()
            thread.join()
        said.append(speaker())

    def speak() -> None:
        speak_for("bank")
        told()

    engine = thread_of(speak, name="engine")
    engine.start()
    engine.join()
    assert said == ["bank", "", "bank"]
