"""Short names for what a comparison shows: instants, occurrences, keys."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

import numpy as np
import orjson

from tidegate.engine.replay import times
from tidegate.engine.replay.compare.model import ComparedDetection, Comparison, Occurrence
from tidegate.rules.model import Context

_FAR_SECONDS = 100_000
"""Numbers of seconds beyond it are shown from the first instant on."""

MEANINGS = {
    Context.RESTRICTED: ("the one that began last", "nothing is consumed"),
    Context.RECENT: ("the one that began last", "it and everything older of its types is consumed"),
    Context.CHRONICLE: ("the oldest, then again", "its occurrences are consumed"),
    Context.CONTINUOUS: ("for each initiator the oldest", "an initiator initiates once"),
    Context.CUMULATIVE: ("all of them as one", "all of it is consumed"),
    Context.UNRESTRICTED: ("every combination", "nothing is consumed"),
}
"""What each context detects, and what it then consumes."""


class Labels:
    """Instants are shown as in the trace, but without what all of them share: the date, or the
    seconds up to the first; `note` says what was left out."""

    def __init__(self, compared: Comparison) -> None:
        instants = {o.time for o in compared.occurrences}
        for column in compared.columns:
            for found in column.found:
                instants |= {found.start, found.end, *(o.time for o in found.constituents)}
        self.instants = sorted(instants)
        self.note = ""
        shown = self._printed(self.instants, compared.iso)
        if compared.iso and len({text[:10] for text in shown}) == 1:
            self.note = f"times of {shown[0][:10]}, UTC"
            shown = [re.sub(r"(\.\d*?)0*Z$|Z$", r"\1", text[11:]) for text in shown]
        elif not compared.iso and shown and abs(self.instants[0]) > _FAR_SECONDS * 1_000_000:
            self.note = f"times in seconds after {shown[0]}"
            shown = self._printed([t - self.instants[0] for t in self.instants], iso=False)
        self._shown = dict(zip(self.instants, shown, strict=True))

    @staticmethod
    def _printed(instants: list[int], iso: bool) -> list[str]:
        texts = times.printed(np.array(instants, dtype=np.int64), iso=iso)
        return [text.strip('"') for text in texts.to_pylist()]

    def time(self, instant: int) -> str:
        return self._shown[instant]

    def detected(self, found: ComparedDetection, shown: str) -> str:
        """Its constituents as `shown`, after its interval where these do not tell it."""
        whole = [o.time for o in found.constituents]
        plain = whole and (min(whole), max(whole)) == (found.start, found.end)
        return shown if plain else f"{self.interval(found)} {shown}"

    def interval(self, found: ComparedDetection) -> str:
        return f"[{self.time(found.start)}, {self.time(found.end)}]"

    def occurrence(self, occurrence: Occurrence) -> str:
        number = f"#{occurrence.number}" if occurrence.number > 1 else ""
        return f"{occurrence.event}@{self.time(occurrence.time)}{number}"

    def occurrences(self, some: Iterable[Occurrence]) -> str:
        return " ".join(map(self.occurrence, some)) or "(none)"

    def grouped(self, some: Iterable[Occurrence]) -> str:
        """The same for narrow columns: `declined 09:00:40 09:01:05 paid 09:03:00`."""
        runs = groupby(some, key=lambda o: o.event)
        texts = (
            " ".join([event, *(self.occurrence(o).removeprefix(f"{event}@") for o in run)])
            for event, run in runs
        )
        return " ".join(texts) or "(none)"


def key_label(key: str) -> str:
    """A key as `account 7`; nothing for a rule without keys."""
    values = orjson.loads(key).items()
    return ", ".join(f"{name} {orjson.dumps(value).decode()}" for name, value in values)
