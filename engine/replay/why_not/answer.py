"""An answer of `why-not`: the rungs of the ladder, as text and as JSON.

quick, card 7, 2026-03-01 09:10:00 to 2026-03-02 09:10:00 (Europe/Berlin)
  ✓ active        Rule quick was active since 08:00:00.
  ..
  ✗ parts         `large ; large` took 5 min 12 s for card 7, ..
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.engine.core.text.json_text import instant, value
from tidegate.engine.replay.why_not.evidence import Key, Rung
from tidegate.engine.replay.why_not.timeline import Timeline
from tidegate.engine.replay.why_not.words import Words, key_options, key_phrase
from tidegate.rules.model import Rule

_INSTANTS = frozenset(
    {
        "begin", "end", "start", "instant", "until", "watermark", "known_from", "last", "from",
        "to", "due", "opened", "closed", "came", "first", "then", "stood", "by_instant",
    }
)  # fmt: skip
_OF_TABLES = frozenset({"row", "old", "values", "key", "disabled_for", "counts", "constituents"})
"""The names of evidence whose mappings have names of columns and event types."""


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why `rule` did not fire for `key` in [`since`, `at`], microseconds: the rungs up to the first
    that is not ok. `notes`: what is not known, and what has changed since. `asked`: the rule as its
    text was then. `timeline`: what came for the key."""

    rule: str
    key: Key
    at: int
    since: int
    rungs: Sequence[Rung]
    notes: Sequence[str]
    words: Words
    asked: Rule
    timeline: Timeline

    @property
    def fired(self) -> str | None:
        """The firing, if it fired."""
        last = self.rungs[-1]
        return str(last.evidence["firing_id"]) if last.ok else None

    @property
    def command(self) -> str | None:
        """What tells more of the firing that the last rung is about, if there is one. A query that
        did not hold is asked again."""
        last, condition = self.rungs[-1], self.asked.condition
        firing = last.evidence.get("firing_id")
        if firing is None:
            return None
        again = last.name == "if" and condition is not None and condition.query
        return f"tidegate why {firing}{' --spark' if again else ''}"

    def as_json(self) -> dict[str, Any]:
        """What `--format json` prints."""
        return {
            "rule": self.rule,
            "key": value(self.key),
            "at": instant(self.at),
            "since": instant(self.since),
            "timezone": self.words.zone,
            "fired": self.fired,
            "rungs": [*map(_rung, self.rungs)],
            "notes": [*self.notes],
        }

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """What `--format text` prints."""
        of = f", {key_phrase(self.key)}" if self.key else ""
        when = f"{self.words.dated(self.since)} to {self.words.dated(self.at)}"
        yield f"{self.rule}{of}, {when} ({self.words.zone})"
        width = max(len(rung.name) for rung in self.rungs)
        for rung in self.rungs:
            yield f"  {'✓' if rung.ok else '✗'} {rung.name:{width}}  {rung.sentence}"
        if self.command is not None:
            yield f"    {self.command}"
        if self.fired is not None:
            ended = self.rungs[-1].evidence["instant"]
            if ended < self.at:
                asked = f"{self.rule}{key_options(self.key)}"
                since = self.words.option(ended + 1)
                yield f"    Later ones: `tidegate why-not {asked} --since {since}`"
        yield from (f"  note: {note}" for note in self.notes)


def _rung(rung: Rung) -> dict[str, Any]:
    evidence = {"said": rung.sentence, **_shown(rung.evidence)}
    return {"rung": rung.name, "ok": rung.ok, "evidence": evidence}


def _shown(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence as JSON; instants are ISO 8601."""
    return {name: _value(name, found) for name, found in evidence.items()}


def _value(name: str, found: Any) -> Any:
    if name in _OF_TABLES:
        return value(found)
    if isinstance(found, Mapping):
        return _shown(found)
    if isinstance(found, list | tuple):
        return [_value(name, each) for each in found]
    if name in _INSTANTS and isinstance(found, int) and not isinstance(found, bool):
        return instant(found)
    return value(found)
