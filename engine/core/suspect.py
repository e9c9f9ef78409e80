"""Texts of a rulebook while Spark runs them, and what they have done to Spark (G13)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

STRIKES_MAX = 2
"""An item is quarantined after so many strikes. It ran alone at the last of them."""
ENDS_PER_STRIKE = 3
"""So many unexplained ends of the process count as one strike. One end says little: whoever kills
an engine also kills what happens to run."""

Text = tuple[str, str, str]
"""The kind, the subject and the text of a suspect: its key without the part."""

DEATH, OVERRUN, END = "deaths", "overruns", "ends"


@dataclass(frozen=True, slots=True)
class Suspect:
    """A text that Spark runs now. Texts are told apart by `key`.

    `kind`: action | seal | condition | sample | where | read. `subject` is whose text it is: a
    rule, a rule and the number of its action, a table. `text` is a digest of the text. `part` is
    the slice of rows that a `where` is asked of, "" for all. `item` is what the text is run for:
    the number of an entry, a firing, versions. `told` names the suspect in messages.

    Example: entry 12 of rule `pay` is `Suspect("action", "pay/0", "9f3c..", "12", told="action 1
    of rule pay")`. Entry 13 has the same key and another item.
    """

    kind: str
    subject: str
    text: str
    item: str
    part: str = ""
    told: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.kind, self.subject, self.text, self.part

    @property
    def owner(self) -> str | None:
        """The rule whose text it is; None if several rules may share it."""
        owned = self.kind in ("action", "condition", "seal")
        return self.subject.partition("/")[0] if owned else None

    @property
    def whole(self) -> Suspect:
        """The text, whatever part of its rows it is asked of."""
        return replace(self, part="")


@dataclass(frozen=True, slots=True)
class Strikes:
    """The strikes of a suspect since it last ran cleanly.

    `deaths`: how often Spark's Java ended while it ran. `overruns`: how often it took longer than
    statement_seconds_max. `ends`: how often the process ended without an explanation. `suspect`:
    with the item of the last strike. `reason`: of the last strike. `at`: when that was stored,
    microseconds; 0 before.
    """

    suspect: Suspect
    deaths: int = 0
    overruns: int = 0
    ends: int = 0
    reason: str = ""
    at: int = 0

    @property
    def count(self) -> int:
        return self.deaths + self.overruns + self.ends // ENDS_PER_STRIKE

    @property
    def suspected(self) -> bool:
        """Whether there is reason to run it alone."""
        return bool(self.deaths or self.overruns or self.ends)

    def condemns(self, suspect: Suspect) -> bool:
        """Whether the same item of the suspect must not run again."""
        return self.count >= STRIKES_MAX and self.suspect.item == suspect.item

    def struck(self, suspect: Suspect, kind: str, reason: str) -> Strikes:
        """With one strike more. A new item inherits the strikes of its text, so that its own first
        strike is enough."""
        more = {kind: getattr(self, kind) + 1}
        return replace(self, suspect=suspect, reason=reason, **more)

    @property
    def told(self) -> str:
        """What it did, in words: `ended Spark's Java 2 times`."""
        said = (
            (self.deaths, "ended Spark's Java"),
            (self.overruns, "outlasted statement_seconds_max"),
            (self.ends, "ran when the engine's process ended"),
        )
        return " and ".join(f"{what} {'once' if n == 1 else f'{n} times'}" for n, what in said if n)


def text_digest(text: str) -> str:
    """The digest by which the store names a text."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
